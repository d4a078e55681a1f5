// ToldFailure: what a user reads of a job that threw, and whose mistake it is.
// SPDX-License-Identifier: Apache-2.0
//
// Example: std::bad_alloc is {"there is not enough memory for this; expected ...", lacking: true},
// a failed CHECK {"this is a bug in interlock: ...", ours: true}.
#pragma once

#include <exception>
#include <string>

namespace interlock {

struct ToldFailure {
  std::string words;
  bool ours = false;     // a bug of interlock
  bool lacking = false;  // memory, threads, an engine: what was asked may be right
};

/// Returns the words for `failure`. Too little memory, too few threads, an engine that cannot be
/// opened and names that the system refuses are no bugs.
ToldFailure told_failure(const std::exception& failure);

}  // namespace interlock
