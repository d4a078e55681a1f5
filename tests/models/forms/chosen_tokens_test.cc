// Attention to chosen tokens (DeepSeek-V3.2): weights, flops, bytes kept and sent, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <tuple>

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
    CHECK(flops_of_kernels(layer.forward) == doctest::Approx(all * index + seen * (scores + sums)));
    INFO("scores again, their gradients for queries and keys; four products and the scores again");
    INFO("the loss of the indexer needs the scores of attention once more");
    CHECK(flops_of_kernels(layer.backward_input) ==
          doctest::Approx(seen * (3 * index + 3 * scores + 2 * sums + scores)));
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
  INFO("places of what was chosen, of four bytes each");
  CHECK(block(kSelection).stash.value() - block("").stash.value() ==
        doctest::Approx((chosen - whole + index) * element + seen * exact));
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
  for (const Exchange& exchange : two.backward_input_exchanges) {
    if (exchange.kind == CollectiveKind::AllReduce) {
      summed += exchange.bytes.value() * exchange.count;
    }
  }
  for (const bool selects : {true, false}) {
    for (const Exchange& sent : block(selects ? kSelection : "", options).forward_exchanges) {
      const double bytes = sent.bytes.value() * sent.count;
      if (sent.kind == CollectiveKind::AllGather) gathered += selects ? bytes : -bytes;
    }
  }
  CHECK(summed == doctest::Approx(4 * seen_pairs(kChosen)));
  CHECK(gathered == doctest::Approx(kTokens * (kHidden + kQueryRank) * 2));
}

TEST_CASE("latents are gathered once, as attention keeps them") {
  BuildOptions options;
  options.sharding.tensor = 2;
  options.sharding.sequence_parallel = true;
  const auto gathered = [&](const std::string& selection) {
    double bytes = 0;
    for (const Exchange& one : block(selection, options).backward_weight_exchanges) {
      if (one.kind == CollectiveKind::AllGather) bytes += one.bytes.value() * one.count;
    }
    return bytes;
  };
  CHECK(gathered("") - gathered(kSelection) == doctest::Approx(kTokens * (kRank + kRotary) * 2));
}

TEST_CASE("a core of attention that runs again has the indexer in it") {
  BuildOptions options = {.recompute = Recompute::Parts};
  options.recompute_parts = LayerPart::CoreAttention;
  const Module kept = block(kSelection), again = block(kSelection, options);
  const double index = kTokens * (kIndexHeads * kIndexSize + 2 * kIndexSize + kIndexHeads);
  const double sums = kTokens * kHeads * 4;  // of a fused kernel's rows
  CHECK(kept.stash.value() - again.stash.value() ==
        doctest::Approx(index * 2 + seen_pairs(kChosen) * 4 + sums));
  CHECK(flops_of_kernels(again.recompute) == doctest::Approx(flops_of_kernels(kept.forward)));
}

TEST_CASE("projections of latents that run again end with the queries") {
  BuildOptions options = {.recompute = Recompute::Parts};
  options.recompute_parts = LayerPart::LatentProjections;
  const Module kept = block(kSelection), again = block(kSelection, options);
  INFO("without places, and as wide as latents with these; and the latents");
  const double queries = kTokens * kHeads * (kNope + kRank + kRotary);
  CHECK(kept.stash.value() - again.stash.value() ==
        doctest::Approx((queries + kTokens * (kRank + kRotary)) * 2));
  const double products = 2 * kTokens * kHeads * (kQueryRank * (kNope + kRotary) + kNope * kRank);
  CHECK(flops(again.recompute) == doctest::Approx(products));
}

TEST_CASE("what keeps every second product runs the indexer again") {
  BuildOptions options = {.recompute = Recompute::Alternate};
  const Module again = block(kSelection, options);
  const double index = 2 * kIndexHeads * kIndexSize * seen_pairs(kTokens);
  CHECK(flops_of_kernels(again.recompute) == doctest::Approx(index));
}

TEST_CASE("products of heads are in 16 bits, those of the indexer keep what they read") {
  BuildOptions options = {.precision = Precision::Fp8};
  options.framework.keeps_narrow = true;
  options.sharding.tensor = 2;
  options.sharding.sequence_parallel = true;
  int wide = 0;
  for (const Work& work : block(kSelection, options).forward) wide += work.wide ? 1 : 0;
  CHECK(wide == 2);
  BuildOptions sixteen = options;
  sixteen.precision = Precision::Bf16;
  const auto more = [&](const BuildOptions& with) {
    return block(kSelection, with).stash.value() - block("", with).stash.value();
  };
  INFO(
      "a byte less of gathered tokens and latents, and of what the projection reads, which without "
      "a selection attention reads in 16 bits, too; there latents are read in 8 bits, not as keys");
  const double gathered = kTokens * (kHidden + kQueryRank);
  const double made = kTokens * kHeads / 2 * kValue, latents = kTokens * kRank / 2;
  CHECK(more(sixteen) - more(options) == doctest::Approx(gathered + 2 * made - latents));
}

TEST_CASE("Muon has one matrix of keys and values, with a selection or without") {
  const auto sizes = [](const std::string& selection) {
    std::vector<std::tuple<double, double, double>> found;
    for (const WeightMatrix& one : block(selection).matrices) {
      found.emplace_back(std::min(one.rows, one.columns), std::max(one.rows, one.columns),
                         static_cast<double>(one.count * one.parameters));
    }
    std::ranges::sort(found);
    return found;
  };
  auto all = sizes(""), chosen = sizes(kSelection);
  std::vector<std::tuple<double, double, double>> more;
  std::ranges::set_difference(chosen, all, std::back_inserter(more));
  CHECK(chosen.size() == all.size() + more.size());
  const std::tuple<double, double, double> queries{12, 21, 12 * 21}, keys{10, 32, 10 * 32};
  CHECK(std::ranges::count(more, queries) == 1);
  CHECK(std::ranges::count(more, keys) == 1);
  CHECK(more.size() == 2);
}

TEST_CASE("where weights are frozen the indexer learns nothing, and keeps nothing but its choice") {
  BuildOptions options;
  options.adapters.rank = 4;
  const Module frozen = block(kSelection, options), dense = block("", options);
  const double scores = 2 * kHeads * (kRank + kRotary), sums = 2 * kHeads * kRank;
  CHECK(flops_of_kernels(frozen.backward_input) ==
        doctest::Approx(seen_pairs(kChosen) * (3 * scores + 2 * sums)));
  CHECK(dense.backward_input_exchanges.size() == frozen.backward_input_exchanges.size());
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
