// Scores that attention computes, against blocks and pairs counted one by one.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::computed_scores_test {
namespace {

constexpr int kBlock = 128;
constexpr double kBatch = 2, kHidden = 32;  // of 4 heads

std::string model_of(int tokens, const std::string& more) {
  return R"({"kind": "transformer", "layers": 1, "hidden_size": 32, "attention_heads": 4,
             "vocab_size": 8, "sequence_length": )" +
         std::to_string(tokens) + more + "}";
}

BuildOptions options(int context = 1, ContextLayout layout = ContextLayout::Ring) {
  BuildOptions options = {.micro_batch_size = static_cast<int>(kBatch)};
  options.sharding.context = context;
  options.sharding.context_layout = layout;
  return options;
}

/// The works of the class Attention.
Flops attention_flops(const std::vector<Work>& works) {
  Flops total;
  for (const Work& work : works)
    total += work.op_class == OpClass::Attention ? work.flops : Flops();
  return total;
}

/// Pairs of tokens in blocks that a causal mask with a window leaves anything of: of the rows in
/// [first, last), block by block and pair by pair.
double pairs_in_blocks(int tokens, int window, int first, int last) {
  double pairs = 0;
  for (int top = 0; top < tokens; top += kBlock) {
    for (int left = 0; left < tokens; left += kBlock) {
      bool any = false;
      double inside = 0;
      for (int i = top; i < std::min(tokens, top + kBlock); ++i) {
        for (int j = left; j < std::min(tokens, left + kBlock); ++j) {
          any = any || (j <= i && i - j < window);
          inside += first <= i && i < last ? 1 : 0;
        }
      }
      if (any) pairs += inside;
    }
  }
  return pairs;
}

TEST_CASE("a fused causal kernel executes half of the square and half of its diagonal blocks") {
  const double s = 512, b = kBlock, h = kHidden;
  // Block rows of 1, 2, 3 and 4 blocks, of 4 x 4: 10 of 128^2 pairs.
  const double pairs = (1 + 2 + 3 + 4) * b * b;
  CHECK(pairs == s * s / 2 + s * b / 2);
  const Module block = built(model_of(512, R"(, "attention": "fused")"), options()).modules[1];
  // Forward Q K^T and P V; backward Q K^T again, dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q.
  // Each multiplies and adds h numbers for each pair.
  const double forward = kBatch * 2 * 2 * pairs * h, backward = kBatch * 5 * 2 * pairs * h;
  MESSAGE("512 tokens are 4 rows of 1, 2, 3, 4 blocks of 128^2 pairs: " << pairs << " of "
                                                                        << s * s);
  MESSAGE(kBatch << " samples x 2 products x 2 x " << pairs << " x " << h << " = " << forward
                 << " flops forward, 5 products: " << backward << " backward");
  CHECK(attention_flops(block.forward).value() == forward);
  CHECK(attention_flops(block.backward_input).value() == backward);
  // Counted are the whole square, and twice as much backward.
  CHECK((flops_of(block.forward) - counted_of(block.forward)).value() ==
        forward - kBatch * 4 * s * s * h);
  CHECK((flops_of(block.backward_input) - counted_of(block.backward_input)).value() ==
        backward - kBatch * 8 * s * s * h);
}

TEST_CASE("a fused kernel executes the blocks that mask and window leave anything of") {
  for (const int tokens : {1, 100, 128, 129, 300, 512, 700}) {
    for (const int window : {0, 1, 2, 128, 129, 130, 257, 400, 10'000}) {
      const std::string cut = ", \"sliding_window\": " + std::to_string(window);
      const ModelGraph graph =
          built(model_of(tokens, R"(, "attention": "fused")" + (window > 0 ? cut : "")), options());
      const double pairs = pairs_in_blocks(tokens, window > 0 ? window : tokens, 0, tokens);
      INFO(tokens << " tokens, a window of " << window << ": " << pairs << " pairs in blocks");
      CHECK(attention_flops(graph.modules[1].forward).value() ==
            doctest::Approx(kBatch * 4 * pairs * kHidden).epsilon(1e-14));
      for (const ContextLayout layout : {ContextLayout::Ring, ContextLayout::AllToAll}) {
        const ModelGraph part =
            built(model_of(tokens * 4, R"(, "attention": "fused")" + (window > 0 ? cut : "")),
                  options(4, layout));
        const double all =
            pairs_in_blocks(tokens * 4, window > 0 ? window : tokens * 4, 0, tokens * 4);
        CHECK(attention_flops(part.modules[1].forward).value() ==
              doctest::Approx(kBatch * all * kHidden).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("slices of a sequence execute the blocks of their own rows") {
  for (const int window : {0, 1, 200}) {
    const std::string cut = window > 0 ? ", \"sliding_window\": " + std::to_string(window) : "";
    const ModelGraph whole = built(model_of(700, R"(, "attention": "fused")" + cut), options());
    int first = 0;
    Flops sum;
    for (const int length : {128, 200, 256, 100, 16}) {
      const ModelGraph slice = whole.slice({length, first, 700});
      const double pairs = pairs_in_blocks(700, window > 0 ? window : 700, first, first + length);
      INFO("tokens " << first << " to " << first + length << ": " << pairs << " pairs in blocks");
      const Flops flops = attention_flops(slice.modules[1].forward);
      CHECK(flops.value() == doctest::Approx(kBatch * 4 * pairs * kHidden).epsilon(1e-14));
      sum += flops;
      first += length;
    }
    CHECK(sum.value() ==
          doctest::Approx(attention_flops(whole.modules[1].forward).value()).epsilon(1e-14));
  }
}

TEST_CASE("kernels that see both directions, or store the scores, execute the whole square") {
  const double s = 300, square = kBatch * 4 * s * s * kHidden;
  for (const char* more :
       {R"(, "attention": "fused", "bidirectional": true, "readout": "masked-lm")", "",
        R"(, "attention_flops": "causal")", R"(, "sliding_window": 10)",
        R"(, "bidirectional": true, "readout": "masked-lm")"}) {
    CAPTURE(more);
    const bool fused = std::string(more).find("fused") != std::string::npos;
    const std::string model = more + std::string(fused ? "" : R"(, "attention": "materialised")");
    const Module block = built(model_of(300, model), options()).modules[1];
    CHECK(attention_flops(block.forward).value() == square);
    // Scores that were stored need not be computed again.
    CHECK(attention_flops(block.backward_input).value() == (fused ? 2.5 : 2) * square);
  }
}

TEST_CASE("fused latent attention computes scores of wide heads again, backward") {
  // Heads of 128 + 64 for queries and keys, 128 for values, 128 of them; 4096 tokens.
  const double heads = 128, wide = 192, narrow = 128, pairs = 4096.0 * (4096 + kBlock) / 2;
  const Module block =
      built(R"({"base": "deepseek-v3", "attention": "fused", "sequence_length": 4096})").modules[1];
  MESSAGE(pairs << " pairs in blocks, of heads of 192 and 128 numbers");
  CHECK(attention_flops(block.forward).value() == 2 * heads * pairs * (wide + narrow));
  // Scores again, gradients of queries and keys: 192. Of values and of the probabilities: 128.
  CHECK(attention_flops(block.backward_input).value() ==
        2 * heads * pairs * (3 * wide + 2 * narrow));
}

TEST_CASE("retention executes the blocks of its chunks up to the diagonal, and the states") {
  const double tokens = kBatch * 1024, h = kHidden, state = 2 * 2 * h * h / 4;
  for (const int chunk : {64, 128, 256, 512}) {
    const Module block = built(model_of(1024, R"(, "attention": "retention", "chunk_size": )" +
                                                  std::to_string(chunk)),
                               options())
                             .modules[1];
    const double columns = pairs_in_blocks(chunk, chunk, 0, chunk) / chunk;
    INFO("a chunk of " << chunk << " has " << columns << " columns of scores a token in blocks");
    // Scores of width h, values of width 2 h.
    CHECK(attention_flops(block.forward).value() == 2 * tokens * (3 * columns * h + state));
    // Scores again (h), gradients of values and probabilities (2 h each), of queries and keys (h).
    CHECK(attention_flops(block.backward_input).value() ==
          2 * tokens * (7 * columns * h + 2 * state));
  }
}

}  // namespace
}  // namespace interlock::computed_scores_test
