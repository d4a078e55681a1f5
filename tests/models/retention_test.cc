// Retention against its closed forms: weights, flops of a token, and slices that are all alike.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::retention_test {
namespace {

constexpr double kHidden = 64, kHeads = 4, kChunk = 8, kTokens = 32, kBatch = 3;
const std::string kRetNet = R"({"kind": "transformer", "layers": 2, "hidden_size": 64,
  "attention_heads": 4, "ffn_hidden_size": 128, "vocab_size": 10, "sequence_length": 32,
  "bias": false, "attention": "retention", "chunk_size": 8)";

ModelGraph retnet(const std::string& more = "}", BuildOptions options = {}) {
  options.micro_batch_size = static_cast<int>(kBatch);
  return built(kRetNet + more, options);
}

TEST_CASE("a block of retention with an MLP of width 2 h has 12 h^2 weights, and its norms") {
  // Sun et al., arXiv 2307.08621: 8 h^2 in retention, 4 h^2 in an MLP of width 2 h.
  const double norms = 2 * 2 * kHidden;
  CHECK(static_cast<double>(retnet().modules[1].parameters) == 12 * kHidden * kHidden + norms);
}

TEST_CASE("a token of retention costs its weights, its chunk and the state, wherever it stands") {
  const double tokens = kBatch * kTokens, h = kHidden;
  for (const double share : {1.0, 0.5}) {
    const ModelGraph graph = retnet(share == 1 ? "}" : R"(, "attention_flops": "causal"})");
    // Scores in the chunk and their product with values of width 2 h; state read and updated.
    const double token = 12 * h * h + share * 3 * kChunk * h + 2 * 2 * h * h / kHeads;
    INFO(token << " multiply-adds a token");
    CHECK(counted_of(graph.modules[1].forward).value() == 2 * tokens * token);
    const Module& block = graph.modules[1];
    CHECK(counted_of(block.backward_input) + counted_of(block.backward_weight) ==
          2 * counted_of(block.forward));
  }
}

TEST_CASE("one chunk for all tokens is the parallel form, which has no state") {
  const double tokens = kBatch * kTokens, h = kHidden;
  const std::string model = R"({"kind": "transformer", "layers": 2, "hidden_size": 64,
    "attention_heads": 4, "ffn_hidden_size": 128, "vocab_size": 10, "sequence_length": 32,
    "bias": false, "attention": "retention", "chunk_size": 32})";
  const ModelGraph graph = built(model, {.micro_batch_size = static_cast<int>(kBatch)});
  // Sun et al., equation 5: scores of all pairs (s h a token), times values of width 2 h.
  const double token = 12 * h * h + 3 * kTokens * h;
  CHECK(flops_of(graph.modules[1].forward).value() == 2 * tokens * token);
  // The chunkwise form keeps a state of 2 h^2 / a numbers in fp32 for each of four chunks more.
  CHECK((retnet().modules[1].stash - graph.modules[1].stash).value() ==
        kBatch * 4 * 2 * h * h / kHeads * 4);
}

TEST_CASE("slices of retention of one length cost the same, and add up to the whole") {
  const ModelGraph whole = retnet();
  Flops flops;
  Bytes stash;
  for (int i = 0; i < 4; ++i) {
    const Module slice = whole.slice({8, 8 * i, 32}).modules[1];
    const Module first = whole.slice({8, 0, 32}).modules[1];
    CHECK(flops_of(slice.forward) == flops_of(first.forward));
    CHECK(bytes_of(slice.forward) == bytes_of(first.forward));
    CHECK(bytes_of(slice.backward_input) == bytes_of(first.backward_input));
    CHECK(slice.stash == first.stash);
    flops += flops_of(slice.forward);
    stash += slice.stash;
  }
  CHECK(flops == flops_of(whole.modules[1].forward));
  CHECK(stash == whole.modules[1].stash);
}

TEST_CASE(
    "fully recomputed retention keeps a block's input and the states that a later slice reads") {
  const ModelGraph whole = retnet("}", {.recompute = Recompute::Full});
  const double input = 2 * kBatch * kHidden;  // bytes a token
  const double states = kBatch * 2 * kHidden * kHidden / kHeads * 4;
  CHECK(whole.slice({8, 0, 32}).modules[1].stash.value() == 8 * input + states);
  CHECK(whole.slice({8, 24, 32}).modules[1].stash.value() == 8 * input);
}

std::string said(const std::string& more) {
  const JsonValue value = parse_json(kRetNet + more, "test.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  return diagnostics.messages().empty() ? "" : diagnostics.messages().front();
}

TEST_CASE("keys of attention and of retention are refused with the other") {
  CHECK(said(R"(, "kv_heads": 2})").find("expected no \"kv_heads\"") != std::string::npos);
  const std::string attention = R"({"kind": "transformer", "layers": 2, "hidden_size": 64,
    "attention_heads": 4, "vocab_size": 10, "sequence_length": 32, "chunk_size": 8})";
  const JsonValue value = parse_json(attention, "test.json");
  Diagnostics diagnostics;
  build_model({&value, "/model"}, {}, diagnostics);
  REQUIRE(diagnostics.messages().size() == 1);
  CHECK(diagnostics.messages()[0].find("attention has no chunks") != std::string::npos);
}

}  // namespace
}  // namespace interlock::retention_test
