// Ways of tokens to experts and back: their bytes and copies, and which kernels stand where.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/models/exchanges.h"

namespace interlock::token_ways_test {
namespace {

// h = 256, 24 tokens, 2 of 8 experts of width 96 each, and a shared one; bf16.
const std::string kModel = R"({"kind": "transformer", "layers": 2, "hidden_size": 256,
    "attention_heads": 4, "vocab_size": 12, "sequence_length": 24, "experts": 8, "mlp_bias": false,
    "experts_per_token": 2, "expert_ffn_hidden_size": 96, "shared_experts": 1,
    "expert_groups": 4, "expert_groups_per_token": 2})";
constexpr double kRows = 24 * 2, kHidden = 256;

Module block(ExpertOverlap overlap, ExpertDispatch dispatch = ExpertDispatch::AllToAll,
             TokenFormat there = TokenFormat::Training, TokenFormat back = TokenFormat::Training) {
  BuildOptions options;
  options.sharding.expert = 4;
  options.sharding.expert_overlap = overlap;
  options.sharding.expert_dispatch = dispatch;
  options.sharding.dispatch_format = there;
  options.sharding.combine_format = back;
  return built(kModel, options).modules[1];
}

Flops products_at(const std::vector<Work>& works, KernelPlace place) {
  Flops flops;
  for (const Work& work : works) {
    if (work.place == place && work.op_class == OpClass::Gemm) flops += work.flops;
  }
  return flops;
}

Flops all_products(const std::vector<Work>& works) {
  return std::accumulate(works.begin(), works.end(), Flops(), [](Flops sum, const Work& work) {
    return sum + (work.op_class == OpClass::Gemm ? work.flops : Flops());
  });
}

TEST_CASE("experts stand between the ways, shared ones beside them if they run meanwhile") {
  using enum KernelPlace;
  const Module waits = block(ExpertOverlap::None);
  CHECK(products_at(waits.forward, Around) == all_products(waits.forward));
  const double product = 2 * kHidden * 96;  // flops of a row
  for (const ExpertOverlap overlap : {ExpertOverlap::MicroBatches, ExpertOverlap::SharedExperts}) {
    const Module made = block(overlap);
    const double beside = overlap == ExpertOverlap::SharedExperts ? 24 * product : 0;
    for (const auto* works : {&made.forward, &made.backward_input, &made.backward_weight}) {
      CHECK(products_at(*works, Experts).value() == 2 * kRows * product);
      CHECK(products_at(*works, BesideThere).value() == beside);
      CHECK(products_at(*works, BesideBack).value() == beside);
    }
    CHECK(all_products(made.forward) == all_products(waits.forward));
    CHECK(made.stash == waits.stash);
    const Exchange way = {.kind = CollectiveKind::AllToAll,
                          .axis = MeshAxis::Expert,
                          .bytes = Bytes(kRows * kHidden * 2)};
    Exchange there = way, back = way;
    there.way = TokenWay::There;
    back.way = TokenWay::Back;
    CHECK(made.forward_exchanges == std::vector<Exchange>{there, back});
    CHECK(made.backward_input_exchanges == std::vector<Exchange>{back, there});
  }
  const std::vector<Exchange> both = {{.kind = CollectiveKind::AllToAll,
                                       .axis = MeshAxis::Expert,
                                       .bytes = Bytes(kRows * kHidden * 2),
                                       .count = 2}};
  CHECK(waits.forward_exchanges == both);
}

TEST_CASE("without shared experts there is nothing that could run beside the ways") {
  std::string none = kModel;
  none.replace(none.find(R"("shared_experts": 1)"), 19, R"("shared_experts": 0)");
  BuildOptions options;
  options.sharding.expert = 4;
  const Module waits = built(none, options).modules[1];
  options.sharding.expert_overlap = ExpertOverlap::SharedExperts;
  const Module asked = built(none, options).modules[1];
  CHECK(asked.forward_exchanges == waits.forward_exchanges);
  CHECK(asked.backward_input_exchanges == waits.backward_input_exchanges);
  CHECK(products_at(asked.forward, KernelPlace::Around) == all_products(waits.forward));
}

TEST_CASE("what goes to experts has one format, what comes back another, forward and backward") {
  const Module made =
      block(ExpertOverlap::None, ExpertDispatch::AllToAll, TokenFormat::Fp8, TokenFormat::Bf16);
  const double there = kRows * (kHidden + kHidden / 128 * 4), back = kRows * kHidden * 2;
  REQUIRE(made.forward_exchanges.size() == 2);
  CHECK(made.forward_exchanges[0].bytes.value() == there);
  CHECK(made.forward_exchanges[1].bytes.value() == back);
  // Gradients of what experts made go to them first; those of their tokens come back.
  CHECK(made.backward_input_exchanges[0].bytes.value() == there);
  CHECK(made.backward_input_exchanges[1].bytes.value() == back);
}

TEST_CASE("DeepEP is told of one copy of each token, and of the experts that it may have") {
  const Module made = block(ExpertOverlap::None, ExpertDispatch::DeepEp);
  REQUIRE(made.forward_exchanges.size() == 2);
  for (const auto* exchanges : {&made.forward_exchanges, &made.backward_input_exchanges}) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Exchange& one = (*exchanges)[i];
      CHECK(one.bytes.value() == 24 * kHidden * 2);
      CHECK(one.routing == TokenRouting{8, 2, 4, 2, i == 1});
    }
  }
}

}  // namespace
}  // namespace interlock::token_ways_test
