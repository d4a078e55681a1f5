// StopOnInterrupt, EndOnInterrupt: what Ctrl-C ends, and what is said then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <string>

namespace interlock {

/// While it lives, SIGINT and SIGTERM are noted; a second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
  static const std::atomic<bool>& asked();

 private:
  struct sigaction on_interrupt_ = {}, on_end_ = {};
};

/// While it lives, SIGINT and SIGTERM end the program with a line on standard error and the exit
/// code of an interrupt, whatever is under way. For what has nothing to keep; worker processes die
/// with the one that forked them. REQUIRES: there is one at a time.
class EndOnInterrupt {
 public:
  explicit EndOnInterrupt(const std::string& line);
  ~EndOnInterrupt();
  EndOnInterrupt(const EndOnInterrupt&) = delete;
  EndOnInterrupt& operator=(const EndOnInterrupt&) = delete;

 private:
  struct sigaction on_interrupt_ = {}, on_end_ = {};
};

}  // namespace interlock
