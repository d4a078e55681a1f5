// StudioProgram: interlock studio as a user runs it, and questions to it over plain sockets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace interlock {

/// A connection to 127.0.0.1 that speaks HTTP by hand.
class HttpCall {
 public:
  /// Sends `request`, a head that ends with an empty line, and what follows it.
  HttpCall(int port, const std::string& request);
  ~HttpCall();
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  /// Reads until `words` have come, or the end. Returns all that has come.
  const std::string& until(const std::string& words);
  /// Reads to the end.
  const std::string& all() { return until(""); }
  /// The status, e.g. 403. REQUIRES: the head has come.
  int status() const;

 private:
  int socket_ = -1;
  std::string come_;
};

class StudioProgram {
 public:
  /// Starts `program studio arguments...` and waits for its address.
  StudioProgram(const std::string& program, const std::vector<std::string>& arguments);
  ~StudioProgram();
  StudioProgram(const StudioProgram&) = delete;
  StudioProgram& operator=(const StudioProgram&) = delete;

  /// "http://127.0.0.1:PORT/TOKEN/"; empty if it ended without one.
  const std::string& address() const { return address_; }
  int port() const;
  /// "/TOKEN/".
  std::string path() const;
  pid_t process() const { return process_; }

  /// The request that asks `question`.
  std::string request(const nlohmann::json& question) const;
  /// Asks, and returns the last line of the answer; null if none came.
  nlohmann::json ask(const nlohmann::json& question) const;

  /// Sends `signal`, and returns the exit code; 128 + the signal that ended it.
  int end(int signal);

 private:
  pid_t process_ = -1;
  std::string address_;
};

/// Processes below `process`, at any depth, that still run.
std::vector<pid_t> processes_below(pid_t process);
bool runs(pid_t process);

}  // namespace interlock
