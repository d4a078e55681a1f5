// Mamba and gated delta layers: weights, flops and bytes of small shapes, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"
#include "tests/models/exchanges.h"

namespace interlock::mixers_test {
namespace {

/// Two layers of width 8 without MLPs, 16 tokens: `more` says the mixer.
std::string model(const std::string& more) {
  return R"({"kind": "transformer", "layers": 2, "hidden_size": 8, "norm": "rmsnorm",
             "bias": false, "positions": "none", "vocab_size": 10, "sequence_length": 16,
             "ffn": "none", )" +
         more + "}";
}
// 4 heads of 6 channels, states of 5 numbers, 2 groups, convolutions of 3 tokens, chunks of 4.
const std::string kMamba2 = model(R"("attention": "mamba2", "mamba2": {"heads": 4, "head_size": 6,
    "state_size": 5, "groups": 2, "conv_width": 3, "chunk_size": 4})");
// 2 heads of keys of 3 numbers, 4 of values of 6, convolutions of 3 tokens, chunks of 4.
const std::string kDelta = model(R"("attention": "gated-delta", "gated_delta": {"key_heads": 2,
    "value_heads": 4, "key_head_size": 3, "value_head_size": 6, "conv_width": 3,
    "chunk_size": 4})");
const std::string kMamba = model(R"("attention": "mamba", "mamba": {"state_size": 5,
    "conv_width": 3, "expand": 3, "dt_rank": 2, "norms": true})");

Module block(const ModelGraph& graph) { return graph.modules[1]; }

TEST_CASE("a Mamba 2 layer has the weights of its published code") {
  // in: gate 24, inputs 24, B and C 2 x 2 x 5, step sizes 4; convolution of 44 channels.
  const int in = 8 * (24 + 24 + 20 + 4), convolution = 44 * (3 + 1), heads = 3 * 4, norm = 24;
  CHECK(block(built(kMamba2)).parameters == 8 + in + convolution + heads + norm + 24 * 8);
}

TEST_CASE("a gated delta layer has the weights of its published code") {
  // in: queries and keys 2 x 2 x 3, values and gates 2 x 4 x 6, decay and strength 2 x 4.
  const int in = 8 * (12 + 48 + 8), convolution = (12 + 24) * 3, heads = 2 * 4, norm = 6;
  CHECK(block(built(kDelta)).parameters == 8 + in + convolution + heads + norm + 24 * 8);
}

TEST_CASE("a Mamba layer has the weights of its published code, and Jamba's norms") {
  // 24 channels: gate and inputs; step sizes of 2 numbers, B and C of 5; states and skips.
  const int in = 8 * 48, convolution = 24 * (3 + 1), between = 24 * (2 + 10), norms = 2 + 10;
  const int steps = 2 * 24 + 24, states = 24 * 5 + 24, out = 24 * 8;
  CHECK(block(built(kMamba)).parameters ==
        8 + in + convolution + between + norms + steps + states + out);
}

TEST_CASE("Mamba 2 counts the four products of a chunk, of arXiv 2405.21060, section 6") {
  const double tokens = 16, chunk = 4, state = 5, head = 6, heads = 4, groups = 2;
  const double chunks = tokens / chunk;
  const double scores = chunks * groups * 2 * chunk * chunk * state;  // C B^T
  const double mixing = chunks * heads * 2 * chunk * chunk * head;    // times X
  const double states = chunks * heads * 2 * chunk * state * head;    // B^T X, and C times a state
  const double linear = 2 * tokens * 8 * (72 + 24);
  const Module whole = block(built(kMamba2));
  CHECK(counted_of(whole.forward).value() == linear + scores + mixing + 2 * states);
  CHECK(counted_of(whole.backward_input).value() + counted_of(whole.backward_weight).value() ==
        2 * (linear + scores + mixing + 2 * states));
  // A short chunk is one block of scores, none of which is skipped. Backward, scores and states
  // are made again.
  CHECK(flops_of(whole.forward).value() == linear + scores + mixing + 2 * states);
  CHECK(flops_of(whole.backward_input).value() ==
        linear + 2 * (scores + mixing + 2 * states) + scores + states);
}

TEST_CASE("half of a chunk's scores are counted where half of attention's are") {
  std::string text = kMamba2;
  text.insert(text.size() - 1, R"(, "attention_flops": "causal")");
  const double scores = 4 * 2 * 2 * 4 * 4 * 5.0, mixing = 4 * 4 * 2 * 4 * 4 * 6.0;
  CHECK(counted_of(block(built(kMamba2)).forward).value() -
            counted_of(block(built(text)).forward).value() ==
        (scores + mixing) / 2);
}

TEST_CASE("chunks of 256 tokens skip one of four blocks of scores") {
  const auto of = [](int chunk) {
    return built(R"({"kind": "transformer", "layers": 1, "hidden_size": 8, "bias": false,
        "vocab_size": 10, "sequence_length": 512, "ffn": "none", "attention": "mamba2",
        "mamba2": {"heads": 1, "head_size": 16, "state_size": 16, "chunk_size": )" +
                 std::to_string(chunk) + "}}");
  };
  const Module whole = block(of(256));
  const double square = 2.0 * 512 * 256 * (16 + 16);
  CHECK((counted_of(whole.forward) - flops_of(whole.forward)).value() == square / 4);
}

TEST_CASE("the gated delta rule counts the products of arXiv 2412.06464, section 3.3") {
  const double tokens = 16, chunk = 4, key = 3, value = 6, heads = 4, square = chunk * chunk;
  // K K^T, T K, Q K^T; T V and the product of scores with values; three products with the state.
  const double inside = 3 * 2 * square * key + 2 * 2 * square * value;
  const double states = 3 * 2 * chunk * key * value, inverse = square * chunk / 3;
  const double rule = tokens / chunk * heads * (inside + states + inverse);
  const double linear = 2 * tokens * 8 * (68 + 24);
  const Module whole = block(built(kDelta));
  CHECK(counted_of(whole.forward).value() == doctest::Approx(linear + rule));
  CHECK(counted_of(whole.backward_input).value() == doctest::Approx(linear + 2 * rule));
}

TEST_CASE("a layer of states has flops for each token, however long the sequence is") {
  for (const std::string& text : {kMamba2, kDelta, kMamba}) {
    std::string twice = text;
    twice.replace(twice.find("\"sequence_length\": 16"), 21, "\"sequence_length\": 32");
    CHECK(counted_of(block(built(twice)).forward).value() ==
          doctest::Approx(2 * counted_of(block(built(text)).forward).value()));
  }
}

TEST_CASE("a Mamba 2 layer keeps what its published code saves for the backward") {
  // ssd_combined.py keeps the whole output of the first projection, and what the scan puts out;
  // around them, the inputs of the norm and of both projections.
  const double elements = 8 + 8 + 72 + 24 + 24;
  CHECK(block(built(kMamba2)).stash.value() == 16 * elements * 2);
}

TEST_CASE("a gated delta layer keeps what its published code saves for the backward") {
  // The convolution's input 36; queries and keys of all 4 heads, values, the inverse (4 columns a
  // head), strengths; decays in fp32; gate and outputs of the norm; inputs of norm and projections.
  const double rule = 2 * 4 * 3 + 24 + 4 * 4 + 4;
  CHECK(block(built(kDelta)).stash.value() ==
        16 * ((8 + 8 + 36 + rule + 24 + 24 + 24) * 2 + 4 * 4));
}

TEST_CASE("tensor devices share the heads of a mixer, and all-reduce once each way") {
  for (const std::string& text : {kMamba2, kDelta}) {
    const Module whole = block(built(text));
    BuildOptions options;
    options.sharding.tensor = 2;
    const Module half = block(built(text, options));
    const std::int64_t copied = 8 + (text == kDelta ? 6 : 0);  // norms that all have whole
    CHECK(2 * (half.parameters - copied) + copied == whole.parameters);
    CHECK(2 * flops_of(half.forward).value() == doctest::Approx(flops_of(whole.forward).value()));
    REQUIRE(half.forward_exchanges.size() == 1);
    CHECK(half.forward_exchanges[0].kind == CollectiveKind::AllReduce);
    CHECK(half.forward_exchanges[0].bytes.value() == 16 * 8 * 2);
    REQUIRE(half.backward_input_exchanges.size() == 1);
    CHECK(half.backward_input_exchanges[0].bytes.value() == 16 * 8 * 2);
  }
}

TEST_CASE("tensor devices add up the step sizes of Mamba 1, with both vectors of its states") {
  BuildOptions options;
  options.sharding.tensor = 2;
  const Module half = block(built(kMamba, options));
  const std::int64_t copied = 8 + 12;
  CHECK(2 * (half.parameters - copied) + copied == block(built(kMamba)).parameters);
  Bytes moved;
  for (const Exchange& one : half.forward_exchanges) moved += one.bytes * one.count;
  CHECK(moved.value() == 16 * (12 + 8) * 2);
}

TEST_CASE("slices of a sequence hand on states, of a size that no length changes") {
  for (const std::string& text : {kMamba2, kDelta, kMamba}) {
    const ModelGraph graph = built(text);
    REQUIRE(graph.slice);
    BuildOptions full;
    full.recompute = Recompute::Full;
    const ModelGraph kept = built(text, full);
    const Bytes early = block(kept.slice({4, 0, 16})).stash;
    CHECK(early == block(kept.slice({4, 8, 16})).stash);
    // Tokens and the state: the last slice hands on none.
    CHECK(block(kept.slice({4, 12, 16})).stash.value() == 4 * 8 * 2);
    CHECK(early > Bytes(4 * 8 * 2));
    double flops = 0;
    for (int i = 0; i < 4; ++i) {
      flops += counted_of(block(graph.slice({4, 4 * i, 16})).forward).value();
    }
    CHECK(flops == doctest::Approx(counted_of(block(graph).forward).value()));
  }
}

}  // namespace
}  // namespace interlock::mixers_test
