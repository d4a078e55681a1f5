// interlock: one scenario in, a utilisation report out. Reads the command line, runs the command.
// SPDX-License-Identifier: Apache-2.0
//
// scenario -load-> Scenario -build-> ModelGraph -partition-> Partition -make_schedule-> Schedule
//   -lower-> Program -simulate-> Trace -measure-> Metrics -write-> report
// is run_scenario(); the commands feed it files and print what comes out.
// Exit codes: 0 success, 2 the user's mistake, 1 ours.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace interlock {
namespace {

constexpr int kSuccess = 0, kOurMistake = 1, kUsersMistake = 2;

void add_inputs(CLI::App& command, CommandOptions& options, const char* name) {
  command.add_option(name, options.inputs, "scenario file, or - for standard input")->required();
  command
      .add_option("--set", options.overrides,
                  "override a key: a dotted path, and JSON or text (training.steps=16)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--quiet,-q", options.quiet, "print only what is asked for by name");
}

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

void add_outputs(CLI::App& command, CommandOptions& options, std::string& engine) {
  command.add_option("--json", options.json, "write the result as JSON; - for standard output")
      ->type_name("FILE");
  command.add_option("--report", options.report, "write an HTML report")->type_name("FILE.html");
  command.add_option("--svg", options.svg, "write a static timeline")->type_name("FILE.svg");
  add_traces(command, options);
  command.add_option("--chakra", options.chakra, "write execution traces, as ASTRA-sim reads them")
      ->type_name("FOLDER");
  command.add_flag("--require-fit", options.require_fit,
                   "fail, and write nothing, if a device has too little memory");
  command
      .add_option("--engine", engine, "auto, simgrid or native: short for --set simulate.engine")
      ->type_name("NAME");
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
  command.add_flag("--unicode,!--ascii", options.unicode, "characters to draw with");
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
      .add_option("--figure", options.figure,
                  "timeline, utilisation, memory, breakdown, sweep, pareto or tradeoff")
      ->type_name("NAME")
      ->required();
  command.add_option("--out", options.out, "where to: .svg, or with rsvg-convert .pdf or .png")
      ->type_name("FILE")
      ->required();
  command.add_flag("--quiet,-q", options.quiet, "print nothing");
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
}

void add_train(CLI::App& command, TrainOptions& options) {
  add_training(command, options, "steps to train");
  command
      .add_option("--json", options.command.json, "write the curves as JSON; - for standard output")
      ->type_name("FILE");
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
  command
      .add_option("--json", options.training.command.json,
                  "write the errors as JSON; - for standard output")
      ->type_name("FILE");
  command.add_option("--report", options.training.command.report, "draw both timelines")
      ->type_name("FILE.html");
  add_traces(command, options.training.command);
}

constexpr const char* kExamples =
    R"(Examples:
  interlock simulate scenarios/examples/gpt2-xl-1f1b.json --report report.html
  interlock compare scenarios/quickstart/*.json --json results.json
  interlock simulate SCENARIO --set training.schedule=gpipe --set cluster.devices=4
  interlock schedule SCENARIO --set training.schedule=zb-h1 --csv order.csv

docs/scenario.md explains every key of a scenario, docs/result.md every key of a result.
Exit codes: 0 success, 2 a mistake in the input, 1 a bug in interlock.)";

/// The commands and what each does when its options have been read.
class CommandLine {
 public:
  CommandLine() {
    app_.name("interlock");
    app_.set_version_flag("--version", "interlock " INTERLOCK_VERSION);
    CLI::App& one = add("simulate", "run one scenario", [this] { simulate(options_); });
    add_inputs(one, options_, "SCENARIO");
    one.get_option("SCENARIO")->expected(1);
    add_outputs(one, options_, engine_);
    CLI::App& several = add("compare", "run several scenarios into one table and one report",
                            [this] { compare(options_); });
    add_inputs(several, options_, "SCENARIOS");
    add_outputs(several, options_, engine_);
    CLI::App& checked = add("check", "say whether scenario files are right, without running them",
                            [this] { check(options_); });
    add_inputs(checked, options_, "SCENARIOS");
    add_train(
        add("train", "train scenarios for real, on threads or GPUs", [this] { train(trained_); }),
        trained_);
    CLI::App& validated =
        add("validate", "say how far off predictions are", [this] { validate_run(validated_); });
    validated.require_subcommand(1);
    add_validate(*validated.add_subcommand("run", "predict, train for real, and compare"),
                 validated_);
    add_schedule(add("schedule", "draw a step in the terminal; explain and compare schedules",
                     [this] { schedule(drawn_); }),
                 drawn_);
    add_report(add("report", "draw results for papers", [this] { report(drawn_results_); }),
               drawn_results_);
    add_calibrate(add("calibrate", "measure this machine into a device that scenarios can use",
                      [this] { calibrate(measured_); }),
                  measured_);
    add_import(add("import", "make models of what other tools measured",
                   [this] { import_kineto(imported_); }),
               imported_);
    add("list", "print the names of models, machines and schedules", [this] { list(what_); })
        .add_option("WHAT", what_, "models, machines or schedules; all if left out")
        ->check(CLI::IsMember({"models", "machines", "schedules"}));
    add("schema", "print the JSON Schema of scenarios", schema);
    app_.footer(kExamples);  // last, since subcommands inherit it
  }

  int run(int argc, char** argv) {
    check_command(argc, argv);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& stop) {
      if (stop.get_exit_code() == kSuccess) return app_.exit(stop);  // help or version
      throw Error(explain(stop));
    }
    if (!engine_.empty()) options_.overrides.push_back("simulate.engine=" + engine_);
    measured_.command_line = "interlock";
    for (int i = 1; i < argc; ++i) measured_.command_line += " " + std::string(argv[i]);
    actions_.at(app_.get_subcommands().front()->get_name())();
    return kSuccess;
  }

 private:
  CLI::App& add(const std::string& name, const std::string& summary,
                const std::function<void()>& action) {
    actions_[name] = action;
    return *app_.add_subcommand(name, summary);
  }

  /// What CLI11 says, in our words where it is of no help, and which help to read.
  std::string explain(const CLI::ParseError& stop) const {
    const auto chosen = app_.get_subcommands();
    const std::string command = chosen.empty() ? "" : chosen.front()->get_name() + " ";
    std::string words = stop.what();
    if (words.starts_with("SCENARIO: At Most 1 required")) {
      words = "simulate runs one file; for several there is interlock compare";
    }
    return words + "\nsee interlock " + command + "--help";
  }

  void check_command(int argc, char** argv) const {
    std::vector<std::string> names;
    for (const auto& [name, action] : actions_) names.push_back(name);
    if (argc < 2) {
      throw Error("no command; expected " + join_choices(names) +
                  "\nto begin: interlock simulate SCENARIO --report report.html; see also "
                  "interlock --help");
    }
    const std::string first = argv[1];
    if (first.starts_with("-") || actions_.count(first)) return;
    const std::optional<std::string> meant = nearest(first, names);
    throw Error(
        "unknown command " + in_quotes(first) + "; " +
        (meant ? "did you mean " + in_quotes(*meant) + "?" : "expected " + join_choices(names)));
  }

  CLI::App app_{"interlock predicts step time, utilisation and memory of model-parallel training"};
  CommandOptions options_;
  ScheduleOptions drawn_;
  ReportOptions drawn_results_;
  CalibrateOptions measured_;
  ImportOptions imported_;
  TrainOptions trained_;
  ValidateOptions validated_;
  std::string engine_, what_;
  std::map<std::string, std::function<void()>> actions_;
};

}  // namespace
}  // namespace interlock

int main(int argc, char** argv) {
  try {
    return interlock::CommandLine().run(argc, argv);
  } catch (const interlock::Error& mistake) {
    interlock::tell(mistake.what());
    return interlock::kUsersMistake;
  } catch (const std::exception& bug) {
    interlock::tell(std::string("this is a bug in interlock: ") + bug.what());
    return interlock::kOurMistake;
  }
}
