// The commands of the program, one file each. They return normally or throw Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/parser/asked.h"
#include "cli/parser/command_tree.h"
#include "reports/headlines/headlines.h"

namespace interlock {

/// Runs one file's scenarios. The result JSON is an object, or an array if it has a sweep. An
/// interrupt ends the process when those that are done are written, here and in compare().
void simulate(const CommandOptions& options);
/// Runs the scenarios of several files into one table and one report; the JSON is an array.
void compare(const CommandOptions& options);
/// Says where the time of one scenario goes, and simulates what is one step better.
/// Returns false if an interrupt ended it.
bool explain(const ExplainOptions& options);
/// Finds the plans worth having by which one scenario may be trained, and writes the best one.
/// Returns false if an interrupt ended it.
bool search(const SearchOptions& options);
/// Says how many devices of which machine a training should have. Returns false if an interrupt
/// left sizes out.
bool plan_devices(const PlanOptions& options);
/// Writes the plan of one scenario as a configuration of another program.
void export_plan(const ExportOptions& options);
/// Serves a page of what-if questions on loopback, until an interrupt.
void studio(const StudioOptions& options);
/// Writes a scenario to start from; asks for what is missing if a person is there. Returns false if
/// an interrupt ended the search for its plan.
bool init(InitOptions options);
/// Trains the scenarios of the files for real, each from the same weights on the same samples.
void train(const TrainOptions& options);
/// Predicts the scenarios of the files, runs them for real, and says how far off it was.
void validate_run(const ValidateOptions& options);
/// Fits every fitted number again, with sources, models and devices left out.
void validate_fit(const FitOptions& options);
/// Predicts what others measured. Returns the exit code: targets that were to be checked may be
/// missed, and an interrupt may have left rows out.
int validate_published(const PublishedOptions& options);
/// Loads every file without running it, and says "ok" for those that are right.
void check(const CommandOptions& options);
/// Prints what names stand for: "models", "machines", "schedules", "frameworks"; empty: all of
/// them. `files`: of models, in place of those that ship. Throws: Error for files of others.
void list(const std::string& what, const std::vector<std::string>& files, bool devices,
          const std::string& json, bool quiet);
/// Draws a step of each scenario; or explains every schedule, or prints docs/schedules.md.
void schedule(const ScheduleOptions& options);
/// Returns docs/schedules.md, and the picture at its top: bubble against stash, without and with
/// messages that take time.
std::string schedule_table();
std::string schedule_map();
/// Returns the least span of a step in the stash of this one, by CBC.
/// Throws: Error if the scenario is of a kind or a size that it is not for, or CBC is not
/// installed.
Headline exact_headline(const ScenarioResult& result);
/// Measures a device, prints held-out errors, and writes a device file.
void calibrate(const CalibrateOptions& options);
/// Draws results.
void report(const ReportOptions& options);
/// Adds to import a subcommand for each kind of file.
void add_import(Command& command, ImportOptions& options);
/// Makes a model of measured timelines.
void import_kineto(const ImportOptions& options);
/// Prints the JSON Schema of scenarios, or writes it into a file; or prints docs/reference.md.
void schema(const std::string& json, bool quiet, bool reference);

}  // namespace interlock
