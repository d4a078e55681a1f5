// Steps that settle late or never: what is measured is the pace that a long run has.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::slow_fill_test {
namespace {

/// Small layers on a cluster; sections in the words of a scenario.
struct Trial {
  std::string layers, cluster, parallel, training;
};

Seconds step_of(const Trial& trial, int steps) {
  const std::string text =
      R"({"model": {"kind": "transformer", "hidden_size": 384, "attention_heads": 8,
          "vocab_size": 768, "sequence_length": 192, "attention": "fused",
          "tied_embeddings": false, "layers": )" +
      trial.layers + R"(}, "cluster": )" + trial.cluster + R"(, "parallel": {)" + trial.parallel +
      R"(}, "training": {"micro_batches": 1, )" + trial.training + R"(, "steps": )" +
      std::to_string(steps) + R"(}, "simulate": {"engine": "native"}})";
  const Question question = load_questions(parse_json(text, "fill.json")).front();
  return run_scenario(question, false).measurement.metrics.step_time;
}

std::string nodes(int number, const std::string& bandwidth) {
  return R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 4, "nodes": )" +
         std::to_string(number) +
         R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
             "cards": {"latency": "50 us", "per_node": 1, "bandwidth": ")" +
         bandwidth + R"("}})";
}

TEST_CASE("few measured steps have the pace of many, however slowly queues fill") {
  const std::string many = R"({"kind": "uniform", "device": "a100-40g", "devices": 1024,
                              "link": {"latency": "50 us", "bandwidth": "10 Gb/s"}})";
  const std::vector<Trial> trials = {
      {"64", many, R"("pipeline": 64, "data": 16)",
       R"("strategy": "local", "global_batch_size": 64,
          "schedule": {"kind": "eager", "in_flight": 8, "queue": "unlimited"})"},
      {"64", many, R"("pipeline": 64, "data": 16)",
       R"("strategy": "global", "global_batch_size": 64, "schedule": "pipedream")"},
      {"8", nodes(4, "16 Gb/s"), R"("pipeline": 8, "data": 2)",
       R"("strategy": "local", "global_batch_size": 8,
          "schedule": {"kind": "eager", "in_flight": 64, "queue": {"buffered": 32}})"},
      {"8", nodes(2, "10 Gb/s"), R"("pipeline": 8)",
       R"("strategy": "pairwise", "global_batch_size": 4,
          "schedule": {"kind": "eager", "in_flight": 64, "queue": "unlimited"})"}};
  for (const Trial& trial : trials) {
    CAPTURE(trial.training);
    const Seconds few = step_of(trial, 8), many_steps = step_of(trial, 400);
    MESSAGE(few.value(), " s in 8 steps, ", many_steps.value(), " s in 400");
    CHECK(few.value() == doctest::Approx(many_steps.value()).epsilon(0.05));
  }
}

TEST_CASE("steps that never repeat take as long folded as in full") {
  struct Crowded {
    int hidden, layers, words, devices_per_node, batch, in_flight;
    std::string port, strategy;
  };
  const std::vector<Crowded> trials = {
      {768, 17, 32000, 2, 8, 5, "64 GB/s", R"({"kind": "interlocking", "n_wise": 3})"},
      {1024, 8, 768, 4, 16, 8, "4 GB/s", R"({"kind": "interlocking", "n_wise": 3})"},
      {768, 8, 768, 2, 8, 5, "64 GB/s", R"({"kind": "chunked", "chunks": 2})"}};
  int unsteady = 0;
  for (const Crowded& trial : trials) {
    const auto measured = [&](const std::string& fold, const std::string& variation = "{}") {
      const std::string text =
          R"({"model": {"kind": "transformer", "attention_heads": 8, "sequence_length": 256,
              "vocab_size": )" +
          std::to_string(trial.words) + R"(, "hidden_size": )" + std::to_string(trial.hidden) +
          R"(, "layers": )" + std::to_string(trial.layers) +
          R"(}, "cluster": {"kind": "machine", "device": "a100-40g", "devices_per_node": )" +
          std::to_string(trial.devices_per_node) + R"(, "nodes": )" +
          std::to_string(16 / trial.devices_per_node) +
          R"(, "port": {"latency": "2 us", "bandwidth": ")" + trial.port + R"("},
              "cards": {"latency": "20 us", "per_node": 1, "bandwidth": "10 Gb/s"}},
              "parallel": {"pipeline": 8, "data": 2, "zero_stage": 1},
              "training": {"optimizer": "adamw", "micro_batch_size": 1, "steps": 2,
                           "global_batch_size": )" +
          std::to_string(trial.batch) + R"(, "schedule": {"kind": "eager", "in_flight": )" +
          std::to_string(trial.in_flight) + R"(}, "strategy": )" + trial.strategy +
          R"(}, "simulate": {"engine": "native", "fold": ")" + fold + R"("}, "variation": )" +
          variation + "}";
      const Question question = load_questions(parse_json(text, "crowded.json")).front();
      return run_scenario(question, false).measurement.metrics;
    };
    CAPTURE(trial.strategy);
    const Metrics folded = measured("auto"), full = measured("none");
    MESSAGE(folded.step_time.value(), " s folded, ", full.step_time.value(), " s in full");
    CHECK(folded.step_time.value() == doctest::Approx(full.step_time.value()).epsilon(0.01));
    const Metrics jittered = measured("none", R"({"jitter": {"spread": 1e-9}, "seeds": 1})");
    CHECK(jittered.step_time.value() == doctest::Approx(full.step_time.value()).epsilon(0.01));
    unsteady += folded.steady ? 0 : 1;
  }
  CHECK(unsteady == 3);
}

/// Runs three steps at once on a rank that chooses its order, with sums over four devices inside
/// the layers, whose ports have `bandwidth`.
ScenarioResult shifted(int bandwidth, int steps) {
  const std::string cluster = R"(cluster={"kind": "machine", "name": "drawn", "nodes": 1,
      "devices_per_node": 8, "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "0.5 GB/s"},
      "device": {"name": "small", "memory": "80 GiB", "memory_bandwidth": "321 GB/s",
                 "launch_overhead": "2 us", "peak": {"bf16": "80 TFLOP/s"},
                 "efficiency": {"gemm": {"compute": 0.7, "memory": 0.8}}},
      "port": {"latency": "2 us", "bandwidth": ")";
  return run({R"(model={"kind": "transformer", "layers": 3, "hidden_size": 256,
                  "attention_heads": 8, "vocab_size": 512, "sequence_length": 64,
                  "attention": "fused", "positions": "rotary", "latent_attention":
                  {"query_rank": 96, "kv_rank": 64, "head_size": 32, "rotary_head_size": 16,
                   "value_head_size": 32}})",
              cluster + std::to_string(bandwidth) + R"( GB/s"}})", "parallel.pipeline=1",
              "parallel.data=2", "parallel.tensor=4", "training.strategy=forward-forward",
              R"(training.schedule={"kind": "eager", "in_flight": 3, "queue": {"buffered": 2}})",
              "training.global_batch_size=2", "training.micro_batches=1",
              "training.optimizer=adam-8bit", "training.steps=" + std::to_string(steps)});
}

TEST_CASE("pieces of a forward that shift without their sum are no repeat") {
  for (int bandwidth = 20; bandwidth <= 90; ++bandwidth) {
    CAPTURE(bandwidth);
    const ScenarioResult few = shifted(bandwidth, 8);  // whose shares of time add up, or it throws
    if (bandwidth % 10 > 0) continue;
    CHECK(step_of(few) == doctest::Approx(step_of(shifted(bandwidth, 64))).epsilon(0.01));
  }
}

}  // namespace
}  // namespace interlock::slow_fill_test
