// Fully connected networks worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::mlp_test {
namespace {

const std::string kModel =
    R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7, 11], "classes": 3})";

TEST_CASE("an MLP has a module for each hidden layer and one for the readout") {
  const ModelGraph graph = built(kModel, {.micro_batch_size = 2, .precision = Precision::Fp32});
  REQUIRE(graph.modules.size() == 3);
  CHECK(graph.modules[0].parameters == 5 * 7 + 7);
  CHECK(graph.modules[1].parameters == 7 * 11 + 11);
  CHECK(graph.modules[2].parameters == 11 * 3 + 3);
  CHECK(products_of(graph) == 2 * (5 * 7 + 7 * 11 + 11 * 3));
  CHECK(graph.modules[1].output.value() == 4 * 2 * 11);
  CHECK(graph.modules[1].stash.value() == 4 * 2 * 7);
  CHECK(graph.samples_per_micro_batch == 2);
  CHECK_FALSE(graph.tokens_per_sample);
}

TEST_CASE("a linear layer touches input, weights and output once in each of its products") {
  const ModelGraph graph = built(kModel, {.micro_batch_size = 2, .precision = Precision::Fp32});
  const Module& layer = graph.modules[0];
  const double touched = 4 * (2 * 5 + 5 * 7 + 2 * 7);
  CHECK(layer.forward[0].op_class == OpClass::Gemm);
  CHECK(layer.forward[0].bytes.value() == touched);
  CHECK(layer.first_backward_input.at(0).bytes.value() == touched);
  // The bias gradient reads the output's once more and writes 7 numbers.
  CHECK(layer.backward_weight.at(0).bytes.value() == touched + 4 * (2 * 7 + 7));
  CHECK(layer.backward_weight.at(0).launches == 2);
}

TEST_CASE("layers of one width are as well given by number and width") {
  const ModelGraph listed =
      built(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [8, 8, 8], "classes": 3})");
  const ModelGraph counted =
      built(R"({"kind": "mlp", "input_size": 5, "layers": 3, "hidden_size": 8, "classes": 3})");
  CHECK(counted.modules.size() == listed.modules.size());
  CHECK(parameters_of(counted) == parameters_of(listed));
}

TEST_CASE("the head of an MLP is linear unless it says otherwise") {
  const ModelGraph graph = built(kModel);
  CHECK(graph.modules[0].head.parameters == 7 * 3 + 3);
  CHECK(graph.modules[2].head.work.empty());
}

}  // namespace
}  // namespace interlock::mlp_test
