// The options of the commands, as CLI11 reads them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_options.h"

#include <CLI/CLI.hpp>

namespace interlock {

void add_inputs(CLI::App& command, CommandOptions& options, const char* name) {
  command.add_option(name, options.inputs, "scenario file, or - for standard input")->required();
  command
      .add_option("--set", options.overrides,
                  "override a key: a dotted path, and JSON or text (training.steps=16)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  add_quiet(command, options.quiet);
}

void add_quiet(CLI::App& command, bool& quiet) {
  command.add_flag("--quiet,-q", quiet, "print only what is asked for by name");
}

void add_json(CLI::App& command, std::string& file, const char* summary) {
  command.add_option("--json", file, summary)->type_name("FILE");
}

namespace {

void add_traces(CLI::App& command, CommandOptions& options) {
  command
      .add_option("--trace", options.trace,
                  "write every op, message and byte for Perfetto; FILE.json.gz: compressed")
      ->type_name("FILE.json");
  command
      .add_option("--kineto", options.kineto,
                  "write a file for each device as PyTorch's profiler does")
      ->type_name("FOLDER");
}

/// What is trained, and how.
void add_training(CLI::App& command, TrainOptions& options, const char* steps) {
  add_inputs(command, options.command, "SCENARIOS");
  command.add_option("--steps", options.steps, steps)
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--data", options.data, "file whose bytes a language model learns")
      ->type_name("FILE");
  command.add_option("--rate", options.rate, "learning rate; default 0.05, with Adam 0.001")
      ->type_name("X");
  command.add_option("--momentum", options.momentum, "of sgd-momentum")
      ->capture_default_str()
      ->type_name("X");
  command.add_option("--decay", options.decay, "weight decay")
      ->capture_default_str()
      ->type_name("X");
  command.add_option("--seed", options.seed, "of weights and samples")
      ->capture_default_str()
      ->type_name("N");
  command.add_flag("--graph", options.graph,
                   "on one GPU: run kernel by kernel, then all again as one CUDA graph");
}

}  // namespace

void add_outputs(CLI::App& command, CommandOptions& options, std::string& engine) {
  add_json(command, options.json, "write the result as JSON; - for standard output");
  command.add_option("--report", options.report, "write an HTML report")->type_name("FILE.html");
  command.add_option("--svg", options.svg, "write a static timeline")->type_name("FILE.svg");
  add_traces(command, options);
  command.add_option("--chakra", options.chakra, "write execution traces, as ASTRA-sim reads them")
      ->type_name("FOLDER");
  command.add_flag("--require-fit", options.require_fit,
                   "fail, and write nothing, if a device has too little memory");
  command
      .add_option("--ranges", options.ranges,
                  "simulate N times more, with kernels as far off as calibration found them")
      ->type_name("N")
      ->check(CLI::Range(20, 100'000));
  command
      .add_option("--engine", engine, "auto, simgrid or native: short for --set simulate.engine")
      ->type_name("ENGINE");
}

void add_explain(CLI::App& command, ExplainOptions& options) {
  add_inputs(command, options.command, "SCENARIO");
  command.get_option("SCENARIO")->expected(1);
  command.add_flag("--all", options.all, "also changes that bring nothing");
  command.add_option("--jobs", options.jobs, "processes; default: as many as processors")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  add_json(command, options.command.json, "write the answers as JSON; - for standard output");
}

void add_search(CLI::App& command, SearchOptions& options) {
  add_inputs(command, options.command, "SCENARIO");
  command.get_option("SCENARIO")->expected(1);
  command.add_option("--out", options.out, "write the best plan, a scenario to simulate")
      ->type_name("FILE.json");
  command.add_option("--jobs,-j", options.jobs, "processes; default: as many as processors")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  add_json(command, options.command.json, "write all plans as JSON; - for standard output");
}

void add_init(CLI::App& command, InitOptions& options) {
  command.add_option("--model", options.model, "a name of the zoo, or a file")->type_name("MODEL");
  command.add_option("--machine", options.machine, "a name of the catalogue, or a file")
      ->type_name("MACHINE");
  command.add_option("--devices", options.devices, "to train on")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--out", options.out, "where to; default: standard output")
      ->type_name("FILE.json");
  add_json(command, options.json, "write what was chosen as JSON; - for standard output");
  command.add_flag("--force", options.force, "write over a file that is there");
  command.add_flag("--quiet,-q", options.quiet, "print nothing");
}

void add_schedule(CLI::App& command, ScheduleOptions& options) {
  CommandOptions& files = options.command;
  command.add_option("SCENARIO", files.inputs, "scenario file, or - for standard input")
      ->expected(0, 1);
  command.add_option("--set", files.overrides, "override a key, as for simulate")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command.add_option("--svg", files.svg, "write the steps as a picture")->type_name("FILE.svg");
  command
      .add_option("--csv", files.csv, "write the order of a step in PyTorch's form, a rank a row")
      ->type_name("FILE.csv");
  add_json(command, files.json, "write the result, or the list, as JSON; - for standard output");
  command.add_flag("--unicode,!--ascii", options.unicode, "characters to draw with");
  add_quiet(command, files.quiet);
  command.add_flag("--no-color", options.no_colour, "no colours, on a terminal either");
  command.add_option("--width", options.width, "columns, if not the terminal's")
      ->type_name("N")
      ->check(CLI::Range(40, 10'000));
  command.add_flag("--exact", options.exact,
                   "also the shortest step in the same stash, for small sizes; needs cbc");
  command.add_flag("--list", options.list, "explain every schedule in a line, with its source");
  command.add_flag("--table", options.table, "print docs/schedules.md: all measured at one size");
}

void add_calibrate(CLI::App& command, CalibrateOptions& options) {
  command.add_option("--device", options.device, "cpu, cuda, or cuda:N for GPU number N")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_flag("--quick", options.quick, "fewer and smaller kernels, in seconds");
  command.add_option("--out", options.out, "write a device file that scenarios can use")
      ->type_name("FILE.json");
  add_json(command, options.json, "the same; - for standard output, in place of the table");
  add_quiet(command, options.quiet);
  command.add_option("--samples", options.samples, "write every measurement")
      ->type_name("FILE.csv");
  command.add_option("--seed", options.seed, "of shapes, their order, and what is held out")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_report(CLI::App& command, ReportOptions& options) {
  command
      .add_option("RESULTS", options.results,
                  "files of simulate --json or train --json, or scenarios to simulate")
      ->required();
  command
      .add_option(
          "--figure", options.figure,
          "timeline, utilisation, memory, breakdown, sweep, pareto, tradeoff or table; sweep and "
          "table take measures: sweep:step_time,memory")
      ->type_name("NAME")
      ->required();
  command
      .add_option("--out", options.out,
                  "where to: .svg, or with rsvg-convert .pdf or .png; a table: .md or -")
      ->type_name("FILE")
      ->required();
  add_json(command, options.json, "write what was drawn as JSON; - for standard output");
  command.add_flag("--quiet,-q", options.quiet, "print nothing");
}

void add_train(CLI::App& command, TrainOptions& options) {
  add_training(command, options, "steps to train");
  add_json(command, options.command.json, "write the curves as JSON; - for standard output");
  command.add_option("--svg", options.command.svg, "draw loss against steps and time")
      ->type_name("FILE.svg");
  command.add_option("--report", options.command.report, "the same as a page, with values")
      ->type_name("FILE.html");
  command.add_option("--dump", options.dump, "write the numbers of one step for numpy.load")
      ->type_name("FILE.npz");
  command.add_option("--dump-step", options.dump_step, "which step")
      ->capture_default_str()
      ->type_name("N");
}

void add_validate(CLI::App& command, ValidateOptions& options) {
  options.training.steps = 20;
  add_training(command, options.training, "steps to compare");
  command.add_option("--fill", options.fill, "steps before them")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  command
      .add_option("--clock", options.clock,
                  "of ops: wall, processor, or auto: wall where each device has a processor")
      ->capture_default_str()
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "wall", "processor"}));
  command.add_option("--prediction", options.prediction, "write it before anything runs")
      ->type_name("FILE");
  add_json(command, options.training.command.json,
           "write the errors as JSON; - for standard output");
  command.add_option("--report", options.training.command.report, "draw both timelines")
      ->type_name("FILE.html");
  add_traces(command, options.training.command);
}

}  // namespace interlock
