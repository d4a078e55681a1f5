// Trees of stages: local training whose dependencies are no chain.
// SPDX-License-Identifier: Apache-2.0
//
// f, bi, bw, a, o, c as in tests/formulas/closed_form.h. Stage s reads the output of (s - 1) /
// arity.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"
#include "tests/validate/support/trial.h"

namespace interlock::tree_test {
namespace {

std::string tree(int arity) {
  return "{\"kind\": \"tree\", \"arity\": " + std::to_string(arity) + "}";
}

TEST_CASE("equal stages of a tree take f + a + B + o, and fill as fast as the tree is deep") {
  const StageTimes times{Seconds(1.25e-3), Seconds(1e-3), Seconds(1.5e-3), Seconds(0.75e-3),
                         Seconds(0.5e-3)};
  const double turn = 5e-3, latency = 0.25e-3;
  for (int arity : {1, 2, 3}) {
    for (int stages : {1, 2, 4, 7, 13}) {
      Trial trial;
      trial.stages = equal_stages(stages, times);
      trial.strategy = tree(arity);
      trial.latency = Seconds(latency);
      int depth = 0;  // of the last stage
      for (int stage = stages - 1; stage > 0; stage = (stage - 1) / arity) ++depth;
      const Metrics metrics = simulate(trial).metrics;
      INFO("arity " << arity << ", " << stages << " stages: the last is " << depth << " deep");
      // The last stage has no auxiliary head, so alone it is faster.
      CHECK(close(metrics.step_time.value(), stages == 1 ? turn - 0.75e-3 : turn));
      CHECK(close(metrics.fill_latency.value(), depth * (1.25e-3 + latency)));
      CHECK(static_cast<int>(metrics.links.size()) == stages - 1);
    }
  }
}

TEST_CASE("independent stages take f + a + B + o, send nothing, and none waits for another") {
  for (int stages : {1, 2, 4, 7}) {
    Trial trial;
    for (int s = 0; s < stages; ++s) {
      TrialStage stage{.times = {Seconds(1e-3 * (s + 1)), Seconds(1e-3), Seconds(1.5e-3),
                                 Seconds(0.75e-3), Seconds(0.5e-3)},
                       .output = Bytes(1 << 20),
                       .stash = Bytes(5000)};
      trial.stages.push_back(stage);
    }
    trial.strategy = "\"independent\"";
    trial.latency = Seconds(1);  // of messages that there are none of
    const Metrics metrics = simulate(trial).metrics;
    // The slowest stage is the last, which has no auxiliary head, or the one before it.
    const auto turn = [&](int s) { return s + 1 + 1 + 1.5 + 0.5 + (s < stages - 1 ? 0.75 : 0); };
    double slowest = 0;
    for (int s = 0; s < stages; ++s) slowest = std::max(slowest, turn(s));
    INFO(stages << " stages");
    CHECK(close(metrics.step_time.value(), slowest * 1e-3));
    CHECK(metrics.links.empty());
    const auto boundary = static_cast<std::size_t>(MemoryClass::Boundary);
    for (int s = 0; s < stages; ++s) {
      CHECK(metrics.devices[s].peak_stash.value() == 5000);
      // An output is read by its own head alone; only the head's gradient is beside it.
      CHECK(metrics.devices[s].memory[boundary].value() <= 2 << 20);
    }
  }
}

TEST_CASE("an output goes to each child, and is held until it has left for all of them") {
  Trial trial;
  trial.stages.assign(4, {.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(0)},
                          .output = Bytes(1000),
                          .stash = Bytes(5000)});
  trial.strategy = tree(3);
  const Metrics metrics = simulate(trial).metrics;
  REQUIRE(metrics.links.size() == 3);
  for (const LinkMetrics& link : metrics.links) {
    CHECK(link.name.front() == '0');
    CHECK(link.bytes.value() == 1000);
  }
  // The head begins while all three are on their way: its gradient comes on top.
  const auto boundary = static_cast<std::size_t>(MemoryClass::Boundary);
  CHECK(metrics.devices[0].memory[boundary].value() == 3000 + 1000);
}

/// The end of every update: a stage takes its parent's output once its own last turn is over.
std::map<std::pair<int, int>, Ticks> tree_updates(const ReferenceCase& c, int arity) {
  const int stages = static_cast<int>(c.stages.size());
  std::map<std::pair<int, int>, Ticks> outputs, updates;
  for (int batch = 0; batch < c.batches; ++batch) {
    for (int s = 0; s < stages; ++s) {
      Ticks start = batch > 0 ? updates[{s, batch - 1}] : 0;
      if (s > 0) start = std::max(start, outputs[{(s - 1) / arity, batch}] + c.latency);
      const auto& times = c.stages[s];
      outputs[{s, batch}] = start + times.forward;
      const Ticks head = s + 1 < stages ? times.head : 0;
      updates[{s, batch}] = start + times.forward + head + times.backward_input +
                            times.backward_weight + times.update;
    }
  }
  return updates;
}

TEST_CASE("unequal stages of a tree update when an event list says, in both engines") {
  Random random(404, 0);
  for (int round = 0; round < 60; ++round) {
    ReferenceCase reference{.latency = random.integer(0, 4), .batches = random.integer(1, 6)};
    for (int i = random.integer(1, 9); i > 0; --i) {
      reference.stages.push_back({random.integer(0, 5), random.integer(0, 5), random.integer(0, 5),
                                  random.integer(0, 5), random.integer(0, 3)});
    }
    const int arity = random.integer(1, 3);
    Trial trial = trial_of(reference);
    trial.micro_batches = 1;
    trial.steps = reference.batches;
    trial.strategy = tree(arity);
    trial.schedule = "{\"kind\": \"eager\", \"queue\": \"unlimited\"}";
    trial.engine = round % 6 == 0 ? "simgrid" : "native";
    std::map<std::pair<int, int>, Ticks> updates;
    for (const ReferenceSpan& span : spans_of(trace(trial))) {
      if (span.op == 'U') updates[{span.stage, span.batch}] = span.end;
    }
    INFO("round " << round << ": " << document(trial));
    CHECK(updates == tree_updates(reference, arity));
  }
}

}  // namespace
}  // namespace interlock::tree_test
