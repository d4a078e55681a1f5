// Steps without a rhythm: looked through as far, and measured where, folded as not.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "base/random.h"
#include "sim/lower/unfold.h"
#include "tests/support/cases.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::unsteady_folding_test {
namespace {

std::string text(int number) { return std::to_string(number); }

/// Rings of gradients and messages of stages that meet at one slow card of each node.
LayoutTrial crowded(int pipeline, int data, int context, int per_node, const std::string& more,
                    const std::string& training) {
  const int devices = pipeline * data * context;
  return {.model = R"({"kind": "transformer", "hidden_size": 384, "attention_heads": 24,
                       "vocab_size": 768, "sequence_length": 192, "attention": "fused",
                       "tied_embeddings": true, "layers": )" +
                   text(2 * pipeline + 1) + "}",
          .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": )" +
                     text(per_node) + R"(, "nodes": )" + text(devices / per_node) +
                     R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                          "cards": {"latency": "50 us", "bandwidth": "16 GB/s", "per_node": 1}})",
          .parallel = R"("pipeline": )" + text(pipeline) + R"(, "data": )" + text(data) +
                      R"(, "context": )" + text(context) + more +
                      R"(, "zero_stage": 1, "context_layout": "all_to_all", "bucket": "1 MiB",
                           "order": ["pipeline", "tensor", "context", "data"])",
          .training = training,
          .engine = "native"};
}

struct Count {
  int unsteady = 0, alike = 0, refused = 0;
};

/// Runs `trial` in every folding that it has, beside all its devices.
void check(LayoutTrial trial, Count& count) {
  trial.fold = "\"none\"";
  const ScenarioResult whole = run(trial);
  const Metrics& all = whole.measurement.metrics;
  for (const Unfolded& unfolded : foldings(whole.plan.question.layout.mesh)) {
    if (unfolded == whole.plan.unfolded) continue;
    trial.fold = folded_dimensions(unfolded);
    INFO(document(trial));
    try {
      const ScenarioResult folded = run(trial);
      const Metrics& metrics = folded.measurement.metrics;
      if (all.steady || metrics.steady) continue;
      ++count.unsteady;
      CHECK(metrics.searched_steps == all.searched_steps);
      CHECK(metrics.fill_steps == all.fill_steps);
      CHECK(metrics.measured_steps == all.measured_steps);
      const auto same = [](Seconds one, Seconds other) {
        return one.value() == doctest::Approx(other.value()).epsilon(1e-9);
      };
      if (same(metrics.step_time, all.step_time) && same(metrics.window_end, all.window_end)) {
        ++count.alike;
      }
    } catch (const Error&) {  // it is not exact, and not simulated
      ++count.refused;
    }
  }
}

TEST_CASE("steps that never repeat are the same, folded or not") {
  // Its steps are 1 % longer or shorter than the next ones, for ever.
  LayoutTrial trial = crowded(3, 3, 3, 3, R"(, "shard": 3)",
                              R"("strategy": "global", "schedule": "1f1b", "micro_batches": 3,
                                 "steps": 3, "optimizer": "adam", "precision": "fp32",
                                 "global_batch_size": 9)");
  Count count;
  check(trial, count);
  CHECK(count.unsteady >= 1);
  CHECK(count.alike == count.unsteady);
}

TEST_CASE("how many steps are looked through for a rhythm goes by the question, not its folding") {
  // Stages that run ahead of a slow link, and learn again from what they have: queues fill for
  // ever.
  Count count;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(8)); ++seed) {
    CAPTURE(seed);
    Random random(4711, seed);
    const int pipeline = random.integer(2, 4), tensor = 1 << random.integer(0, 1);
    const int data = 2 * random.integer(1, 4 / tensor);
    check({.model = small_transformer(6),
           .cluster = R"({"kind": "uniform", "device": "a100-40g", "devices": )" +
                      text(pipeline * data * tensor) +
                      R"(, "link": {"latency": "50 us", "bandwidth": ")" +
                      text(random.integer(1, 20)) + R"( Gb/s"}})",
           .parallel = R"("pipeline": )" + text(pipeline) + R"(, "data": )" + text(data) +
                       R"(, "tensor": )" + text(tensor),
           .training = R"("strategy": "local", "schedule": "dgl", "micro_batches": 1, "steps": )" +
                       text(random.integer(2, 4)) + R"(, "global_batch_size": )" + text(4 * data)},
          count);
  }
  MESSAGE(count.unsteady << " foldings do not settle, " << count.alike << " are equal to 1e-9; "
                         << count.refused << " refused");
  CHECK(count.unsteady >= met_by_cases(4));
  CHECK(count.alike == count.unsteady);
}

}  // namespace
}  // namespace interlock::unsteady_folding_test
