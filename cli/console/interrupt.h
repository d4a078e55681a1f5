// StopOnInterrupt, EndOnInterrupt: what Ctrl-C ends, and what is said then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <string>

namespace interlock {

/// Said of an interrupt before there is anything to keep.
inline constexpr const char* kNothingWritten = "interrupted: nothing was written";

/// Decides what SIGINT, SIGTERM and SIGHUP (unless it is ignored) do while it lives.
class InterruptHandler {
 public:
  /// `flags` are those of sigaction.
  InterruptHandler(void (*handler)(int), int flags);
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  struct sigaction on_interrupt_ = {}, on_end_ = {}, on_hangup_ = {};
};

/// While it lives, these signals are noted; a second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  static const std::atomic<bool>& asked();

 private:
  InterruptHandler handler_;
};

/// While it lives, these signals end the program with a line on standard error and the exit
/// code of an interrupt, whatever is under way. For what has nothing to keep; worker processes die
/// with the one that forked them. REQUIRES: there is one at a time.
class EndOnInterrupt {
 public:
  explicit EndOnInterrupt(const std::string& line);

 private:
  InterruptHandler handler_;
};

}  // namespace interlock
