// Residual networks against published counts and counts worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::resnet_test {
namespace {

ModelGraph cifar(const std::string& block, const std::string& blocks) {
  return built(R"({"kind": "resnet", "block": ")" + block + R"(", "blocks": )" + blocks +
               R"(, "stem": "cifar", "image_size": 32, "classes": 10})");
}

std::size_t module_named(const ModelGraph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.modules.size(); ++i) {
    if (graph.modules[i].name == name) return i;
  }
  FAIL("no module " << name);
  return 0;
}

TEST_CASE("parameters of the ImageNet networks are torchvision's") {
  CHECK(parameters_of(zoo("resnet-50")) == 25'557'032);
  CHECK(parameters_of(zoo("resnet-101")) == 44'549'160);
  CHECK(parameters_of(zoo("resnet-152")) == 60'192'808);
}

TEST_CASE("basic blocks with the ImageNet stem are torchvision's ResNet-18 and -34") {
  const std::string head = R"({"kind": "resnet", "stem": "imagenet", "block": "basic", "blocks": )";
  CHECK(parameters_of(built(head + "[2, 2, 2, 2]}")) == 11'689'512);
  CHECK(parameters_of(built(head + "[3, 4, 6, 3]}")) == 21'797'672);
}

TEST_CASE("ResNet-50 does 4.09 G multiply-adds on an ImageNet picture") {
  CHECK(products_of(zoo("resnet-50")) == 4'089'184'256.0);
}

TEST_CASE("CIFAR networks have the sizes of the interlocking paper's code") {
  // The shortcut of ResNet-34 to CIFAR: 21,797,672 - 64 * 3 * (49 - 9) - 990 * 513 parameters.
  const ModelGraph small = zoo("resnet-32");
  CHECK(parameters_of(small) == 21'797'672 - 64 * 3 * 40 - 990 * 513);
  CHECK(products_of(small) == doctest::Approx(1159e6).epsilon(0.0005));
  CHECK(small.modules.size() == 18);

  const ModelGraph middle = cifar("bottleneck", "[3, 4, 6, 3]");
  CHECK(parameters_of(middle) == doctest::Approx(23.5e6).epsilon(0.002));
  CHECK(products_of(middle) == doctest::Approx(1298e6).epsilon(0.0005));
  CHECK(middle.modules.size() == 18);

  const ModelGraph large = cifar("bottleneck", "[3, 4, 23, 3]");
  CHECK(parameters_of(large) == doctest::Approx(42.5e6).epsilon(0.002));
  CHECK(products_of(large) == doctest::Approx(2510e6).epsilon(0.0005));
  CHECK(large.modules.size() == 35);
}

TEST_CASE("boundaries shrink by half from group to group") {
  const ModelGraph basic = zoo("resnet-32", {.precision = Precision::Fp32});
  const ModelGraph bottleneck = zoo("resnet-50", {.precision = Precision::Fp32});
  for (std::size_t group = 0; group < 4; ++group) {
    const std::string name = "group" + std::to_string(group) + ".block2";
    const double shrunk = std::exp2(static_cast<double>(group));
    CHECK(basic.modules[module_named(basic, name)].output.value() == 4 * 65536 / shrunk);
    // (56, 56, 256) after the ImageNet stem
    CHECK(bottleneck.modules[module_named(bottleneck, name)].output.value() ==
          4 * 56 * 56 * 256 / shrunk);
  }
}

TEST_CASE("the paper's head costs what it costs by hand at each group") {
  struct Row {
    ModelGraph graph;
    std::array<double, 4> millions;  // multiply-adds of the head's forward
  };
  const std::array<Row, 2> rows = {Row{zoo("resnet-32"), {151, 57, 24, 11}},
                                   Row{cifar("bottleneck", "[3, 4, 6, 3]"), {377, 170, 80, 39}}};
  for (const Row& row : rows) {
    for (std::size_t group = 0; group < 4; ++group) {
      const std::string name = "group" + std::to_string(group) + ".block0";
      const Head& head = row.graph.modules[module_named(row.graph, name)].head;
      // forward, input gradient and weight gradient: three times the forward's flops
      CHECK(std::round(flops_of(head.work).value() / 6 / 1e6) == row.millions[group]);
    }
  }
}

TEST_CASE("the first head of ResNet-32 has the paper's parameters") {
  // conv 64->128 and 128->64 with bias, two batch norms, linear 64->10
  const std::int64_t expected =
      (9 * 64 * 128 + 128) + 2 * 128 + (9 * 128 * 64 + 64) + 2 * 64 + (64 * 10 + 10);
  CHECK(zoo("resnet-32").modules[1].head.parameters == expected);
}

TEST_CASE("the backward of every module has twice the flops of its forward") {
  for (const Module& module : zoo("resnet-50", {.micro_batch_size = 3}).modules) {
    const Flops backward = flops_of(module.backward_input) + flops_of(module.backward_weight);
    CHECK(backward.value() == 2 * flops_of(module.forward).value());
  }
}

TEST_CASE("skipping the input gradient saves the convolutions that read the input") {
  const ModelGraph graph = zoo("resnet-50");
  const Module& plain = graph.modules[module_named(graph, "group0.block1")];
  const Module& wide = graph.modules[module_named(graph, "group1.block0")];
  CHECK(flops_of(plain.first_backward_input).value() == 2.0 * 56 * 56 * 256 * 64);
  // 1x1 to 128 channels at side 56, and the shortcut to 512 at side 28
  CHECK(flops_of(wide.first_backward_input).value() ==
        2.0 * 56 * 56 * 256 * 128 + 2.0 * 28 * 28 * 256 * 512);
  CHECK(graph.modules.front().first_backward_input.size() == 1);
}

TEST_CASE("a basic block keeps the inputs of its convolutions and norms") {
  // two convolutions and two norms, each (64, 32, 32) elements of 2 bytes
  CHECK(zoo("resnet-32").modules[1].stash.value() == 4 * 2 * 65536);
}

TEST_CASE("a block that changes shape also keeps the shortcut's norm input") {
  const ModelGraph graph = zoo("resnet-32");
  const Module& module = graph.modules[module_named(graph, "group1.block0")];
  CHECK(module.stash.value() == 2 * (65536 + 4 * 32768));
}

TEST_CASE("full recomputation keeps a block's input and runs its forward again") {
  const ModelGraph none = zoo("resnet-50");
  const ModelGraph full = zoo("resnet-50", {.recompute = Recompute::Full});
  const Module& before = none.modules[3];
  const Module& after = full.modules[3];
  CHECK(after.stash == none.modules[2].output);
  CHECK(flops_of(after.recompute) == flops_of(before.forward));
  CHECK(after.stash + after.workspace == before.stash + before.workspace);
  CHECK(full.modules.back().recompute.empty());
  CHECK(model_flops(full) == model_flops(none));
}

TEST_CASE("work and bytes grow with the micro-batch, weights do not") {
  const ModelGraph one = zoo("resnet-32", {.micro_batch_size = 1});
  const ModelGraph many = zoo("resnet-32", {.micro_batch_size = 128});
  CHECK(many.samples_per_micro_batch == 128);
  CHECK(products_of(many) == 128 * products_of(one));
  CHECK(many.modules[4].stash == one.modules[4].stash * 128);
  CHECK(many.modules[4].output == one.modules[4].output * 128);
  CHECK(parameters_of(many) == parameters_of(one));
}

TEST_CASE("a 1x1 picture goes through every stride") {
  const ModelGraph graph = built(
      R"({"kind": "resnet", "block": "basic", "blocks": [1, 1, 1], "stem": "imagenet",
          "image_size": 1})");
  CHECK(graph.modules.size() == 5);
  CHECK(graph.modules[3].output.value() == 2 * 256);
}

}  // namespace
}  // namespace interlock::resnet_test
