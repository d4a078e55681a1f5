// Encoders of words, which every block of a decoder reads: weights, flops, memory, places.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::cross_attention_test {
namespace {

constexpr double kSource = 12, kTarget = 8, kWidth = 16, kInner = 24, kMlp = 40, kWords = 50;

/// A source of 12 tokens through 3 blocks, a target of 8 through 2; 3 heads of 8, 5 buckets.
std::string model(const std::string& more = "", const std::string& mlp = "40") {
  const std::string body = R"("hidden_size": 16, "attention_heads": 3, "head_size": 8,
      "ffn_hidden_size": )" +
                           mlp + R"(, "norm": "rmsnorm", "bias": false, "positions": "relative",
      "position_buckets": 5)";
  return R"({"kind": "transformer", "layers": 2, "vocab_size": 50, "sequence_length": 8, )" + body +
         R"(, "encoder": {"layers": 3, "sequence_length": 12, )" + body + "}" + more + "}";
}

double forward_of(const Module& module) { return counted_of(module.forward).value(); }

TEST_CASE("a decoder of a source has a table, two stacks, and attention between them") {
  const ModelGraph graph = built(model());
  REQUIRE(graph.modules.size() == 1 + 3 + 1 + 2 + 1);
  const std::int64_t block = 4 * 16 * 24 + 2 * 16 * 40 + 2 * 16;
  CHECK(graph.modules[0].parameters == 50 * 16 + 3 * 5);
  CHECK(graph.modules[1].parameters == block);
  CHECK(graph.modules[4].parameters == 16 + 3 * 5);  // the norm of the source, and distances
  CHECK(graph.modules[5].parameters == block + 4 * 16 * 24 + 16);
  CHECK(graph.modules[7].parameters == 16);
  CHECK(graph.tokens_per_sample == kSource + kTarget);
  INFO("each table that is used again is tied to the one before it");
  CHECK(graph.modules[4].tied_to == 0);
  CHECK(graph.modules[4].tied_parameters == 50 * 16);
  CHECK(graph.modules[7].tied_to == 4);
  CHECK(graph.modules[7].tied_parameters == 50 * 16);
  const ModelGraph apart = built(model(R"(, "tied_embeddings": false)"));
  CHECK(apart.modules[7].parameters == 16 + 50 * 16);
}

TEST_CASE("every target token sees the whole source, whose keys and values each block makes") {
  BuildOptions options;
  options.micro_batch_size = 4;
  const ModelGraph graph = built(model(), options);
  const double products = 4 * kWidth * kInner + 2 * kWidth * kMlp;
  const double source = 2 * 4 * kSource * (products + 2 * kSource * kInner);
  CHECK(forward_of(graph.modules[1]) == source);
  const double own = 2 * 4 * kTarget * (products + 2 * kTarget * kInner);
  const double cross = 2 * 4 *
                       (2 * kTarget * kWidth * kInner + 2 * kSource * kWidth * kInner +
                        2 * kTarget * kSource * kInner);
  CHECK(forward_of(graph.modules[5]) == own + cross);
  CHECK(forward_of(graph.modules[7]) == 2 * 4 * kTarget * kWidth * kWords);
  CHECK(counted_of(graph.modules[5].backward_input).value() +
            counted_of(graph.modules[5].backward_weight).value() ==
        2 * (own + cross));
  INFO("a causal mask halves only what the target sees of itself");
  const ModelGraph half = built(model(R"(, "attention_flops": "causal")"), options);
  CHECK(forward_of(half.modules[5]) == own + cross - 2 * 4 * kTarget * kTarget * kInner);
}

TEST_CASE("the source travels to the last block, and one block of a stage keeps it") {
  const ModelGraph graph = built(model());
  const double source = kSource * kWidth * 2, target = kTarget * kWidth * 2;
  const std::vector<double> outputs = {source,          source,          source, source,
                                       source + target, source + target, target, 0};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CAPTURE(i);
    CHECK(graph.modules[i].output.value() == outputs[i]);
    CHECK(graph.modules[i].carried.value() == (i == 5 || i == 6 ? source : 0));
  }
  BuildOptions options;
  options.recompute = Recompute::Full;
  const ModelGraph again = built(model(), options);
  CHECK(again.modules[5].stash.value() == target);
  CHECK(again.modules[5].carried.value() == source);
}

TEST_CASE("fused attention to a source stores no scores of it") {
  const ModelGraph stored = built(model(R"(, "attention": "materialised")"));
  const ModelGraph fused = built(model(R"(, "attention": "fused")"));
  CHECK(forward_of(stored.modules[5]) == forward_of(fused.modules[5]));
  // Scores of 3 heads, in 16 bits: 8 x 8 and 8 x 12; sums in fp32 instead.
  const double scores = 3 * kTarget * (kTarget + kSource) * 2;
  CHECK(stored.modules[5].stash.value() - fused.modules[5].stash.value() ==
        scores - 2 * 3 * kTarget * 4);
}

TEST_CASE("tensor devices share the heads of attention to a source") {
  BuildOptions options;
  options.sharding.tensor = 3;
  const ModelGraph whole = built(model("", "48")), part = built(model("", "48"), options);
  CHECK(3 * forward_of(part.modules[5]) == forward_of(whole.modules[5]));
  CHECK(part.modules[5].parameters == (8 * 16 * 24 + 2 * 16 * 48) / 3 + 3 * 16);  // norms are whole
  CHECK(part.modules[0].parameters == 384 / 3 * 16 + 5);
  // Sums behind both kinds of attention and the MLP; those of their inputs' gradients, of which
  // the source has its own.
  double forward = 0, backward = 0;
  for (const Exchange& one : part.modules[5].forward_exchanges) {
    forward += one.bytes.value() * one.count;
  }
  for (const Exchange& one : part.modules[5].backward_input_exchanges) {
    backward += one.bytes.value() * one.count;
  }
  CHECK(forward == 3 * kTarget * kWidth * 2);
  CHECK(backward == (3 * kTarget + kSource) * kWidth * 2);
}

TEST_CASE("what cannot read a source is refused in words") {
  const auto mistake = [](const std::string& text, int context = 1) {
    const JsonValue value = parse_json(text, "s.json");
    Diagnostics diagnostics;
    BuildOptions options;
    options.sharding.context = context;
    CHECK(build_model({&value, "/model"}, options, diagnostics).modules.empty());
    return diagnostics.messages().empty() ? "" : diagnostics.messages().front();
  };
  CHECK(mistake(R"({"kind": "transformer", "layers": 2, "hidden_size": 16, "vocab_size": 9,
      "sequence_length": 8, "attention_heads": 2, "attention": "retention",
      "encoder": {"layers": 1, "attention_heads": 2}})")
            .find("/model/encoder: its tokens are read by attention") != std::string::npos);
  CHECK(mistake(R"({"kind": "transformer", "layers": 2, "hidden_size": 16, "vocab_size": 9,
      "sequence_length": 8, "attention_heads": 2,
      "encoder": {"layers": 1, "attention_heads": 2, "hidden_size": 32}})")
            .find("/model/encoder/hidden_size: 32 for a decoder of 16, which reads the same "
                  "table; expected the same") != std::string::npos);
  CHECK(mistake(model(), 2).find("a model with an encoder cannot be divided among 2 context") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::cross_attention_test
