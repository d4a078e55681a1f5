// A vocabulary divided among pipeline ranks: what each holds, what crosses, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "scenarios/explain/change.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/plan/vocabulary.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::divided_vocabulary_test {
namespace {

constexpr double kVocabulary = 32768, kHidden = 256, kTokens = 2 * 128;  // of a micro-batch

/// Returns six micro-batches of two samples on `ranks` ranks of two layers each; and `more`.
Overrides on_ranks(int ranks, const Overrides& more) {
  const std::string count = std::to_string(ranks);
  return small_run(joined(
      {R"(cluster={"machine": "dgx-a100-80g", "devices": )" + count + "}", "model.vocab_size=32768",
       "model.layers=" + std::to_string(2 * ranks), "model.tied_embeddings=false",
       "parallel.pipeline=" + count, "training.global_batch_size=12", "training.micro_batch_size=2",
       "training.optimizer=adam", "training.precision=bf16"},
      more));
}

std::string divided(const std::string& ways, const std::string& kind = "1f1b") {
  return R"(training.schedule={"kind": ")" + kind + R"(", "vocabulary": ")" + ways + "\"}";
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

TEST_CASE("ZeRO 2 divides the states of a divided vocabulary, and its gradients once a step") {
  const double layer = 12 * kHidden * kHidden + 13 * kHidden, ends = (128 + 2) * kHidden;
  const double all = 4 * layer + 2 * kVocabulary * kHidden + ends;  // places, a norm
  for (const char* const ways : {"vocab-1", "vocab-2"}) {
    const auto trained = [&](const std::string& zero, const std::string& fold) {
      return on_ranks(2, {R"(cluster={"machine": "dgx-a100-80g", "devices": 4})", divided(ways),
                          R"(parallel={"pipeline": 2, "data": 2, "overlap_gradients": false,
                             "overlap_weights": false, "zero_stage": )" +
                              zero + "}",
                          "training.global_batch_size=24", "simulate.fold=" + fold});
    };
    const std::vector<double> held = states_of(trained("2", "auto"));  // whole gradients
    CHECK(held[0] + held[1] == doctest::Approx(all * (2 + 2 + 12 / 2)));
    const double step = step_of(run(trained("1", "auto")));
    CHECK(step_of(run(trained("2", "auto"))) == step);
    CHECK(step_of(run(trained("2", "none"))) == doctest::Approx(step).epsilon(1e-9));
  }
}

TEST_CASE("the first rank of a V, which has both ends of a model, holds a part of them, too") {
  for (const int ranks : {2, 4}) {
    const double words = 2 * kVocabulary * kHidden * 16, part = words / ranks;
    const Overrides all = on_ranks(
        ranks, {ranks == 2 ? "partition=[2, 1, 1, 2]" : "partition=[2, 1, 1, 1, 1, 1, 1, 2]"});
    for (const char* const ways : {"vocab-1", "vocab-2"}) {
      const std::vector<double> whole = states_of(joined(all, {divided("whole", "v-half")}));
      const std::vector<double> parts = states_of(joined(all, {divided(ways, "v-half")}));
      for (int rank = 0; rank < ranks; ++rank) {
        INFO(ways << ", rank " << rank << " of " << ranks);
        CHECK(parts[rank] - whole[rank] == doctest::Approx(rank == 0 ? part - words : part));
      }
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
  for (const auto& [ranks, kind] :
       {std::pair(2, "1f1b"), {4, "1f1b"}, {2, "v-half"}, {4, "v-half"}}) {
    const ScenarioResult whole = run(on_ranks(ranks, {}));
    for (const char* const ways : {"vocab-1", "vocab-2"}) {
      const ScenarioResult parts = run(on_ranks(ranks, {divided(ways, kind)}));
      const Metrics &one = whole.measurement.metrics, &other = parts.measurement.metrics;
      INFO(ways << ", " << ranks << " ranks, " << kind);
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

/// Returns the vocabulary of a training on four ranks.
DividedVocabulary divided_of(const Overrides& more) {
  const Question question = loaded(on_ranks(4, more));
  return divide_vocabulary(question.training().graph, 4, price_inputs(question));
}

/// Returns the bytes of kernels of one class and role.
double bytes_of(const std::vector<Work>& works, OpClass op_class) {
  double bytes = 0;
  for (const Work& work : works) bytes += work.op_class == op_class ? work.bytes.value() : 0;
  return bytes;
}

TEST_CASE("a rank makes logits of whole words, and reads all of its input for them") {
  for (const char* const bias : {"false", "true"}) {
    const auto [rest, part] =
        divided_of({"model.vocab_size=32770", std::string("model.readout_bias=") + bias});
    const double words = 8193;  // 32,770 / 4, rounded up
    const Module& readout = part.modules[1];
    for (const auto* works : {&readout.forward, &readout.backward_input}) {
      double flops = 0;
      for (const Work& work : *works) flops += work.flops.value();
      CHECK(flops == doctest::Approx(2 * kTokens * words * kHidden));
      CHECK(bytes_of(*works, OpClass::Gemm) ==
            doctest::Approx(2 * (kTokens * kHidden + kHidden * words + kTokens * words)));
      CHECK(bytes_of(*works, OpClass::Loss) == doctest::Approx((2 + 4) * kTokens * words));
      CHECK(bytes_of(*works, OpClass::Normalisation) == 0);
    }
    const double biased = bias == std::string("true") ? words : 0;
    CHECK(bytes_of(readout.backward_weight, OpClass::Gemm) ==
          doctest::Approx(2 * (kTokens * kHidden + kHidden * words + kTokens * words) +
                          (biased > 0 ? 2 * (kTokens * words + words) : 0)));
    CHECK(static_cast<double>(part.modules[0].parameters) == words * kHidden);
    CHECK(static_cast<double>(readout.parameters) == words * kHidden + biased);
    const Module& last = rest.modules[rest.modules.size() - 1];
    CHECK(last.parameters == 2 * 256);  // of the norm
    CHECK(bytes_of(last.forward, OpClass::Normalisation) > 0);
  }
}

TEST_CASE("the table of words is divided by rows, the readout by columns, other tables not") {
  // The table of positions is the larger one, and vectors are longer than the list of words.
  const auto [rest, part] =
      divided_of({"model.vocab_size=128", "model.positions=learned", "model.max_positions=4096"});
  const WeightMatrix &words = part.modules[0].matrices[0], &readout = part.modules[1].matrices[0];
  CHECK(words.rows == 32);
  CHECK(words.columns == kHidden);
  CHECK(readout.rows == kHidden);
  CHECK(readout.columns == 32);
  CHECK(rest.modules[0].parameters == 4096 * 256);
  REQUIRE(rest.modules[0].matrices.size() == 1);
  CHECK(rest.modules[0].matrices[0].rows == 4096);
  for (const Module* module : {&rest.modules[0], &part.modules[0]}) {
    CHECK(module->forward.front().op_class == OpClass::Embedding);
    CHECK(module->backward_weight.size() == 1);
  }
  CHECK(bytes_of(part.modules[0].forward, OpClass::Embedding) ==
        doctest::Approx(2 * 2 * kTokens * kHidden));  // reads and writes each vector
}

TEST_CASE("gradients are added up where their weights lie") {
  const auto [rest, part] =
      divided_of({"model.positions=learned", R"(training.framework={"gradient_passes": 3})"});
  const auto added = [](const Module& module) {
    return bytes_of(module.backward_weight, OpClass::Elementwise);
  };
  const std::size_t last = rest.modules.size() - 1;
  CHECK(added(rest.modules[0]) == doctest::Approx(3 * 2 * 128 * kHidden));   // positions
  CHECK(added(rest.modules[last]) == doctest::Approx(3 * 2 * 2 * kHidden));  // a norm
  for (const int module : {0, 1}) {
    CHECK(added(part.modules[module]) == doctest::Approx(3 * 2 * kVocabulary / 4 * kHidden));
  }
}

TEST_CASE("passes over the gradient of a whole table are over the part of it that a rank has") {
  for (const bool adds : {false, true}) {
    Overrides more = {"model.positions=learned"};
    more.push_back(adds ? R"(training.framework={"table_gradients": "dense", "gradient_passes": 3})"
                        : R"(training.framework={"table_gradients": "dense_added"})");
    const auto [rest, part] = divided_of(more);
    const auto passes = [](const Module& module) {
      return bytes_of(module.backward_weight, OpClass::Elementwise);
    };
    // Zeros of two bytes, and either two and twice two for the addition, or three passes of two.
    const double bytes = 2 + 6;
    CHECK(passes(part.modules[0]) == doctest::Approx(bytes * kVocabulary / 4 * kHidden));
    CHECK(passes(rest.modules[0]) == doctest::Approx(bytes * 128 * kHidden));  // positions
    CHECK(passes(part.modules[1]) == doctest::Approx((adds ? 6 : 0) * kVocabulary / 4 * kHidden));
  }
}

TEST_CASE("parts of a vocabulary take as much longer on a slow rank as other ops do") {
  for (const char* const slow :
       {R"("stragglers": [{"rank": 1, "slowdown": 2}])", R"("speeds": [1, 0.5])"}) {
    std::map<std::pair<OpKind, int>, double> times[2];
    for (const bool varies : {false, true}) {
      Overrides more = {"partition=[3, 3]", divided("vocab-1")};
      if (varies) more.push_back(std::string("variation={") + slow + "}");
      for (const OpInfo& op : lower_plan(run(on_ranks(2, more)).plan, 1).ops) {
        times[varies ? 1 : 0][{op.kind, op.stage}] = op.duration.value();
      }
    }
    for (const OpKind kind : {OpKind::F, OpKind::S, OpKind::T, OpKind::E, OpKind::G}) {
      for (const int rank : {0, 1}) {
        INFO(std::string(slow) << ", op " << static_cast<int>(kind) << " of rank " << rank);
        const double usual = times[0].at({kind, rank});
        CHECK(usual > 0);
        CHECK(times[1].at({kind, rank}) == doctest::Approx((rank == 1 ? 2 : 1) * usual));
      }
    }
  }
}

TEST_CASE("what has no part of a vocabulary, or cannot wait for one, is refused in one sentence") {
  const auto refused = [](const Overrides& more) { return mistakes(on_ranks(2, more)); };
  const std::string place = "set: /training/schedule/vocabulary: ";
  CHECK(refused({divided("vocab-3")}).find(place) == 0);
  CHECK(refused({R"(training.schedule={"kind": "gpipe", "vocabulary": "vocab-1"})"}) ==
        place +
            "\"gpipe\" has no order that runs parts of the vocabulary; expected \"1f1b\", "
            "\"v-half\" or \"slimpipe\"");
  CHECK(refused({divided("vocab-1", "bitpipe")}) ==
        place +
            "\"bitpipe\" has no order that runs parts of the vocabulary; expected \"1f1b\", "
            "\"v-half\" or \"slimpipe\"");
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
  for (const char* more : {"parallel.zero_stage=3", "training.micro_batch_size=6",
                           "parallel.gradient_reduction=micro_batch"}) {
    CHECK(refused({four, "parallel.data=2", "parallel.zero_stage=2", more, divided("vocab-1")}) ==
          place +
              "weights or gradients of every backward are exchanged at once; expected it with "
              "zero_stage 0 or 1, or 2 of several micro-batches, and \"gradient_reduction\" "
              "\"step\"");
  }
  CHECK(refused({R"(training.offload={"optimizer": 1})", divided("vocab-1")}) ==
        place +
            "what leaves for hosts leaves beside forwards and backwards alone; expected no "
            "training.offload");
  CHECK(refused({"parallel.stages=4", divided("vocab-1")}).find(place) != std::string::npos);
  CHECK(refused({"training.lora={\"rank\": 4}", divided("vocab-1")}) ==
        place +
            "weights of the embedding, or of the readout, are not trained; expected neither frozen "
            "modules nor LoRA");
  CHECK(refused({four, "parallel.data=2", "parallel.overlap_gradients=false",
                 "training.global_batch_size=24", divided("vocab-1")}) == "");
}

TEST_CASE("models whose words are not of the two ends alone are refused in one sentence") {
  const auto refused = [](const Overrides& more) { return mistakes(on_ranks(2, more)); };
  const std::string place = "set: /training/schedule/vocabulary: ";
  const std::string other = divided("vocab-2");
  CHECK(refused({"model.readout=classes", other}) ==
        place +
            "the last module of the model makes no logits of each word for every token; expected "
            "\"readout\" \"lm\"");
  CHECK(refused({"model.readout=classes", "model.classes=32768", other}) ==
        refused({"model.readout=classes", other}));
  CHECK(refused({"model.readout=masked-lm", other}) ==
        place +
            "the last module of the model makes logits with more than one product; expected a "
            "model that ends in one readout");
  CHECK(refused({"model.vocab_size=1", other}) ==
        place + "each of 2 ranks has a part of 1 words; expected as many words as ranks, or more");
  CHECK(refused({R"(model.encoder={"layers": 1, "attention_heads": 4})", other}) ==
        place + "module 2 of the model looks words up, too; expected a model without an encoder");
}

TEST_CASE("layouts that parts of a vocabulary do not know are refused in one sentence") {
  const auto refused = [](const Overrides& more) {
    Overrides all = {R"(cluster={"machine": "dgx-a100-80g", "devices": 4})"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(divided("vocab-1"));
    return mistakes(on_ranks(2, all));
  };
  const std::string place = "set: /training/schedule/vocabulary: ";
  const std::string two = R"(cluster={"machine": "dgx-a100-80g", "devices": 2})";
  CHECK(refused({two, "parallel.placement=[1, 0]"}) ==
        place +
            "its first rank has the first stage, and its last the last; expected no "
            "parallel.placement, or each stage on the rank of its number");
  CHECK(refused({two, "parallel.placement=[0, 1]"}) == "");
  const auto of_v = [](int ranks, const Overrides& more) {
    Overrides all = {"parallel.stages=" + std::to_string(2 * ranks), "model.layers=8"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(divided("vocab-1", "v-half"));
    return mistakes(on_ranks(ranks, all));
  };
  CHECK(of_v(1, {}) == place + "it is divided among ranks; expected 2 pipeline ranks or more");
  CHECK(of_v(2, {"parallel.placement=auto"}) ==
        place +
            "its first rank has both ends of the model; expected no parallel.placement, or \"v\"");
  CHECK(of_v(2, {"parallel.placement=v"}) == "");
  CHECK(refused({"parallel.data=2", "parallel.overlap_gradients=false", "parallel.zero_stage=1",
                 "training.global_batch_size=24", "parallel.overlap_weights=true"}) ==
        place +
            "its parts are read ahead of the first forward; expected \"overlap_weights\" false "
            "beside it");
  CHECK(refused({R"(cluster={"machine": "dgx-a100-80g", "devices": 8})", "parallel.tensor=4",
                 "parallel.tensor_layout=2d"}) ==
        place +
            "what tensor devices exchange of grids of weights is not divided; expected "
            "\"tensor_layout\" \"1d\" beside it");
  CHECK(refused({"parallel.tensor=2", R"(training.framework={"vocabulary": "gathered"})"}) ==
        place +
            "each tensor device makes the loss of all logits; expected training.framework with "
            "\"vocabulary\" \"divided\", or no tensor devices");
  CHECK(refused({"parallel.tensor=2"}) == "");
  // A mistake of the layout is told alone.
  CHECK(refused({"parallel.pipeline=0"}).find("vocabulary") == std::string::npos);
}

/// Returns the settings of changes of 1F1B on two ranks that divide the vocabulary.
std::vector<Overrides> proposed(Overrides more) {
  more.insert(more.begin(), R"(training.schedule={"kind": "1f1b"})");
  const JsonValue text = document(kFourModules, on_ranks(2, more));
  std::vector<Overrides> found;
  for (const Change& change : plan_changes({text, text, run(on_ranks(2, more)), {}})) {
    const auto divides = [](const std::string& one) {
      return one.find("schedule.vocabulary") != std::string::npos;
    };
    if (std::ranges::any_of(change.settings, divides)) found.push_back(change.settings);
  }
  return found;
}

TEST_CASE("a divided vocabulary is proposed where it is not refused, with what it needs") {
  const Overrides replicas = {R"(cluster={"machine": "dgx-a100-80g", "devices": 4})",
                              "parallel.data=2", "training.global_batch_size=24",
                              R"(training.schedule={"kind": "1f1b"})"};
  for (const Overrides& layout : {Overrides(), replicas}) {
    const auto changes = proposed(layout);
    CHECK(changes.size() == 2);
    for (const Overrides& settings : changes) {
      Overrides all = layout;
      all.emplace_back(R"(training.schedule={"kind": "1f1b"})");
      all.insert(all.end(), settings.begin(), settings.end());
      CHECK(mistakes(on_ranks(2, all)) == "");
    }
  }
  CHECK(proposed({"model.readout=masked-lm"}).empty());
  CHECK(proposed({R"(training.schedule={"kind": "interleaved"})"}).empty());
}

}  // namespace
}  // namespace interlock::divided_vocabulary_test
