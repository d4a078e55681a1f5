// Tokens on their way beside kernels, in whole scenarios: what is gained, folded, and refused.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/validate/support/layout_trial.h"

namespace interlock::token_pairs_test {
namespace {

/// Two micro-batches' experts on four devices, with links slow enough to matter.
LayoutTrial trial(const std::string& parallel, const std::string& schedule = "\"1f1b\"",
                  int pipeline = 1, const std::string& bandwidth = "16 GB/s") {
  return {.model = small_transformer(4, true),
          .cluster = R"({"kind": "uniform", "device": "a100-40g", "link": {"bandwidth": ")" +
                     bandwidth + R"("}, "devices": )" + std::to_string(4 * pipeline) + "}",
          .parallel = R"("data": 4, "expert": 4, "pipeline": )" + std::to_string(pipeline) +
                      (parallel.empty() ? "" : ", ") + parallel,
          .training = R"("strategy": "global", "optimizer": "adam", "precision": "bf16",
                         "steps": 2, "micro_batches": 4, "global_batch_size": 32, "schedule": )" +
                      schedule};
}

double step(const LayoutTrial& trial) { return run(trial).measurement.metrics.step_time.value(); }

const std::string kPairs = R"("expert_overlap": "micro_batches")";
const std::string kDelayed = kPairs + R"(, "delay_weight_gradients": true)";

TEST_CASE("pairs take no longer than ops that wait, no shorter than their kernels, folded or not") {
  const std::string loops = R"({"kind": "interleaved", "chunks": 2})";
  for (const auto& [schedule, pipeline] :
       {std::pair<std::string, int>{"\"1f1b\"", 1}, {loops, 2}, {"\"dualpipe-v\"", 2}}) {
    const std::string& order = schedule;  // clang 14 lets INFO see no binding
    const double kernels = step(trial("", schedule, pipeline, "100000 GB/s"));
    const double waits = step(trial("", schedule, pipeline));
    double before = waits;
    for (const std::string& overlap : {kPairs, kDelayed}) {
      LayoutTrial folded = trial(overlap, schedule, pipeline), whole = folded;
      whole.fold = "\"none\"";
      const ScenarioResult result = run(folded);
      const double time = result.measurement.metrics.step_time.value();
      INFO(order << ", " << overlap << ": " << time << " of " << waits << " s, kernels "
                 << kernels);
      CHECK(difference(result, run(whole), 1e-9) == "");
      CHECK(time < before * (1 + 1e-9));
      CHECK(time > 0.99 * kernels);
      before = time;
    }
    CHECK(before < 0.99 * waits);
  }
}

TEST_CASE("devices that have all experts send no tokens, and run no pairs") {
  LayoutTrial alone = trial("");
  alone.parallel = R"("data": 4, "pipeline": 1)";
  LayoutTrial asked = alone;
  asked.parallel += ", " + kPairs;
  CHECK(difference(run(alone), run(asked), 1e-12) == "");
}

TEST_CASE("links without limits leave nothing to hide") {
  const double waits = step(trial("", "\"1f1b\"", 1, "1000000000 GB/s"));
  CHECK(step(trial(kDelayed, "\"1f1b\"", 1, "1000000000 GB/s")) ==
        doctest::Approx(waits).epsilon(1e-6));
}

TEST_CASE("multiprocessors that tokens take slow the kernels beside them, not what waits") {
  const auto taking = [](const std::string& keys, double share) {
    return step(
        trial(keys + (keys.empty() ? "" : ", ") + R"("dispatch_sms": )" + std::to_string(share)));
  };
  CHECK(taking("", 0.3) == doctest::Approx(taking("", 0)).epsilon(1e-9));
  CHECK(taking(kPairs, 0) == doctest::Approx(step(trial(kPairs))).epsilon(1e-9));
  CHECK(taking(kPairs, 0.3) > 1.0001 * taking(kPairs, 0));
}

TEST_CASE("the busiest holder of experts sets the pace that their loads say") {
  // Eight experts on four devices: pairs of 3 + 1, 1 + 1, 2 + 2 and 1 + 1, which is 4 of a mean 3.
  const Question question = load(trial(R"("expert_load": [3, 1, 1, 1, 2, 2, 1, 1])"));
  CHECK(question.layout.sharding.expert_imbalance == doctest::Approx(4.0 / 3));
  CHECK(
      load(trial(R"("expert_load": [2, 2, 2, 2, 2, 2, 2, 2])")).layout.sharding.expert_imbalance ==
      1);
  const Question one = load(trial(R"("expert_imbalance": 1.5)"));
  CHECK(one.layout.sharding.expert_imbalance == 1.5);
}

std::string refused(const LayoutTrial& trial) {
  try {
    load(trial);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("what cannot be is refused with what to write instead") {
  const auto says = [](const LayoutTrial& trial, const std::string& words) {
    const std::string told = refused(trial);
    INFO(told);
    CHECK(told.find(words) != std::string::npos);
  };
  says(trial(kPairs, "\"gpipe\""), "gpipe runs no pairs; expected \"1f1b\" on one stage");
  says(trial(kPairs, "\"1f1b\"", 2), "expected 1 stage, or \"interleaved\" with several chunks");
  says(trial(kPairs, R"({"kind": "dualpipe-v", "overlap": 0.5})", 2),
       "has an \"overlap\" of its own; expected none");
  says(trial(R"("delay_weight_gradients": true)"),
       "expected \"expert_overlap\": \"micro_batches\" beside it");
  says(trial(R"("expert_load": 5)"), "5; expected at least 1 number, the load of each expert");
  says(trial(R"("expert_load": [0, 0, 0, 0])"), "no expert has any tokens; expected a load above");
  says(trial(R"("expert_load": [1, 2, 3])"), "a multiple of the 4 expert devices; got 3");
  says(trial(R"("expert_load": [1, 2, 3, 4])"), "expected as many loads");
  says(trial(R"("expert_load": [1, 2, 3, 4, 1, 1, 1, 1], "expert_imbalance": 2)"),
       "expected no \"expert_imbalance\" beside them");
}

}  // namespace
}  // namespace interlock::token_pairs_test
