// The subcommands, their options, and what each does: a line or two for each.
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "base/text.h"
#include "cli/console/exit_code.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/command_options.h"
#include "cli/parser/command_tree.h"
#include "cli/parser/commands.h"
#include "cli/parser/sweep_commands.h"
#include "reports/result/value_json.h"

namespace interlock {
namespace {

constexpr const char* kExamples =
    R"(Examples:
  interlock simulate scenarios/examples/gpt2-xl-1f1b.json --report report.html
  interlock compare scenarios/quickstart/*.json --json results.json
  interlock simulate SCENARIO --set training.schedule=gpipe --set cluster.devices=4
  interlock schedule SCENARIO --set training.schedule=zb-h1 --csv order.csv
  interlock sweep SCENARIO --set parallel.pipeline=2,4,8 --set training.micro_batches=8..64..8

docs/reference.md explains every key of a scenario, docs/result.md every key of a result.
Exit codes: 0 success, 2 a mistake in the input (or no size of plan that fits), 130 interrupted,
1 a bug in interlock (or, of validate published --check, a missed target).)";

/// The commands and what each does when its options have been read.
class CommandLine {
 public:
  CommandLine() {
    root_.name = "interlock";
    root_.footer = kExamples;
    root_.add("--version", {}, "Display program version information and exit");
    add_predictions();
    Command& checked = add("check", "say whether scenario files are right, without running them",
                           [this] { check(options_); });
    add_inputs(checked, options_);
    add_json(checked, options_.json, "write what is wrong as JSON; - for standard output");
    add_train(
        add("train", "train scenarios for real, on threads or GPUs", [this] { train(trained_); }),
        trained_);
    Command& validated = add("validate", "say how far off predictions are");
    add_validate(validated.add_command("run", "predict, train for real, and compare",
                                       [this] { validate_run(validated_); }),
                 validated_);
    add_published(validated.add_command("published", "predict what others measured",
                                        [this] { exit_code_ = validate_published(published_); }),
                  published_);
    add_fit(validated.add_command("fit", "fit every fitted number again, with rows left out",
                                  [this] { validate_fit(fitted_); }),
            fitted_);
    add_schedule(add("schedule", "draw a step in the terminal; explain and compare schedules",
                     [this] { schedule(drawn_); }),
                 drawn_);
    add_report(add("report", "draw results for papers", [this] { report(drawn_results_); }),
               drawn_results_);
    add_calibrate(add("calibrate", "measure this machine into a device that scenarios can use",
                      [this] { calibrate(measured_); }),
                  measured_);
    add_import(add("import", "make models and scenarios of what other tools wrote"), imported_);
    add_export(add("export", "write a scenario's plan for Megatron-LM, torchtitan or DeepSpeed",
                   [this] { export_plan(exported_); }),
               exported_);
    add_words();
  }

  int run(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    check_command(words);
    measured_.command_line = "interlock";
    for (const std::string& word : words) measured_.command_line += " " + word;
    published_.command_line = fitted_.command_line = measured_.command_line;
    if (words.front() == "help") words = without_helped(words);
    const ParsedWords parsed = parse_words(root_, words);
    if (!parsed.answer.empty()) {
      print(parsed.answer);
      return kSuccess;
    }
    if (!parsed.command->action) refuse_nothing();  // "--" alone
    parsed.command->action();
    return exit_code_;
  }

 private:
  /// Adds the commands that predict: steps, sweeps of them, and what is better.
  void add_predictions() {
    Command& one = add("simulate", "run one scenario", [this] { simulate(options_); });
    add_inputs(one, options_, 1);
    add_outputs(one, options_);
    Command& several = add("compare", "run several scenarios into one table and one report",
                           [this] { compare(options_); });
    add_inputs(several, options_);
    add_outputs(several, options_);
    add_sweep(add("sweep", "run hundreds of scenarios into a database, and rank them",
                  [this] { exit_code_ = sweep(swept_) ? kSuccess : kInterrupted; }),
              swept_);
    add_merge(add("merge", "put the parts of a sweep together", [this] { merge(merged_); }),
              merged_);
    add_rank(add("rank", "print the best rows of a sweep", [this] { rank(ranked_); }), ranked_);
    add_explain(add("explain", "say where the time goes, and what one step better would bring",
                    [this] { exit_code_ = explain(explained_) ? kSuccess : kInterrupted; }),
                explained_);
    add_search(add("search", "find the plans worth having: degrees, micro-batches, schedules",
                   [this] { exit_code_ = search(searched_) ? kSuccess : kInterrupted; }),
               searched_);
    add_init(add("init", "write a scenario of a model, a machine and a number of devices",
                 [this] { exit_code_ = init(begun_) ? kSuccess : kInterrupted; }),
             begun_);
    add_plan(add("plan", "how many GPUs, which, how long, how much: the best plan of each size",
                 [this] { exit_code_ = plan_devices(sized_) ? kSuccess : kInterrupted; }),
             sized_);
    add_studio(add("studio", "what-if questions on a page: edit, slide, and see the step change",
                   [this] { studio(studied_); }),
               studied_);
  }

  /// Returns `words` without those that help is asked for, which the parser would take for
  /// commands.
  std::vector<std::string> without_helped(const std::vector<std::string>& words) {
    std::vector<std::string> rest = {words.front()};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool of_option = words[i].starts_with('-') || words[i - 1] == "--json";
      (of_option ? rest : helped_).push_back(words[i]);
    }
    return rest;
  }

  /// Adds the commands that print names, schema, completions and manual.
  void add_words() {
    Command& lists =
        add("list", "print the names of models, machines, devices, schedules and frameworks",
            [this] { list(what_, files_, devices_, json_, quiet_); });
    lists.add_words("WHAT", &what_,
                    "models, machines, devices, schedules or frameworks; all if left out",
                    {.choices = {"models", "machines", "devices", "schedules", "frameworks"}});
    lists.add_words("FILES", &files_, "of models, in place of those that ship");
    lists.add("--devices", &devices_, "of machines: their devices' peak and memory, all links");
    add_word_outputs(lists, "write them as JSON; - for standard output");
    Command& contract = add("schema", "print the JSON Schema of scenarios",
                            [this] { schema(json_, quiet_, reference_); });
    contract.add("--reference", &reference_, "print docs/reference.md: every key explained");
    add_word_outputs(contract, "write it into a file");
    Command& completions =
        add("completion", "print the completion of a shell", [this] { complete(); });
    completions.add_words("SHELL", &shell_, "bash, zsh or fish",
                          {.required = true, .choices = {"bash", "zsh", "fish"}});
    add_word_outputs(completions, "write it as JSON; - for standard output");
    add_word_outputs(add("man", "print the manual page, as troff", [this] { manual(); }),
                     "write the commands and their options as JSON; - for standard output");
    const std::vector<std::string> names = sorted_names(root_);
    Command& helps =
        add("help", "print the help of a command, as its --help does", [this] { help(); });
    helps.add("COMMAND", &helped_, "a command; of all if left out", "NAME",
              {.words = 2, .choices = names});
    add_word_outputs(helps, "write its options as JSON; - for standard output");
  }

  void add_word_outputs(Command& command, const char* summary) {
    add_json(command, json_, summary);
    add_quiet(command, quiet_);
  }

  void manual() const {
    const Command tree = command_tree(root_);
    check_json(json_);
    if (json_.empty()) print(manual_page(tree, INTERLOCK_VERSION));
    write_json(json_, json_file(commands_json(tree)), quiet_);
  }

  void complete() const {
    const Command tree = command_tree(root_);
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
    const Command tree = command_tree(root_);
    const Command* command = &tree;
    for (const std::string& word : helped_) {
      check_name(word, names_below(*command));
      command = &command_below(*command, word);
    }
    check_json(json_);
    write_json(json_, json_file(commands_json(*command)), quiet_);
    if (!json_.empty()) return;
    helped_.emplace_back("--help");
    print(parse_words(root_, helped_).answer);
  }

  Command& add(const std::string& name, const std::string& summary,
               const std::function<void()>& action = {}) {
    return root_.add_command(name, summary, action);
  }

  static std::vector<std::string> sorted_names(const Command& command) {
    std::vector<std::string> names = names_below(command);
    std::sort(names.begin(), names.end());
    return names;
  }

  [[noreturn]] void refuse_nothing() const {
    throw Error("no command; expected " + join_choices(sorted_names(root_)) +
                "\nto begin: interlock simulate SCENARIO --report report.html; see also "
                "interlock --help");
  }

  void check_command(const std::vector<std::string>& words) const {
    if (words.empty()) refuse_nothing();
    if (words[0].starts_with('-')) return;
    check_name(words[0], sorted_names(root_));
    const Command& command = command_below(root_, words[0]);
    if (command.action || words.size() < 2 || words[1].starts_with('-')) return;
    check_name(words[1], names_below(command));
  }

  Command root_{"interlock predicts step time, utilisation and memory of model-parallel training"};
  CommandOptions options_;
  ExplainOptions explained_;
  SearchOptions searched_;
  InitOptions begun_;
  PlanOptions sized_;
  StudioOptions studied_;
  ScheduleOptions drawn_;
  ReportOptions drawn_results_;
  CalibrateOptions measured_;
  ImportOptions imported_;
  ExportOptions exported_;
  TrainOptions trained_;
  SweepOptions swept_;
  MergeOptions merged_;
  RankOptions ranked_;
  ValidateOptions validated_;
  PublishedOptions published_;
  FitOptions fitted_;
  int exit_code_ = kSuccess;
  std::string what_, shell_, json_;
  std::vector<std::string> files_;
  std::vector<std::string> helped_;
  bool quiet_ = false, reference_ = false, devices_ = false;
};

}  // namespace

int run_command_line(int argc, char** argv) { return CommandLine().run(argc, argv); }

}  // namespace interlock
