// Steady state: its start, and the length of its cycle.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/steady.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/measure/metrics.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::steady_test {
namespace {

/// A run of one op a step, an update, that lasts as `duration` says: nothing but a step log.
struct MadeRun {
  Program program;
  StepLog log;
  MadeRun(int steps, const std::function<double(int step)>& duration)
      : program{.steps = steps, .ops = {{.kind = OpKind::U}}}, log(program) {
    double now = 0;
    for (int n = 0; n < steps; ++n) {
      const Seconds start(now);
      now += duration(n);
      log.add({.start = start, .end = Seconds(now), .micro_batch = n});
    }
  }
  std::optional<StepWindow> window(int wanted) const { return find_window(program, log, wanted); }
};

TEST_CASE("steps that are all alike have no fill") {
  const MadeRun run(20, [](int) { return 5; });
  const auto window = run.window(8);
  REQUIRE(window);
  CHECK(window->first_step == 0);
  CHECK(window->steps == 8);
  CHECK(window->steady);
}

TEST_CASE("the fill is as many steps as differ in length or within") {
  for (int fill = 1; fill < 8; ++fill) {
    const MadeRun run(30, [&](int n) { return n < fill ? 10 + n : 5; });
    const auto window = run.window(8);
    REQUIRE(window);
    INFO("fill " << fill);
    CHECK(window->first_step == fill);
    CHECK(window->steps == 8);
  }
}

TEST_CASE(
    "a cycle of several steps is measured in whole cycles, as near to the wish as it can be") {
  for (int cycle = 2; cycle <= 7; ++cycle) {
    const MadeRun run(60, [&](int n) { return n < 2 ? 50 : 5 + n % cycle; });
    for (int wanted : {1, 4, 8, 20}) {
      const auto window = run.window(wanted);
      INFO("cycle " << cycle << ", wanted " << wanted);
      REQUIRE(window);
      CHECK(window->steps % cycle == 0);
      CHECK(window->steps == (wanted < cycle ? cycle : wanted - wanted % cycle));
      CHECK(window->first_step == 2);
      const Seconds length =
          run.log.end(window->first_step + window->steps - 1) - run.log.end(window->first_step - 1);
      // The mean of 5, 6, ..., 5 + cycle - 1.
      CHECK(length / window->steps == Seconds(5 + (cycle - 1) / 2.0));
    }
  }
}

TEST_CASE("a run that never repeats, or repeats too late to hold the window, has none") {
  CHECK_FALSE(MadeRun(40, [](int n) { return n * n; }).window(8));
  CHECK_FALSE(MadeRun(20, [](int n) { return n < 17 ? n : 50; }).window(8));
  CHECK_FALSE(MadeRun(1, [](int) { return 5; }).window(2));
}

TEST_CASE("one repeat is an accident: more are asked for than steps are under way at once") {
  // Steps of 5 s whose op begins 5 s before each of the `overlap` steps before it has ended.
  for (int overlap : {0, 1, 3}) {
    const int reach = overlap + 2;
    for (int alike = 1; alike <= reach + 3; ++alike) {
      Program program{.steps = 20, .ops = {{.kind = OpKind::U}}};
      StepLog log(program);
      double end = 1000;
      for (int n = 0; n < 20; ++n) {
        end += n < 20 - alike ? 100 + n : 5;
        const double start = n < 20 - alike ? end - 1 : end - 5 - 5 * overlap;
        log.add({.start = Seconds(start), .end = Seconds(end), .micro_batch = n});
      }
      INFO("overlap " << overlap << ", alike " << alike);
      if (alike > overlap) CHECK(log.overlap() == overlap);
      // The first of them is the one that others equal.
      CHECK(find_window(program, log, 1).has_value() == (alike - 1 >= log.overlap() + 2));
    }
  }
}

TEST_CASE("steps that look alike inside but come at uneven distances are no repeat") {
  // Lengths 5 9 9 17 9 17 9 17 ...: the op of a step always takes the last 5 s of it.
  const int steps = 24;
  Program program{.steps = steps, .ops = {{.kind = OpKind::U}}};
  StepLog log(program);
  double end = 0;
  for (int n = 0; n < steps; ++n) {
    end += n == 0 ? 5 : n < 3 || n % 2 == 0 ? 9 : 17;
    log.add({.start = Seconds(end - 5), .end = Seconds(end), .micro_batch = n});
  }
  const auto window = find_window(program, log, 5);
  REQUIRE(window);
  CHECK(window->steps % 2 == 0);
  const Seconds length =
      log.end(window->first_step + window->steps - 1) - log.end(window->first_step - 1);
  CHECK(length / window->steps == Seconds(13));
}

StepWindow window_of(TestChain chain, int steps, int wanted) {
  chain.steps = steps;
  const Program program = program_of(chain);
  StepLog log(program);
  run_native(program, {.span = [&](const Span& span) { log.add(span); }});
  const auto window = find_window(program, log, wanted);
  REQUIRE(window);
  return *window;
}

TEST_CASE(
    "equal local stages repeat from the first step on; the first ends late by the way there") {
  for (int stages = 1; stages <= 5; ++stages) {
    const StepWindow window = window_of(make_chain(stages, "eager"), 12, 8);
    CHECK(window.first_step == (stages == 1 ? 0 : 1));
    CHECK(window.steps == 8);
  }
}

TEST_CASE("a fast stage before a slow one fills its queue first: three steps") {
  // Stage 0: F 1 s, B 2 s; stage 1: F 4 s, B 8 s; room for one message. Stage 0 starts forwards at
  // 0, 3, 6, then waits for stage 1, which takes a message every 12 s from 1 on: 15, 27, ...
  // Steps end at 13 + 12 n. Starts relative to that: -13, -22, -31, -34, -34, ...: step 3 is the
  // first that all later ones equal, and as long as they, so the window begins with it.
  const TestChain chain = make_chain(std::vector<ChainStage>{{1, 1, 1}, {4, 4, 4}}, "eager");
  std::string starts;
  TestChain six = chain;
  six.steps = 6;
  const Program program = program_of(six);
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[span.op];
               if (op.stage == 0 && op.kind == OpKind::F) {
                 starts += std::to_string(static_cast<int>(span.start.value())) + ' ';
               }
             }});
  CHECK(starts == "0 3 6 15 27 39 ");
  const StepWindow window = window_of(chain, 16, 8);
  CHECK(window.first_step == 3);
  CHECK(window.steps == 8);
}

TEST_CASE("updates every two steps' worth of readouts make a cycle of two steps") {
  TestChain chain = make_chain(3, "eager");
  chain.micro_batches = 2;
  chain.strategy.readout_every = 2;
  chain.costs[2].update.time = Seconds(1);
  const StepWindow window = window_of(chain, 24, 7);
  CHECK(window.steps == 6);
}

Metrics measured(const TestChain& chain, int steps) {
  return measure(programs_of(chain), {.steps = steps}, false).metrics;
}

TEST_CASE("a fast first stage behind an unlimited queue runs away: no steady state is claimed") {
  TestChain chain = make_chain(std::vector<ChainStage>{{1, 1, 1}, {4, 4, 4}}, "eager");
  CHECK(measured(chain, 8).steady);
  chain.policy.queue.kind = QueuePolicy::Kind::Unlimited;
  const Metrics metrics = measured(chain, 8);
  CHECK_FALSE(metrics.steady);
  CHECK(metrics.measured_steps >= 8);
  CHECK(metrics.step_time == Seconds(12));  // which the slow stage sets all the same
}

TEST_CASE("what repeats but for rounding is measured over whole cycles, long after the fill") {
  constexpr int kSteps = 240, kFill = 60;
  for (int cycle = 1; cycle <= 9; ++cycle) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Random random(153, seed);
      const MadeRun run(kSteps, [&](int n) {
        return (n < kFill ? 40 : 50) + 30 * (n % cycle == 0) + n % cycle + 1e-5 * random.uniform();
      });
      INFO("cycle " << cycle << ", seed " << seed);
      const StepWindow window = find_unsteady_window(run.program, run.log, 2);
      CHECK_FALSE(window.steady);
      CHECK(window.steps % cycle == 0);
      CHECK(window.first_step >= kSteps / 2 - 2);
      CHECK(window.steps >= kSteps / 4 - 1);
    }
  }
}

TEST_CASE("as many unsteady steps are measured as are wanted, but no more than half") {
  Random random(154, 1);
  const MadeRun run(80, [&](int) { return 1 + random.uniform(); });
  for (const int wanted : {1, 20, 30, 38, 60, 100}) {
    const StepWindow window = find_unsteady_window(run.program, run.log, wanted);
    CHECK(window.steps >= std::min(wanted, 39));
    CHECK(window.first_step + window.steps <= 80 - 1);
    CHECK(window.first_step >= 38);
  }
  const MadeRun short_run(1, [](int) { return 5; });
  CHECK(find_unsteady_window(short_run.program, short_run.log, 1).steps == 1);
}

/// Returns the instants of all ops of a run: rank, op, micro-batch, start and end. Returns nothing
/// of a run that deadlocks.
std::vector<std::tuple<int, int, int, double, double>> spans_of(const Program& program) {
  std::vector<std::tuple<int, int, int, double, double>> spans;
  try {
    run_native(program, {.span = [&](const Span& span) {
                 spans.emplace_back(span.rank, span.op, span.micro_batch, span.start.value(),
                                    span.end.value());
               }});
  } catch (const Error&) {
    spans.clear();
  }
  return spans;
}

TEST_CASE("a program that loops over steps is the one that is lowered for as many") {
  int loops = 0, ran = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(152, seed);
    TestChain chain = random_chain(random);
    if (chain.strategy.readout_every > 0) continue;  // periods of several steps are written out
    chain.steps = 12;
    Program program = program_of(chain);
    const bool flushed = schedule_named(chain.policy.kind->name).flushes;
    INFO("seed " << seed << ": " << describe(chain));
    if (flushed) CHECK(loops_over_steps(program));
    if (!loops_over_steps(program)) continue;
    ++loops;
    for (const int steps : {1, 2, 5, 30}) {
      chain.steps = steps;
      chain.most_ticks_per_second = program.ticks_per_second;
      const Program lowered = program_of(chain);
      if (lowered.ticks_per_second != program.ticks_per_second) continue;  // it is longer by far
      set_steps(program, steps);
      CHECK(program.steps == steps);
      CHECK(count_tasks(program) == count_tasks(lowered));
      const auto spans = spans_of(program);
      CHECK(spans == spans_of(lowered));
      ran += spans.empty() ? 0 : 1;
    }
  }
  CHECK(loops > 60);
  CHECK(ran > 100);
}

TEST_CASE("a measured window tells the period of a much longer run") {
  int steady = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(151, seed);
    TestChain chain = random_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    Metrics metrics;
    try {
      metrics = measured(chain, 4);
    } catch (const Error&) {  // a deadlock
      continue;
    }
    if (!metrics.steady || metrics.step_time == Seconds(0)) continue;
    ++steady;
    const int cycle = metrics.measured_steps;
    chain.steps = metrics.fill_steps + 40 * cycle;
    const Program program = program_of(chain);
    StepLog log(program);
    run_native(program, {.span = [&](const Span& span) { log.add(span); }});
    const int first = metrics.fill_steps - 1, last = first + 30 * cycle;
    const double period = (log.end(last) - log.end(first)).value() / (30.0 * cycle);
    CHECK(metrics.step_time.value() == doctest::Approx(period).epsilon(1e-9));
  }
  CHECK(steady > 80);
}

}  // namespace
}  // namespace interlock::steady_test
