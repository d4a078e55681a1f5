// interlock explain: where the time of a step goes, and what one step better would bring.
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "cli/console/inputs.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/answers/answer_report.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

Answers answer_aloud(const JsonValue& document, int processes, bool quiet) {
  std::optional<EndOnInterrupt> until_first(std::in_place, kNothingWritten);
  std::optional<StopOnInterrupt> until_answered;
  Progress line("changes", 0, 0, !quiet);
  const auto told = [&](std::size_t done, std::size_t of) {
    line.reach(done, of);
    if (until_answered) return;
    until_first.reset();
    until_answered.emplace();
  };
  return answer(document, processes, told, [] { return StopOnInterrupt::asked().load(); });
}

}  // namespace

bool explain(const ExplainOptions& options) {
  const CommandOptions& files = options.command;
  check_outputs(files);
  const JsonValue document = read_scenario_document(files.inputs.front(), files.overrides);
  const int processes = options.jobs > 0 ? options.jobs : usable_processors();
  const Answers answers = answer_aloud(document, processes, files.quiet);
  if (!files.quiet) tell_notes({answers.baseline.result.plan.question});
  if (!files.quiet && files.json != "-") {
    print(answers_text(answers, terminal_style(), options.all));
  }
  write_json(files.json, answers_json(answers), files.quiet);
  if (answers.untried > 0) tell("interrupted: changes were not tried");
  return answers.untried == 0;
}

}  // namespace interlock
