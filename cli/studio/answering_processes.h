// AnsweringProcesses: a process for each question, so that a crash or a cancel ends one alone.
// SPDX-License-Identifier: Apache-2.0
//
// A server has threads, and a process with threads is not to be forked. So one process is forked
// before there are any; it does nothing but fork further ones, each of which gets a question over a
// socket of its own, writes lines, and dies when the other end of the socket is closed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace interlock {

/// Writes a line to the process that asked.
using LineSink = std::function<void(const std::string& line)>;
/// Answers `question` in lines; called in a process of its own.
using Answerer = std::function<void(const std::string& question, const LineSink& say)>;

/// A question under way; ending it ends the process that answers, and those that work for it.
class AskedQuestion {
 public:
  /// Takes the socket over.
  explicit AskedQuestion(int socket) : socket_(socket) {}
  ~AskedQuestion();
  AskedQuestion(const AskedQuestion&) = delete;
  AskedQuestion& operator=(const AskedQuestion&) = delete;

  /// Waits for bytes of the answer, at most `milliseconds`, and appends them to `text`.
  enum class Heard { Bytes, Nothing, End };
  Heard hear(std::string& text, int milliseconds);

 private:
  int socket_;
};

class AnsweringProcesses {
 public:
  /// Forks the process that forks. REQUIRES: this process has one thread.
  /// Throws: Error if there can be no further process.
  explicit AnsweringProcesses(const Answerer& answer);
  ~AnsweringProcesses();
  AnsweringProcesses(const AnsweringProcesses&) = delete;
  AnsweringProcesses& operator=(const AnsweringProcesses&) = delete;

  /// Asks; returns the socket of an AskedQuestion. Throws: Error if there are no sockets left.
  int ask(const std::string& question) const;

 private:
  pid_t forker_ = -1;
  int control_ = -1;
};

}  // namespace interlock
