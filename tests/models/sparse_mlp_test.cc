// Neurons that workers need of each other: RePurpose's exchanges against counts by hand.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::sparse_mlp_test {
namespace {

constexpr int kSamples = 8;
constexpr double kElement = 2;

ModelGraph divided(const std::string& layers, int workers) {
  BuildOptions options = {.micro_batch_size = kSamples};
  options.sharding.tensor = workers;
  return built(R"({"kind": "sparse-mlp", "input_size": 12, "layers": )" + layers + "}", options);
}

/// Bytes that one worker of n receives before `module` runs.
double received(const Module& module, int n) {
  double bytes = 0;
  for (const Exchange& exchange : module.forward_exchanges) {
    REQUIRE(exchange.kind == CollectiveKind::AllToAll);
    bytes += exchange.bytes.value() * exchange.count * (n - 1) / n;
  }
  return bytes;
}

TEST_CASE("block-diagonal layers exchange nothing, and compute the n-th part of their blocks") {
  const ModelGraph graph = divided(R"([{"size": 6, "needed": [[4, 0, 0], [0, 4, 0], [0, 0, 4]]},
                  {"size": 9, "density": 0}])",
                                   3);
  REQUIRE(graph.modules.size() == 2);
  for (const Module& module : graph.modules) CHECK(module.forward_exchanges.empty());
  // Four inputs and two outputs; two inputs and three outputs. With biases.
  CHECK(flops_of(graph.modules[0].forward).value() == 2.0 * kSamples * 4 * 2);
  CHECK(flops_of(graph.modules[1].forward).value() == 2.0 * kSamples * 2 * 3);
  CHECK(graph.modules[0].parameters == 4 * 2 + 2);
}

TEST_CASE("dense layers are an all-gather") {
  for (const int n : {2, 3, 4}) {
    const ModelGraph graph = divided(R"([{"size": 24, "density": 1}])", n);
    const Module& layer = graph.modules.front();
    INFO("(n - 1) / n of 12 neurons, ", kSamples, " samples");
    CHECK(received(layer, n) == doctest::Approx(kSamples * kElement * 12 * (n - 1) / n));
    CHECK(flops_of(layer.forward).value() == 2.0 * kSamples * 12 * 24 / n);
  }
}

TEST_CASE("all layers together move the neurons that are needed, and no others") {
  // Each worker sends and receives as many: rows and columns have equal sums off the diagonal.
  const int needed[2][3][3] = {{{4, 1, 2}, {2, 4, 1}, {1, 2, 4}},
                               {{2, 0, 1}, {1, 2, 0}, {0, 1, 2}}};
  const ModelGraph graph = divided(R"([{"size": 6, "needed": [[4, 1, 2], [2, 4, 1], [1, 2, 4]]},
                  {"size": 9, "needed": [[2, 0, 1], [1, 2, 0], [0, 1, 2]]}])",
                                   3);
  double neurons = 0, bytes = 0;
  for (int layer = 0; layer < 2; ++layer) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) neurons += i == j ? 0 : needed[layer][i][j];
    }
    bytes += 3 * received(graph.modules[static_cast<std::size_t>(layer)], 3);
  }
  INFO(neurons, " neurons x ", kElement, " bytes x ", kSamples, " samples");
  CHECK(bytes == doctest::Approx(neurons * kElement * kSamples));
}

TEST_CASE("the busiest worker stands for all") {
  // Worker 0 sends 7, worker 2 receives 6 and reads 10.
  const ModelGraph graph =
      divided(R"([{"size": 6, "needed": [[4, 3, 4], [0, 4, 2], [0, 0, 4]]}])", 3);
  CHECK(received(graph.modules[0], 3) == doctest::Approx(7 * kElement * kSamples));
  CHECK(flops_of(graph.modules[0].forward).value() == 2.0 * kSamples * 10 * 2);
}

TEST_CASE("what a sparse MLP cannot have is said, all of it") {
  const auto mistakes = [](const std::string& layers, int workers) {
    const JsonValue value = parse_json(
        R"({"kind": "sparse-mlp", "input_size": 12, "layers": )" + layers + "}", "test.json");
    BuildOptions options;
    options.sharding.tensor = workers;
    Diagnostics diagnostics;
    build_model({&value, "/model"}, options, diagnostics);
    std::string all;
    for (const std::string& message : diagnostics.messages()) all += message + "\n";
    return all;
  };
  CHECK(mistakes(R"([{"size": 7, "density": 1}])", 3).find("size 7 cannot be divided among 3") !=
        std::string::npos);
  CHECK(mistakes(R"([{"size": 6}])", 3).find("expected \"density\" or \"needed\"") !=
        std::string::npos);
  CHECK(mistakes(R"([{"size": 6, "density": 2}])", 3).find("/model/layers/0/density: ") !=
        std::string::npos);
  CHECK(mistakes(R"([{"size": 6, "needed": [[1, 1, 1]]}])", 3).find("expected a list of 3") !=
        std::string::npos);
  CHECK(mistakes(R"([{"size": 6, "needed": [[5, 0], [0, 7]]}])", 2)
            .find("/model/layers/0/needed/1/1: ") != std::string::npos);
  CHECK(mistakes("[]", 1).find("wrong list of layers") != std::string::npos);
}

}  // namespace
}  // namespace interlock::sparse_mlp_test
