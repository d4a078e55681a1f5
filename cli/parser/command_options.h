// The options of the commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/parser/commands.h"

namespace interlock {

/// Adds scenario files, at most `most` of them if it is not 0, and what overrides their keys.
void add_inputs(Command& command, CommandOptions& options, int most = 0);
/// Adds --sequence-length N.
void add_sequence_length(Command& command, std::vector<std::string>& overrides);
/// Adds --quiet.
void add_quiet(Command& command, bool& quiet);
/// Adds --json FILE.
void add_json(Command& command, std::string& file, const char* summary);
/// Adds what simulate and compare write, and --engine.
void add_outputs(Command& command, CommandOptions& options);
void add_explain(Command& command, ExplainOptions& options);
void add_search(Command& command, SearchOptions& options);
void add_plan(Command& command, PlanOptions& options);
void add_studio(Command& command, StudioOptions& options);
void add_export(Command& command, ExportOptions& options);
void add_init(Command& command, InitOptions& options);
void add_schedule(Command& command, ScheduleOptions& options);
void add_calibrate(Command& command, CalibrateOptions& options);
void add_report(Command& command, ReportOptions& options);
void add_train(Command& command, TrainOptions& options);
/// Adds what validate run takes.
void add_validate(Command& command, ValidateOptions& options);
/// Adds what validate fit takes.
void add_fit(Command& command, FitOptions& options);
/// Adds what validate published takes.
void add_published(Command& command, PublishedOptions& options);

}  // namespace interlock
