// SweepStore: the rows of a sweep in a file that survives whatever ends the program.
// SPDX-License-Identifier: Apache-2.0
//
// Three tables: `results`, a row for each scenario that was run, see sweep_columns(); `details`,
// its whole result as JSON; `sweep`, what sweep it is, by key. A row is there once add() has
// returned.
//
// Example: "training.schedule": ["gpipe", "1f1b"] and "training.micro_batches": [4, 8] are two
// paths and four points. When points 0 and 2 were added, done() is {true, false, true, false}.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/sweeps/database.h"
#include "reports/sweeps/sweep_row.h"

namespace interlock {

/// The sweep that a file holds.
struct SweepIdentity {
  std::string document;            // the scenario with its "sweep" and what was overridden, as JSON
  std::vector<std::string> paths;  // that are swept, of which each has a column
  std::size_t points = 0;          // scenarios
};
SweepIdentity identity_of(const JsonValue& document, const SweepPlan& plan);

/// Keeps others from writing the same file; given up with the object.
class FileLock {
 public:
  /// Throws: Error if another process has it. Makes the file if it is not there.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

class SweepStore {
 public:
  /// Opens the file of a sweep, or makes it. Throws: Error if it holds another sweep, or no sweep,
  /// or another process writes it.
  SweepStore(const std::string& path, const SweepIdentity& identity);
  /// Leaves one file, without a log beside it, unless another program reads it just now.
  /// Throws: Error if that fails. No row is lost by it, and rows can still be added.
  void close();
  /// Does so if it can.
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  /// Returns, by id - 1, whether the row is there; with `but_failed`, and has no error.
  std::vector<bool> done(bool but_failed = false);
  /// Adds a row, or puts it in the place of the one that is there.
  void add(const SweepRow& row);
  /// Copies the rows of other files of the same sweep, all or none. Returns how many of each were
  /// new. Throws: Error if a row is there already with other numbers.
  std::vector<std::size_t> take(const std::vector<std::string>& paths);

 private:
  void insert(const SweepRow& row);
  std::size_t take_rows(const std::string& path);

  FileLock lock_;
  std::vector<std::string> columns_;
  Database database_;
  Statement insert_, insert_details_;
};

/// Reads which sweep the file at `path` holds. Throws: Error if it holds none.
SweepIdentity stored_identity(const std::string& path);

}  // namespace interlock
