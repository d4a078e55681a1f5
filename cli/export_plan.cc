// interlock export: a scenario's plan as a configuration of the program that would run it.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/exports/exports.h"
#include "reports/result/value_json.h"

namespace interlock {
namespace {

void check_export(const ExportOptions& options) {
  check_json(options.command.json);
  if (options.command.json == "-" && options.out.empty()) {
    throw Error("--json - and the file both go to standard output; expected --out FILE");
  }
  if (!options.out.empty()) check_output("--out", options.out);
}

}  // namespace

void export_plan(const ExportOptions& options) {
  check_export(options);
  const CommandOptions& files = options.command;
  const std::vector<Question> questions =
      load_questions(read_scenario_document(files.inputs.front(), files.overrides));
  if (questions.size() != 1) {
    throw Error(files.inputs.front() +
                ": /sweep: one plan is written; expected none: --set sweep=null");
  }
  const ExportedFile file = exported(options.to, make_plan(questions.front()));
  if (options.out.empty()) {
    print(file.text);
  } else {
    write_file(options.out, file.text);
  }
  const std::vector<std::string> wrote =
      options.out.empty() ? std::vector<std::string>() : std::vector<std::string>{options.out};
  write_json(files.json,
             json_file(json_object({{"format", json_text("interlock-written/1")},
                                    {"wrote", json_texts(wrote)},
                                    {"left_out", json_texts(file.left_out)}})),
             files.quiet);
  if (files.quiet) return;
  for (const std::string& left : file.left_out) tell("left out: " + left);
  if (!options.out.empty()) tell("wrote " + options.out);
}

}  // namespace interlock
