// StudioServer: the page of the studio and its questions, over HTTP on loopback.
// SPDX-License-Identifier: Apache-2.0
//
// An address holds a token of 128 random bits, and nothing is told without it. Host must name this
// server, which refuses pages whose name was bound anew to this address; Origin, where there is
// one, likewise, which refuses other sites.
#pragma once

#include <memory>
#include <string>

#include "cli/studio/answering_processes.h"

namespace interlock {

class StudioServer {
 public:
  /// Binds `port` of 127.0.0.1; 0: any that is free. Questions go to `processes`.
  /// Throws: Error if the port is taken.
  StudioServer(std::string page, const AnsweringProcesses& processes, int port);
  ~StudioServer();
  StudioServer(const StudioServer&) = delete;
  StudioServer& operator=(const StudioServer&) = delete;

  /// Returns "http://127.0.0.1:41235/TOKEN/".
  std::string address() const;
  /// Serves until `stop` is called from another thread; questions under way then are given up.
  void serve();
  void stop();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace interlock
