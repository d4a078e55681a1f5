// Thousands of random runs: what is true of each, whatever fails when.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "sim/runs/training_run.h"

namespace interlock::run_properties_test {
namespace {

/// A small plan; times are quarters of a second, so that they are whole ticks.
RunPlan random_plan(Random& random) {
  const auto time = [&](int most) { return Seconds(0.25 * random.integer(0, most)); };
  RunPlan plan{.steps = random.integer(1, 40), .step_time = time(19) + Seconds(0.25)};
  plan.replicas = random.integer(1, 4);
  plan.devices_per_replica = random.integer(1, 3);
  plan.spares = random.integer(0, 2);
  plan.micro_batches = random.integer(1, 5);
  plan.micro_batch_time = plan.step_time / static_cast<double>(plan.micro_batches);
  plan.replicas_hold_state = random.integer(0, 3) > 0;
  plan.on_failure = static_cast<OnFailure>(random.integer(0, 2));
  plan.detection = time(4);
  plan.reload = time(8);
  plan.regroup = time(4);
  plan.warm_up = time(2);
  plan.checkpoint = {.interval = random.integer(0, 6),
                     .write = time(30),
                     .asynchronous = random.integer(0, 1) == 1,
                     .stall = time(3)};
  plan.failures.shape = 0.5 + random.uniform();
  plan.failures.replacement = time(60);
  const int devices = plan.replicas * plan.devices_per_replica + plan.spares;
  const double life = devices * (10 + 150 * random.uniform());
  plan.failures.kinds = {{Seconds(life), devices, 1}};
  if (random.integer(0, 1)) {
    plan.failures.kinds.push_back({Seconds(3 * life), (devices + 1) / 2, 2});
  }
  return plan;
}

double length_of(const RunSpan& span) { return (span.end - span.begin).value(); }

/// A step of the history as it was at last done.
struct DoneStep {
  int times = 0;  // done at all
  int replicas = 0;
  double length = 0;
};

/// Reads a history again from its beginning: a stretch of steps that begins before the last one
/// undoes what was done from there on.
struct Replay {
  std::vector<DoneStep> steps;
  std::map<RunSpan::Kind, double> time;
  std::int64_t done = 0, executed = 0, broken = 0;
  double undone = 0;
};

Replay replay(const RunPlan& plan, const std::vector<RunSpan>& history) {
  Replay found{.steps = std::vector<DoneStep>(plan.steps)};
  double clock = 0;
  for (const RunSpan& span : history) {
    CHECK(span.begin.value() == doctest::Approx(clock).epsilon(1e-9));
    CHECK(span.end >= span.begin);
    clock = span.end.value();
    found.time[span.kind] += length_of(span);
    if (span.kind == RunSpan::Kind::BrokenStep) ++found.broken;
    if (span.kind != RunSpan::Kind::Steps) continue;
    REQUIRE(span.first_step <= found.done);
    for (std::int64_t step = span.first_step; step < found.done; ++step) {
      found.undone += found.steps[step].length;
    }
    found.done = span.first_step + span.steps;
    found.executed += span.steps;
    REQUIRE(found.done <= plan.steps);
    for (std::int64_t step = span.first_step; step < found.done; ++step) {
      DoneStep& entry = found.steps[step];
      entry = {entry.times + 1, span.replicas, length_of(span) / static_cast<double>(span.steps)};
    }
  }
  return found;
}

/// Each micro-batch of a step is in exactly one replica's share.
void check_shares(const RunPlan& plan, int replicas) {
  std::int64_t next = 0, most = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    const MicroBatchRange range = micro_batches_of(plan, replicas, replica);
    CHECK(range.first == next);
    next += range.count;
    most = std::max(most, range.count);
  }
  CHECK(next == plan.replicas * plan.micro_batches);
  const double longer = static_cast<double>(most - plan.micro_batches);
  CHECK(step_time_of(plan, replicas).value() ==
        doctest::Approx(plan.step_time.value() + longer * plan.micro_batch_time.value()));
}

void check_history(const RunPlan& plan, const RunOutcome& outcome,
                   const std::vector<RunSpan>& history) {
  const Replay found = replay(plan, history);
  CHECK(found.done == plan.steps);
  double useful = 0;
  for (const DoneStep& step : found.steps) {
    CHECK(step.times >= 1);
    check_shares(plan, step.replicas);
    CHECK(step.length == doctest::Approx(step_time_of(plan, step.replicas).value()));
    useful += step.length;
  }
  const auto time = [&](RunSpan::Kind kind) {
    const auto entry = found.time.find(kind);
    return entry == found.time.end() ? 0 : entry->second;
  };
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-9); };
  CHECK(outcome.useful.value() == near(useful));
  CHECK(outcome.lost.value() == near(found.undone + time(RunSpan::Kind::BrokenStep)));
  CHECK(outcome.checkpoint.value() == near(time(RunSpan::Kind::Checkpoint)));
  CHECK(outcome.restart.value() == near(time(RunSpan::Kind::Restart)));
  CHECK(outcome.idle.value() == near(time(RunSpan::Kind::Idle)));
  CHECK(outcome.redone_steps == found.executed - plan.steps);
  CHECK(outcome.broken_steps == found.broken);
  const std::int64_t all = plan.replicas * plan.micro_batches;
  CHECK(outcome.micro_batches == plan.steps * all);
  CHECK(outcome.redone_micro_batches >= outcome.redone_steps * all);
  CHECK(outcome.redone_micro_batches <= (outcome.redone_steps + outcome.broken_steps) * all);
}

/// No step is made by devices that are down: at every instant inside a stretch of steps there are
/// as many devices up as its replicas have.
void check_devices(const RunPlan& plan, std::uint64_t seed, const std::vector<RunSpan>& history) {
  const int devices = plan.replicas * plan.devices_per_replica + plan.spares;
  std::vector<int> outages(devices, 0);
  OutageStream stream(plan.failures, seed);
  const auto apply = [&] {
    const DeviceEvent& event = *stream.next();
    for (int i = event.first; i < std::min(devices, event.first + event.count); ++i) {
      outages[i] += event.up ? -1 : 1;
    }
    stream.pop();
  };
  const auto up = [&] { return std::count(outages.begin(), outages.end(), 0); };
  constexpr double kTick = 1e-6;  // coarser than the run's own
  for (const RunSpan& span : history) {
    while (stream.next()->time.value() < span.begin.value() + kTick) apply();
    const bool trains = span.kind == RunSpan::Kind::Steps;
    const bool elastic = plan.on_failure == OnFailure::DropReplica;
    if (trains && !elastic) CHECK(span.replicas == plan.replicas);
    if (trains) CHECK(span.replicas >= 1);
    const int needed = trains ? span.replicas * plan.devices_per_replica : 0;
    if (span.end.value() > span.begin.value() + 2 * kTick) CHECK(up() >= needed);
    while (stream.next()->time.value() < span.end.value() - kTick) {
      apply();
      CHECK(up() >= needed);
    }
  }
}

TEST_CASE(
    "every micro-batch of every step is done once in the steps that last, and all time told") {
  int failures = 0, rollbacks = 0, redone = 0, fewer = 0, hopeless = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    CAPTURE(seed);
    Random random(seed, 3);
    const RunPlan plan = random_plan(random);
    std::vector<RunSpan> history;
    RunOutcome outcome;
    try {
      outcome = simulate_training_run(plan, seed, &history);
    } catch (const Error&) {  // many hours of work without a checkpoint in a storm of failures
      ++hopeless;
      continue;
    }
    check_history(plan, outcome, history);
    check_devices(plan, seed, history);
    const Seconds sum =
        outcome.useful + outcome.lost + outcome.checkpoint + outcome.restart + outcome.idle;
    CHECK(outcome.wall.value() == doctest::Approx(sum.value()).epsilon(1e-12));
    failures += static_cast<int>(outcome.failures);
    rollbacks += static_cast<int>(outcome.rollbacks);
    redone += static_cast<int>(outcome.redone_steps);
    fewer += outcome.fewest_replicas < plan.replicas ? 1 : 0;
  }
  INFO(failures << " failures, " << rollbacks << " rollbacks, " << redone << " steps redone, "
                << hopeless << " runs without headway");
  CHECK(failures > 20'000);
  CHECK(rollbacks > 10'000);
  CHECK(redone > 20'000);
  CHECK(fewer > 500);
  CHECK(hopeless < 20);
}

/// Devices that fail once each and are up again at once; whole seconds, second by second. No clever
/// arithmetic: every second is a second of a step, of a checkpoint or of a restart.
int seconds_of(const RunPlan& plan, const std::vector<int>& failures) {
  const auto whole = [](Seconds time) { return static_cast<int>(std::lround(time.value())); };
  const int step = whole(plan.step_time), write = whole(plan.checkpoint.write);
  const int restart = whole(plan.detection + plan.reload);
  int safe = 0, done = 0, clock = 0, in_step = 0, in_write = 0, recovering = 0;
  while (true) {
    const auto& interval = plan.checkpoint.interval;
    const bool due = done == plan.steps || done - safe == interval;
    if (due && in_write == write && recovering == 0) {
      safe = done;
      in_write = 0;
      if (safe == plan.steps) return clock;
      continue;
    }
    if (std::find(failures.begin(), failures.end(), clock) != failures.end()) {
      done = safe;
      in_step = in_write = 0;
      recovering = restart;
    }
    ++clock;
    if (recovering > 0) {
      --recovering;
    } else if (done == plan.steps || done - safe == interval) {
      ++in_write;
    } else if (++in_step == step) {
      ++done;
      in_step = 0;
    }
  }
}

TEST_CASE("runs that restart take as long as counted second by second") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Random random(seed, 4);
    RunPlan plan{.steps = random.integer(1, 20),
                 .step_time = Seconds(random.integer(1, 5)),
                 .devices_per_replica = 200,
                 .detection = Seconds(random.integer(0, 2)),
                 .reload = Seconds(random.integer(1, 6))};
    plan.checkpoint = {.interval = random.integer(1, 6), .write = Seconds(random.integer(1, 4))};
    std::vector<int> failures;
    for (int at = random.integer(0, 20); at < 200; at += random.integer(1, 40)) {
      const int device = static_cast<int>(failures.size());
      failures.push_back(at);
      plan.failures.trace.push_back({Seconds(at), device, 1, false});
      plan.failures.trace.push_back({Seconds(at), device, 1, true});
    }
    CHECK(simulate_training_run(plan, 1).wall.value() == seconds_of(plan, failures));
  }
}

}  // namespace
}  // namespace interlock::run_properties_test
