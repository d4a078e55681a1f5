// Asked: what each command is asked to do, as the command line said it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/parser/plan_options.h"

namespace interlock {

/// Options of simulate, compare and check.
struct CommandOptions {
  std::vector<std::string> inputs;     // scenario files; "-" is standard input
  std::vector<std::string> overrides;  // "path=VALUE"
  std::string json, report, svg, csv;  // where to write; empty: not at all; json "-": stdout
  std::string csv_messages = "none";   // those that csv names: also "single", "batched"
  std::string trace;                   // .json or .json.gz
  std::string memory_snapshot;         // .pickle
  std::string kineto, chakra;          // folders
  bool quiet = false;                  // no table
  int ranges = 0;                      // draws for the range of a calibrated device; 0: none
  bool require_fit = false;            // a model that does not fit is a mistake
};

/// Options of schedule.
struct ScheduleOptions {
  CommandOptions command;
  bool list = false, table = false;  // instead of a scenario
  bool exact = false;                // also the shortest step there is
  bool unicode = true, no_colour = false;
  int width = 0;  // columns; 0: the terminal's
};

/// Options of calibrate.
struct CalibrateOptions {
  std::string device = "cpu";  // or "cuda", "cuda:N"
  bool quick = false, quiet = false;
  bool warm = false;  // operands in caches, on a GPU
  int seed = 1;
  std::vector<std::string> scenarios, overrides;  // whose kernels are measured, too
  std::string beside = "nothing";                 // or "products", "copies"
  std::string out, samples, json;                 // where to write; empty: not at all
  std::string command_line;                       // as it was typed
};

/// Options of report.
struct ReportOptions {
  std::vector<std::string> results;  // files of simulate --json or train --json, or scenarios
  std::string figure, out, json;
  std::vector<std::string> overrides;  // of the scenarios among them
  std::string title, width;            // of the figure; empty: its own
  bool grey = false;
  bool quiet = false;
};

/// Options of train.
struct TrainOptions {
  CommandOptions command;                // json, svg, report: curves of all scenarios
  std::string data;                      // file whose bytes a language model learns
  int steps = 100, seed = 1, seeds = 1;  // seeds: runs of each scenario, from `seed` on
  std::optional<double> rate;
  double momentum = 0.9, decay = 0;
  bool graph = false;    // of CUDA
  bool streams = false;  // in place of partitions of a GPU
  std::string dump;      // .npz
  int dump_step = 0;
};

/// Options of validate run.
struct ValidateOptions {
  TrainOptions training;   // json: errors; report: both timelines
  int fill = 2;            // steps before those that are compared
  std::string prediction;  // where to write it before anything runs; empty: not at all
  std::string clock = "auto";
};

/// Options of validate published.
struct PublishedOptions {
  std::vector<std::string> files, sources;   // none of both: all that are shipped
  std::string html, json, markdown, errors;  // where to write; empty: not at all; json "-": stdout
  bool all_rows = false, check = false, quiet = false;
  int jobs = 0;              // processes; 0: as many as processors
  std::string command_line;  // as it was typed
};

/// Options of validate fit.
struct FitOptions {
  std::vector<std::string> parameters;  // "ENTRY: KEY"; none: all
  std::string json, markdown;           // where to write; empty: not at all; json "-": stdout
  bool quiet = false;
  int rows = 120, jobs = 0;  // of a parameter at most; processes; 0: as many as processors
  std::string command_line;  // as it was typed
};

/// Options of import.
struct ImportOptions {
  std::vector<std::string> traces;  // or the one file
  std::string out, json;
  bool quiet = false;
  std::string cluster;                                   // of scenarios
  int devices = 0, vocab_size = 0, sequence_length = 0;  // of scenarios; 0: as file or model says
  int micro_batch_size = 0;                              // deepspeed; 0: as the file says
  std::string model, framework;  // of scenarios; empty: as the file says; "none": none
  bool cells = false;            // pipedream
  int batch = 0, blocks = 0;     // chimera
  std::string output;            // chimera
};

/// Options of export.
struct ExportOptions {
  CommandOptions command;  // one input; json
  std::string to, out;     // the program; where to, empty: standard output
};

/// Options of explain.
struct ExplainOptions {
  CommandOptions command;  // one input; json
  bool all = false;        // also changes that bring nothing
  int jobs = 0;            // processes; 0: as many as processors
};

/// Options of search.
struct SearchOptions {
  CommandOptions command;  // one input; json
  std::string to, out;     // the best plan: of which program, empty: ours; where to, empty: nowhere
  int jobs = 0;            // processes; 0: as many as processors
};

/// Options of studio.
struct StudioOptions {
  std::string scenario;  // a file, or "-"; empty: one to begin with
  std::vector<std::string> overrides;
  int port = 0;     // 0: any that is free
  std::string out;  // the page as a file; empty: it is served
  bool quiet = false;
};

/// Options of init.
struct InitOptions {
  std::string model, machine;  // empty: asked for
  std::string out, json;       // empty: standard output; not at all
  int devices = 0;
  int sequence_length = 0;             // 0: the model's
  std::vector<std::string> overrides;  // "path=VALUE" of the search
  bool force = false, quiet = false;
};

}  // namespace interlock
