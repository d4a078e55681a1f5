// A program that a test starts, watches and may kill.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace interlock {

class StartedProgram {
 public:
  /// Starts `words`, the first of which is the program, in `folder`. What it says goes to the file
  /// "said" there.
  StartedProgram(const std::vector<std::string>& words, const std::string& folder);
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  pid_t id() const { return id_; }
  bool running();
  /// Waits for its end. Returns its exit code, 128 + signal if it was killed.
  int wait();
  /// The processes that it started and that still run.
  std::vector<pid_t> children() const;

 private:
  pid_t id_ = -1;
  int status_ = 0;
};

/// Says whether there is no MPI here, and for a test that is left out, what it would take.
bool lacks_mpi();
/// Returns `words` for the program as three ranks of mpirun run it, each of which runs `before`
/// first, a command of the shell such as "cd /; ".
std::vector<std::string> by_three_ranks(const std::vector<std::string>& words,
                                        const std::string& before = "");

/// Rows in the file of a sweep; 0 if there is none yet.
std::size_t rows_in(const std::string& database);

/// Rows of a sweep's file by id, as text without the column that differs between runs.
std::string rows_of(const std::string& database);

/// A scenario whose sweep has `count` points, of a millisecond each to simulate.
std::string swept_scenario(int count);

}  // namespace interlock
