// Work in a process of its own, for the benchmark: fresh memory, and SimGrid's one run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/error.h"

namespace interlock {

/// Runs `work` in a child and returns the numbers it gives; not numbers if the child died.
template <std::size_t count>
std::array<double, count> in_child(const std::function<std::array<double, count>()>& work) {
  int ends[2];
  CHECK(pipe(ends) == 0, "a pipe");
  std::fflush(stdout);  // or the child would print it again
  const pid_t child = fork();
  if (child == 0) {
    const std::array<double, count> result = work();
    const bool written = write(ends[1], result.data(), sizeof result) == sizeof result;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::array<double, count> result;
  const bool complete = read(ends[0], result.data(), sizeof result) == sizeof result;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!complete) result.fill(std::nan(""));
  return result;
}

}  // namespace interlock
