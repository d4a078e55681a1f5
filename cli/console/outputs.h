// The files that a run writes: checked before it, written after everything else succeeded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/parser/commands.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Throws: Error if a file could certainly not be written, before time is spent on simulating.
void check_outputs(const CommandOptions& options);

/// Throws: Error if the file that `option` names cannot be written.
void check_output(const char* option, const std::string& path);
/// Throws: Error if `option` names `read`, a file that its text would replace.
void check_apart(const char* option, const std::string& path, const std::string& read);

/// Writes the files that `options` asks for, and the JSON to standard output for "-".
/// `array`: the JSON is an array even for one result.
void write_outputs(const CommandOptions& options, const std::vector<ScenarioResult>& results,
                   bool array);

/// Writes `json` where --json says: nowhere, to standard output for "-", or to `file`, which is
/// told unless `quiet`.
void write_json(const std::string& file, const std::string& json, bool quiet);
/// Throws: Error if --json could certainly not be written.
void check_json(const std::string& file);

/// Throws: Error if there are several scenarios, and options ask for what holds one.
void check_single(const CommandOptions& options, std::size_t scenarios);

/// Writes the timelines that options ask for while they are made: they may not fit in memory.
/// REQUIRES: the log was kept.
void write_traces(const CommandOptions& options, const ScenarioResult& result);

/// Throws: Error that says which device of which scenario lacks how much memory, if one does.
void require_fit(const std::vector<ScenarioResult>& results);

}  // namespace interlock
