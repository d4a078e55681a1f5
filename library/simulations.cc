// check, simulate and sweep of the library.
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "library/boundary.h"
#include "library/result_data.h"
#include "reports/result/result_json.h"
#include "reports/result/scenario_json.h"
#include "scenarios/simulate/calibrated_range.h"
#include "scenarios/sweep/sweep_plan.h"
#include "scenarios/sweep/told_failure.h"

namespace interlock::v0 {
namespace {

Result simulate_one(const Question& question, const Options& options) {
  if (options.range_draws != 0 && options.range_draws < kFewestDraws) {
    throw interlock::Error("range_draws: expected 0, or at least " + std::to_string(kFewestDraws) +
                           ", got " + std::to_string(options.range_draws));
  }
  return result_of(run_scenario(question, options.timeline, options.range_draws), options.timeline);
}

SweepRow run_point(const SweepPlan& plan, std::size_t point) {
  SweepRow row;
  try {
    Diagnostics diagnostics;
    SweepPoint at = plan.point(point, diagnostics);
    diagnostics.throw_if_any();
    Question question = load_point(std::make_shared<const JsonValue>(std::move(at.document)));
    question.swept = std::move(at.swept);
    question.simulation.engine = engine_of_many(question.simulation.engine);
    const ScenarioResult result = simulate_plan(make_plan(question), Keep::Nothing);
    const nlohmann::ordered_json document = result_document(result);
    row.metrics = numbers_of(result, document);
    row.json = document.dump();
  } catch (const std::exception& failure) {
    row.error = told_failure(failure).words;
  }
  return row;
}

/// Fills in the paths that are swept, and the values of each row at them.
void set_values(const SweepPlan& plan, SweepResult& result) {
  for (const SweepSetting& set : plan.settings(0)) result.paths.push_back(set.path);
  for (std::size_t point = 0; point < plan.size(); ++point) {
    for (const SweepSetting& set : plan.settings(point)) {
      result.rows[point].values.push_back(value_json(set.value).dump());
    }
  }
}

SweepResult sweep_document(JsonValue document, const Options& options) {
  Diagnostics diagnostics;
  const SweepPlan plan(std::move(document), kMostInTurn, diagnostics);
  diagnostics.throw_if_any();
  SweepResult result;
  result.rows.resize(plan.size());
  std::size_t next = 0, done = 0;
  const auto give = [&]() -> std::optional<std::size_t> {
    return next < plan.size() ? std::optional(next++) : std::nullopt;
  };
  const auto work = [&](std::size_t point) {
    result.rows[point] = run_point(plan, point);  // each row is written by one thread
    return std::string();
  };
  const auto told = [&](const JobResult&) { tell_progress(options, ++done, plan.size()); };
  run_jobs({.next = give, .work = work, .done = told, .stop = {}}, workers_of(options));
  set_values(plan, result);
  return result;
}

/// Returns the results of all questions, in their order. Throws: what the first of them throws.
std::vector<Result> simulate_each(const std::vector<Question>& questions, const Options& options) {
  std::vector<std::optional<Result>> results(questions.size());
  std::vector<std::exception_ptr> failures(questions.size());
  std::size_t next = 0, done = 0;
  bool failed = false;
  const auto give = [&]() -> std::optional<std::size_t> {
    return next < questions.size() && !failed ? std::optional(next++) : std::nullopt;
  };
  const auto work = [&](std::size_t job) {  // each place is written by one thread
    try {
      results[job] = simulate_one(questions[job], options);
    } catch (...) {
      failures[job] = std::current_exception();
    }
    return std::string();
  };
  const auto told = [&](const JobResult& job) {
    failed = failed || failures[job.job];
    if (!failed) tell_progress(options, ++done, questions.size());
  };
  run_jobs({.next = give, .work = work, .done = told, .stop = {}}, workers_of(options));
  // Questions are given in their order: all before one that failed have been asked.
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::vector<Result> all;
  all.reserve(results.size());
  for (std::optional<Result>& result : results) all.push_back(std::move(result).value());
  return all;
}

}  // namespace

std::size_t check(std::string_view text, const Options& options) {
  return at_boundary([&] { return questions_of(document_of(text, options), options).size(); });
}

Result simulate(std::string_view text, const Options& options) {
  return at_boundary([&] {
    const std::vector<Question> questions = questions_of(document_of(text, options), options);
    if (questions.size() == 1) return simulate_one(questions.front(), options);
    throw interlock::Error(questions.front().file + ": /sweep: makes " +
                           std::to_string(questions.size()) +
                           " scenarios; expected one, or a call of simulate_all() or sweep()");
  });
}

std::vector<Result> simulate_all(std::string_view text, const Options& options) {
  return at_boundary(
      [&] { return simulate_each(questions_of(document_of(text, options), options), options); });
}

SweepResult sweep(std::string_view text, const Options& options) {
  return at_boundary([&] { return sweep_document(document_of(text, options), options); });
}

}  // namespace interlock::v0
