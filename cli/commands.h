// The commands of the program, one file each. They return normally or throw Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace interlock {

/// What simulate, compare and check are asked to do.
struct CommandOptions {
  std::vector<std::string> inputs;     // scenario files; "-" is standard input
  std::vector<std::string> overrides;  // "path=VALUE"
  std::string json, report, svg;       // where to write; empty: not at all; json "-": stdout
  bool quiet = false;                  // no table
  bool require_fit = false;            // a model that does not fit is a mistake
};

/// Runs one file's scenarios. The result JSON is an object, or an array if it has a sweep.
void simulate(const CommandOptions& options);
/// Runs the scenarios of several files into one table and one report; the JSON is an array.
void compare(const CommandOptions& options);
/// Loads every file without running it, and says "ok" for those that are right.
void check(const CommandOptions& options);
/// Prints what names stand for: "models", "machines", "schedules"; empty: all of them.
void list(const std::string& what);
/// Prints the JSON Schema of scenarios.
void schema();

}  // namespace interlock
