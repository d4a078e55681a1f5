// Decoupled greedy learning: stages that learn from old inputs while the next one is not there.
// SPDX-License-Identifier: Apache-2.0
//
// T_s is a whole turn of stage s: forward, head, backward, update. While its input is missing a
// stage takes whole turns, so that it is never idle after its first input.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "tests/validate/support/trial.h"

namespace interlock::replay_test {
namespace {

Ticks turn_of(const ReferenceCase& c, int stage) {
  const ReferenceStage& s = c.stages[stage];
  const Ticks head = stage + 1 < static_cast<int>(c.stages.size()) ? s.head : 0;
  return s.forward + head + s.backward_input + s.backward_weight + s.update;
}

struct ReplayRun {
  std::map<std::pair<int, int>, Ticks> updates;  // of (stage, batch)
  std::map<int, int> replays;                    // of a stage
};

/// The recurrence of a chain with room for `depth` inputs before each stage. An output is sent when
/// it exists and there is room, and arrives `latency` later; turns on old inputs fill the wait.
ReplayRun expected_run(const ReferenceCase& c, int depth) {
  const int stages = static_cast<int>(c.stages.size());
  ReplayRun run;
  std::map<std::pair<int, int>, Ticks> taken, sent;
  for (int batch = 0; batch < c.batches; ++batch) {
    for (int s = 0; s < stages; ++s) {
      Ticks now = batch > 0 ? run.updates[{s, batch - 1}] : 0;
      const Ticks turn = turn_of(c, s);
      if (s > 0) {
        const Ticks arrival = sent[{s - 1, batch}] + c.latency;
        if (batch > 0 && turn > 0 && arrival > now) {
          const auto turns = (arrival - now + turn - 1) / turn;
          run.replays[s] += static_cast<int>(turns);
          now += turns * turn;
        }
        now = std::max(now, arrival);
        taken[{s, batch}] = now;
      }
      now += c.stages[s].forward;
      if (s + 1 < stages) {
        // Its stage stands at the send while all rooms are taken.
        if (batch >= depth) now = std::max(now, taken[{s + 1, batch - depth}]);
        sent[{s, batch}] = now;
      }
      run.updates[{s, batch}] = now + turn - c.stages[s].forward;
    }
  }
  return run;
}

ReferenceCase random_case(Random& random) {
  ReferenceCase c{.latency = random.integer(0, 6), .batches = random.integer(1, 8)};
  for (int i = random.integer(1, 5); i > 0; --i) {
    const int slow = random.integer(0, 2) == 0 ? 20 : 4;
    c.stages.push_back({random.integer(0, slow), random.integer(0, 4), random.integer(0, slow),
                        random.integer(0, 3), random.integer(0, 2)});
  }
  return c;
}

RunSummary run_simgrid_child(const Program& program, const TraceSink& sink) {
  return run_program(program, EngineKind::SimGrid, sink);
}

TEST_CASE("updates and turns on old inputs are those of the recurrence, in all engines") {
  Random random(405, 0);
  int replays = 0;
  for (int round = 0; round < 300; ++round) {
    const ReferenceCase c = random_case(random);
    const int depth = random.integer(1, 4);
    Trial trial = trial_of(c);
    trial.micro_batches = 1;
    trial.steps = c.batches;
    trial.schedule = R"({"kind": "dgl", "queue": {"buffered": )" + std::to_string(depth) + "}}";
    const ReplayRun expected = expected_run(c, depth);
    const Program program = lower_plan(make_plan(load(trial)), trial.steps);
    INFO("round " << round << ": " << document(trial));
    for (auto* engine : {run_longest_path, run_event_loop, run_simgrid_child}) {
      if (engine == run_simgrid_child && round % 10 != 0) continue;
      ReplayRun run;
      TraceSink sink{.span = [&](const Span& span) {
        const OpInfo& op = program.ops[span.op];
        if (op.replay) ++run.replays[op.stage];
        if (op.kind != OpKind::U) return;
        run.updates[{op.stage, span.micro_batch}] =
            static_cast<Ticks>(std::llround(span.end.value() / kTick));
      }};
      engine(program, sink);
      CHECK(run.updates == expected.updates);
      CHECK(run.replays == expected.replays);
    }
    for (const auto& [stage, count] : expected.replays) replays += count;
  }
  CHECK(replays > 500);
}

TEST_CASE("behind a slow stage others are busy all the time, with turns that count as reuse") {
  // Stage 0 takes 10 ms, the others 3 ms: three or four turns on old inputs for each new one.
  Trial trial;
  trial.stages.assign(3, {.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(0)}});
  trial.stages[0].times.forward = Seconds(8e-3);
  trial.schedule = "\"dgl\"";
  trial.steps = 30;
  const Metrics metrics = simulate(trial).metrics;
  CHECK(metrics.steady);
  CHECK(close(metrics.step_time.value(), 10e-3));
  CHECK(close(metrics.busy, 1));
  CHECK(close(metrics.useful, (1 + 0.3 + 0.3) / 3));
  CHECK(metrics.devices[0].reuse == 0);
  for (int rank : {1, 2}) CHECK(close(metrics.devices[rank].reuse, 7.0 / 3));
}

TEST_CASE("a device keeps the inputs that it may learn from again") {
  Trial trial;
  trial.stages.assign(3, {.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(0)},
                          .output = Bytes(1000)});
  trial.schedule = R"({"kind": "dgl", "queue": {"buffered": 3}})";
  const Program program = lower_plan(make_plan(load(trial)), 1);
  const auto boundary = static_cast<std::size_t>(MemoryClass::Boundary);
  CHECK(program.ranks[0].resident[boundary].value() == 0);
  CHECK(program.ranks[2].resident[boundary].value() == 3000);
}

}  // namespace
}  // namespace interlock::replay_test
