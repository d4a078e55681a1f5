// The commands of the program, one file each. They return normally or throw Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/figures.h"

namespace CLI {
class App;
}

namespace interlock {

/// What simulate, compare and check are asked to do.
struct CommandOptions {
  std::vector<std::string> inputs;     // scenario files; "-" is standard input
  std::vector<std::string> overrides;  // "path=VALUE"
  std::string json, report, svg, csv;  // where to write; empty: not at all; json "-": stdout
  std::string trace;                   // .json or .json.gz
  std::string kineto, chakra;          // folders
  bool quiet = false;                  // no table
  int ranges = 0;                      // draws for the range of a calibrated device; 0: none
  bool require_fit = false;            // a model that does not fit is a mistake
};

/// What schedule is asked to do.
struct ScheduleOptions {
  CommandOptions command;
  bool list = false, table = false;  // instead of a scenario
  bool exact = false;                // also the shortest step there is
  bool unicode = true, no_colour = false;
  int width = 0;  // columns; 0: the terminal's
};

/// What calibrate is asked to do.
struct CalibrateOptions {
  std::string device = "cpu";  // or "cuda", "cuda:N"
  bool quick = false;
  int seed = 1;
  std::string out, samples;  // where to write; empty: not at all
  std::string command_line;  // as it was typed
};

/// What report is asked to do.
struct ReportOptions {
  std::vector<std::string> results;  // files of simulate --json or train --json, or scenarios
  std::string figure, out;
  bool quiet = false;
};

/// What train is asked to do.
struct TrainOptions {
  CommandOptions command;  // json, svg, report: curves of all scenarios
  std::string data;        // file whose bytes a language model learns
  int steps = 100, seed = 1;
  std::optional<double> rate;
  double momentum = 0.9, decay = 0;
  std::string dump;  // .npz
  int dump_step = 0;
};

/// What validate run is asked to do.
struct ValidateOptions {
  TrainOptions training;   // json: errors; report: both timelines
  int fill = 2;            // steps before those that are compared
  std::string prediction;  // where to write it before anything runs; empty: not at all
  std::string clock = "auto";
};

/// What validate published is asked to do.
struct PublishedOptions {
  std::vector<std::string> files, sources;   // none of both: all that are shipped
  std::string html, json, markdown, errors;  // where to write; empty: not at all; json "-": stdout
  bool all_rows = false, check = false, quiet = false;
  int jobs = 0;              // processes; 0: as many as processors
  std::string command_line;  // as it was typed
};

/// What import is asked to do.
struct ImportOptions {
  std::string kind;                 // of files: "kineto", "megatron", "pipedream", "chimera"
  std::vector<std::string> traces;  // or the one file
  std::string out;
  bool quiet = false;
  std::string cluster;              // megatron
  int devices = 0, vocab_size = 0;  // megatron; 0: as the file says
  bool cells = false;               // pipedream
  int batch = 0, blocks = 0;        // chimera
  std::string output;               // chimera
};

/// Runs one file's scenarios. The result JSON is an object, or an array if it has a sweep.
void simulate(const CommandOptions& options);
/// Runs the scenarios of several files into one table and one report; the JSON is an array.
void compare(const CommandOptions& options);
/// Trains the scenarios of the files for real, each from the same weights on the same samples.
void train(const TrainOptions& options);
/// Predicts the scenarios of the files, runs them for real, and says how far off it was.
void validate_run(const ValidateOptions& options);
/// The options of validate published.
void add_published(CLI::App& command, PublishedOptions& options);
/// Predicts what others measured. Returns false if targets were to be checked and one is missed.
bool validate_published(const PublishedOptions& options);
/// Loads every file without running it, and says "ok" for those that are right.
void check(const CommandOptions& options);
/// Prints what names stand for: "models", "machines", "schedules", "frameworks"; empty: all of
/// them.
void list(const std::string& what);
/// Draws a step of each scenario; or explains every schedule, or prints docs/schedules.md.
void schedule(const ScheduleOptions& options);
/// docs/schedules.md.
std::string schedule_table();
/// The least span of a step in the stash of this one, by CBC.
/// Throws: Error if the scenario is of a kind or a size that it is not for, or CBC is not
/// installed.
Figure exact_figure(const ScenarioResult& result);
/// Measures a device, prints held-out errors, and writes a device file.
void calibrate(const CalibrateOptions& options);
/// Draws results.
void report(const ReportOptions& options);
/// The options of import, which has a subcommand for each kind of file.
void add_import(CLI::App& command, ImportOptions& options);
/// Makes a model or scenario of the files, and says what could not be used.
void import_files(const ImportOptions& options);
/// The same of measured timelines.
void import_kineto(const ImportOptions& options);
/// Prints the JSON Schema of scenarios.
void schema();

}  // namespace interlock
