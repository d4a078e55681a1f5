// The commands of sweeps: sweep, merge and rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/parser/command_tree.h"

namespace interlock {

/// Options of rank: the rows of a sweep's file that are printed and written.
struct RankOptions {
  std::string database;
  std::string by, where, order;  // a column, an SQL expression, "least" or "most"
  int top = 10;                  // rows in the table; 0: all
  std::string csv, json;         // where to write; empty: not at all; "-": stdout
  bool columns = false;          // tell the names of columns
  bool quiet = false;
};

struct SweepOptions {
  std::string file;                    // a scenario
  std::vector<std::string> overrides;  // "path=VALUE", "path=V,W", "path=1..8"
  std::string shard;                   // "2/8"; empty: all
  int jobs = 0;                        // processes; 0: as many as processors
  bool retry = false;                  // rows without a result, too
  RankOptions rank;
};

struct MergeOptions {
  std::vector<std::string> parts;
  RankOptions rank;
};

void add_sweep(Command& command, SweepOptions& options);
void add_merge(Command& command, MergeOptions& options);
void add_rank(Command& command, RankOptions& options);

/// Runs the scenarios of a sweep that its file lacks. Returns whether none is left; it is not so
/// after an interrupt.
bool sweep(SweepOptions options);
/// Puts the files of a sweep's parts together.
void merge(const MergeOptions& options);
/// Throws: Error if files that rank writes could certainly not be, or would replace its database
/// or one of `read`.
void check_rank(const RankOptions& options, const std::vector<std::string>& read = {});
/// Prints the best rows of a sweep.
void rank(const RankOptions& options);

}  // namespace interlock
