// Parts of a layer that are computed again: what each drops and runs, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::layer_parts_test {
namespace {

// DeepSeek-V3, of whose 61 layers the first three are dense; attention is fused. Letters: arXiv
// 2412.19437, section 4.2.
constexpr double kH = 7168, kHeads = 128, kQ = 1536, kKv = 512, kKey = 192, kPlain = 128, kV = 128;
constexpr double kDense = 18432, kExpert = 2048, kExperts = 256, kChosen = 8;
constexpr double kTokens = 4096, kElement = 2;
constexpr std::size_t kDenseLayer = 1, kExpertLayer = 4;

BuildOptions parts(std::initializer_list<LayerPart> wanted) {
  BuildOptions options{.recompute = Recompute::Parts};
  for (const LayerPart part : wanted) options.recompute_parts |= part;
  return options;
}

Module layer(std::size_t index, std::initializer_list<LayerPart> wanted = {}) {
  return zoo("deepseek-v3", parts(wanted)).modules[index];
}

/// Multiply-adds a token that a backward runs again.
double again(const Module& module) { return flops_of(module.recompute).value() / 2 / kTokens; }

/// Bytes a token that a layer keeps less with `part`. They come back into the workspace.
double dropped(std::size_t index, LayerPart part) {
  const Module whole = layer(index), less = layer(index, {part});
  CHECK(less.workspace - whole.workspace == whole.stash - less.stash);
  CHECK(less.remade == whole.stash - less.stash);
  return (whole.stash - less.stash).value() / kTokens;
}

TEST_CASE("no part is computed again unless it is named, and the names are Megatron-Core's") {
  CHECK(layer(kExpertLayer).recompute.empty());
  CHECK(layer_part_names() == std::vector<std::string>{"core_attn", "layernorm", "mla_up_proj",
                                                       "mlp", "moe", "shared_experts", "moe_act"});
}

TEST_CASE("core_attn drops a fused kernel's row sums and runs attention again") {
  CHECK(dropped(kDenseLayer, LayerPart::CoreAttention) == 4 * kHeads);
  const Module module = layer(kDenseLayer, {LayerPart::CoreAttention});
  Flops attention;
  for (const Work& work : module.forward) {
    if (work.op_class == OpClass::Attention) attention += work.flops;
  }
  CHECK(flops_of(module.recompute) == attention);
}

TEST_CASE("core_attn of stored scores is selective recomputation") {
  const std::string gpt = R"({"base": "gpt3-175b", "dropout": 0.1, "attention": "materialised"})";
  const Module part = built(gpt, parts({LayerPart::CoreAttention})).modules[1];
  const Module selective = built(gpt, {.recompute = Recompute::Selective}).modules[1];
  INFO("Korthikanti et al., arXiv 2205.05198, section 5: 34 s b h bytes are left");
  CHECK(part.stash.value() == 34.0 * 2048 * 12288);
  CHECK(part.stash == selective.stash);
  CHECK(part.workspace == selective.workspace);
  CHECK(bytes_of(part.recompute) == bytes_of(selective.recompute));
}

TEST_CASE("layernorm drops the outputs of the two norms of a layer, not what they read") {
  for (const std::size_t index : {kDenseLayer, kExpertLayer}) {
    CHECK(dropped(index, LayerPart::Norms) == 2 * kH * kElement);
    const Module module = layer(index, {LayerPart::Norms});
    CHECK(module.recompute.size() == 2);  // each reads and writes (tokens, hidden_size)
    CHECK(bytes_of(module.recompute).value() == 2 * 2 * kTokens * kH * kElement);
  }
  const std::string beside = R"({"base": "gpt3-175b", "parallel_residual": true})";
  const Bytes kept = built(beside).modules[1].stash;
  const Module less = built(beside, parts({LayerPart::Norms})).modules[1];
  CHECK((kept - less.stash).value() == 2.0 * 2048 * 12288 * kElement);
  CHECK(!zoo("bert-base").modules[1].parts.has(LayerPart::Norms));  // they stand behind the sums
}

TEST_CASE("mla_up_proj drops queries, keys and values, and makes them of latents again") {
  CHECK(dropped(kDenseLayer, LayerPart::LatentProjections) == kHeads * (2 * kKey + kV) * kElement);
  const Module module = layer(kDenseLayer, {LayerPart::LatentProjections});
  CHECK(again(module) == kHeads * (kQ * kKey + kKv * (kPlain + kV)));
  CHECK(module.recompute.size() == 3);  // two products and the rotation
}

TEST_CASE("mlp drops what lies between a dense layer's products, and runs both again") {
  CHECK(dropped(kDenseLayer, LayerPart::Mlp) == 3 * kDense * kElement);
  CHECK(again(layer(kDenseLayer, {LayerPart::Mlp})) == 3 * kH * kDense);
  CHECK(layer(kExpertLayer, {LayerPart::Mlp}).recompute.empty());
}

TEST_CASE("moe drops everything from the router to the sum, its input apart") {
  const double routed = 2 * kH + 3 * kExpert;  // there and back, gate, up and their product
  CHECK(dropped(kExpertLayer, LayerPart::Experts) ==
        (kExperts + kChosen * routed + 3 * kExpert) * kElement);
  CHECK(again(layer(kExpertLayer, {LayerPart::Experts})) ==
        kH * kExperts + (kChosen + 1) * 3 * kH * kExpert);
  CHECK(layer(kDenseLayer, {LayerPart::Experts}).recompute.empty());
}

TEST_CASE("shared_experts and moe_act are parts of moe, and run once more beside it") {
  CHECK(dropped(kExpertLayer, LayerPart::SharedExperts) == 3 * kExpert * kElement);
  CHECK(again(layer(kExpertLayer, {LayerPart::SharedExperts})) == 3 * kH * kExpert);
  CHECK(dropped(kExpertLayer, LayerPart::ExpertActivation) == kChosen * kExpert * kElement);
  const Module activation = layer(kExpertLayer, {LayerPart::ExpertActivation});
  CHECK(activation.recompute.size() == 1);  // reads two parts and writes one
  CHECK(bytes_of(activation.recompute).value() == kTokens * kChosen * 3 * kExpert * kElement);
  const Module all = layer(
      kExpertLayer, {LayerPart::Experts, LayerPart::SharedExperts, LayerPart::ExpertActivation});
  CHECK(all.stash == layer(kExpertLayer, {LayerPart::Experts}).stash);
  CHECK(again(all) == kH * kExperts + (kChosen + 2) * 3 * kH * kExpert);
}

TEST_CASE("experts that are computed again exchange their tokens again") {
  BuildOptions options = parts({LayerPart::Experts});
  options.sharding.expert = 8;
  const Module module = zoo("deepseek-v3", options).modules[kExpertLayer];
  const auto to_experts = [](const std::vector<Exchange>& exchanges) {
    int count = 0;
    for (const Exchange& one : exchanges) count += one.axis == MeshAxis::Expert ? one.count : 0;
    return count;
  };
  CHECK(to_experts(module.forward_exchanges) == 2);
  CHECK(to_experts(module.recompute_exchanges) == 2);
}

TEST_CASE("more parts never take more memory, nor less time") {
  for (const std::size_t index : {kDenseLayer, kExpertLayer}) {
    for (unsigned set = 0; set < 1U << kLayerParts; ++set) {
      BuildOptions fewer{.recompute = Recompute::Parts};
      for (int i = 0; i < kLayerParts; ++i) {
        if ((set >> i & 1U) != 0) fewer.recompute_parts |= static_cast<LayerPart>(i);
      }
      const Module less = zoo("deepseek-v3", fewer).modules[index];
      for (int i = 0; i < kLayerParts; ++i) {
        BuildOptions wider = fewer;
        wider.recompute_parts |= static_cast<LayerPart>(i);
        const Module more = zoo("deepseek-v3", wider).modules[index];
        CHECK(more.stash <= less.stash);
        CHECK(more.stash + more.workspace <= less.stash + less.workspace);
        CHECK(flops_of(more.recompute) >= flops_of(less.recompute));
        CHECK(bytes_of(more.recompute) >= bytes_of(less.recompute));
      }
    }
  }
}

TEST_CASE("the first layers may keep their input only, and the others what parts leave") {
  BuildOptions options = parts({LayerPart::Norms});
  options.recompute = Recompute::Full;
  options.recompute_layers = 2;
  const ModelGraph graph = zoo("deepseek-v3", options);
  const Module full = zoo("deepseek-v3", {.recompute = Recompute::Full}).modules[kDenseLayer];
  CHECK(graph.modules[2].stash == full.stash);
  CHECK(graph.modules[3].stash == layer(3, {LayerPart::Norms}).stash);
  CHECK(graph.modules[3].recompute.size() == 2);
}

TEST_CASE("keys and values that later slices read stay, though latents could make them again") {
  const ModelGraph whole = zoo("deepseek-v3", parts({LayerPart::LatentProjections}));
  const ModelGraph plain = zoo("deepseek-v3");
  for (const int context : {0, 2048}) {
    const TokenSlice slice{2048, context, 4096};
    const Bytes less = whole.slice(slice).modules[1].stash,
                all = plain.slice(slice).modules[1].stash;
    const double kept = context == 0 ? kHeads * (kKey + kV) * kElement : 0;
    INFO("a slice of 2048 tokens behind " << context);
    CHECK((all - less).value() == 2048 * (kHeads * (2 * kKey + kV) * kElement - kept));
  }
}

}  // namespace
}  // namespace interlock::layer_parts_test
