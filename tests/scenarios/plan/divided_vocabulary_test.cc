// A vocabulary divided among pipeline ranks: what each holds, what crosses, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::divided_vocabulary_test {
namespace {

constexpr double kVocabulary = 32768, kHidden = 256, kTokens = 2 * 128;  // of a micro-batch

/// Returns six micro-batches of two samples on `ranks` ranks of two layers each; and `more`.
Overrides on_ranks(int ranks, const Overrides& more) {
  const std::string count = std::to_string(ranks);
  Overrides all = small_run({R"(cluster={"machine": "dgx-a100-80g", "devices": )" + count + "}",
                             "model.vocab_size=32768", "model.layers=" + std::to_string(2 * ranks),
                             "model.tied_embeddings=false", "parallel.pipeline=" + count,
                             "training.global_batch_size=12", "training.micro_batch_size=2",
                             "training.optimizer=adam", "training.precision=bf16"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string divided(const std::string& ways) {
  return R"(training.schedule={"kind": "1f1b", "vocabulary": ")" + ways + "\"}";
}

/// Returns weights, gradients and states of the optimiser of each rank.
std::vector<double> states_of(const Overrides& overrides) {
  std::vector<double> bytes;
  const ScenarioResult result = run(overrides);
  for (const Rank& rank : lower_plan(result.plan, 1).ranks) {
    double held = 0;
    for (const auto one : {MemoryClass::Weights, MemoryClass::Gradients, MemoryClass::Optimizer}) {
      held += rank.resident[static_cast<std::size_t>(one)].value();
    }
    bytes.push_back(held);
  }
  return bytes;
}

TEST_CASE("every rank holds an equal part of the embedding and of the readout, in all states") {
  for (const int ranks : {2, 4}) {
    // bf16 weights and gradients; in fp32 a copy and two moments: 16 bytes a parameter.
    const double part = 2 * kVocabulary * kHidden / ranks * 16;
    const std::string layers = ranks == 2 ? "partition=[3, 3]" : "partition=[3, 2, 2, 3]";
    const Overrides all = on_ranks(ranks, {layers});
    const std::vector<double> whole = states_of(all);
    for (const char* const ways : {"vocab-1", "vocab-2"}) {
      Overrides more = all;
      more.push_back(divided(ways));
      const std::vector<double> parts = states_of(more);
      double before = 0, after = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        before += whole[rank];
        after += parts[rank];
        INFO(ways << ", rank " << rank << " of " << ranks);
        const bool inner = rank > 0 && rank < ranks - 1;
        if (inner) CHECK(parts[rank] - whole[rank] == doctest::Approx(part));
      }
      CHECK(parts[0] - whole[0] == doctest::Approx(part - kVocabulary * kHidden * 16));
      CHECK(after == doctest::Approx(before));
    }
  }
}

TEST_CASE("outputs cross in two bytes a number, and three numbers of fp32 for each token") {
  const double output = 2 * kTokens * kHidden, statistics = 3 * 4 * kTokens;
  for (const bool two : {true, false}) {
    const ScenarioResult result = run(on_ranks(4, {divided(two ? "vocab-1" : "vocab-2")}));
    double sums = 0, broadcasts = 0;
    for (const Collective& one : lower_plan(result.plan, 1).collectives) {
      const bool sum = one.kind == CollectiveKind::AllReduce;
      if (one.axis == MeshAxis::Pipeline) CHECK(sum);
      if (sum) sums += one.bytes.value();
      if (one.kind == CollectiveKind::Broadcast) {
        broadcasts += one.bytes.value();
        CHECK(one.bytes.value() == doctest::Approx(output));
      }
    }
    CHECK(broadcasts == doctest::Approx(2 * output));  // one from each end
    // Equal sums are one collective: of outputs of the embedding, and of gradients.
    CHECK(sums == doctest::Approx(two ? output + statistics : output + output + statistics));
  }
}

TEST_CASE("as many flops are executed, and bounds are met by what is simulated") {
  for (const int ranks : {2, 4}) {
    const ScenarioResult whole = run(on_ranks(ranks, {}));
    for (const char* const ways : {"vocab-1", "vocab-2"}) {
      const ScenarioResult parts = run(on_ranks(ranks, {divided(ways)}));
      const Metrics &one = whole.measurement.metrics, &other = parts.measurement.metrics;
      INFO(ways << ", " << ranks << " ranks");
      CHECK(*other.mfu * other.step_time.value() ==
            doctest::Approx(*one.mfu * one.step_time.value()).epsilon(1e-9));
      const StepEstimate bound = estimate_step(parts.plan, Grade::PlanBound);
      CHECK(bound.time.value() <= step_of(parts) * (1 + 1e-9));
      double peak = 0;
      for (const DeviceMetrics& device : other.devices) {
        peak = std::max(peak, device.peak_memory.value());
      }
      CHECK(bound.memory.value() <= peak * (1 + 1e-9));
    }
  }
}

TEST_CASE("what has no part of a vocabulary, or cannot wait for one, is refused in one sentence") {
  const auto refused = [](const Overrides& more) { return mistakes(on_ranks(2, more)); };
  const std::string place = "set: /training/schedule/vocabulary: ";
  CHECK(refused({divided("vocab-3")}).find(place) == 0);
  CHECK(refused({R"(training.schedule={"kind": "gpipe", "vocabulary": "vocab-1"})"}) ==
        place + "\"gpipe\" has no order that runs parts of the vocabulary; expected \"1f1b\"");
  CHECK(refused({R"(training.schedule={"kind": "1f1b", "backward": "split",
                     "vocabulary": "vocab-1"})"}) ==
        place + "its order is that of whole backwards; expected \"backward\" \"fused\" beside it");
  CHECK(refused({R"(training.schedule={"kind": "1f1b", "deferred_readout": 1,
                     "vocabulary": "vocab-2"})"}) ==
        place + "the readout lies on all ranks; expected no \"deferred_readout\" beside it");
  const std::string four = R"(cluster={"machine": "dgx-a100-80g", "devices": 4})";
  CHECK(refused({four, "parallel.data=2", "training.global_batch_size=24", divided("vocab-1")}) ==
        place +
            "gradients of its parts come behind those of the last backward; expected "
            "\"overlap_gradients\" false beside it");
  CHECK(refused({four, "parallel.data=2", "parallel.zero_stage=2", divided("vocab-1")}) ==
        place +
            "weights or gradients of every backward are exchanged at once; expected it with "
            "zero_stage 0 or 1 and \"gradient_reduction\" \"step\"");
  CHECK(refused({R"(training.offload={"optimizer": 1})", divided("vocab-1")}) ==
        place +
            "what leaves for hosts leaves beside forwards and backwards alone; expected no "
            "training.offload");
  CHECK(refused({"parallel.stages=4", divided("vocab-1")}).find(place) != std::string::npos);
  CHECK(refused({"training.lora={\"rank\": 4}", divided("vocab-1")}).find(place) == 0);
  CHECK(refused({four, "parallel.data=2", "parallel.overlap_gradients=false",
                 "training.global_batch_size=24", divided("vocab-1")}) == "");
}

}  // namespace
}  // namespace interlock::divided_vocabulary_test
