// Attention as modules of its own: sums of the whole layer, and bytes by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::parted_attention_test {
namespace {

// b = 2, s = 64, h = 32, 4 heads of 8, 2 of them with keys, an MLP of 96, 3 layers, bf16.
const std::string kModel = R"({"kind": "transformer", "layers": 3, "hidden_size": 32,
    "attention_heads": 4, "kv_heads": 2, "ffn_hidden_size": 96, "vocab_size": 40,
    "sequence_length": 64)";
const std::string kFused = R"(, "attention": "fused"})";
constexpr double kTokens = 2 * 64, kH = 32, kKeys = 16, kElement = 2, kHeads = 4;
constexpr double kResidual = kTokens * kH * kElement;  // and queries, and outputs
constexpr double kKeysValues = 2 * kTokens * kKeys * kElement;
constexpr double kSums = kTokens * kHeads * 4;  // of a fused kernel's rows, fp32
constexpr double kProducts = kH * (kH + 2 * kKeys) + kH + 2 * kKeys;  // numbers, with biases

BuildOptions parted(PartedAttention how, Recompute recompute = Recompute::None) {
  BuildOptions options{.micro_batch_size = 2, .recompute = recompute};
  options.parted = how;
  return options;
}

ModelGraph model(PartedAttention how, Recompute recompute = Recompute::None) {
  return built(kModel + kFused, parted(how, recompute));
}

template <class Measure>
double sum(const ModelGraph& graph, const Measure& measure) {
  double total = 0;
  for (const Module& module : graph.modules) total += measure(module);
  return total;
}

TEST_CASE("a layer in parts does what it does as a whole") {
  const ModelGraph whole = model(PartedAttention::None);
  for (const auto how : {PartedAttention::Alone, PartedAttention::WithProjections}) {
    const ModelGraph parts = model(how);
    // Embedding, before, 3 times attention with what lies between, behind, readout.
    CHECK(parts.modules.size() == 1 + 1 + 3 + 2 + 1 + 1);
    for (std::size_t i = 0; i < parts.modules.size(); ++i) {
      const bool attends = i >= 2 && i <= 6 && i % 2 == 0;
      CHECK(parts.modules[i].attends == attends);
      if (attends) CHECK(parts.modules[i].parameters == 0);
    }
    CHECK(parameters_of(parts) == parameters_of(whole));
    const auto flops = [](const Module& m) {
      return (flops_of(m.forward) + flops_of(m.backward_input) + flops_of(m.backward_weight))
          .value();
    };
    CHECK(sum(parts, flops) == doctest::Approx(sum(whole, flops)).epsilon(1e-12));
    const auto moved = [](const Module& m) {
      return bytes_of(m.forward).value() + bytes_of(m.backward_input).value() +
             bytes_of(m.backward_weight).value();
    };
    // Gradients of weights that were made elsewhere are read, and added to those kept.
    const bool sends = how == PartedAttention::WithProjections;
    const double more = sends ? 3 * 3 * kProducts * kElement : 0;
    CHECK(sum(parts, moved) == doctest::Approx(sum(whole, moved) + more).epsilon(1e-12));
    const auto updated = [](const Module& m) { return bytes_of(m.update).value(); };
    CHECK(sum(parts, updated) == doctest::Approx(sum(whole, updated)).epsilon(1e-12));
  }
}

TEST_CASE("what travels to attention and back") {
  const ModelGraph alone = model(PartedAttention::Alone);
  CHECK(alone.modules[1].output.value() == 2 * kResidual + kKeysValues);
  CHECK(alone.modules[2].output.value() == 2 * kResidual);
  CHECK(alone.modules[3].output.value() == 2 * kResidual + kKeysValues);
  CHECK(alone.modules[7].output.value() == kResidual);
  const ModelGraph sent = model(PartedAttention::WithProjections);
  CHECK(sent.modules[1].output.value() == 2 * kResidual + kProducts * kElement);
  CHECK(sent.modules[2].output.value() == 2 * kResidual);
}

TEST_CASE("what attention keeps: with its products, their input alone if they run again") {
  const auto kept = [](PartedAttention how, Recompute recompute) {
    return model(how, recompute).modules[2].stash.value();
  };
  const double attends = kResidual + kKeysValues + kResidual + kSums;  // with what it puts out
  CHECK(kept(PartedAttention::Alone, Recompute::None) == attends);
  CHECK(kept(PartedAttention::Alone, Recompute::Full) == attends);
  const double weights = kProducts * kElement;  // which have come, and stay for the backward
  CHECK(kept(PartedAttention::WithProjections, Recompute::None) == kResidual + attends + weights);
  CHECK(kept(PartedAttention::WithProjections, Recompute::Full) == 2 * kResidual + kSums + weights);
  // The modules between keep the residual and what attention has made.
  const Module between = model(PartedAttention::WithProjections, Recompute::Full).modules[3];
  CHECK(between.stash.value() == 2 * kResidual);
}

TEST_CASE("logits wait for no backward: the readout runs when it goes back") {
  const Module whole = model(PartedAttention::None).modules.back();
  const Module late = model(PartedAttention::WithProjections).modules.back();
  CHECK(late.forward.empty());
  CHECK(flops_of(late.backward_input) == flops_of(whole.forward) + flops_of(whole.backward_input));
  CHECK(late.stash.value() == kResidual);
  CHECK(late.stash + late.workspace == whole.stash + whole.workspace);
}

TEST_CASE("a recomputation makes queries, keys and values again, and no attention") {
  const Module module = model(PartedAttention::WithProjections, Recompute::Full).modules[2];
  CHECK(flops_of(module.recompute).value() == 2 * kTokens * kH * (kH + 2 * kKeys));
  CHECK(model(PartedAttention::Alone, Recompute::Full).modules[2].recompute.empty());
  const Module keeping = model(PartedAttention::WithProjections).modules[2];
  CHECK(module.workspace >= keeping.workspace + Bytes(kResidual + kKeysValues));
}

TEST_CASE("scores that are stored are computed again where they were") {
  for (const auto how : {PartedAttention::Alone, PartedAttention::WithProjections}) {
    const auto of = [&](PartedAttention parts, Recompute recompute) {
      return built(kModel + R"(, "attention": "materialised"})", parted(parts, recompute));
    };
    const auto kept = [](const Module& m) { return m.stash.value(); };
    const auto again = [](const Module& m) { return flops_of(m.recompute).value(); };
    const auto saved = [&](PartedAttention parts) {
      return sum(of(parts, Recompute::None), kept) - sum(of(parts, Recompute::Selective), kept);
    };
    CHECK(saved(how) > 0);
    CHECK(saved(how) == saved(PartedAttention::None));
    CHECK(sum(of(how, Recompute::Selective), again) ==
          sum(of(PartedAttention::None, Recompute::Selective), again));
  }
}

TEST_CASE("products that are done elsewhere are cast to 8 bits there") {
  BuildOptions eight = parted(PartedAttention::WithProjections);
  eight.precision = Precision::Fp8;
  BuildOptions whole = eight;
  whole.parted = PartedAttention::None;
  const auto forward = [](const Module& m) {
    return bytes_of(m.forward).value() + bytes_of(m.backward_input).value();
  };
  CHECK(sum(built(kModel + kFused, eight), forward) ==
        doctest::Approx(sum(built(kModel + kFused, whole), forward)).epsilon(1e-12));
}

TEST_CASE("with adapters queries, keys and values travel") {
  BuildOptions adapted = parted(PartedAttention::WithProjections);
  adapted.adapters.rank = 4;
  CHECK(built(kModel + kFused, adapted).modules[1].output.value() == 2 * kResidual + kKeysValues);
}

TEST_CASE("without a norm before it, attention reads the residual alone") {
  const ModelGraph post = built(kModel + R"(, "norm_position": "post", "attention": "fused"})",
                                parted(PartedAttention::WithProjections));
  CHECK(post.modules[1].output.value() == kResidual + kProducts * kElement);
}

TEST_CASE("layers whose attention has weights, or is not alone, stay whole") {
  for (const std::string more : {R"(, "parallel_residual": true, "attention": "fused"})",
                                 R"(, "attention_sinks": true, "attention": "fused"})"}) {
    const ModelGraph graph = built(kModel + more, parted(PartedAttention::WithProjections));
    CHECK(graph.modules.size() == 5);
  }
  CHECK(zoo("nemotron-3-nano", parted(PartedAttention::Alone)).modules.size() ==
        zoo("nemotron-3-nano").modules.size());
}

}  // namespace
}  // namespace interlock::parted_attention_test
