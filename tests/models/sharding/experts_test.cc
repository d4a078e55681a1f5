// Mixtures of experts: weights of published models, and tokens routed one by one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/models/exchanges.h"
#include "tests/support/model_flops.h"

namespace interlock::experts_test {
namespace {

// h = 8, experts of width 6, without gates: 2 x 8 x 6 weights each, and 6 + 8 biases.
const std::string kSmall = R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
    "attention_heads": 4, "vocab_size": 12, "sequence_length": 24, "experts": 4,
    "experts_per_token": 2, "expert_ffn_hidden_size": 6)";
constexpr double kTokens = 24, kHidden = 8, kElement = 2;
constexpr std::int64_t kExpert = 2 * 8 * 6 + 6 + 8;

BuildOptions folded_over(int tensor, int expert, int expert_tensor) {
  BuildOptions options;
  options.sharding.tensor = tensor;
  options.sharding.sequence_parallel = tensor > 1;
  options.sharding.expert = expert;
  options.sharding.expert_tensor = expert_tensor;
  return options;
}

BuildOptions shared_by(int expert, double imbalance = 1, int tensor = 1, bool sequence = false) {
  BuildOptions options;
  options.sharding.expert = expert;
  options.sharding.expert_imbalance = imbalance;
  options.sharding.tensor = tensor;
  options.sharding.sequence_parallel = sequence;
  return options;
}

/// Rows that reach each of `devices`, when every device routes `tokens` tokens to two different
/// experts of four; `skew` of eight tokens prefer the first expert.
std::vector<double> rows_routed(int devices, int tokens, int skew) {
  std::vector<double> rows(devices);
  for (int source = 0; source < devices; ++source) {
    for (int token = 0; token < tokens; ++token) {
      const int first = token % 8 < skew ? 0 : token % 4;
      const int second = (first + 1 + token / 8 % 3) % 4;
      for (const int expert : {first, second}) ++rows[expert / (4 / devices)];
    }
  }
  return rows;
}

TEST_CASE("weights are those of Mixtral 8x7B: 46.7 G, of which a token uses 12.9 G") {
  // Jiang et al., arXiv 2401.04088: 47 B and 13 B; the count of the published weights is recalled.
  const ModelGraph graph = zoo("mixtral-8x7b");
  CHECK(parameters_of(graph) == 46'702'792'704);
  CHECK(graph.modules[1].expert_parameters == std::int64_t{8} * 3 * 4096 * 14336);
  // A token meets 2 weights' products of each used weight, but norms and the embedding.
  const double h = 4096, s = 32768, layers = 32;
  const double used = static_cast<double>(parameters_of(graph)) - layers * 6 * 3 * h * 14336;
  CHECK(used == doctest::Approx(12.9e9).epsilon(0.002));
  const double multiplied = used - 32000 * h - (2 * layers + 1) * h;
  CHECK(2 * products_of(graph) ==
        doctest::Approx(2 * multiplied * s + layers * 4 * s * s * h).epsilon(1e-14));
}

TEST_CASE("tokens that cross to a node once say how many copies there are of each") {
  BuildOptions options = shared_by(2);
  const auto copies = [&] {
    std::vector<double> made;
    const Module block = built(kSmall + "}", options).modules[1];
    for (const Exchange& exchange : block.forward_exchanges) {
      if (exchange.kind != CollectiveKind::AllToAll) continue;
      made.insert(made.end(), static_cast<std::size_t>(exchange.count), exchange.copies);
    }
    return made;
  };
  CHECK(copies() == std::vector<double>{1, 1});  // there and back
  options.sharding.expert_dispatch = ExpertDispatch::Nodes;
  CHECK(copies() == std::vector<double>{2, 2});  // two experts for a token
}

TEST_CASE("devices that share the experts hold them once, and copies of the rest") {
  const Module whole = built(kSmall + "}").modules[1];
  CHECK(whole.expert_parameters == 4 * kExpert);
  for (const int e : {2, 4}) {
    const Module part = built(kSmall + "}", shared_by(e)).modules[1];
    CHECK(part.expert_parameters * e == whole.expert_parameters);
    CHECK(part.parameters - part.expert_parameters == whole.parameters - whole.expert_parameters);
    CHECK(flops_of(part.forward) == flops_of(whole.forward));  // each has tokens of its own
    const Module divided = built(kSmall + "}", shared_by(e, 1, 2, true)).modules[1];
    // Biases after sums are copied.
    CHECK(divided.expert_parameters == (4 / e) * (kExpert + 8) / 2);
  }
}

TEST_CASE("the all-to-all carries every routed token once each way") {
  for (const int e : {2, 4}) {
    const std::vector<double> rows = rows_routed(e, static_cast<int>(kTokens), 0);
    for (const double mine : rows) CHECK(mine == kTokens * 2);
    const Module block = built(kSmall + "}", shared_by(e)).modules[1];
    const std::vector<Exchange> both = {{.kind = CollectiveKind::AllToAll,
                                         .axis = MeshAxis::Expert,
                                         .bytes = Bytes(rows[0] * kHidden * kElement),
                                         .count = 2}};
    INFO(rows[0] << " rows: " << text_of(block.forward_exchanges));
    CHECK(block.forward_exchanges == both);
    CHECK(block.backward_input_exchanges == both);
    CHECK(block.backward_weight_exchanges.empty());
  }
  CHECK(built(kSmall + "}").modules[1].forward_exchanges.empty());
}

TEST_CASE("the busiest device works on as many rows as are routed to it") {
  const Module even = built(kSmall + "}", shared_by(4)).modules[1];
  for (const int skew : {2, 4, 6, 8}) {
    const std::vector<double> rows = rows_routed(4, static_cast<int>(kTokens), skew);
    const double busiest = *std::max_element(rows.begin(), rows.end());
    const double imbalance = busiest / (kTokens * 2);
    CHECK(imbalance > 1);
    const Module block = built(kSmall + "}", shared_by(4, imbalance)).modules[1];
    INFO(busiest << " rows, " << imbalance << " times the mean");
    const double more = busiest - kTokens * 2;
    CHECK((flops_of(block.forward) - flops_of(even.forward)).value() ==
          doctest::Approx(2 * more * 2 * kHidden * 6));
    CHECK(block.forward_exchanges[0].bytes.value() ==
          doctest::Approx(busiest * kHidden * kElement));
    CHECK(block.output == even.output);
  }
}

TEST_CASE("a capacity fixes the rows, whatever the imbalance") {
  const std::string model = kSmall + R"(, "capacity_factor": 1.25})";
  const Module block = built(model, shared_by(4)).modules[1];
  const Module uneven = built(model, shared_by(4, 3)).modules[1];
  // Four experts' buffers of 1.25 x 2 x 24 / 4 rows on each device.
  CHECK(block.forward_exchanges[0].bytes.value() == 4 * 15 * kHidden * kElement);
  CHECK(uneven.forward_exchanges == block.forward_exchanges);
  CHECK(flops_of(uneven.forward) == flops_of(block.forward));
}

TEST_CASE("shared experts see every token, and the first layers may be dense") {
  const ModelGraph graph = built(kSmall + R"(, "ffn_hidden_size": 20, "dense_layers": 1,
      "shared_experts": 2})");
  const ModelGraph plain = built(kSmall + "}");
  CHECK(graph.modules[1].expert_parameters == 0);
  CHECK(plain.modules[2].parameters - graph.modules[1].parameters ==
        4 * kExpert + std::int64_t{8} * 4 -
            (2 * 8 * 20 + 20 + 8));  // experts and router, or an MLP
  const std::int64_t shared = graph.modules[2].parameters - plain.modules[2].parameters;
  CHECK(shared == std::int64_t{2} * 8 * 12 + 12 + 8);
  CHECK(graph.modules[2].expert_parameters == plain.modules[2].expert_parameters);
  CHECK((flops_of(graph.modules[2].forward) - flops_of(plain.modules[2].forward)).value() ==
        2 * kTokens * 2 * kHidden * 12);
}

TEST_CASE("one expert for all tokens is an MLP with a router and a way to it") {
  const Module one = built(R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
      "attention_heads": 4, "vocab_size": 12, "sequence_length": 24, "experts": 1})")
                         .modules[1];
  const Module mlp = built(R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
      "attention_heads": 4, "vocab_size": 12, "sequence_length": 24})")
                         .modules[1];
  CHECK(one.parameters == mlp.parameters + 8);
  CHECK((flops_of(one.forward) - flops_of(mlp.forward)).value() == 2 * kTokens * kHidden);
  // The choices, and the tokens on their way there and back.
  CHECK((one.stash - mlp.stash).value() == kElement * (kTokens + 2 * kTokens * kHidden));
}

TEST_CASE("tensor devices divide experts: sums wait for the way back, or parts are gathered") {
  const double tokens = kTokens * kHidden * kElement, rows = 2 * tokens;
  const Module sums = built(kSmall + "}", shared_by(4, 1, 2)).modules[1];
  const Exchange all = {.kind = CollectiveKind::AllReduce, .bytes = Bytes(tokens), .count = 2};
  const Exchange way = {
      .kind = CollectiveKind::AllToAll, .axis = MeshAxis::Expert, .bytes = Bytes(rows), .count = 2};
  INFO(text_of(sums.forward_exchanges));
  CHECK(sums.forward_exchanges == std::vector{all, way});
  CHECK(sums.backward_input_exchanges.size() == 2);
  // With sequence parallelism each device sends its own tokens, and gathers what has arrived.
  const Module parts = built(kSmall + "}", shared_by(4, 1, 2, true)).modules[1];
  double moved = 0, gathered = 0;
  for (const Exchange& one : parts.forward_exchanges) {
    const Bytes bytes = one.bytes * one.count;
    (one.axis == MeshAxis::Expert ? moved : gathered) += bytes.value();
  }
  CHECK(moved == 2 * rows / 2);
  CHECK(gathered == 2 * tokens + 2 * rows);  // attention, and the experts
  // All products but the router's are divided; with sequence parallelism that too.
  const Flops whole = flops_of(built(kSmall + "}", shared_by(4)).modules[1].forward);
  CHECK(flops_of(parts.forward) * 2 == whole);
  CHECK((flops_of(sums.forward) * 2 - whole).value() == 2 * kTokens * kHidden * 4);
}

TEST_CASE("tensor devices that hold whole experts send each other tokens, and gather none") {
  const Module whole = built(kSmall + "}").modules[1];
  const Module part = built(kSmall + "}", folded_over(2, 4, 1)).modules[1];
  CHECK(part.expert_parameters == kExpert);  // one of four, whole
  // Each tensor device has half of the tokens, each of which goes to two experts.
  Exchange way = {.kind = CollectiveKind::AllToAll,
                  .axis = MeshAxis::Expert,
                  .bytes = Bytes(kTokens / 2 * 2 * kHidden * kElement),
                  .count = 2};
  double gathered = 0;
  for (const Exchange& one : part.forward_exchanges) {
    CHECK(one.axis != MeshAxis::ExpertTensor);
    if (one.axis == MeshAxis::Expert) CHECK(one == way);
    if (one.axis == MeshAxis::Tensor) gathered += one.bytes.value() * one.count;
  }
  CHECK(gathered == 2 * kTokens * kHidden * kElement);  // attention alone
  // Halves of the tokens and halves of the weights are the same work.
  const Module halves = built(kSmall + "}", shared_by(4, 1, 2, true)).modules[1];
  CHECK(flops_of(part.forward) == flops_of(halves.forward));
  CHECK(flops_of(part.backward_weight) == flops_of(halves.backward_weight));
  CHECK(flops_of(part.forward) * 2 == flops_of(whole.forward));
}

TEST_CASE("devices that divide experts alone gather the rows of all of them") {
  const Module whole = built(kSmall + "}").modules[1];
  const Module part = built(kSmall + "}", folded_over(1, 2, 2)).modules[1];
  CHECK(part.expert_parameters == 2 * (kExpert + 8) / 2);  // biases after sums are copied
  CHECK(flops_of(part.forward) == flops_of(whole.forward));
  // Two devices have 24 tokens each, which go to two experts.
  const double rows = 2 * kTokens * 2 * kHidden * kElement;
  const auto on = [&](const std::vector<Exchange>& list, CollectiveKind kind) {
    double bytes = 0;
    for (const Exchange& one : list) {
      CHECK((one.axis == MeshAxis::Expert || one.axis == MeshAxis::ExpertTensor));
      if (one.kind == kind) bytes += one.bytes.value() * one.count;
    }
    return bytes;
  };
  CHECK(on(part.forward_exchanges, CollectiveKind::AllGather) == rows);
  CHECK(on(part.forward_exchanges, CollectiveKind::ReduceScatter) == rows);
  CHECK(on(part.forward_exchanges, CollectiveKind::AllToAll) == 2 * rows / 2);
  CHECK(on(part.backward_input_exchanges, CollectiveKind::AllGather) == rows);
  CHECK(on(part.backward_input_exchanges, CollectiveKind::ReduceScatter) == rows);
  CHECK(on(part.backward_weight_exchanges, CollectiveKind::AllGather) == rows);
}

TEST_CASE("slices of a sequence go through experts like the whole") {
  const ModelGraph whole = built(kSmall + "}", shared_by(2));
  Flops flops;
  for (const int first : {0, 6, 12, 18}) flops += model_flops(whole.slice({6, first, 24}));
  CHECK(flops == model_flops(whole));
}

}  // namespace
}  // namespace interlock::experts_test
