// Readouts whose weight gradients are put off: what is kept, what is refused, and bounds of a step.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/step_time.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::put_off_test {
namespace {

constexpr double kVocabulary = 32768, kHidden = 256, kTokens = 2 * 128;  // of a micro-batch

constexpr const char* kFour = R"(cluster={"machine": "dgx-a100-80g", "devices": 4})";

/// Returns six micro-batches of two samples on two ranks; and `more`.
Overrides on_two_ranks(const Overrides& more) {
  return small_run(joined(
      {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})", "model.vocab_size=32768",
       "parallel.pipeline=2", "training.global_batch_size=12", "training.micro_batch_size=2"},
      more));
}

std::string deferred(const std::string& count) {
  return R"(training.schedule={"kind": "1f1b", "deferred_readout": )" + count + "}";
}

double stash_of_last(const ScenarioResult& result) {
  const DeviceMetrics& last = result.measurement.metrics.devices.back();
  return last.memory[static_cast<std::size_t>(MemoryClass::Stash)].value();
}

double peak_of_last(const ScenarioResult& result) {
  return result.measurement.metrics.devices.back().peak_memory.value();
}

TEST_CASE("the last rank keeps two bytes a logit and the readout's input of what is put off") {
  const double each = 2 * kTokens * (kVocabulary + kHidden);
  const ScenarioResult none = run(on_two_ranks({}));
  for (const int count : {1, 2, 4}) {
    const ScenarioResult some = run(on_two_ranks({deferred(std::to_string(count))}));
    INFO(count << " micro-batches, " << each << " bytes each");
    CHECK(peak_of_last(run(on_two_ranks({deferred(std::to_string(count + 1))}))) -
              peak_of_last(some) ==
          doctest::Approx(each));
    CHECK(stash_of_last(some) - stash_of_last(none) == doctest::Approx(count * each));
  }
}

TEST_CASE("half of the logits are kept by each of two tensor devices") {
  const Overrides halves = {kFour, "parallel.tensor=2"};
  Overrides some = halves;
  some.push_back(deferred("3"));
  const double more =
      peak_of_last(run(on_two_ranks(some))) - peak_of_last(run(on_two_ranks(halves)));
  CHECK(more == doctest::Approx(3 * 2 * kTokens * (kVocabulary / 2 + kHidden)));
}

TEST_CASE("bounds of time and memory are met by what is simulated, and not far below it") {
  for (const char* kind : {"gpipe", "1f1b", "interleaved", "breadth-first", "hanayo"}) {
    for (const char* count : {"1", "3", "\"all\""}) {
      const std::string schedule = std::string(R"(training.schedule={"kind": ")") + kind +
                                   R"(", "deferred_readout": )" + count + "}";
      const Question question = loaded(on_two_ranks({schedule, "model.layers=6"}));
      const ScenarioResult result = run_scenario(question, false);
      const StepEstimate bound = estimate_step(result.plan, Grade::PlanBound);
      INFO(kind << ", " << count << ": at least " << bound.time.value() << " s, took "
                << step_of(result) << " s");
      CHECK(bound.time.value() <= step_of(result) * (1 + 1e-9));
      CHECK(bound.time.value() >= step_of(result) * 0.7);
      double peak = 0;
      for (const DeviceMetrics& device : result.measurement.metrics.devices) {
        peak = std::max(peak, device.peak_memory.value());
      }
      CHECK(bound.memory.value() <= peak * (1 + 1e-9));
      CHECK(bound.memory.value() >= peak * 0.8);
    }
  }
}

TEST_CASE("weight gradients that cannot be put off are refused") {
  const auto refused = [](const Overrides& more) { return mistakes(on_two_ranks(more)); };
  const std::string place = "set: /training/schedule/deferred_readout: ";
  CHECK(refused({deferred("0")}) == place + "expected a whole number from 1 to 1000000000, got 0");
  CHECK(refused({deferred("\"most\"")}) == place + "unknown name \"most\"; known: all");
  CHECK(refused({R"(training.schedule={"kind": "zb-h1", "deferred_readout": 1})"}) ==
        place +
            "\"zb-h1\" puts off weight gradients of all layers; expected it with e.g. "
            "\"1f1b\" or \"interleaved\"");
  CHECK(refused({R"(training.schedule={"kind": "pipedream", "deferred_readout": 1})"}) ==
        place +
            "\"pipedream\" has no end of a step at which other ranks stand; expected it with "
            "e.g. \"1f1b\" or \"interleaved\"");
  CHECK(refused({"training.strategy=local",
                 R"(training.schedule={"kind": "eager", "deferred_readout": 1})"}) ==
        place + "every stage has a readout; expected it with the strategy \"global\"");
  CHECK(refused({kFour, "parallel.data=2", "parallel.zero_stage=2", deferred("1")}) ==
        place +
            "gradients are divided, or reduced after every backward; expected zero_stage 0 "
            "or 1 and \"gradient_reduction\" \"step\"");
  CHECK(
      refused({kFour, "parallel.data=2", "parallel.gradient_reduction=micro_batch", deferred("1")})
          .find(place + "gradients are divided, or reduced after every backward") == 0);
  CHECK(refused({R"(training.schedule={"kind": "chimera", "deferred_readout": 1})"})
            .find(place + "\"chimera\" has a readout on several ranks") != std::string::npos);
  CHECK(
      refused({R"(training.schedule={"kind": "1f1b", "backward": "split", "deferred_readout": 1})"})
          .find("expected \"backward\" \"fused\" beside it") != std::string::npos);
  CHECK(refused({"training.lora={\"rank\": 4}", deferred("1")}) ==
        place +
            "the last module of the model makes its weight gradients with more than one "
            "product, or none; expected a model that ends in one readout");
}

}  // namespace
}  // namespace interlock::put_off_test
