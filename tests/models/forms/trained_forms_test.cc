// Forms of layers in training: parts that are computed again, matrices, adapters, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::trained_forms_test {
namespace {

constexpr double kElement = 2, kTokens = 8, kWidth = 16, kFfn = 32;

/// Two layers of width 16, 8 tokens; `more` says of what.
std::string layers(const std::string& more) {
  return R"({"kind": "transformer", "hidden_size": 16, "vocab_size": 10, "sequence_length": 8,
             "bias": false, "norm": "rmsnorm", "positions": "none", "layers": 2, )" +
         more + "}";
}

/// Attention of 4 heads and an MLP of 32.
std::string model(const std::string& more, const std::string& tied = "false") {
  return layers(R"("attention_heads": 4, "attention": "fused", "ffn_hidden_size": 32,
                   "tied_embeddings": )" +
                tied + (more.empty() ? "" : ", " + more));
}

// 4 heads of 6 channels, states of 5 numbers, 2 groups: 2 x 24 + 2 x 2 x 5 + 4 = 72 columns.
const std::string kMamba2 = layers(R"("ffn": "none", "attention": "mamba2", "mamba2": {"heads": 4,
    "head_size": 6, "state_size": 5, "groups": 2, "conv_width": 3, "chunk_size": 4})");
// 2 heads of keys of 3 numbers, 4 of values of 6: 2 x 6 + 2 x 24 + 2 x 4 = 68 columns.
const std::string kDelta = layers(R"("ffn": "none", "attention": "gated-delta", "gated_delta": {
    "key_heads": 2, "value_heads": 4, "key_head_size": 3, "value_head_size": 6, "conv_width": 3,
    "chunk_size": 4})");
// 48 channels; step sizes of 2 numbers, B and C of 5.
const std::string kMamba = layers(R"("ffn": "none", "attention": "mamba", "mamba": {
    "state_size": 5, "conv_width": 3, "expand": 3, "dt_rank": 2})");
const std::string kRetention = layers(R"("attention": "retention", "attention_heads": 4,
    "chunk_size": 4)");

BuildOptions part(LayerPart wanted) {
  return {.recompute = Recompute::Parts, .recompute_parts = wanted};
}

BuildOptions lora(std::initializer_list<LinearName> names) {
  BuildOptions options{.optimizer = Optimizer::Adam};
  options.adapters = {.rank = 3, .of = {}};
  for (const LinearName name : names) {
    options.adapters.of[static_cast<std::size_t>(name)] = true;
  }
  return options;
}

BuildOptions lora_of_all() {
  return lora({LinearName::Qkv, LinearName::Projection, LinearName::First, LinearName::Second});
}

/// Tensors (tokens, width) that the first layer drops with `wanted`.
double dropped(const std::string& text, LayerPart wanted) {
  const Module whole = built(text).modules[1];
  const Module less = built(text, part(wanted)).modules[1];
  CHECK(less.remade == whole.stash - less.stash);
  return less.remade.value() / (kTokens * kWidth * kElement);
}

TEST_CASE("norms that a half begins with are computed again, those behind a branch are not") {
  CHECK(dropped(model(""), LayerPart::Norms) == 2);
  const std::string both = model(R"("norm_position": "both")");
  CHECK(dropped(both, LayerPart::Norms) == 2);
  CHECK(built(both, part(LayerPart::Norms)).modules[1].recompute.size() == 2);
  for (const std::string position : {"post", "branch"}) {
    const Module module = built(model(R"("norm_position": ")" + position + '"')).modules[1];
    CHECK(!module.parts.has(LayerPart::Norms));
    CHECK(module.parts.has(LayerPart::Mlp));
  }
  const std::string beside = R"("parallel_residual": true)";
  CHECK(dropped(model(beside), LayerPart::Norms) == 2);
  CHECK(dropped(model(beside + R"(, "shared_norm": true)"), LayerPart::Norms) == 1);
}

TEST_CASE("layers without attention have norms to compute again, and no core of attention") {
  for (const std::string& text : {kMamba, kMamba2, kDelta}) {
    CHECK(dropped(text, LayerPart::Norms) == 1);
    CHECK(built(text).modules[1].parts == LayerParts(LayerPart::Norms));
  }
  CHECK(!built(kRetention).modules[1].parts.has(LayerPart::CoreAttention));
  CHECK(built(model("")).modules[1].parts.has(LayerPart::CoreAttention));
}

TEST_CASE("the shared experts' part is as wide as they are") {
  const std::string text = model(R"("experts": 4, "shared_experts": 1,
      "shared_expert_ffn_hidden_size": 24)");
  // The activation reads one such tensor and makes one.
  CHECK(dropped(text, LayerPart::SharedExperts) == 2 * 24 / kWidth);
}

TEST_CASE("the products of a mixer are whole matrices; convolutions and decays are none") {
  const auto matrices = [](const std::string& text) { return built(text).modules[1].matrices; };
  CHECK(matrices(kMamba2) ==
        std::vector<WeightMatrix>{{.rows = 16, .columns = 72, .parameters = 16 * 72},
                                  {.rows = 24, .columns = 16, .parameters = 24 * 16}});
  CHECK(matrices(kDelta) ==
        std::vector<WeightMatrix>{{.rows = 16, .columns = 68, .parameters = 16 * 68},
                                  {.rows = 24, .columns = 16, .parameters = 24 * 16}});
  CHECK(matrices(kMamba) ==
        std::vector<WeightMatrix>{{.rows = 16, .columns = 96, .parameters = 16 * 96},
                                  {.rows = 48, .columns = 12, .parameters = 48 * 12},
                                  {.rows = 2, .columns = 48, .parameters = 2 * 48},
                                  {.rows = 48, .columns = 16, .parameters = 48 * 16}});
  const auto gated = matrices(model(R"("attention_gate": true, "kv_heads": 2)"));
  INFO("queries and their gate, keys and values");
  CHECK(gated[0] == WeightMatrix{.rows = 16, .columns = 16, .count = 2, .parameters = 2 * 16 * 16});
  CHECK(gated[1] == WeightMatrix{.rows = 16, .columns = 8, .count = 2, .parameters = 2 * 16 * 8});
}

TEST_CASE("a block for later tokens has matrices of layers in the last module") {
  const Module plain = built(model("")).modules.back();
  const Module last = built(model(R"("multi_token_prediction": {})")).modules.back();
  CHECK(weights_of(plain).hidden == 0);
  CHECK(weights_of(last).matrix == last.parameters - 6 * 16);  // all but the norms
  CHECK(weights_of(last).hidden == 2 * 16 * 16 + 4 * 16 * 16 + 2 * 16 * 32);
  REQUIRE(last.tied_matrices.size() == 1);
  CHECK(last.tied_matrices[0].parameters == 10 * 16);
  CHECK(!last.tied_matrices[0].hidden);
}

TEST_CASE("an encoder's patches are no matrices of layers, its connector's are") {
  const ModelGraph graph = built(model(R"("encoder": {"layers": 1, "hidden_size": 8,
      "attention_heads": 2, "patches": {"image_size": 4, "patch_size": 2},
      "connector": {"hidden_size": 24}})"));
  CHECK(weights_of(graph.modules[0]).hidden == 0);
  CHECK(graph.modules[2].name == "connector");
  CHECK(weights_of(graph.modules[2]).hidden == 8 * 24 + 24 * 16);
}

TEST_CASE("adapters stand beside the first and the last product of a mixer") {
  for (const auto& [text, inner, out] :
       {std::tuple(kMamba2, 72, 24), std::tuple(kDelta, 68, 24), std::tuple(kMamba, 96, 48)}) {
    const Module plain = built(text).modules[1];
    const Module module = built(text, lora_of_all()).modules[1];
    const int thin = 3 * ((16 + inner) + (out + 16));
    CHECK(weights_of(module).all == thin);
    CHECK(module.frozen.all == plain.parameters);
    CHECK(flops_of(module.backward_weight).value() == 2 * kTokens * thin);
  }
}

TEST_CASE("adapters of a block for later tokens are all that its module trains") {
  const double thin = 3 * ((kWidth + 3 * kWidth) + 2 * kWidth + 2 * (kWidth + kFfn));
  for (const std::string tied : {"false", "true"}) {
    const std::string text = model(R"("multi_token_prediction": {})", tied);
    const Module plain = built(text).modules.back();
    const Module last = built(text, lora_of_all()).modules.back();
    INFO("tied: " << tied);
    CHECK(static_cast<double>(weights_of(last).all) == thin);
    CHECK(last.frozen.all == plain.parameters);
    CHECK(flops_of(last.backward_weight).value() == 2 * kTokens * thin);
    CHECK(last.tied_frozen);
  }
}

TEST_CASE("a frozen readout makes no gradient of weights, though they are the embedding's") {
  CHECK(built(model("", "true"), lora_of_all()).modules.back().backward_weight.empty());
  CHECK(!built(model("", "true")).modules.back().backward_weight.empty());
}

TEST_CASE("behind one norm an MLP's adapter keeps what a product without one has dropped") {
  const std::string text = model(R"("parallel_residual": true, "shared_norm": true)");
  const Bytes one = built(text, lora({LinearName::First})).modules[1].stash;
  const Bytes two = built(text, lora({LinearName::First, LinearName::Qkv})).modules[1].stash;
  CHECK((two - one).value() == kTokens * 3 * kElement);
}

}  // namespace
}  // namespace interlock::trained_forms_test
