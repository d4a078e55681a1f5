// StopOnInterrupt: Ctrl-C ends what is under way, which then gives what it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>

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

}  // namespace interlock
