// Compressed attention and residual streams (DeepSeek-V4): weights, flops and bytes, by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/models/built.h"

namespace interlock::compressed_attention_test {
namespace {

using Count = std::int64_t;

/// DeepSeek-V4's sizes, of which those of its blocks follow by hand.
struct Sizes {
  Count hidden, heads, query_rank, groups, experts, width, index_heads = 64, index_size = 128;
  Count head = 512, rank = 1024, streams = 4, vocabulary = 129280;

  Count compressor(Count ratio, Count size, Count series) const {
    return 2 * hidden * series * size + ratio * series * size + size;
  }
  Count attention(Count ratio) const {
    Count all = hidden * query_rank + query_rank + query_rank * heads * head + hidden * head + head;
    all += heads * head * rank + groups * rank * hidden + heads;
    if (ratio == 128) return all + compressor(128, head, 1);
    if (ratio == 0) return all;
    return all + compressor(4, head, 2) + compressor(4, index_size, 2) +
           query_rank * index_heads * index_size + hidden * index_heads;
  }
  Count connection(Count numbers, Count scales) const {
    return numbers * streams * hidden + numbers + scales;
  }
  Count expert() const { return 3 * hidden * width; }
  /// All but the experts of some tokens alone.
  Count beside(Count ratio, bool hashed) const {
    return attention(ratio) + 2 * hidden + 2 * connection(streams * (streams + 2), 3) +
           experts * hidden + (hashed ? 0 : experts) + expert();
  }
  Count ends() const { return 2 * vocabulary * hidden + hidden + connection(streams, 1); }
  Count later() const {
    return beside(0, false) + experts * expert() + 2 * hidden * hidden + 3 * hidden +
           connection(streams, 1);
  }
};

TEST_CASE("DeepSeek-V4 Flash has 284 G weights and a layer for later tokens, a token uses 13 G") {
  const Sizes s = {
      .hidden = 4096, .heads = 64, .query_rank = 1024, .groups = 8, .experts = 256, .width = 2048};
  Count rest = s.ends();
  for (int layer = 0; layer < 43; ++layer) {
    rest += s.beside(layer < 2 ? 0 : layer % 2 == 0 ? 4 : 128, layer < 3);
  }
  const Count trunk = rest + 43 * 256 * s.expert(), all = trunk + s.later();
  const Count built = parameters_of(zoo("deepseek-v4-flash"));
  MESSAGE("built " << built << ", by hand " << all);
  CHECK(built == all);
  INFO("Hugging Face counts tables of 3 layers, six experts for each word, too");
  CHECK(all + Count{3} * 129280 * 6 == 290'944'616'402);
  CHECK(static_cast<double>(trunk) == doctest::Approx(284e9).epsilon(0.002));
  CHECK(static_cast<double>(rest + 43 * 6 * s.expert() - s.vocabulary * s.hidden) ==
        doctest::Approx(13e9).epsilon(0.025));
}

TEST_CASE("DeepSeek-V4 Pro has 1.6 T weights, and a token uses 49 G") {
  const Sizes s = {.hidden = 7168,
                   .heads = 128,
                   .query_rank = 1536,
                   .groups = 16,
                   .experts = 384,
                   .width = 3072};
  Count rest = s.ends();
  for (int layer = 0; layer < 61; ++layer) {
    rest += s.beside(layer > 1 && layer % 2 == 0 ? 4 : 128, layer < 3);
  }
  const Count all = rest + Count{61} * 384 * s.expert() + s.later();
  CHECK(parameters_of(zoo("deepseek-v4-pro")) == all);
  CHECK(all + Count{3} * 129280 * 6 == 1'598'839'674'782);
  CHECK(static_cast<double>(rest + 61 * 6 * s.expert() - s.vocabulary * s.hidden) ==
        doctest::Approx(49e9).epsilon(0.01));
}

TEST_CASE("a token of DeepSeek-V4 Flash costs the flops that Megatron-Bridge counts") {
  Flops total;
  for (const Module& module : zoo("deepseek-v4-flash").modules) {
    for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight}) {
      total += counted_of(*works);
    }
  }
  const double tokens = 4096, built = total.value() / tokens;
  const double printed = 748e12 / 8224;  // of a device and second, by tokens of it, release 26.08
  MESSAGE("built " << built << " flops a token, printed " << printed);
  INFO("it counts whole windows at the start of a sequence, too, and no streams");
  CHECK(built == doctest::Approx(printed).epsilon(0.015));
}

constexpr int kTokens = 60, kWindow = 7;
constexpr double kHidden = 32, kHeads = 4, kHead = 8, kRank = 12, kIndexHeads = 3, kIndexSize = 6;

Module block(const std::string& entries, const std::string& more = "",
             const BuildOptions& options = {}) {
  return built(R"({"kind": "transformer", "layers": 1, "hidden_size": 32, "attention_heads": 4,
                   "head_size": 8, "vocab_size": 24, "sequence_length": 60, "bias": false,
                   "positions": "rotary", "norm": "rmsnorm", "sliding_window": 7,
                   "compressed_attention": {"query_rank": 12, "rotary_head_size": 2,
                   "output_groups": 2, "output_rank": 5)" +
                   entries + "}" + more + "}",
               options)
      .modules[1];
}

const std::string kEntries = R"(, "ratio": 4, "overlap": true)";
std::string choosing(int most) {
  return kEntries + R"(, "selection": {"entries": )" + std::to_string(most) +
         R"(, "index_heads": 3, "index_head_size": 6})";
}

/// Counts what all tokens see, one by one: tokens of the window; entries that are whole by then.
double seen_by_hand(int ratio, int most) {
  double seen = 0;
  for (int token = 0; token < kTokens; ++token) {
    for (int other = 0; other <= token; ++other) seen += token - other < kWindow ? 1 : 0;
    int entries = 0;
    for (int end = ratio - 1; ratio > 0 && end <= token; end += ratio) ++entries;
    seen += std::min(entries, most);
  }
  return seen;
}

double flops_of_kernels(const std::vector<Work>& works) {
  double sum = 0;
  for (const Work& work : works) {
    if (work.op_class == OpClass::Attention) sum += work.flops.value();
  }
  return sum;
}

TEST_CASE("attention is to the window and to entries, the indexer scores all entries") {
  const double each = 2 * 2 * kHeads * kHead;  // scores and sums
  CHECK(flops_of_kernels(block("").forward) == doctest::Approx(each * seen_by_hand(0, 0)));
  for (const int ratio : {1, 4, 7, 60, 100}) {
    const std::string entries = R"(, "ratio": )" + std::to_string(ratio);
    CHECK(flops_of_kernels(block(entries).forward) ==
          doctest::Approx(each * seen_by_hand(ratio, kTokens)));
  }
  const double window = seen_by_hand(0, 0), index = 2 * kIndexHeads * kIndexSize;
  const double scored = seen_by_hand(4, kTokens) - window;
  for (const int most : {1, 3, 15, 1000}) {
    const double seen = seen_by_hand(4, most), chosen = seen - window;
    const Module layer = block(choosing(most));
    CHECK(flops_of_kernels(layer.forward) == doctest::Approx(each * seen + index * scored));
    INFO("five products; the indexer's scores again, their gradients, and scores for its loss");
    CHECK(flops_of_kernels(layer.backward_input) ==
          doctest::Approx(each / 2 * 5 * seen + chosen * (3 * index + each / 2)));
  }
}

TEST_CASE("a block keeps queries twice, keys and entries once, and what entries are made of") {
  const double element = 2, tokens = kTokens;
  const double keys = kHead * tokens, made = kHead * tokens / 4;
  INFO("values and weights of two series, entries before their norm and behind it");
  CHECK((block(kEntries).stash - block("").stash).value() ==
        doctest::Approx(element * (2 * 2 * keys + 2 * made)));
  INFO("entries of a series alone");
  CHECK((block(R"(, "ratio": 4)").stash - block("").stash).value() ==
        doctest::Approx(element * (2 * keys + 2 * made)));
  const double chosen = seen_by_hand(4, 3) - seen_by_hand(0, 0);
  const double index = tokens * kIndexSize;
  const double narrow = 2 * 2 * index + 2 * index / 4 + tokens * kIndexHeads * (kIndexSize + 1);
  INFO("the same of the indexer, its queries and weights, and four bytes for each place");
  CHECK((block(choosing(3)).stash - block(kEntries).stash).value() ==
        doctest::Approx(element * narrow + 4 * chosen));
}

TEST_CASE("streams cross between blocks, and every half keeps them and what it adds to them") {
  const std::string streams = R"(, "hyper_connections": {"streams": 4})";
  const Module one = block(""), four = block("", streams);
  const double stream = kTokens * kHidden * 2;
  CHECK(four.output == one.output * 4);
  const double numbers = 4 * 6;
  CHECK(four.parameters - one.parameters == 2 * (numbers * 4 * kHidden + numbers + 3));
  INFO("each half: four streams and what was made, and its numbers in fp32");
  CHECK((four.stash - one.stash).value() ==
        doctest::Approx(2 * (4 * stream + stream + kTokens * numbers * 4)));
  CHECK((flops_of(four.forward) - flops_of(one.forward)).value() ==
        doctest::Approx(2 * 2 * kTokens * numbers * 4 * kHidden));
}

}  // namespace
}  // namespace interlock::compressed_attention_test
