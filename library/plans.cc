// search, plan and explain of the library.
// SPDX-License-Identifier: Apache-2.0
#include "library/boundary.h"
#include "library/result_data.h"
#include "reports/answers/answer_report.h"
#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/result/scenario_json.h"
#include "scenarios/search/space_checks.h"

namespace interlock::v0 {
namespace {

constexpr double kSecondsOfDay = 86400;

std::optional<double> known(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

FoundPlan plan_of(const interlock::FoundPlan& from) {
  const PlanEstimate& estimate = from.estimate;
  const double energy = estimate.power * estimate.step_time;
  return {.words = plan_words(from),
          .scenario = scenario_file(from.document, ""),
          .step_time_s = estimate.step_time,
          .peak_memory_bytes = estimate.peak_memory,
          .tokens_per_s_per_device = known(per_device(from, estimate.tokens)),
          .mfu = known(estimate.mfu),
          .energy_j = known(energy),
          .worth_having = from.worth_having};
}

SizingQuestion question_of(const PlanQuestion& asked, const Options& options) {
  if ((asked.tokens > 0) == (asked.samples > 0)) {
    throw interlock::Error("expected one of tokens and samples, above 0");
  }
  SizingQuestion question{.model = asked.model,
                          .devices = ascending(asked.devices),
                          .sequence_length = asked.sequence_length,
                          .length = asked.tokens > 0 ? asked.tokens : asked.samples,
                          .in_samples = asked.samples > 0,
                          .batch = known(asked.batch),
                          .weak = asked.weak,
                          .device_mtbf = asked.mtbf,
                          .overrides = options.set};
  for (const std::string& machine : asked.machines) {
    const auto price = asked.prices.find(machine);
    question.machines.push_back({machine, price == asked.prices.end() ? "" : price->second});
  }
  if (asked.days > 0) question.aims.time = Seconds(asked.days * kSecondsOfDay);
  if (!asked.budget.empty()) question.aims.budget = parse_budget(asked.budget);
  return question;
}

PlanRow row_of(const Sizing& sizing, const SizedPlan& from) {
  PlanRow row{.machine = sizing.question.machines[from.machine].name,
              .devices = from.devices,
              .fits = from.fits,
              .problem = from.fits ? "" : row_words(from),
              .goodput = from.goodput.value_or(1),
              .on_front = from.on_front};
  if (from.plan) {
    row.words = plan_words(*from.plan);
    row.scenario = scenario_file(from.plan->document, "");
  }
  if (!from.fits) return row;
  row.time_s = from.time.value();
  row.device_hours = from.device_hours;
  if (from.cost) row.cost = from.cost->amount;
  if (from.energy) row.energy_j = from.energy->value();
  return row;
}

Change change_of(const TriedChange& from) {
  return {.words = from.change.words,
          .set = from.change.settings,
          .step_time_s = from.step_time.value(),
          .gain_s = from.gain.value(),
          .peak_memory_bytes = from.peak_memory.value(),
          .fits = from.fits};
}

}  // namespace

SearchResult search(std::string_view text, const Options& options) {
  return at_boundary([&] {
    const auto told = [&](std::size_t done, std::size_t of) { tell_progress(options, done, of); };
    refuse_chosen(options.set);
    const auto found = search_plans(document_of(text, options), workers_of(options), told);
    SearchResult result{.json = search_json(found)};
    for (const interlock::FoundPlan& one : found.plans) result.plans.push_back(plan_of(one));
    return result;
  });
}

PlanResult plan(const PlanQuestion& question, const Options& options) {
  return at_boundary([&] {
    SizingListener listener;
    listener.told = [&](const SizingProgress& at) { tell_progress(options, at.row, at.rows); };
    const Sizing sizing = size_up(question_of(question, options), workers_of(options), listener);
    PlanResult result{.ranking = sizing.ranking,
                      .recommendation = recommendation(sizing),
                      .json = sizing_json(sizing)};
    for (const SizedPlan& row : sizing.rows) result.rows.push_back(row_of(sizing, row));
    return result;
  });
}

Explanation explain(std::string_view text, const Options& options) {
  return at_boundary([&] {
    const auto told = [&](std::size_t done, std::size_t of) { tell_progress(options, done, of); };
    Answers answers = answer(document_of(text, options), workers_of(options), told);
    std::vector<Change> changes;
    for (const TriedChange& one : answers.changes) changes.push_back(change_of(one));
    const std::string limit = limit_sentence(answers), json = answers_json(answers);
    return Explanation{.result = result_of(std::move(answers.baseline.result), true),
                       .limited_by = limit,
                       .changes = std::move(changes),
                       .json = json};
  });
}

}  // namespace interlock::v0
