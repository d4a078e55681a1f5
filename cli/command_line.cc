// The subcommands, their options, and what each does: a line or two for each.
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "base/text.h"
#include "cli/command_options.h"
#include "cli/command_tree.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/slips.h"
#include "cli/sweep_commands.h"
#include "cli/terminal.h"
#include "reports/value_json.h"

namespace interlock {
namespace {

constexpr const char* kExamples =
    R"(Examples:
  interlock simulate scenarios/examples/gpt2-xl-1f1b.json --report report.html
  interlock compare scenarios/quickstart/*.json --json results.json
  interlock simulate SCENARIO --set training.schedule=gpipe --set cluster.devices=4
  interlock schedule SCENARIO --set training.schedule=zb-h1 --csv order.csv
  interlock sweep SCENARIO --set parallel.pipeline=2,4,8 --set training.micro_batches=8..64..8

docs/scenario.md explains every key of a scenario, docs/result.md every key of a result.
Exit codes: 0 success, 2 a mistake in the input, 130 interrupted, 1 a bug in interlock (or,
of validate published --check, a missed target).)";

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
    add_sweep(add("sweep", "run hundreds of scenarios into a database, and rank them",
                  [this] { exit_code_ = sweep(swept_) ? kSuccess : kInterrupted; }),
              swept_);
    add_merge(add("merge", "put the parts of a sweep together", [this] { merge(merged_); }),
              merged_);
    add_rank(add("rank", "print the best rows of a sweep", [this] { rank(ranked_); }), ranked_);
    add_explain(add("explain", "say where the time goes, and what one step better would bring",
                    [this] { explain(explained_); }),
                explained_);
    add_search(add("search", "find the plans worth having: degrees, micro-batches, schedules",
                   [this] { search(searched_); }),
               searched_);
    add_init(add("init", "write a scenario of a model, a machine and a number of devices",
                 [this] { init(begun_); }),
             begun_);
    CLI::App& checked = add("check", "say whether scenario files are right, without running them",
                            [this] { check(options_); });
    add_inputs(checked, options_, "SCENARIOS");
    add_json(checked, options_.json, "write what is wrong as JSON; - for standard output");
    add_train(
        add("train", "train scenarios for real, on threads or GPUs", [this] { train(trained_); }),
        trained_);
    CLI::App& validated =
        add("validate", "say how far off predictions are", [this] { run_validate(); });
    validated.require_subcommand(1);
    add_validate(*validated.add_subcommand("run", "predict, train for real, and compare"),
                 validated_);
    published_command_ = validated.add_subcommand("published", "predict what others measured");
    add_published(*published_command_, published_);
    add_schedule(add("schedule", "draw a step in the terminal; explain and compare schedules",
                     [this] { schedule(drawn_); }),
                 drawn_);
    add_report(add("report", "draw results for papers", [this] { report(drawn_results_); }),
               drawn_results_);
    add_calibrate(add("calibrate", "measure this machine into a device that scenarios can use",
                      [this] { calibrate(measured_); }),
                  measured_);
    add_import(add("import", "make models and scenarios of what other tools wrote",
                   [this] { import_files(imported_); }),
               imported_);
    add_words();
    app_.footer(kExamples);  // last, since subcommands inherit it
  }

  int run(int argc, char** argv) {
    check_command(argc, argv);
    typed_.assign(argv + 1, argv + argc);
    try {
      app_.parse(words_of(argc, argv));
    } catch (const CLI::ParseError& stop) {
      if (stop.get_exit_code() == kSuccess) return app_.exit(stop);  // help or version
      throw Error(in_our_words(stop));
    }
    if (!engine_.empty()) options_.overrides.push_back("simulate.engine=" + engine_);
    measured_.command_line = "interlock";
    for (int i = 1; i < argc; ++i) measured_.command_line += " " + std::string(argv[i]);
    published_.command_line = measured_.command_line;
    actions_.at(app_.get_subcommands().front()->get_name())();
    return exit_code_;
  }

 private:
  /// The arguments, the last first, as CLI11 has it; without those that help is asked for, which
  /// it would take for commands.
  std::vector<std::string> words_of(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.front() == "help") {
      words.resize(1);
      for (int i = 2; i < argc; ++i) {
        const bool of_option = argv[i][0] == '-' || std::string("--json") == argv[i - 1];
        (of_option ? words : helped_).emplace_back(argv[i]);
      }
    }
    std::reverse(words.begin(), words.end());
    return words;
  }

  void run_validate() {
    if (!published_command_->parsed()) return validate_run(validated_);
    if (!validate_published(published_)) exit_code_ = kMissed;
  }

  /// What says what there is.
  void add_words() {
    CLI::App& lists = add("list", "print the names of models, machines, schedules and frameworks",
                          [this] { list(what_, json_, quiet_); });
    lists.add_option("WHAT", what_, "models, machines, schedules or frameworks; all if left out")
        ->check(CLI::IsMember({"models", "machines", "schedules", "frameworks"}));
    add_word_outputs(lists, "write them as JSON; - for standard output");
    add_word_outputs(
        add("schema", "print the JSON Schema of scenarios", [this] { schema(json_, quiet_); }),
        "write it into a file");
    CLI::App& completions =
        add("completion", "print the completion of a shell", [this] { complete(); });
    completions.add_option("SHELL", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    add_word_outputs(completions, "write it as JSON; - for standard output");
    add_word_outputs(add("man", "print the manual page, as troff", [this] { manual(); }),
                     "write the commands and their options as JSON; - for standard output");
    std::string names;  // a name that is none of them is told in our words
    for (const auto& [name, action] : actions_) names += (names.empty() ? "" : ",") + name;
    CLI::App& helps =
        add("help", "print the help of a command, as its --help does", [this] { help(); });
    helps.add_option("COMMAND", helped_, "a command; of all if left out")
        ->expected(0, 2)
        ->type_name("NAME:{" + names + "}");
    add_word_outputs(helps, "write its options as JSON; - for standard output");
  }

  void add_word_outputs(CLI::App& command, const char* summary) {
    add_json(command, json_, summary);
    add_quiet(command, quiet_);
  }

  void manual() const {
    const CommandNode tree = command_tree(app_);
    check_json(json_);
    if (json_.empty()) print(manual_page(tree, INTERLOCK_VERSION, kExamples));
    write_json(json_, json_file(commands_json(tree)), quiet_);
  }

  void complete() const {
    const CommandNode tree = command_tree(app_);
    const std::string script = shell_ == "bash"  ? bash_completion(tree)
                               : shell_ == "zsh" ? zsh_completion(tree)
                                                 : fish_completion(tree);
    check_json(json_);
    if (json_.empty()) return print(script);
    std::vector<std::string> lines;
    std::istringstream text(script);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    write_json(json_,
               json_file(json_object({{"format", json_text("interlock-completion/1")},
                                      {"shell", json_text(shell_)},
                                      {"lines", json_texts(lines)}})),
               quiet_);
  }

  void help() {
    CommandNode node = command_tree(app_);
    for (const std::string& word : helped_) {
      std::vector<std::string> names;
      for (const CommandNode& below : node.commands) names.push_back(below.name);
      const auto place = check_name(word, names);
      node = CommandNode(node.commands[place]);
    }
    check_json(json_);
    write_json(json_, json_file(commands_json(node)), quiet_);
    if (!json_.empty()) return;
    std::vector<std::string> words = {"--help"};  // the last first, as CLI11 has it
    words.insert(words.end(), helped_.rbegin(), helped_.rend());
    try {
      app_.parse(words);
    } catch (const CLI::CallForHelp& call) {
      app_.exit(call);
    }
  }

  CLI::App& add(const std::string& name, const std::string& summary,
                const std::function<void()>& action) {
    actions_[name] = action;
    return *app_.add_subcommand(name, summary);
  }

  /// What CLI11 says, in our words where it is of no help, and which help to read.
  std::string in_our_words(const CLI::ParseError& stop) const {
    const CLI::App* command = &app_;
    std::string path;
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      path += command->get_name() + " ";
    }
    std::string words = stop.what();
    if (words.starts_with("SCENARIO: At Most 1 required")) {
      words = path + (path == "simulate " ? "runs" : "takes") + " one file" +
              (path == "simulate " ? "; for several there is interlock compare" : "");
    }
    if (const auto option = unknown_option(*command, typed_)) words = *option;
    return words + "\nsee interlock " + path + "--help";
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
    if (first.starts_with("-")) return;
    check_name(first, names);
    const CLI::App& command = *app_.get_subcommand(first);
    if (command.get_require_subcommand_min() == 0 || argc < 3 || argv[2][0] == '-') return;
    names.clear();
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(below->get_name());
    }
    check_name(argv[2], names);
  }

  CLI::App app_{"interlock predicts step time, utilisation and memory of model-parallel training"};
  CommandOptions options_;
  ExplainOptions explained_;
  SearchOptions searched_;
  InitOptions begun_;
  ScheduleOptions drawn_;
  ReportOptions drawn_results_;
  CalibrateOptions measured_;
  ImportOptions imported_;
  TrainOptions trained_;
  SweepOptions swept_;
  MergeOptions merged_;
  RankOptions ranked_;
  ValidateOptions validated_;
  PublishedOptions published_;
  CLI::App* published_command_ = nullptr;
  int exit_code_ = kSuccess;
  std::string engine_, what_, shell_, json_;
  std::vector<std::string> helped_, typed_;
  bool quiet_ = false;
  std::map<std::string, std::function<void()>> actions_;
};

}  // namespace

int run_command_line(int argc, char** argv) { return CommandLine().run(argc, argv); }

}  // namespace interlock
