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
// steps as it takes to find the steady state, and adds what days of such steps come to. Several
// jobs on one cluster go the same way, with their programs joined before they are run:
// price_jobs().
#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/console/until_interrupt.h"
#include "cli/parser/commands.h"
#include "reports/charts/picture_style.h"
#include "reports/jobs_report.h"
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

void run(const CommandOptions& options, const std::vector<Question>& questions, bool always_array) {
  check_single(options, questions.size());
  const std::size_t all = questions.size();
  const bool drawn = draws_timelines(options) && all <= kMostDrawn;
  std::vector<ScenarioResult> results;
  {
    Progress line("scenarios", all, 0, !options.quiet);
    results = made_until_interrupt<ScenarioResult>(
        all, [&](std::size_t i) { return run_scenario(questions[i], drawn, options.ranges); },
        line);
  }
  const auto write = [&](bool whole) {
    if (draws_timelines(options) && all > kMostDrawn) keep_drawn(questions, results);
    if (!options.quiet && options.json != "-") print(terminal_table(results, terminal_style()));
    if (options.require_fit && whole) require_fit(results);
    write_outputs(options, results, always_array || all > 1);
  };
  if (results.size() == all) return write(true);
  end_without_rest([&] { write(false); }, results.size(), all, "scenarios");
}

/// Throws: Error if options ask for what one scenario has, and several jobs have not.
void check_of_jobs(const CommandOptions& options) {
  const auto refuse = [](const char* option) {
    throw Error(std::string(option) +
                " is for one scenario, and there are several jobs; expected --json, --report or "
                "--svg");
  };
  if (!options.trace.empty()) refuse("--trace");
  if (!options.memory_snapshot.empty()) refuse("--memory-snapshot");
  if (!options.kineto.empty()) refuse("--kineto");
  if (!options.chakra.empty()) refuse("--chakra");
  if (options.ranges > 0) refuse("--ranges");
}

/// Throws: Error if there are more runs of jobs than a page or a picture draws.
void check_drawn(const std::vector<JobsQuestion>& questions) {
  std::size_t runs = 0;
  for (const JobsQuestion& question : questions) runs += 2 * question.jobs.size();
  if (runs <= kMostDrawn) return;
  throw Error("a page or a picture of jobs draws at most " + std::to_string(kMostDrawn) +
              " runs, and there are " + std::to_string(runs) +
              ": each job alone and together; expected fewer values in the sweep");
}

/// Prints and writes `results`; `whole`: none is missing.
void write_jobs(const CommandOptions& options, const std::vector<JobsResult>& results, bool whole) {
  if (!options.quiet && options.json != "-") print(jobs_table(results, terminal_style()));
  const std::vector<ScenarioResult> runs = runs_of_jobs(results);
  if (options.require_fit && whole) require_fit(runs);
  // All texts are made before the first file is touched.
  const std::string json = options.json.empty() ? "" : jobs_json(results);
  const std::string page = options.report.empty() ? "" : html_report(runs);
  const std::string picture = options.svg.empty() ? "" : svg_timelines(runs, {});
  write_json(options.report, page, options.quiet);
  write_json(options.svg, picture, options.quiet);
  write_json(options.json, json, options.quiet);
}

/// Simulates jobs that share a cluster, each alone and all together.
void simulate_jobs(const CommandOptions& options, const JsonValue& document) {
  check_of_jobs(options);
  const std::vector<JobsQuestion> questions = load_jobs(document);
  for (const JobsQuestion& question : questions) {
    if (!options.quiet) tell_notes(question.jobs);
  }
  const bool draws = draws_timelines(options);
  if (draws) check_drawn(questions);
  std::vector<JobsResult> results;
  {
    Progress line("scenarios", questions.size(), 0, !options.quiet);
    results = made_until_interrupt<JobsResult>(
        questions.size(), [&](std::size_t i) { return price_jobs(questions[i], draws); }, line);
  }
  const std::size_t all = questions.size();
  if (results.size() == all) return write_jobs(options, results, true);
  end_without_rest([&] { write_jobs(options, results, false); }, results.size(), all, "scenarios");
}

}  // namespace

void simulate(const CommandOptions& options) {
  check_outputs(options);
  const JsonValue document = read_scenario_document(options.inputs.front(), options.overrides);
  if (holds_jobs(document)) return simulate_jobs(options, document);
  const std::vector<Question> questions = load_questions(document);
  if (!options.quiet) tell_notes(questions);
  run(options, questions, false);
}

void compare(const CommandOptions& options) {
  check_outputs(options);
  run(options, load_inputs(options), true);
}

}  // namespace interlock
