// interlock search: the plans worth having, and the best one as a scenario.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/console/inputs.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/answers/search_report.h"
#include "reports/exports/exports.h"
#include "reports/result/scenario_json.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

JsonValue document_of(const CommandOptions& files) {
  JsonValue document = read_scenario_document(files.inputs.front(), files.overrides);
  if (document.find("sweep") == nullptr) return document;
  throw Error(files.inputs.front() +
              ": /sweep: a search chooses plans itself; expected none: --set sweep=null");
}

/// Writes the best plan as a scenario, or for the program that was asked for.
void write_best(const SearchOptions& options, const FoundPlan& best) {
  const bool quiet = options.command.quiet;
  if (options.to.empty()) {
    const std::string folder = std::filesystem::path(options.out).parent_path().string();
    write_file(options.out, scenario_file(best.document, folder));
    if (!quiet) tell("wrote " + options.out + "; interlock simulate " + options.out);
    return;
  }
  const ExportedFile file = exported(options.to, make_plan(load_questions(best.document).front()));
  write_file(options.out, file.text);
  if (quiet) return;
  for (const std::string& left : file.left_out) tell("left out: " + left);
  tell("wrote " + options.out);
}

}  // namespace

void search(const SearchOptions& options) {
  const CommandOptions& files = options.command;
  check_outputs(files);
  if (!options.out.empty()) check_output("--out", options.out);
  if (!options.to.empty() && options.out.empty()) {
    throw Error("--to " + options.to + ": the plan goes to no file; expected --out FILE");
  }
  const JsonValue document = document_of(files);
  const int processes = options.jobs > 0 ? options.jobs : usable_processors();
  SearchResult result;
  {
    const EndOnInterrupt until_found("interrupted: nothing was written");
    Progress line("plans", 0, 0, !files.quiet);
    result = search_plans(document, processes,
                          [&](std::size_t done, std::size_t of) { line.reach(done, of); });
  }
  if (!files.quiet) tell_notes({result.scenario});
  if (!files.quiet && files.json != "-") print(search_text(result, terminal_style()));
  if (!options.out.empty() && result.plans.empty()) {
    throw Error("--out " + options.out + ": no plan is within the limits, and nothing is written");
  }
  write_json(files.json, search_json(result), files.quiet);
  if (!options.out.empty()) write_best(options, result.plans.front());
}

}  // namespace interlock
