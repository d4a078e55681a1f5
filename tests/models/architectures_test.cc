// Blocks of other families than GPT's: flops and bytes kept, counted by hand from their papers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/build_model.h"
#include "tests/models/exchanges.h"

namespace interlock::architectures_test {
namespace {

constexpr double kElement = 2;
const std::string kTiny = R"({"kind": "transformer", "layers": 2, "hidden_size": 16,
    "attention_heads": 4, "vocab_size": 24, "sequence_length": 32)";

BuildOptions tensor(int devices, bool sequence_parallel = false) {
  BuildOptions options;
  options.sharding.tensor = devices;
  options.sharding.sequence_parallel = sequence_parallel;
  return options;
}

std::string said(const std::string& text, const BuildOptions& options = {}) {
  const JsonValue value = parse_json(text, "test.json");
  Diagnostics diagnostics;
  build_model({&value, ""}, options, diagnostics);
  std::string all;
  for (const std::string& message : diagnostics.messages()) all += message + "\n";
  return all;
}

// Latent attention of DeepSeek-V3's first layer, which is dense: letters of arXiv 2405.04434.
constexpr double kH = 7168, kHeads = 128, kQ = 1536, kKv = 512, kPlain = 128, kRope = 64, kV = 128;
constexpr double kFfn = 18432, kTokens = 4096;

TEST_CASE("latent attention does the products of its paper") {
  const double weights = kH * kQ + kQ * kHeads * (kPlain + kRope) + kH * (kKv + kRope) +
                         kKv * kHeads * (kPlain + kV) + kHeads * kV * kH + 3 * kH * kFfn;
  const double scores = kTokens * kHeads * (kPlain + kRope + kV);
  const Module layer = zoo("deepseek-v3").modules[1];
  MESSAGE("a token: " << weights << " weights, " << scores << " products of attention");
  CHECK(counted_of(layer.forward).value() ==
        doctest::Approx(2 * kTokens * (weights + scores)).epsilon(1e-14));
  CHECK(counted_of(layer.backward_input) + counted_of(layer.backward_weight) ==
        2 * counted_of(layer.forward));
}

/// Bytes that a token leaves in a dense layer of DeepSeek's with fused attention, of one of `t`
/// tensor devices; what every device has whole is divided by `rows`.
double latent_bytes(double t, double rows) {
  const double whole = kH         // into the first norm
                       + kH       // into both products that make latents
                       + 2 * kQ   // into the norm of queries' latent, and out of it
                       + 2 * kKv  // likewise of keys' and values'
                       + 2 * kH;  // into the second norm and the MLP
  const double divided = 2 * kHeads * (kPlain + kRope) + kHeads * kV  // queries, keys, values
                         + kHeads * kV                                // into the projection
                         + 2 * kFfn + kFfn;                           // gate, up, and their product
  return kElement * (whole / rows + divided / t) + 4 * kHeads / t;    // and sums in fp32
}

TEST_CASE("latent attention keeps latents, heads and nothing twice") {
  CHECK(zoo("deepseek-v3").modules[1].stash.value() == kTokens * latent_bytes(1, 1));
  for (const double t : {2.0, 8.0}) {
    const int devices = static_cast<int>(t);
    CHECK(zoo("deepseek-v3", tensor(devices)).modules[1].stash.value() ==
          doctest::Approx(kTokens * latent_bytes(t, 1)).epsilon(1e-14));
    CHECK(zoo("deepseek-v3", tensor(devices, true)).modules[1].stash.value() ==
          doctest::Approx(kTokens * latent_bytes(t, t)).epsilon(1e-14));
  }
}

TEST_CASE("tensor devices add up gradients of latents, and gather them with sequence parallelism") {
  const auto bytes_of_kind = [](const std::vector<Exchange>& list, CollectiveKind kind) {
    double bytes = 0;
    for (const Exchange& one : list) {
      if (one.kind == kind) bytes += one.bytes.value() * one.count;
    }
    return bytes;
  };
  const double row = kTokens * kElement, latents = kQ + kKv + kRope;
  const Module plain = zoo("deepseek-v3", tensor(8)).modules[1];
  // Forward: the sums of attention and MLP. Backward: gradients of latents and of the MLP's input.
  CHECK(bytes_of_kind(plain.forward_exchanges, CollectiveKind::AllReduce) == row * 2 * kH);
  CHECK(bytes_of_kind(plain.backward_input_exchanges, CollectiveKind::AllReduce) ==
        doctest::Approx(row * (latents + kH)).epsilon(1e-14));
  const Module parts = zoo("deepseek-v3", tensor(8, true)).modules[1];
  CHECK(bytes_of_kind(parts.forward_exchanges, CollectiveKind::AllGather) ==
        doctest::Approx(row * (latents + kH)).epsilon(1e-14));
  CHECK(bytes_of_kind(parts.forward_exchanges, CollectiveKind::ReduceScatter) == row * 2 * kH);
}

TEST_CASE("queries may come from the tokens themselves") {
  const std::string latents = kTiny + R"(, "positions": "rotary", "bias": false, "latent_attention":
      {"kv_rank": 6, "head_size": 3, "rotary_head_size": 2, "value_head_size": 5)";
  const Module direct = built(latents + "}}").modules[1];
  const Module ranked = built(latents + R"(, "query_rank": 7}})").modules[1];
  CHECK(ranked.parameters - direct.parameters == 16 * 7 + 7 + 7 * 20 - 16 * 20);
  CHECK(said(kTiny + R"(, "latent_attention": {"kv_rank": 6, "head_size": 3,
      "rotary_head_size": 2, "value_head_size": 5}})")
            .find("/latent_attention: a part of every head has rotary positions") !=
        std::string::npos);
  CHECK(said(latents + R"(}, "kv_heads": 2})").find("/kv_heads: latents say what heads are") !=
        std::string::npos);
}

/// Pairs of tokens with scores, both halves of the square, one by one.
double pairs_seen(int tokens, int window) {
  double pairs = 0;
  for (int i = 0; i < tokens; ++i) {
    for (int j = 0; j < tokens; ++j) pairs += std::abs(i - j) < window ? 1 : 0;
  }
  return pairs;
}

TEST_CASE("a window leaves a band of the scores, where one kernel makes them") {
  const std::string fused = kTiny + R"(, "attention": "fused")";
  const double all = counted_of(built(fused + "}").modules[1].forward).value();
  for (const int window : {1, 2, 7, 31, 32, 100}) {
    const std::string model = fused + R"(, "sliding_window": )" + std::to_string(window) + "}";
    const ModelGraph graph = built(model);
    const double missing = 32.0 * 32 - pairs_seen(32, window);
    CAPTURE(window);
    CHECK(all - counted_of(graph.modules[1].forward).value() == 2 * 2 * 16 * missing);
    Flops sliced;
    for (int first = 0; first < 32; first += 4) {
      sliced += counted_of(graph.slice({4, first, 32}).modules[1].forward);
    }
    CHECK(sliced.value() ==
          doctest::Approx(counted_of(graph.modules[1].forward).value()).epsilon(1e-14));
  }
  CHECK(flops_of(built(kTiny + R"(, "sliding_window": 2})").modules[1].forward) ==
        flops_of(built(kTiny + "}").modules[1].forward));
}

TEST_CASE("norms behind the sums cost and keep what those before the layers do") {
  const std::string model = kTiny + R"(, "dropout": 0.1)";
  const ModelGraph pre = built(model + "}"), post = built(model + R"(, "norm_position": "post"})");
  CHECK(post.modules[1].parameters == pre.modules[1].parameters);
  CHECK(post.modules[1].stash == pre.modules[1].stash);
  CHECK(bytes_of(post.modules[1].forward) == bytes_of(pre.modules[1].forward));
  // The last norm stands in the last block.
  CHECK(pre.modules.back().parameters - post.modules.back().parameters == 2 * 16);
  // For the module before wait the gradient of the first product and of the sum.
  const std::vector<Work>& first = post.modules[1].first_backward_input;
  REQUIRE(first.size() == 2);
  CHECK(flops_of(first).value() == 2 * 32 * 16 * 3 * 16);
}

TEST_CASE("side by side attention and MLP share their input and one sum") {
  const ModelGraph line = built(kTiny + "}");
  const std::string model = kTiny + R"(, "parallel_residual": true})";
  const Module block = built(model).modules[1];
  CHECK(block.parameters == line.modules[1].parameters);
  CHECK(flops_of(block.forward) == flops_of(line.modules[1].forward));
  CHECK((line.modules[1].stash - block.stash).value() == kElement * 32 * 16);
  const Exchange sum = {.kind = CollectiveKind::AllReduce, .bytes = Bytes(kElement * 32 * 16)};
  const Module shared = built(model, tensor(2)).modules[1];
  INFO(text_of(shared.forward_exchanges));
  CHECK(shared.forward_exchanges == std::vector{sum});
  CHECK(shared.backward_input_exchanges.size() == 1);
  CHECK(shared.backward_input_exchanges.front().count == 2);  // below each of the two norms
  CHECK(built(kTiny + "}", tensor(2)).modules[1].forward_exchanges.front().count == 2);
}

TEST_CASE("heads may have a size of their own, and norms") {
  const ModelGraph plain = built(kTiny + "}");
  const ModelGraph wide = built(kTiny + R"(, "head_size": 6})");
  // 24 columns instead of 16, of queries, keys, values, and rows of the projection.
  CHECK(wide.modules[1].parameters - plain.modules[1].parameters == 3 * 8 * 17 + 8 * 16);
  const ModelGraph normed = built(kTiny + R"(, "qk_norm": true})");
  CHECK(normed.modules[1].parameters - plain.modules[1].parameters == 2 * 4);
  CHECK((normed.modules[1].stash - plain.modules[1].stash).value() == kElement * 32 * 2 * 16);
  CHECK(said(kTiny + R"(, "attention": "retention", "head_size": 6})")
            .find("/head_size: not with retention") != std::string::npos);
}

TEST_CASE("biases may be had by some layers only, and turned elements by a part of each head") {
  const auto parameters = [](const std::string& more) {
    return built(kTiny + more).modules[1].parameters;
  };
  const std::int64_t none = parameters(R"(, "bias": false})");
  CHECK(parameters(R"(, "bias": false, "qkv_bias": true})") - none == 3 * 16);
  CHECK(parameters(R"(, "bias": false, "projection_bias": true})") - none == 16);
  CHECK(parameters(R"(, "bias": false, "mlp_bias": true})") - none == 64 + 16);
  const auto bytes = [](const std::string& more) {
    return bytes_of(built(kTiny + R"(, "positions": "rotary")" + more).modules[1].forward).value();
  };
  const double turned = kElement * 2 * 2 * 32 * 16;  // read and written, queries and keys
  CHECK(bytes("}") - bytes(R"(, "rotary_share": 0.25})") == turned * 0.75);
}

TEST_CASE("ViT-B/16 does 17.56 G multiply-adds an image") {
  // torchvision's documentation has 17.56 for its vit_b_16 (recalled).
  const double h = 768, tokens = 197;
  const double layers = 12 * (12 * h * h * tokens + 2 * tokens * tokens * h);
  const double whole = 196 * h * 768 + layers + 1000 * h;
  MESSAGE("patches " << 196 * h * 768 << " + layers " << layers << " + classes " << 1000 * h);
  const ModelGraph graph = zoo("vit-b-16");
  CHECK(products_of(graph) == doctest::Approx(whole).epsilon(1e-14));
  CHECK(whole == doctest::Approx(17.56e9).epsilon(0.001));
  CHECK(!graph.tokens_per_sample);
  CHECK(!graph.slice);
  CHECK(graph.modules[0].backward_input.empty());
  // Pixels of each patch, for the gradient of the weights.
  CHECK(graph.modules[0].stash.value() == kElement * 196 * 768);
  CHECK(flops_of(graph.modules[5].head.work).value() == 3 * 2 * h * 1000);  // of the first token
}

TEST_CASE("BERT predicts every word through one more layer, with the weights of its embedding") {
  const ModelGraph graph = zoo("bert-base");
  const double h = 768, s = 512, v = 30522;
  CHECK(flops_of(graph.modules.back().forward).value() == 2 * s * (h * h + h * v));
  CHECK(graph.modules.back().tied_parameters == 30522 * 768);
  CHECK(!graph.slice);
  CHECK(graph.tokens_per_sample == 512);
  // Korthikanti et al., equation 1, is about its blocks too, but attention is one kernel here: the
  // scores' 5 a s / h become one number in fp32 a row.
  CHECK(graph.modules[1].stash.value() == s * h * 34 + s * 12 * 4);
  CHECK(said(R"({"base": "bert-base", "attention_flops": "causal"})")
            .find("/attention_flops: every token sees all") != std::string::npos);
  CHECK(said(R"({"base": "bert-base", "readout": "lm"})")
            .find("/bidirectional: a token that is seen cannot be predicted") != std::string::npos);
}

TEST_CASE("every second layer may have experts, and their sum a gate") {
  const std::string model = kTiny + R"(, "experts": 4, "expert_interval": 2)";
  const ModelGraph graph = built(model + "}");
  CHECK(graph.modules[1].expert_parameters > 0);
  CHECK(graph.modules[2].expert_parameters == 0);
  const Module plain = built(model + R"(, "shared_experts": 1})").modules[1];
  const Module gated =
      built(model + R"(, "shared_experts": 1, "shared_expert_gate": true})").modules[1];
  CHECK(gated.parameters - plain.parameters == 16);
  CHECK((flops_of(gated.forward) - flops_of(plain.forward)).value() == 2 * 32 * 16);
}

TEST_CASE("each expert of a device multiplies its own part of the rows") {
  BuildOptions options;
  options.sharding.expert = 2;  // of 4 experts a device holds 2
  const auto products = [&](bool fp32) {
    options.framework.fp32_gradients = fp32;
    const Module block =
        built(kTiny + R"(, "bias": false, "experts": 4, "experts_per_token": 2})", options)
            .modules[1];
    std::vector<Work> found;
    for (const std::vector<Work>* works : {&block.forward, &block.backward_weight}) {
      for (const Work& work : *works) {
        if (work.shape.batch == 2) found.push_back(work);
      }
    }
    REQUIRE(found.size() == 4);
    return found;
  };
  INFO("32 tokens for 2 experts each: 64 rows, 32 of each; weights of 16 x 64 in 16 bits");
  const std::vector<Work> work = products(false), main = products(true);
  CHECK(work[0].shape == ProductShape{32, 64, 16, 2});
  CHECK(work[1].shape == ProductShape{32, 16, 64, 2});
  const double rows = 64 * (16 + 64) * 2, weights = 2 * 16 * 64;
  CHECK(work[0].bytes.value() == rows + weights * 2);
  CHECK(work[2].shape == ProductShape{64, 16, 32, 2});
  INFO("gradients are added to those before: read and written in 16 bits, or in 32");
  CHECK(work[2].bytes.value() == rows + weights * 4);
  CHECK(main[2].bytes.value() == rows + weights * 8);
}

TEST_CASE("tokens of several experts of a device are sorted by expert, there and back") {
  const auto bytes = [](int experts, ExpertDispatch dispatch) {
    BuildOptions options;
    options.sharding.expert = 2;
    options.sharding.expert_dispatch = dispatch;
    const std::string model = kTiny + R"(, "bias": false, "experts_per_token": 2, "experts": )";
    return bytes_of(built(model + std::to_string(experts) + "}", options).modules[1].forward)
        .value();
  };
  INFO("64 rows of 16, read and written, twice; the router's, 2 experts more for 32 tokens");
  const double sorted = 2 * 2 * 64 * 16 * 2, router = (2 * 32 + 16 * 2 + 2 * 2 * 32) * 2;
  const double weights = 2 * 16 * 64 * 2;
  CHECK(bytes(4, ExpertDispatch::AllToAll) - bytes(2, ExpertDispatch::AllToAll) ==
        sorted + router + weights);
  CHECK(bytes(4, ExpertDispatch::AllToAll) - bytes(4, ExpertDispatch::DeepEp) == sorted);
}

TEST_CASE("matrices of layers are whole, and those of embedding and readout are not hidden") {
  const std::string model = kTiny + R"(, "kv_heads": 2, "gated_mlp": true, "bias": false})";
  const std::vector<WeightMatrix> expected = {
      {.rows = 16, .columns = 16, .parameters = 16 * 16 / 2},
      {.rows = 16, .columns = 8, .count = 2, .parameters = 2 * 16 * 8 / 2},
      {.rows = 16, .columns = 16, .parameters = 16 * 16 / 2},
      {.rows = 16, .columns = 2 * 64, .parameters = 2 * 16 * 64 / 2},
      {.rows = 64, .columns = 16, .parameters = 16 * 64 / 2}};
  CHECK(built(model, tensor(2)).modules[1].matrices == expected);
  const ModelGraph graph = built(model);
  for (const Module* module : {&graph.modules.front(), &graph.modules.back()}) {
    for (const WeightMatrix& matrix : module->matrices) CHECK(!matrix.hidden);
  }
  CHECK(graph.modules.back().tied_matrices.size() == 1);
  const ModelGraph experts = built(kTiny + R"(, "experts": 4})", tensor(1));
  const WeightCount count = expert_weights_of(experts.modules[1]);
  CHECK(count.hidden == 4 * 2 * 16 * 64);
  CHECK(count.lines == 4 * 2 * (16 + 64));
}

TEST_CASE("grids of tensor devices divide decoders only") {
  BuildOptions options = tensor(4);
  options.sharding.tensor_layout = TensorLayout::TwoD;
  options.micro_batch_size = 4;
  CHECK(said(kTiny + R"(, "positions": "rotary", "latent_attention": {"kv_rank": 6,
      "head_size": 3, "rotary_head_size": 2, "value_head_size": 5}})",
             options)
            .find("no \"latent_attention\"") != std::string::npos);
  CHECK(said(R"("vit-b-16")", options).find("no \"patches\"") != std::string::npos);
  CHECK(said(R"({"base": "vit-b-16", "patches": {"image_size": 225}})")
            .find("16 pixels of 225; expected a divisor") != std::string::npos);
}

}  // namespace
}  // namespace interlock::architectures_test
