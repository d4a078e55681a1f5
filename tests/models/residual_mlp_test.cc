// Fully connected residual networks worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock {
namespace {

const std::string kModel = R"({"kind": "residual-mlp", "input_size": 5, "layers": 2,
  "hidden_size": 6, "ffn_hidden_size": 7, "classes": 3})";

TEST_CASE("a residual MLP has an input, a module for each block, and a readout") {
  const ModelGraph graph = built(kModel, {.micro_batch_size = 2, .precision = Precision::Fp32});
  REQUIRE(graph.modules.size() == 4);
  CHECK(graph.name == "residual-mlp");
  CHECK(graph.modules[0].parameters == 5 * 6 + 6);
  CHECK(graph.modules[1].parameters == 2 * 6 + (6 * 7 + 7) + (7 * 6 + 6));
  CHECK(graph.modules[2].parameters == graph.modules[1].parameters);
  CHECK(graph.modules[3].parameters == 2 * 6 + (6 * 3 + 3));
  CHECK(products_of(graph) == 2 * (5 * 6 + 2 * 2 * 6 * 7 + 6 * 3));
}

TEST_CASE("a block of a residual MLP keeps the inputs of its norm, products and GELU") {
  const ModelGraph graph = built(kModel, {.micro_batch_size = 2, .precision = Precision::Fp32});
  CHECK(graph.modules[0].stash.value() == 4 * 2 * 5);
  CHECK(graph.modules[1].stash.value() == 4 * 2 * (6 + 6 + 7 + 7));
  CHECK(graph.modules[1].output.value() == 4 * 2 * 6);
  // The norm's input, the projection's, and logits in fp32.
  CHECK(graph.modules[3].stash.value() == 4 * 2 * (6 + 6) + 4 * 2 * 3);
}

TEST_CASE("the inner width of a residual MLP is four times the outer unless it says otherwise") {
  const std::string model =
      R"({"kind": "residual-mlp", "input_size": 5, "layers": 1, "hidden_size": 6, "classes": 3})";
  CHECK(built(model).modules[1].parameters == 2 * 6 + (6 * 24 + 24) + (24 * 6 + 6));
  CHECK(built(model).modules[0].head.parameters == 6 * 3 + 3);
}

}  // namespace
}  // namespace interlock
