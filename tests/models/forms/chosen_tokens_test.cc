// Attention to chosen tokens (DeepSeek-V3.2): weights, flops, bytes kept and sent, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::chosen_tokens_test {
namespace {

constexpr int kTokens = 64, kChosen = 16;
constexpr double kHidden = 32, kHeads = 4, kQueryRank = 12, kRank = 8, kNope = 6, kRotary = 2;
constexpr double kValue = 5, kIndexHeads = 3, kIndexSize = 7;

Module block(const std::string& selection, const BuildOptions& options = {}) {
  return built(R"({"kind": "transformer", "layers": 1, "hidden_size": 32, "attention_heads": 4,
                   "vocab_size": 24, "sequence_length": 64, "bias": false, "positions": "rotary",
                   "norm": "rmsnorm", "latent_attention": {"query_rank": 12, "kv_rank": 8,
                   "head_size": 6, "rotary_head_size": 2, "value_head_size": 5)" +
                   selection + "}}",
               options)
      .modules[1];
}

const std::string kSelection =
    R"(, "selection": {"tokens": 16, "index_heads": 3, "index_head_size": 7})";

/// Counts the tokens that all tokens see, one by one.
double seen_pairs(int chosen) {
  double pairs = 0;
  for (int token = 0; token < kTokens; ++token) pairs += std::min(token + 1, chosen);
  return pairs;
}

double flops(const std::vector<Work>& works) { return flops_of(works).value(); }

/// Returns the flops of the kernels of fused attention among `works`.
double flops_of_kernels(const std::vector<Work>& works) {
  double sum = 0;
  for (const Work& work : works) {
    if (work.op_class == OpClass::Attention) sum += work.flops.value();
  }
  return sum;
}

TEST_CASE("an indexer has queries of the latents, and keys and weights of the tokens") {
  const double queries = kQueryRank * kIndexHeads * kIndexSize;
  const double keys = kHidden * (kIndexSize + kIndexHeads), norm = 2 * kIndexSize;
  CHECK(block(kSelection).parameters - block("").parameters == queries + keys + norm);
}

TEST_CASE("the indexer scores all pairs, attention what was chosen") {
  for (const int chosen : {1, 16, 64, 1000}) {
    const std::string selection = R"(, "selection": {"tokens": )" + std::to_string(chosen) +
                                  R"(, "index_heads": 3, "index_head_size": 7})";
    const Module layer = block(selection);
    const double all = seen_pairs(kTokens), seen = seen_pairs(chosen);
    const double scores = 2 * kHeads * (kRank + kRotary), sums = 2 * kHeads * kRank;
    const double index = 2 * kIndexHeads * kIndexSize;
    INFO("the loss of the indexer needs the scores of what was chosen once more");
    CHECK(flops_of_kernels(layer.forward) ==
          doctest::Approx(all * index + seen * (2 * scores + sums)));
    INFO("scores again, their gradients for queries and keys; four products and the scores again");
    CHECK(flops_of_kernels(layer.backward_input) ==
          doctest::Approx(seen * (3 * index + 3 * scores + 2 * sums)));
  }
}

TEST_CASE("the products beside are those that make keys and values, but for the indexer's") {
  const Module all = block(""), chosen = block(kSelection);
  const double queries = kQueryRank * kIndexHeads * kIndexSize;
  const double keys = kHidden * (kIndexSize + kIndexHeads);
  const auto beside = [](const std::vector<Work>& works) {
    return flops(works) - flops_of_kernels(works);
  };
  CHECK(beside(chosen.forward) - beside(all.forward) ==
        doctest::Approx(2 * kTokens * (queries + keys)));
  INFO("the indexer hands no gradient on, and has gradients of its weights");
  CHECK(beside(chosen.backward_input) == doctest::Approx(beside(all.backward_input)));
  CHECK(beside(chosen.backward_weight) - beside(all.backward_weight) ==
        doctest::Approx(2 * kTokens * (queries + keys)));
}

TEST_CASE("queries and sums as wide as latents are kept, and what the indexer reads again") {
  const double heads = kHeads * kTokens, element = 2, exact = 4;
  const double whole = heads * (2 * (kNope + kRotary) + 2 * kValue) + kTokens * kRank;
  const double chosen =
      heads * (kNope + (kRank + kRotary) + kRank + kValue) + kTokens * (kRank + kRotary);
  const double index = kTokens * (kIndexHeads * kIndexSize + 2 * kIndexSize + kIndexHeads);
  const double seen = seen_pairs(kChosen);
  INFO("places of what was chosen, and the sums of attention's weights on it, of four bytes each");
  CHECK(block(kSelection).stash.value() - block("").stash.value() ==
        doctest::Approx((chosen - whole + index) * element + 2 * seen * exact));
}

TEST_CASE("tensor devices have the indexer whole, and add up attention's weights") {
  BuildOptions options;
  options.sharding.tensor = 2;
  options.sharding.sequence_parallel = true;
  const Module one = block(kSelection), two = block(kSelection, options);
  const double index = 2 * kIndexHeads * kIndexSize * seen_pairs(kTokens);
  CHECK(flops_of_kernels(two.forward) - index ==
        doctest::Approx((flops_of_kernels(one.forward) - index) / 2));
  double summed = 0, gathered = 0;
  for (const Exchange& exchange : two.forward_exchanges) {
    if (exchange.kind == CollectiveKind::AllReduce)
      summed += exchange.bytes.value() * exchange.count;
    if (exchange.kind == CollectiveKind::AllGather)
      gathered += exchange.bytes.value() * exchange.count;
  }
  for (const Exchange& exchange : block("", options).forward_exchanges) {
    if (exchange.kind == CollectiveKind::AllGather)
      gathered -= exchange.bytes.value() * exchange.count;
  }
  CHECK(summed == doctest::Approx(4 * seen_pairs(kChosen)));
  CHECK(gathered == doctest::Approx(kTokens * (kHidden + kQueryRank) * 2));
}

TEST_CASE("sequences whose tokens are chosen are whole") {
  const ModelGraph graph = built(
      R"({"kind": "transformer", "layers": 1, "hidden_size": 32, "attention_heads": 4,
          "vocab_size": 24, "sequence_length": 64, "positions": "rotary", "latent_attention":
          {"kv_rank": 8, "head_size": 6, "rotary_head_size": 2, "value_head_size": 5,
           "selection": {"tokens": 16, "index_heads": 3, "index_head_size": 7}}})");
  CHECK(!graph.slice);
  CHECK(!graph.packed);
}

}  // namespace
}  // namespace interlock::chosen_tokens_test
