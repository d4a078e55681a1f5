// The options of the commands, as CLI11 reads them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.h"

namespace interlock {

/// Scenario files and what overrides their keys; `name` is how help calls the files.
void add_inputs(CLI::App& command, CommandOptions& options, const char* name);
/// --quiet.
void add_quiet(CLI::App& command, bool& quiet);
/// --json FILE.
void add_json(CLI::App& command, std::string& file, const char* summary);
/// What simulate and compare write. `engine` is short for an override.
void add_outputs(CLI::App& command, CommandOptions& options, std::string& engine);
void add_explain(CLI::App& command, ExplainOptions& options);
void add_search(CLI::App& command, SearchOptions& options);
void add_init(CLI::App& command, InitOptions& options);
void add_schedule(CLI::App& command, ScheduleOptions& options);
void add_calibrate(CLI::App& command, CalibrateOptions& options);
void add_report(CLI::App& command, ReportOptions& options);
void add_train(CLI::App& command, TrainOptions& options);
/// Of validate run.
void add_validate(CLI::App& command, ValidateOptions& options);

}  // namespace interlock
