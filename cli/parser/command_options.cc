// The options of the commands.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/command_options.h"

namespace interlock {

void add_inputs(Command& command, CommandOptions& options, int most) {
  command.add_words(most == 1 ? "SCENARIO" : "SCENARIOS", &options.inputs,
                    "scenario file, or - for standard input", {.required = true, .words = most});
  command.add("--set", &options.overrides,
              "override a key: a dotted path, and JSON or text (training.steps=16)", "PATH=VALUE");
  add_sequence_length(command, options.overrides);
  add_quiet(command, options.quiet);
}

void add_sequence_length(Command& command, std::vector<std::string>& overrides) {
  command.add("--sequence-length", ShortSetting{&overrides, "model.sequence_length"},
              "tokens of a sample: short for --set model.sequence_length", "N", {.least = 1});
}

void add_quiet(Command& command, bool& quiet) {
  command.add("--quiet,-q", &quiet, "print only what is asked for by name");
}

void add_json(Command& command, std::string& file, const char* summary) {
  command.add("--json", &file, summary, "FILE");
}

namespace {

/// Returns the programs that plans are written for, see reports/exports.
std::vector<std::string> programs() { return {"megatron", "torchtitan", "deepspeed"}; }

void add_traces(Command& command, CommandOptions& options) {
  command.add("--trace", &options.trace,
              "write every op, message and byte for Perfetto; FILE.json.gz: compressed",
              "FILE.json");
  command.add("--kineto", &options.kineto,
              "write a file for each device as PyTorch's profiler does", "FOLDER");
}

/// Adds the options that say what is trained, and how.
void add_training(Command& command, TrainOptions& options, const char* steps) {
  add_inputs(command, options.command);
  command.add("--steps", &options.steps, steps, "N",
              {.shows_default = true, .least = 1, .most = 10'000'000});
  command.add("--data", &options.data, "file whose bytes a language model learns", "FILE");
  command.add("--rate", &options.rate, "learning rate; default 0.05, with Adam 0.001", "X");
  command.add("--momentum", &options.momentum, "of sgd-momentum", "X", {.shows_default = true});
  command.add("--decay", &options.decay, "weight decay", "X", {.shows_default = true});
  command.add("--seed", &options.seed, "of weights and samples", "N", {.shows_default = true});
  command.add("--graph", &options.graph,
              "on one GPU: run kernel by kernel, then all again as one CUDA graph");
  command.add("--streams", &options.streams,
              "parts of one GPU as plain streams, whose times are not those of devices");
}

}  // namespace

void add_outputs(Command& command, CommandOptions& options) {
  add_json(command, options.json, "write the result as JSON; - for standard output");
  command.add("--report", &options.report, "write an HTML report", "FILE.html");
  command.add("--svg", &options.svg, "write a static timeline", "FILE.svg");
  add_traces(command, options);
  command.add("--memory-snapshot", &options.memory_snapshot,
              "write every allocation for PyTorch's viewer of memory snapshots", "FILE.pickle");
  command.add("--chakra", &options.chakra, "write execution traces, as ASTRA-sim reads them",
              "FOLDER");
  command.add("--require-fit", &options.require_fit,
              "fail, and write nothing, if a device has too little memory");
  command.add("--ranges", &options.ranges,
              "simulate N times more, with kernels as far off as calibration found them", "N",
              {.least = 20, .most = 100'000});
  command.add("--engine", ShortSetting{&options.overrides, "simulate.engine"},
              "auto, simgrid or native: short for --set simulate.engine", "ENGINE");
}

void add_explain(Command& command, ExplainOptions& options) {
  add_inputs(command, options.command, 1);
  command.add("--all", &options.all, "also changes that bring nothing");
  command.add("--jobs", &options.jobs, "processes; default: as many as processors", "N",
              {.least = 1, .most = 1024});
  add_json(command, options.command.json, "write the answers as JSON; - for standard output");
}

/// Adds --reserve ROOM.
void add_reserve(Command& command, std::vector<std::string>& overrides) {
  command.add("--reserve", ShortSetting{&overrides, "search.limits.reserve"},
              "memory of each device that tensors leave free, '6 GiB' or a share, 0.1; default: "
              "priced by plan",
              "ROOM");
}

void add_search(Command& command, SearchOptions& options) {
  add_inputs(command, options.command, 1);
  add_reserve(command, options.command.overrides);
  command.add("--out", &options.out, "write the best plan, a scenario to simulate", "FILE");
  command.add("--to", &options.to, "write it for a program: megatron, torchtitan or deepspeed",
              "PROGRAM", {.choices = programs()});
  command.add("--jobs,-j", &options.jobs, "processes; default: as many as processors", "N",
              {.least = 1, .most = 1024});
  add_json(command, options.command.json, "write all plans as JSON; - for standard output");
}

void add_plan(Command& command, PlanOptions& options) {
  command.footer =
      "Examples:\n"
      "  interlock plan --model llama-3-8b --machines dgx-h100,dgx-b200 --devices 64,128,256 "
      "--tokens 15e12\n"
      "  interlock plan --model deepseek-v3 --machines dgx-h100 --devices 256..2048x2 "
      "--tokens 14.8T --days 60 --price '2.50 USD/h'";
  command.add("--model", &options.model, "a name of the zoo, or a file such as a config.json",
              "MODEL", {.required = true});
  command.add("--machines,--machine", &options.machines,
              "names of the catalogue, or files, with commas between", "MACHINE",
              {.required = true});
  command.add("--devices", &options.devices, "sizes: 64,128,256; or 8..512x2, 64..512..64", "SIZES",
              {.required = true});
  command.add("--tokens", &options.tokens, "to train on: 15e12, 15T", "N");
  command.add("--samples", &options.samples, "in place of tokens, e.g. of models of images", "N");
  command.add("--batch", &options.batch,
              "tokens of a step, the same for all sizes; k and M are 2^10 and 2^20; default: 4M; "
              "beside --samples samples, where k and M are 10^3 and 10^6",
              "N");
  command.add("--sequence-length", &options.sequence_length,
              "tokens of a sample; default: as the model says", "N", {.least = 1});
  command.add("--weak", &options.weak,
              "the batch is that of the smallest size, and grows with the devices");
  command.add("--days", &options.days,
              "recommend the cheapest size that is done in time: 30, or '36 h'", "N");
  command.add("--budget", &options.budget, "recommend the quickest within it: '2e6 USD'", "MONEY");
  command.add("--price", &options.prices,
              "of a device: '2.50 USD/h', or of one machine: 'dgx-h100=2.50 USD/h'", "PRICE");
  command.add("--mtbf", &options.mtbf,
              "mean time between failures of a device, '50000 h': days with failures, "
              "checkpoints and restarts",
              "TIME");
  add_reserve(command, options.overrides);
  command.add("--set", &options.overrides, "override a key of all scenarios, as for simulate",
              "PATH=VALUE");
  command.add("--html", &options.html, "write a page with the table and curves", "FILE.html");
  command.add("--figure", &options.figure,
              "draw days, cost and tokens/s/GPU over devices: .svg, or with rsvg-convert .pdf or "
              ".png",
              "FILE");
  command.add("--jobs,-j", &options.jobs, "processes; default: as many as processors", "N",
              {.least = 1, .most = 1024});
  add_json(command, options.json, "write all rows and plans as JSON; - for standard output");
  add_quiet(command, options.quiet);
}

void add_studio(Command& command, StudioOptions& options) {
  command.add_words("SCENARIO", &options.scenario,
                    "scenario file, or - for standard input; if left out, one to begin with");
  command.add("--set", &options.overrides,
              "override a key: a dotted path, and JSON or text (training.steps=16)", "PATH=VALUE");
  command.add("--port", &options.port, "of 127.0.0.1; default: any that is free", "N",
              {.least = 1, .most = 65535});
  command.add("--out", &options.out,
              "write the page as one file that needs no server: its engine is inside", "FILE.html");
  add_quiet(command, options.quiet);
}

void add_export(Command& command, ExportOptions& options) {
  add_inputs(command, options.command, 1);
  command.add("--to", &options.to, "the program: megatron, torchtitan or deepspeed", "PROGRAM",
              {.required = true, .choices = programs()});
  command.add("--out", &options.out, "where to; default: standard output", "FILE");
  add_json(command, options.command.json, "write what was left out as JSON; - for standard output");
}

void add_init(Command& command, InitOptions& options) {
  command.add("--model", &options.model, "a name of the zoo, or a file", "MODEL");
  command.add("--machine", &options.machine, "a name of the catalogue, or a file", "MACHINE");
  command.add("--devices", &options.devices, "to train on", "N", {.least = 1, .most = 1'000'000});
  command.add("--sequence-length", &options.sequence_length,
              "tokens of a sample; default: as the model says", "N", {.least = 1});
  add_reserve(command, options.overrides);
  command.add("--out", &options.out, "where to; default: standard output", "FILE.json");
  add_json(command, options.json, "write what was chosen as JSON; - for standard output");
  command.add("--force", &options.force, "write over a file that is there");
  command.add("--quiet,-q", &options.quiet, "print nothing");
}

void add_schedule(Command& command, ScheduleOptions& options) {
  CommandOptions& files = options.command;
  command.add_words("SCENARIO", &files.inputs, "scenario file, or - for standard input",
                    {.words = 1});
  command.add("--set", &files.overrides, "override a key, as for simulate", "PATH=VALUE");
  add_sequence_length(command, files.overrides);
  command.add("--svg", &files.svg,
              "write the steps as a picture; with --table, the picture of its page", "FILE.svg");
  command.add("--csv", &files.csv,
              "write the order of a step in PyTorch's form, a rank a row; - for standard output",
              "FILE.csv");
  command.add("--messages", &files.csv_messages,
              "sends and receives in --csv: none, one a cell, or neighbours together", "NAME",
              {.shows_default = true, .choices = {"none", "single", "batched"}});
  add_json(command, files.json, "write the result, or the list, as JSON; - for standard output");
  command.add("--unicode,!--ascii", &options.unicode, "characters to draw with");
  add_quiet(command, files.quiet);
  command.add("--no-color", &options.no_colour, "no colours, on a terminal either");
  command.add("--width", &options.width, "columns, if not the terminal's", "N",
              {.least = 40, .most = 10'000});
  command.add("--exact", &options.exact,
              "also the shortest step in the same stash, for small sizes; needs cbc");
  command.add("--list", &options.list, "explain every schedule in a line, with its source");
  command.add("--table", &options.table, "print docs/schedules.md: all measured at one size");
}

void add_calibrate(Command& command, CalibrateOptions& options) {
  command.add("--device", &options.device, "cpu, cuda, or cuda:N for GPU number N", "NAME",
              {.shows_default = true});
  command.add("--quick", &options.quick, "fewer and smaller kernels, in seconds");
  command.add("--for", &options.scenarios,
              "measure every kernel of this scenario, too, at its own sizes", "SCENARIO");
  command.add("--set", &options.overrides, "override a key of those scenarios", "PATH=VALUE");
  command.add("--warm", &options.warm,
              "on a GPU: operands are in its cache, as behind the kernel that made them");
  command.add("--beside", &options.beside,
              "what the rest of the device does meanwhile: nothing, products or copies", "WORK",
              {.shows_default = true});
  command.add("--out", &options.out, "write a device file that scenarios can use", "FILE.json");
  add_json(command, options.json, "the same; - for standard output, in place of the table");
  add_quiet(command, options.quiet);
  command.add("--samples", &options.samples, "write every measurement", "FILE.csv");
  command.add("--seed", &options.seed, "of shapes, their order, and what is held out", "N",
              {.shows_default = true, .least = 0});
}

void add_report(Command& command, ReportOptions& options) {
  command.add_words("RESULTS", &options.results,
                    "files of simulate --json, train --json or sweep, or scenarios to simulate",
                    {.required = true});
  command.add(
      "--figure", &options.figure,
      "timeline, utilisation, memory, breakdown, sweep, pareto, tradeoff, table or page; sweep and "
      "table take measures: sweep:step_time,memory",
      "NAME", {.required = true});
  command.add("--out", &options.out,
              "where to: .svg, or with rsvg-convert .pdf or .png; a table: .md, .tex or -; a page: "
              ".html",
              "FILE", {.required = true});
  command.add("--title", &options.title, "of the figure, in the place of its own", "WORDS");
  command.add("--width", &options.width, "of the figure on paper: 3.3in, 84mm, or 480 pixels",
              "WIDTH");
  command.add("--grey", &options.grey,
              "greys, dashes and hatching in the place of colours, for print");
  command.add("--set", &options.overrides, "override a key of scenarios, as for simulate",
              "PATH=VALUE");
  add_json(command, options.json, "write what was drawn as JSON; - for standard output");
  command.add("--quiet,-q", &options.quiet, "print nothing");
}

void add_train(Command& command, TrainOptions& options) {
  add_training(command, options, "steps to train");
  command.add("--seeds", &options.seeds,
              "runs of each scenario, under --seed and the numbers behind it; results are means",
              "N", {.shows_default = true, .least = 1, .most = 1000});
  add_json(command, options.command.json, "write the curves as JSON; - for standard output");
  command.add("--svg", &options.command.svg, "draw loss against steps and time", "FILE.svg");
  command.add("--report", &options.command.report, "the same as a page, with values", "FILE.html");
  command.add("--dump", &options.dump, "write the numbers of one step for numpy.load", "FILE.npz");
  command.add("--dump-step", &options.dump_step, "which step", "N", {.shows_default = true});
}

void add_validate(Command& command, ValidateOptions& options) {
  options.training.steps = 20;
  add_training(command, options.training, "steps to compare");
  command.add("--fill", &options.fill, "steps before them", "N",
              {.shows_default = true, .least = 1, .most = 10'000});
  command.add("--clock", &options.clock,
              "of ops: wall, processor, or auto: wall where each device has a processor", "NAME",
              {.shows_default = true, .choices = {"auto", "wall", "processor"}});
  command.add("--prediction", &options.prediction, "write it before anything runs", "FILE");
  add_json(command, options.training.command.json,
           "write the errors as JSON; - for standard output");
  command.add("--report", &options.training.command.report, "draw both timelines", "FILE.html");
  add_traces(command, options.training.command);
}

void add_fit(Command& command, FitOptions& options) {
  command.add("--parameter", &options.parameters,
              "one of them, \"megatron-lm: kernel_issue\"; may be repeated; default: all", "NAME");
  command.add("--rows", &options.rows, "rows of a parameter, spread over all that it prices", "N",
              {.shows_default = true, .least = 1, .most = 1'000'000});
  add_json(command, options.json, "write the fits as JSON; - for standard output");
  command.add("--markdown", &options.markdown, "the table, origins and rows", "FILE.md");
  command.add("--jobs", &options.jobs, "processes; default: as many as processors", "N",
              {.least = 1, .most = 1024});
  command.add("--quiet,-q", &options.quiet, "print only what is asked for by name");
}

void add_published(Command& command, PublishedOptions& options) {
  command.add_words("FILES", &options.files, "files of measurements; all that are shipped if none");
  command.add("--source", &options.sources, "one that is shipped; may be repeated", "NAME");
  command.add("--html", &options.html, "a page with a plot and every row", "FILE.html");
  command.add("--json", &options.json, "everything as JSON; - for standard output", "FILE");
  command.add("--markdown", &options.markdown, "figures and worst rows", "FILE.md");
  command.add("--errors", &options.errors,
              "errors by device and framework, for ranges; tells how often these hold",
              "FILE.json");
  command.add("--all-rows", &options.all_rows, "print every row");
  command.add("--check", &options.check, "exit with 1 if a target is missed");
  command.add("--jobs", &options.jobs, "processes; default: as many as processors", "N",
              {.least = 1, .most = 1024});
  command.add("--quiet,-q", &options.quiet, "print only what is asked for by name");
}

}  // namespace interlock
