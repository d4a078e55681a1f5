// interlock simulate and interlock compare: the run on one page.
// SPDX-License-Identifier: Apache-2.0
//
// Each arrow is one function, and each stage has a type of its own:
//
//   text      -load_questions->  Question   scenarios/load   what is asked, read strictly
//   Question  -make_plan->       Plan       scenarios/plan   partition, placement, order, folding
//   Plan      -lower_plan->      Program    sim/lower        ops, messages, memory, collectives
//   Program   -run_program->     trace      sim/engines      longest path, event loop or SimGrid
//   trace     -measure->         Metrics    sim/measure      of the steady state
//   Metrics   -write_outputs->   report     reports          table, JSON, page, pictures, traces
//
// The three in the middle are called by simulate_plan(): measuring asks for programs of as many
// steps as it takes to find the steady state, and adds what days of such steps come to.
#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/page/page_sections.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {
namespace {

/// Says whether some output shows spans, for which the trace is kept.
bool draws_timelines(const CommandOptions& options) {
  return !options.report.empty() || !options.svg.empty() || !options.trace.empty() ||
         !options.memory_snapshot.empty() || !options.kineto.empty() || !options.chakra.empty();
}

/// Simulates once more, with their logs, what a page of more results than it can draw has sections
/// for: the fastest are known only when all are there.
void keep_drawn(const std::vector<Question>& questions, std::vector<ScenarioResult>& results) {
  const std::vector<bool> drawn = page_sections(results).drawn;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!drawn[i]) continue;
    ScenarioResult again = simulate_plan(make_plan(questions[i]), Keep::Log);
    again.confidence = std::move(results[i].confidence);
    results[i] = std::move(again);
  }
}

void run(const CommandOptions& options, bool always_array) {
  check_outputs(options);
  const std::vector<Question> questions = load_inputs(options);
  check_single(options, questions.size());
  std::vector<ScenarioResult> results;
  results.reserve(questions.size());
  {
    Progress line("scenarios", questions.size(), 0, !options.quiet);
    for (const Question& question : questions) {
      const bool drawn = draws_timelines(options) && questions.size() <= kMostDrawn;
      results.push_back(run_scenario(question, drawn, options.ranges));
      line.advance("");
    }
  }
  if (draws_timelines(options) && questions.size() > kMostDrawn) keep_drawn(questions, results);
  if (!options.quiet && options.json != "-") print(terminal_table(results, terminal_style()));
  if (options.require_fit) require_fit(results);
  write_outputs(options, results, always_array || results.size() > 1);
}

}  // namespace

void simulate(const CommandOptions& options) { run(options, false); }
void compare(const CommandOptions& options) { run(options, true); }

}  // namespace interlock
