// interlock explain: where the time of a step goes, and what one step better would bring.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "reports/answer_report.h"
#include "scenarios/worker_pool.h"

namespace interlock {

void explain(const ExplainOptions& options) {
  const CommandOptions& files = options.command;
  check_outputs(files);
  const JsonValue document = read_scenario_document(files.inputs.front(), files.overrides);
  const int processes = options.jobs > 0 ? options.jobs : usable_processors();
  std::optional<Progress> line;
  const Answers answers = answer(document, processes, [&](std::size_t, std::size_t of) {
    if (!line) line.emplace("changes", of, 0, !files.quiet);
    line->advance("");
  });
  line.reset();
  if (!files.quiet && files.json != "-") {
    print(answers_text(answers, terminal_style(), options.all));
  }
  write_json(files.json, answers_json(answers), files.quiet);
}

}  // namespace interlock
