// Encoders of images in front of decoders: weights, modules, flops and what cannot be.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::encoder_test {
namespace {

/// A decoder of 2 layers, width 16, 20 tokens; images of 4 x 4 patches of 2 x 2 pixels.
std::string model(const std::string& encoder, const std::string& more = "") {
  return R"({"kind": "transformer", "layers": 2, "hidden_size": 16, "attention_heads": 4,
             "vocab_size": 10, "sequence_length": 20, "attention": "fused",
             "encoder": {"layers": 3, "hidden_size": 8, "attention_heads": 2,
                         "patches": {"image_size": 8, "patch_size": 2})" +
         encoder + "}" + more + "}";
}

std::vector<std::string> mistakes(const std::string& text, const Sharding& sharding = {}) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  BuildOptions options;
  options.sharding = sharding;
  CHECK(build_model({&value, "/model"}, options, diagnostics).modules.empty());
  return diagnostics.messages();
}

TEST_CASE("Gemma 3 4B has the published weights, 417 M of them in its encoder") {
  // 4,300,079,472: the presets of keras-team/keras-hub; 417 M: arXiv 2503.19786, table 1.
  const ModelGraph graph = built(R"({"kind": "transformer", "attention": "fused",
      "norm": "rmsnorm", "bias": false, "positions": "rotary", "gated_mlp": true,
      "sequence_length": 4096, "layers": 34, "hidden_size": 2560, "attention_heads": 8,
      "kv_heads": 4, "head_size": 256, "ffn_hidden_size": 10240, "vocab_size": 262208,
      "norm_position": "both", "qk_norm": true, "sliding_window": 1024,
      "layer_pattern": [{"repeat": 5}, {"sliding_window": null}],
      "encoder": {"layers": 27, "hidden_size": 1152, "attention_heads": 16,
                  "ffn_hidden_size": 4304, "attention": "fused",
                  "patches": {"image_size": 896, "patch_size": 14, "class_token": false},
                  "connector": {"merge": 4, "merge_by": "mean", "norm": "rmsnorm",
                                "bias": false}}})");
  CHECK(parameters_of(graph) == 4'300'079'472);
  std::int64_t encoder = 0;
  for (const Module& module : graph.modules) {
    if (module.name.starts_with("encoder.")) encoder += module.parameters;
  }
  CHECK(static_cast<double>(encoder) == doctest::Approx(417e6).epsilon(0.002));
  REQUIRE(graph.modules.size() == 1 + 27 + 1 + 1 + 34 + 1);
  CHECK(graph.modules[28].name == "connector");
  CHECK(graph.modules[29].name == "embedding");
  CHECK(graph.modules.back().tied_to == 29);
  // 256 tokens of an image cross to the embedding, in 16 bits.
  CHECK(graph.modules[28].output.value() == 256 * 2560 * 2);
}

TEST_CASE("an encoder has the weights of its patches, blocks and connector") {
  const ModelGraph graph = built(model(R"(, "connector": {"merge": 2, "hidden_size": 24})"));
  REQUIRE(graph.modules.size() == 1 + 3 + 1 + 1 + 2 + 1);
  // Patches of 12 numbers, one more token, a table of 17 places.
  CHECK(graph.modules[0].parameters == (12 + 1) * 8 + 8 + 17 * 8);
  CHECK(graph.modules[1].parameters == 4 * 8 * 8 + 4 * 8 + 2 * 8 * 32 + 32 + 8 + 4 * 8);
  // A norm, four patches side by side to 24, and 16.
  CHECK(graph.modules[4].parameters == 2 * 8 + (4 * 8 + 1) * 24 + (24 + 1) * 16);
  CHECK(graph.modules[5].parameters == (10 + 20) * 16);
  CHECK(graph.modules.back().tied_to == 5);
}

TEST_CASE(
    "an encoder does the work of all images of a micro-batch, and finds vectors of the other "
    "tokens") {
  BuildOptions options;
  options.micro_batch_size = 2;
  const ModelGraph graph = built(model(R"(, "images": 3, "connector": {"merge": 2})"), options);
  // 6 images of 17 tokens; every token sees all of its image.
  const double linear = 2.0 * 6 * 17 * (4 * 8 * 8 + 2 * 8 * 32);
  CHECK(counted_of(graph.modules[1].forward).value() == linear + 2 * 2.0 * 6 * 17 * 17 * 8);
  CHECK(graph.modules[3].output.value() == 6 * 17 * 8 * 2);
  // 4 tokens of each image go on; of 20 tokens 12 are those, and 8 are looked up, by 64-bit names.
  CHECK(flops_of(graph.modules[4].forward).value() == 2.0 * 6 * 4 * 32 * 16);
  CHECK(graph.modules[4].output.value() == 6 * 4 * 16 * 2);
  CHECK(graph.modules[5].stash.value() == 2 * 8 * 8);
  CHECK(graph.modules[5].output.value() == 2 * 20 * 16 * 2);
  // The embedding hands gradients back to the images.
  CHECK(bytes_of(graph.modules[5].backward_input).value() >= 2 * 6 * 4 * 16 * 2);
}

TEST_CASE("a connector of several products has their weights, and a norm of a square is as wide") {
  const ModelGraph graph = built(model(R"(, "final_norm": false, "connector": {"merge": 2,
      "hidden_size": [24, 40], "norm": "layernorm", "norm_of": "square"})"));
  CHECK(graph.modules[4].parameters == 2 * 32 + 33 * 24 + 25 * 40 + 41 * 16);
  CHECK(flops_of(graph.modules[4].forward).value() == 2.0 * 4 * (32 * 24 + 24 * 40 + 40 * 16));
}

TEST_CASE("a product may merge patches, without an activation behind it") {
  // transformers 00dcc6d, modeling_mistral3.py: a norm, merging_layer, linear_1, act, linear_2.
  const Module made = built(model(R"(, "connector": {"merge": 2, "merge_by": "product",
      "hidden_size": 16, "bias": false})"))
                          .modules[4];
  CHECK(made.parameters == 2 * 8 + 4 * 8 * 8 + 8 * 16 + 16 * 16);
  CHECK(flops_of(made.forward).value() == 2.0 * 4 * (32 * 8 + 8 * 16 + 16 * 16));
  int activations = 0;
  for (const Work& work : made.forward) activations += work.variant == OpVariant::Gelu ? 1 : 0;
  CHECK(activations == 1);
  INFO("kept in bf16: patches and the first token, 4 squares, and what each product reads");
  CHECK(made.stash.value() == 2 * (17 * 8 + 4 * 32 + 4 * 8 + 4 * 16 + 4 * 16));
}

TEST_CASE("patches in windows see those of their window, in both directions") {
  const auto pairs = [](const std::string& more) {
    const ModelGraph graph = built(R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
        "attention_heads": 1, "attention": "fused", "classes": 2, "patches": {"image_size": 16,
        "patch_size": 1, "class_token": false})" +
                                   more + "}");
    double flops = 0;
    for (const Work& work : graph.modules[1].forward) {
      if (work.op_class == OpClass::Attention) flops += work.flops.value();
    }
    return flops / (2 * 2 * 8);  // scores and their product with values, of 8 elements
  };
  CHECK(pairs("") == 256.0 * 256);
  CHECK(pairs(R"(, "attention_chunk": 64)") == 256.0 * 64);
}

TEST_CASE("tokens of a deepstack's layers travel to the first blocks of the decoder") {
  const ModelGraph plain = built(model(R"(, "connector": {"merge": 2, "hidden_size": 32})"));
  const ModelGraph deep =
      built(model(R"(, "connector": {"merge": 2, "hidden_size": 32, "deepstack": [0, 2]})"));
  // A norm of squares, 32 to 32 and 32 to 16.
  const std::int64_t weights = 2 * 32 + 33 * 32 + 33 * 16;
  CHECK(deep.modules[1].parameters == plain.modules[1].parameters + weights);
  CHECK(deep.modules[2].parameters == plain.modules[2].parameters);
  CHECK(deep.modules[3].parameters == plain.modules[3].parameters + weights);
  CHECK(flops_of(deep.modules[1].forward).value() ==
        flops_of(plain.modules[1].forward).value() + 2.0 * 4 * (32 * 32 + 32 * 16));
  // Modules: embedding, three blocks, connector, embedding, two blocks. 4 tokens in 16 bits.
  const double tokens = 4 * 16 * 2;
  const std::vector<double> carried = {0, 1, 1, 2, 2, 2, 1, 0, 0};
  for (std::size_t i = 0; i < carried.size(); ++i) {
    CAPTURE(i);
    CHECK(deep.modules[i].output.value() == plain.modules[i].output.value() + carried[i] * tokens);
  }
}

TEST_CASE("tensor devices share an encoder's heads, and its MLPs") {
  BuildOptions options;
  options.sharding.tensor = 2;
  const ModelGraph whole = built(model("")), half = built(model(""), options);
  CHECK(2 * flops_of(half.modules[1].forward).value() ==
        doctest::Approx(flops_of(whole.modules[1].forward).value()));
  CHECK(half.modules[1].forward_exchanges.size() == 1);
}

TEST_CASE("what an encoder cannot be is reported in its own place") {
  const auto check = [](const std::string& text, const std::string& end, Sharding sharding = {}) {
    const std::vector<std::string> found = mistakes(text, sharding);
    REQUIRE(found.size() == 1);
    CAPTURE(found[0]);
    CHECK(found[0].ends_with(end));
  };
  CHECK(mistakes(model(R"(, "readout": "lm")")).at(0).find("/model/encoder/readout: unknown key") !=
        std::string::npos);
  check(model(R"(, "images": 2)"),
        "/model/encoder: 32 tokens of images in a sequence_length of 20; expected at most all of "
        "them");
  check(model(R"(, "connector": {"merge": 3})"),
        "/model/encoder/connector/merge: 3 patches of 4 on a side; expected a divisor");
  check(model(R"(, "connector": {"deepstack": [3]})"),
        "/model/encoder/connector/deepstack/0: 3 is no layer of 3; expected the number of one, "
        "from 0");
  check(model(R"(, "connector": {"deepstack": [0, 1, 2]})"),
        "/model/encoder/connector/deepstack: 3 layers for a decoder of 2; expected at most as "
        "many");
  check(model(""),
        "/model/encoder/attention_heads: attention_heads 2 cannot be divided among 4 tensor "
        "devices; expected a multiple of 4, e.g. 4",
        {.tensor = 4});
  check(model(""),
        "a model with an encoder of images cannot be divided among 2 context devices; expected "
        "context 1, or a transformer with attention",
        {.context = 2});
  check(model(""),
        "/model/encoder/patches: patches 17 cannot be divided among 2 tensor devices (sequence "
        "parallelism); expected a multiple of 2, e.g. 18",
        {.tensor = 2, .sequence_parallel = true});
}

}  // namespace
}  // namespace interlock::encoder_test
