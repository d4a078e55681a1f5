// Speeding everything up scales time; speeding anything up never costs time while orders are fixed.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "scenarios/plan/lower_plan.h"
#include "tests/validate/support/small_grid.h"

namespace interlock::scaling_test {
namespace {

void scale(StageTimes& times, double factor) {
  for (Seconds* time : {&times.forward, &times.backward_input, &times.backward_weight, &times.head,
                        &times.update}) {
    *time *= factor;
  }
}

Seconds makespan(const Trial& trial) {
  const Question scenario = load(trial);
  return run_program(lower_plan(make_plan(scenario), scenario.training().steps),
                     scenario.simulation.engine, {})
      .makespan;
}

TEST_CASE("hardware twice as fast halves every time, to the last bit") {
  for_small_grid([](const GridPoint& point) {
    Trial fast = point.trial;
    for (TrialStage& stage : fast.stages) scale(stage.times, 0.5);
    fast.latency *= 0.5;
    fast.bandwidth *= 2;
    const Traced slow_run = trace(point.trial), fast_run = trace(fast);
    INFO(document(point.trial));
    REQUIRE(slow_run.log.spans.size() == fast_run.log.spans.size());
    bool halved = true;
    for (std::size_t i = 0; i < slow_run.log.spans.size(); ++i) {
      const Span &s = slow_run.log.spans[i], &f = fast_run.log.spans[i];
      halved = halved && f.op == s.op && f.start == s.start * 0.5 && f.end == s.end * 0.5;
    }
    CHECK(halved);
  });
}

/// One thing faster at a time: a stage, its tensor, or all links.
std::vector<Trial> faster(const Trial& trial) {
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < trial.stages.size(); ++i) {
    trials.push_back(trial);
    scale(trials.back().stages[i].times, 0.5);
    trials.push_back(trial);
    trials.back().stages[i].times.backward_input = Seconds(0);
    trials.push_back(trial);
    trials.back().stages[i].output = Bytes(0);
  }
  trials.push_back(trial);
  trials.back().latency = Seconds(0);
  trials.push_back(trial);
  trials.back().bandwidth *= 4;
  return trials;
}

TEST_CASE("with a fixed order and no contention, faster hardware is never slower") {
  int compared = 0;
  for_small_grid([&](const GridPoint& point) {
    // Several batches in flight let a rank choose; there a faster op may lead to a worse choice.
    if (point.plan.in_flight > 1 || point.trial.micro_batches > 3) return;
    const Seconds before = makespan(point.trial);
    for (const Trial& trial : faster(point.trial)) {
      INFO(document(trial));
      CHECK(makespan(trial) <= before);
      ++compared;
    }
  });
  CHECK(compared > 1000);
}

}  // namespace
}  // namespace interlock::scaling_test
