// Fully connected residual networks worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::residual_mlp_test {
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

// Two branches over halves of the width, 3 of 6: each norm (3 -> 3), product (3 -> 7), GELU and
// product (7 -> 3). So 2 * 3 * 7 multiply-adds a branch and sample, 4 * 3 * 7 a block: as many as
// the plain block's 2 * 6 * 7. Biases and norms are 7 + 3 and 2 * 3 numbers a branch.
TEST_CASE("a reversible block has two branches over halves of the width") {
  const std::string text = kModel.substr(0, kModel.size() - 1) + R"(, "reversible": true})";
  const ModelGraph graph = built(text, {.micro_batch_size = 2, .precision = Precision::Fp32});
  REQUIRE(graph.modules.size() == 4);
  const Module& block = graph.modules[1];
  CHECK(block.parameters == 2 * ((3 * 7 + 7) + (7 * 3 + 3) + 2 * 3));
  CHECK(products_of(graph) == 2 * (5 * 6 + 2 * 4 * 3 * 7 + 6 * 3));
  CHECK(block.output.value() == 4 * 2 * 6);
  // Each branch keeps the whole tensor whose half the norm reads, what the norm made, and what both
  // GELU and the second product read.
  CHECK(block.stash.value() == 2 * (4 * 2 * (6 + 3 + 7 + 7)));
  // Per sample and branch, forward: the norm reads and writes 3 numbers each, the GELU 7 each; the
  // sum reads 3 + 3 and writes 3, and copies 3: 15. Products read input and weights, and write.
  const double samples = 2 * (6 + 14 + 15) + 2 * 2 * (3 + 7), weights = 2 * 3 * 7;
  CHECK(bytes_of(block.forward).value() == 2 * 4 * (samples + weights));
  // Most gradients are alive in the GELU: its two, and those of both halves that go round it.
  CHECK(block.workspace.value() == 4 * 2 * (7 + 7 + 6));
  CHECK(graph.modules[0].parameters == built(kModel).modules[0].parameters);
  CHECK(graph.modules[3].parameters == built(kModel).modules[3].parameters);
}

}  // namespace
}  // namespace interlock::residual_mlp_test
