// Packed samples: attention takes the sum over documents, and nothing else changes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::packed_test {
namespace {

constexpr int kTokens = 4096, kWidth = 64, kLayers = 3;

std::string model(const std::string& more) {
  return R"({"kind": "transformer", "layers": 3, "hidden_size": 64, "attention_heads": 4,
             "vocab_size": 100, "sequence_length": 4096, )" +
         more + "}";
}

/// Multiply-adds of all passes but the update.
double counted(const ModelGraph& graph) {
  double all = 0;
  for (const Module& m : graph.modules) {
    for (const auto* pass : {&m.forward, &m.backward_input, &m.backward_weight}) {
      all += counted_of(*pass).value();
    }
  }
  return all;
}

double executed(const ModelGraph& graph) {
  double all = 0;
  for (const Module& m : graph.modules) {
    for (const auto* pass : {&m.forward, &m.backward_input, &m.backward_weight}) {
      all += flops_of(*pass).value();
    }
  }
  return all;
}

TEST_CASE("flops of attention are the sum of the squares of the documents") {
  // Two of 1024 tokens, one of 2048. Scores and values: 2 x 2 x width a pair forward, twice as many
  // backward, so 12 x width x layers. A fused kernel computes b (b + 1) / 2 blocks of 128 x 128 of
  // b rows of blocks, and the scores once more: 4 x width forward and 10 x width backward.
  const ModelGraph whole = built(model(R"("attention": "fused")"));
  REQUIRE(whole.packed);
  const ModelGraph packed = whole.packed({{1024, 2}, {2048, 1}});
  const double squares = 2 * 1024.0 * 1024 + 2048.0 * 2048, all = 4096.0 * 4096;
  CHECK(counted(packed) - counted(whole) ==
        doctest::Approx(12.0 * kWidth * kLayers * (squares - all)).epsilon(1e-12));
  const double blocks = 2 * (8 * 9 / 2) + 16 * 17 / 2, all_blocks = 32 * 33 / 2;
  CHECK(
      executed(packed) - executed(whole) ==
      doctest::Approx(14.0 * kWidth * kLayers * 128 * 128 * (blocks - all_blocks)).epsilon(1e-12));
  for (std::size_t i = 0; i < whole.modules.size(); ++i) {
    CHECK(packed.modules[i].stash == whole.modules[i].stash);
    CHECK(packed.modules[i].output == whole.modules[i].output);
    CHECK(packed.modules[i].parameters == whole.modules[i].parameters);
  }
}

TEST_CASE("equal documents are the chunks of chunked attention") {
  const ModelGraph packed = built(model(R"("attention": "fused")")).packed({{512, 8}});
  const ModelGraph chunked = built(model(R"("attention": "fused", "attention_chunk": 512)"));
  CHECK(counted(packed) == counted(chunked));
  CHECK(executed(packed) == executed(chunked));
}

TEST_CASE("a window reaches no further than its document") {
  // In documents of 256 tokens, a window of 1024 hides nothing; one of 64 leaves a token at
  // place i of its document min(2 i + 1, 127) pairs.
  const ModelGraph wide = built(model(R"("attention": "fused", "sliding_window": 1024)"));
  const ModelGraph narrow = built(model(R"("attention": "fused", "sliding_window": 64)"));
  const double each = 64.0 * 64 + (256 - 64) * 127.0, square = 256.0 * 256;
  CHECK(counted(wide.packed({{256, 16}})) - counted(narrow.packed({{256, 16}})) ==
        doctest::Approx(12.0 * kWidth * kLayers * 16 * (square - each)).epsilon(1e-12));
}

TEST_CASE("what has no kernel of attention is not packed") {
  CHECK(!built(model(R"("attention": "materialised")")).packed);
  CHECK(!zoo("resnet-50").packed);
  CHECK(!zoo("vit-b-16").packed);
}

}  // namespace
}  // namespace interlock::packed_test
