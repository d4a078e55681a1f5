// Bytes held and moved for parameters, against the counts of the ZeRO paper.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/footprint.h"

#include <doctest/doctest.h>

namespace interlock::footprint_test {
namespace {

double bytes_a_parameter(Optimizer optimizer, Precision precision) {
  const Footprint held = footprint(1000, optimizer, precision);
  return (held.weights + held.gradients + held.optimizer).value() / 1000;
}

TEST_CASE("Adam in bf16 holds 16 bytes a parameter: weight 2, gradient 2, state 12") {
  const Footprint held = footprint(1'000'000'000, Optimizer::Adam, Precision::Bf16);
  CHECK(held.weights.value() == 2e9);
  CHECK(held.gradients.value() == 2e9);
  CHECK(held.optimizer.value() == 12e9);  // fp32 master, mean and variance
}

TEST_CASE("each optimiser and precision holds its words") {
  CHECK(bytes_a_parameter(Optimizer::Adam, Precision::Fp32) == 4 + 4 + 8);
  CHECK(bytes_a_parameter(Optimizer::Adam, Precision::Fp16) == 2 + 2 + 12);
  CHECK(bytes_a_parameter(Optimizer::Adam, Precision::Fp8) == 2 + 2 + 12);
  CHECK(bytes_a_parameter(Optimizer::SgdMomentum, Precision::Tf32) == 4 + 4 + 4);
  CHECK(bytes_a_parameter(Optimizer::SgdMomentum, Precision::Bf16) == 2 + 2 + 8);
  CHECK(bytes_a_parameter(Optimizer::Sgd, Precision::Fp32) == 4 + 4);
  CHECK(bytes_a_parameter(Optimizer::Sgd, Precision::Bf16) == 2 + 2 + 4);
}

TEST_CASE("an update reads the gradient and reads and writes every state once") {
  // fp32 SGD: weight read and written 8, gradient read 4.
  CHECK(update_work(10, Optimizer::Sgd, Precision::Fp32).at(0).bytes.value() == 10 * 12);
  // bf16 Adam: gradient read 2, master and two moments read and written 24, weight written 2.
  const std::vector<Work> adam = update_work(10, Optimizer::Adam, Precision::Bf16);
  CHECK(adam.size() == 1);
  CHECK(adam[0].bytes.value() == 10 * 28);
  CHECK(adam[0].op_class == OpClass::Optimizer);
  CHECK(adam[0].flops.value() == 0);
}

TEST_CASE("what a framework moves beside an optimiser counts for each parameter") {
  Framework framework;
  framework.update_bytes = 32;
  CHECK(update_work(10, Optimizer::Adam, Precision::Bf16, framework)[0].bytes.value() ==
        10 * (28 + 32));
}

/// A matrix of 4096 x 1024 weights, and 1024 others.
WeightCount some_weights() {
  const std::vector<WeightMatrix> matrices = {
      {.rows = 4096, .columns = 1024, .parameters = 4096 * 1024}};
  return {4096 * 1024 + 1024, matrices};
}

double state_bytes(const OptimizerRule& rule) {
  return footprint(some_weights(), rule, Precision::Bf16).optimizer.value();
}

TEST_CASE("each optimiser keeps the moments of its paper beside fp32 masters") {
  const double matrix = 4096.0 * 1024, others = 1024, all = matrix + others;
  OptimizerRule eight(Optimizer::Adam);
  eight.first = eight.second = NumberFormat::Int8;
  CHECK(state_bytes(Optimizer::Lion) == all * (4 + 4));
  CHECK(state_bytes(Optimizer::Adafactor) == all * 4 + (4096 + 1024) * 4 + others * 4);
  CHECK(state_bytes(Optimizer::Muon) == all * 4 + matrix * 4 + others * 8);
  INFO("blocks of 256 numbers of one byte, with a scale of four");
  CHECK(state_bytes(eight) == all * 4 + 2 * (all + all / 256 * 4));
}

TEST_CASE("masters and moments may have fewer bytes, or be left out") {
  OptimizerRule rule(Optimizer::Adam);
  rule.first = NumberFormat::Bf16;
  rule.second = NumberFormat::Fp8;
  rule.master = NumberFormat::Fp16;
  CHECK(footprint(1000, rule, Precision::Bf16).optimizer.value() == 1000 * (2 + 1 + 2));
  rule.masters = false;
  CHECK(footprint(1000, rule, Precision::Bf16).optimizer.value() == 1000 * (2 + 1));
  INFO("weights, of which there is no other copy, are read and written");
  CHECK(update_work(1000, rule, Precision::Bf16)[0].bytes.value() == 1000 * (2 * 2 + 2 + 2 * 3));
}

TEST_CASE("weights of eight bits and fewer take their scales, once by rows and once by columns") {
  OptimizerRule rule(Optimizer::Adam);
  const auto bytes = [&](NumberFormat format, int copies) {
    rule.weights = format;
    rule.weight_copies = copies;
    return footprint(some_weights(), rule, Precision::Fp8).weights.value() - 2 * 1024;
  };
  const double matrix = 4096.0 * 1024;
  CHECK(bytes(NumberFormat::Fp8, 1) == matrix);
  CHECK(bytes(NumberFormat::Fp8, 2) == 2 * matrix);
  CHECK(bytes(NumberFormat::Mxfp8, 2) == 2 * (matrix + matrix / 32));
  CHECK(bytes(NumberFormat::Nvfp4, 2) == 2 * (matrix / 2 + matrix / 16));
  CHECK(sent_weights(some_weights(), rule, Precision::Fp8).value() == 2 * (matrix + 1024));
  rule.weights = NumberFormat::Fp8;
  CHECK(sent_weights(some_weights(), rule, Precision::Fp8).value() == matrix + 2 * 1024);
}

TEST_CASE("a weight of nf4 takes half a byte and its scales") {
  INFO("QLoRA, arXiv 2305.14314, section 3: double quantisation leaves 0.127 bits of constants");
  CHECK((stored_bytes(NumberFormat::Nf4) - 0.5) * 8 == doctest::Approx(0.127).epsilon(0.002));
}

TEST_CASE("Adafactor reads the gradient three times") {
  const double held = footprint(1000, Optimizer::Adafactor, Precision::Fp32).optimizer.value();
  CHECK(update_work(1000, Optimizer::Adafactor, Precision::Fp32)[0].bytes.value() ==
        1000 * (8 + 3 * 4) + 2 * held);
}

TEST_CASE("Muon makes hidden matrices orthogonal by fifteen products each") {
  const std::vector<WeightMatrix> matrices = {
      {.rows = 64, .columns = 16, .count = 3, .parameters = 3 * 64 * 16},
      {.rows = 100, .columns = 16, .parameters = 1600, .hidden = false}};
  const std::vector<Work> works = orthogonal_work(matrices, 2);
  REQUIRE(works.size() == 3);
  double flops = 0;
  for (const Work& work : works) {
    flops += work.flops.value();
    CHECK(work.launches == 15);
    CHECK(counted_flops(work) == Flops(0));  // no model flop
  }
  INFO("a step: X Xt and B X of 2 n n m, and A A of 2 n n n, with n = 16 and m = 64");
  CHECK(flops == 3 * 5 * (4.0 * 16 * 16 * 64 + 2.0 * 16 * 16 * 16));
}

/// A rule that turns both sides of a matrix, or its shorter one.
OptimizerRule rotation(bool shorter) {
  OptimizerRule rule(Optimizer::BasisRotation);
  rule.shorter_sides = shorter;
  return rule;
}

TEST_CASE("basis rotation keeps an average and a basis of each side beside Adam's states") {
  const double all = 4096.0 * 1024 + 1024;
  CHECK(state_bytes(rotation(false)) == all * 12 + 2 * 4 * (4096.0 * 4096 + 1024.0 * 1024));
  CHECK(state_bytes(rotation(true)) == all * 12 + 2 * 4 * 1024.0 * 1024);
  INFO("an average is read and written, and the product that is added to it is read");
  CHECK(update_work(some_weights(), rotation(true), Precision::Bf16)[0].bytes.value() ==
        all * 28 + 3 * 4 * 1024.0 * 1024);
}

TEST_CASE("basis rotation turns gradient, moment and step, and makes bases every few updates") {
  const std::vector<WeightMatrix> matrices = {
      {.rows = 64, .columns = 16, .count = 3, .parameters = 3 * 64 * 16},
      {.rows = 100, .columns = 16, .parameters = 1600, .hidden = false}};
  const auto flops = [&](bool shorter, int every, bool factored) {
    OptimizerRule rule = rotation(shorter);
    rule.basis_every = every;
    double sum = 0;
    for (const Work& work : rotation_work(matrices, rule)) {
      CHECK(counted_flops(work) == Flops(0));  // no model flop
      if (factored == (work.variant == OpVariant::Factored)) sum += work.flops.value();
    }
    return sum;
  };
  INFO("of a side: G Gt, three turns, and a tenth of the three products of a power iteration");
  const double narrow = 4 * 2.0 * 16 * 16 * 64 + 3 * 2.0 * 16 * 16 * 16 / 10;
  const double wide = 4 * 2.0 * 64 * 64 * 16 + 3 * 2.0 * 64 * 64 * 64 / 10;
  CHECK(flops(true, 10, false) == doctest::Approx(3 * narrow));
  CHECK(flops(false, 10, false) == doctest::Approx(3 * (narrow + wide)));
  CHECK(flops(true, 10, true) == doctest::Approx(3 * 8.0 / 3 * 16 * 16 * 16 / 10));
  CHECK(flops(false, 1, true) == doctest::Approx(3 * 8.0 / 3 * (16 * 16 * 16 + 64 * 64 * 64)));
}

TEST_CASE("predicted weights are written by the update that they are ahead of") {
  OptimizerRule rule(Optimizer::Adam);
  rule.predictions = 2;
  const Footprint held = footprint(1000, rule, Precision::Bf16);
  CHECK(held.predicted.value() == 2 * 1000 * 2);
  CHECK(held.total().value() == 1000 * (16 + 4));
  CHECK(update_work(1000, rule, Precision::Bf16)[0].bytes.value() == 1000 * (28 + 4));
}

TEST_CASE("what an update keeps to correct is a number more, read and written") {
  for (const Optimizer kind : {Optimizer::Adam, Optimizer::Muon}) {
    OptimizerRule rule(kind);
    const Footprint plain = footprint(1000, rule, Precision::Bf16);
    const double bytes = update_work(1000, rule, Precision::Bf16)[0].bytes.value();
    for (const auto& [format, size] :
         {std::pair(NumberFormat::Fp32, 4), std::pair(NumberFormat::Bf16, 2)}) {
      rule.feedback = format;
      const Footprint held = footprint(1000, rule, Precision::Bf16);
      CHECK((held.optimizer - plain.optimizer).value() == 1000 * size);
      CHECK(held.total() - plain.total() == held.optimizer - plain.optimizer);
      CHECK(update_work(1000, rule, Precision::Bf16)[0].bytes.value() - bytes == 2 * 1000 * size);
    }
  }
}

TEST_CASE("no parameters need no update") {
  CHECK(update_work(0, Optimizer::Adam, Precision::Bf16).empty());
}

}  // namespace
}  // namespace interlock::footprint_test
