// Simulates a scenario and everything that is one step away from it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explain/answers.h"

#include <algorithm>
#include <cstring>

#include "scenarios/contract/open_names.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/simulate/economics.h"

namespace interlock {
namespace {

/// The outcome of a run as a process sends it, byte by byte.
struct ToldOutcome {
  double step_time = 0, work = 0, peak_memory = 0, memory_capacity = 0;
  bool fits = true;
  double energy = 0, cost = 0;  // of the step; 0: unknown
};

double work_of(const Plan& plan) {
  if (plan.question.trace()) return 1;
  const auto samples = measure_inputs(plan).samples_per_step;
  return samples ? *samples : all_micro_batches(plan);
}

ToldOutcome told_of(const Plan& plan, const Metrics& metrics) {
  ToldOutcome told{.step_time = metrics.step_time.value(),
                   .work = work_of(plan),
                   .memory_capacity = metrics.memory_capacity.value_or(Bytes(0)).value(),
                   .fits = metrics.fits_in_memory};
  const Economics economics = economics_of(plan, metrics);
  if (economics.energy) told.energy = economics.energy->value();
  if (economics.cost) told.cost = economics.cost->amount;
  if (!metrics.devices.empty()) told.peak_memory = fullest_device(metrics).peak_memory.value();
  return told;
}

std::string bytes_of(const ToldOutcome& told) {
  std::string bytes(sizeof told, '\0');
  std::memcpy(bytes.data(), &told, sizeof told);
  return bytes;
}

/// `after` over `before` where both are known.
std::optional<double> ratio(double after, double before) {
  return after > 0 && before > 0 ? std::optional(after / before) : std::nullopt;
}

Question only_scenario(const JsonValue& document) {
  std::vector<Question> scenarios = load_questions(document);
  if (scenarios.size() == 1) return std::move(scenarios.front());
  throw Error(scenarios.front().file + ": explain takes one scenario, and its sweep makes " +
              std::to_string(scenarios.size()) + "; leave one: --set sweep=null --set PATH=VALUE");
}

/// Returns the bytes of what comes of `change`; none if it is refused.
std::string outcome_of(const JsonValue& document, const Change& change) {
  try {
    JsonValue changed = document;
    apply_overrides(changed, change.settings);
    const Plan plan = make_plan(only_scenario(changed));
    return bytes_of(told_of(plan, estimate_step(plan, Grade::Simulation).metrics));
  } catch (const Error&) {
    return "";
  }
}

TriedChange tried(const Change& change, const std::string& bytes, const ScenarioResult& before) {
  ToldOutcome told;
  std::memcpy(&told, bytes.data(), sizeof told);
  TriedChange result{.change = change,
                     .step_time = Seconds(told.step_time),
                     .work = told.work / work_of(before.plan),
                     .peak_memory = Bytes(told.peak_memory),
                     .memory_capacity = Bytes(told.memory_capacity),
                     .fits = told.fits};
  if (change.kind != Change::Kind::Machine) {
    const ToldOutcome own = told_of(before.plan, before.measurement.metrics);
    result.energy = ratio(told.energy / result.work, own.energy);
    result.cost = ratio(told.cost / result.work, own.cost);
  }
  // Another batch is another training, whatever made it so.
  const bool plan = change.kind == Change::Kind::Plan;
  if (plan && result.work != 1) result.change.kind = Change::Kind::Training;
  result.gain = before.measurement.metrics.step_time - result.step_time / result.work;
  return result;
}

}  // namespace

Answers answer(const JsonValue& document, const Workers& workers, const ChangesTried& told,
               const std::function<bool()>& stop) {
  Answers answers;
  Baseline& baseline = answers.baseline;
  Question scenario = only_scenario(document);
  if (workers.threads) scenario.simulation.engine = engine_of_many(scenario.simulation.engine);
  baseline.document = *scenario.document;
  baseline.opened = with_files_open(baseline.document);
  baseline.result = run_scenario(scenario, true);
  baseline.limits = step_limits(baseline.result);
  const std::vector<Change> changes = all_changes(baseline);
  std::size_t next = 0, done = 0;
  run_jobs(
      {.next = [&]() -> std::optional<std::size_t> {
         return next < changes.size() ? std::optional(next++) : std::nullopt;
       },
       .work = [&](std::size_t job) { return outcome_of(document, changes[job]); },
       .done =
           [&](const JobResult& result) {
             refuse_unanswered(result);
             ++done;
             if (told) told(done, changes.size());
             CHECK(result.problem.empty(),
                   "a change has an outcome or is refused; " + result.problem);
             if (result.bytes.empty()) {
               ++answers.refused;
             } else {
               answers.changes.push_back(tried(changes[result.job], result.bytes, baseline.result));
             }
           },
       .stop = stop},
      workers);
  answers.untried = static_cast<int>(changes.size() - done);
  // Ends come in any order: equal gains in that of their words.
  std::sort(answers.changes.begin(), answers.changes.end(),
            [](const TriedChange& a, const TriedChange& b) {
              return a.gain != b.gain ? a.gain > b.gain : a.change.settings < b.change.settings;
            });
  return answers;
}

}  // namespace interlock
