// The two engines, and a frozen order, tell the same story wherever no link is shared.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "tests/support/cases.h"
#include "tests/validate/support/small_grid.h"

namespace interlock::engines_agree_test {
namespace {

/// Random costs that are no whole ticks, some stages on one rank, some batches in flight.
Trial random_trial(std::uint64_t seed) {
  Random random(41, seed);
  Trial trial;
  const int stages = random.integer(1, 7);
  const auto time = [&](double most) { return Seconds(most * random.uniform()); };
  for (int i = 0; i < stages; ++i) {
    trial.stages.push_back({.times = {time(2e-3), time(2e-3), time(2e-3), time(3e-3), time(5e-4)},
                            .output = Bytes(random.integer(0, 300'000))});
  }
  trial.latency = time(4e-4);
  trial.strategy = n_wise(random.integer(1, stages), random.integer(0, 1) == 0);
  const int in_flight = random.integer(1, 3);
  const char* queues[] = {"\"rendezvous\"", "\"unlimited\"", "{\"buffered\": 1}"};
  trial.schedule = "{\"kind\": \"eager\", \"in_flight\": " + std::to_string(in_flight) +
                   ", \"queue\": " + queues[random.integer(0, 2)] + "}";
  const int ranks = random.integer(1, stages);
  for (int i = 0; i < stages; ++i) trial.placement.push_back(i % ranks);
  trial.micro_batches = random.integer(1, 6);
  trial.steps = 3;
  return trial;
}

std::vector<Span> sorted_spans(const Program& program, EngineKind engine) {
  TraceLog log;
  run_program(program, engine, log_sink(log));
  std::sort(log.spans.begin(), log.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.rank, a.micro_batch, a.op) < std::tie(b.rank, b.micro_batch, b.op);
  });
  return log.spans;
}

/// The largest difference of two traces in time, relative to their length; 1 if ops differ.
double difference(const std::vector<Span>& a, const std::vector<Span>& b) {
  if (a.size() != b.size()) return 1;
  double length = 0, largest = 0;
  for (const Span& span : a) length = std::max(length, span.end.value());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tie(a[i].rank, a[i].micro_batch, a[i].op) !=
        std::tie(b[i].rank, b[i].micro_batch, b[i].op)) {
      return 1;
    }
    largest = std::max({largest, std::abs((a[i].start - b[i].start).value()),
                        std::abs((a[i].end - b[i].end).value())});
  }
  return length > 0 ? largest / length : largest;
}

TEST_CASE("SimGrid and native agree to 1e-9 on every small chain") {
  int runs = 0;
  for_small_grid([&](const GridPoint& point) {
    if (++runs % 5 != 0 && !is_soak()) return;  // a fork for each
    const Program program = lower_plan(make_plan(load(point.trial)), point.trial.steps);
    INFO(document(point.trial));
    CHECK(difference(sorted_spans(program, EngineKind::Native),
                     sorted_spans(program, EngineKind::SimGrid)) <= 1e-9);
  });
}

TEST_CASE("SimGrid and native agree to 1e-9 on 150 random programs") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Trial trial = random_trial(seed);
    const Program program = lower_plan(make_plan(load(trial)), trial.steps);
    INFO("seed " << seed << "\n" << document(trial));
    CHECK(difference(sorted_spans(program, EngineKind::Native),
                     sorted_spans(program, EngineKind::SimGrid)) <= 1e-9);
  }
}

TEST_CASE("the sweep and the loop agree exactly on fixed orders") {
  for_small_grid([](const GridPoint& point) {
    const Program program = lower_plan(make_plan(load(point.trial)), point.trial.steps);
    if (chooses_order(program)) return;
    TraceLog swept, looped;
    run_longest_path(program, log_sink(swept));
    run_event_loop(program, log_sink(looped));
    const auto order = [](const Span& a, const Span& b) {
      return std::tie(a.rank, a.micro_batch, a.op) < std::tie(b.rank, b.micro_batch, b.op);
    };
    std::sort(swept.spans.begin(), swept.spans.end(), order);
    std::sort(looped.spans.begin(), looped.spans.end(), order);
    INFO(document(point.trial));
    CHECK(difference(swept.spans, looped.spans) == 0);
  });
}

TEST_CASE("a frozen order chooses nothing and replays to identical times in every engine") {
  int froze = 0;
  for (std::uint64_t seed = 200; seed < 300; ++seed) {
    const Trial trial = random_trial(seed);
    const Program program = lower_plan(make_plan(load(trial)), trial.steps);
    const std::vector<Span> realised = sorted_spans(program, EngineKind::Native);
    const Program frozen = freeze(program, EngineKind::Native);
    INFO("seed " << seed << "\n" << document(trial));
    CHECK_FALSE(chooses_order(frozen));
    CHECK(difference(realised, sorted_spans(frozen, EngineKind::Native)) == 0);
    if (seed % 4 == 0) {
      CHECK(difference(realised, sorted_spans(frozen, EngineKind::SimGrid)) <= 1e-9);
    }
    froze += chooses_order(program) ? 1 : 0;
  }
  CHECK(froze > 20);
}

TEST_CASE("auto is native where no link is shared and SimGrid where one is") {
  Trial trial;
  trial.stages = equal_stages(4, {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)}, Seconds(1e-4));
  trial.strategy = "\"pairwise\"";
  trial.engine = "auto";
  CHECK(simulate(trial).metrics.engine == "native");
  trial.cluster = "{\"machine\": \"dgx-a100-80g\", \"devices\": 4}";
  CHECK(simulate(trial).metrics.engine == "simgrid");
  const Seconds step = simulate(trial).metrics.step_time;
  trial.engine = "native";
  CHECK(simulate(trial).metrics.engine == "native");
  CHECK(simulate(trial).metrics.step_time == step);
}

}  // namespace
}  // namespace interlock::engines_agree_test
