// Bounds are bounds: no plan of thousands takes less than what is known of it beforehand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_estimate.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/sweep/worker_pool.h"
#include "tests/search/random_space.h"
#include "tests/support/cases.h"

namespace interlock::plan_bound_test {
namespace {

constexpr int kPlansOfSpace = 8;
constexpr double kRounding = 1e-9;
constexpr double kSimGridRounding = 1e-8;  // of runs that share links; 1.7e-9 was seen

/// The slack of one plan; negative: a bound was above what was simulated.
struct Slack {
  bool loaded = false, shared = false;
  double layout_time = 0, plan_time = 0, layout_memory = 0, plan_memory = 0, busy = 0, look = 0;
  double energy = 0, links = 0;
};

double slack_of(double bound, double simulated) {
  return simulated > 0 ? 1 - bound / simulated : 0;
}

double peak_of(const Metrics& metrics) {
  double peak = 0;
  for (const DeviceMetrics& device : metrics.devices) {
    peak = std::max(peak, device.peak_memory.value());
  }
  return peak;
}

Slack slack_of(const JsonValue& document) {
  Slack slack;
  std::vector<Question> scenarios;
  try {
    scenarios = load_questions(document);
  } catch (const Error&) {
    return slack;
  }
  slack.loaded = true;
  const Question& scenario = scenarios.front();
  const LaidOut laid_out = lay_out(scenario);
  const Plan& plan = laid_out.ordered();
  const Plan whole = complete(laid_out);
  const Metrics metrics = estimate_step(whole, Grade::Simulation).metrics;
  const StepEstimate layout =
      bound_layout(scenario, {.overlap = scenario.training().schedule.overlap});
  const StepEstimate own = estimate_step(plan, Grade::PlanBound);
  const double time = metrics.step_time.value(), peak = peak_of(metrics);
  slack.layout_time = slack_of(layout.time.value(), time);
  slack.plan_time = slack_of(own.time.value(), time);
  slack.layout_memory = slack_of(layout.memory.value(), peak);
  slack.plan_memory = slack_of(own.memory.value(), peak);
  slack.busy = slack_of(own.busy * own.time.value(), metrics.busy * time);
  slack.links = 1;
  for (const LinkMetrics& link : metrics.links) {
    slack.links = std::min(slack.links, 1 - link.utilisation);
  }
  const PlanEstimate look = estimate_by_look(plan);
  slack.shared = !look.exact;
  slack.look = slack_of(look.values[static_cast<std::size_t>(Aim::Time)], time);
  if (const auto energy = economics_of(whole, metrics).energy) {
    const PlanValues values = estimate_by_bound(plan, own).values;
    slack.energy = slack_of(values[static_cast<std::size_t>(Aim::Energy)], energy->value());
  }
  return slack;
}

std::string bytes_of(const Slack& slack) {
  return {reinterpret_cast<const char*>(&slack), sizeof slack};
}

TEST_CASE(
    "bounds of layouts and plans, and looks, are never above what is simulated, nor is a link") {
  int loaded = 0, shared = 0;
  double mean = 0, memory = 0;
  std::size_t next = 0;
  const auto plans = static_cast<std::size_t>(cases(150 * kPlansOfSpace));
  const auto plan_of = [](std::size_t job) {
    const int seed = static_cast<int>(job) / kPlansOfSpace;
    Random random(static_cast<std::uint64_t>(job), 11);
    return random_plan(random_space(seed, false), random);
  };
  run_jobs({.next = [&]() -> std::optional<std::size_t> {
              return next < plans ? std::optional(next++) : std::nullopt;
            },
            .work = [&](std::size_t job) { return bytes_of(slack_of(plan_of(job))); },
            .done =
                [&](const JobResult& result) {
                  CAPTURE(result.job);
                  REQUIRE_MESSAGE(result.problem.empty(), result.problem);
                  Slack slack;
                  REQUIRE(result.bytes.size() == sizeof slack);
                  std::memcpy(&slack, result.bytes.data(), sizeof slack);
                  if (!slack.loaded) return;
                  ++loaded;
                  shared += slack.shared ? 1 : 0;
                  const double rounding = slack.shared ? kSimGridRounding : kRounding;
                  CHECK(slack.layout_time >= -rounding);
                  CHECK(slack.plan_time >= -rounding);
                  CHECK(slack.layout_memory >= -kRounding);
                  CHECK(slack.plan_memory >= -kRounding);
                  CHECK(slack.busy >= -1e-8);
                  CHECK(slack.energy >= -rounding);
                  CHECK(slack.look >= -rounding);
                  CHECK(slack.links >= -1e-6);  // no link carries more than it can
                  mean += slack.plan_time;
                  memory += slack.plan_memory;
                },
            .stop = {}},
           usable_processors());
  std::printf(
      "%d plans, %d of which share links: a bound is below the simulated time by %.1f %%, "
      "below the peak by %.1f %% on average\n",
      loaded, shared, 100 * mean / loaded, 100 * memory / loaded);
  CHECK(loaded > static_cast<int>(plans / 4));
  CHECK(shared > static_cast<int>(plans / 20));
}

TEST_CASE("ZeRO 2 that reduces gradients once for several micro-batches is ZeRO 1") {
  int alike = 0, other = 0;
  for (int seed = 0; seed < cases(200); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed), 12);
    JsonValue document = random_plan(random_space(seed % 20, false), random);
    const auto simulated = [&](const char* stage) -> std::optional<ScenarioResult> {
      try {
        apply_overrides(document, {stage});
        const Question question = load_questions(document).front();
        const ScheduleEntry& entry = *question.training().schedule.kind;
        const bool global = question.training().strategy.kind == StrategyKind::Global;
        if (!global || !entry.flushes || question.training().micro_batches < 2) return std::nullopt;
        return run_scenario(question, false);
      } catch (const Error&) {
        return std::nullopt;
      }
    };
    const auto one = simulated("parallel.zero_stage=1"), two = simulated("parallel.zero_stage=2");
    CHECK(one.has_value() == two.has_value());
    if (!one || !two) continue;
    const auto reduction = two->plan.question.layout.data_parallel.gradient_reduction;
    if (reduction != GradientReduction::Step) {
      ++other;
      continue;
    }
    ++alike;
    const Metrics &first = one->measurement.metrics, &second = two->measurement.metrics;
    CHECK(first.step_time == second.step_time);
    CHECK(first.busy == second.busy);
    CHECK(peak_of(first) == peak_of(second));
  }
  MESSAGE(alike << " alike, " << other << " that reduce gradients of each micro-batch");
  CHECK(alike > met_by_cases(20));
}

}  // namespace
}  // namespace interlock::plan_bound_test
