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

TEST_CASE("no parameters need no update") {
  CHECK(update_work(0, Optimizer::Adam, Precision::Bf16).empty());
}

}  // namespace
}  // namespace interlock::footprint_test
