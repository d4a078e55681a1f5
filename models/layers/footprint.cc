// Footprint: bytes and update work of parameters under an optimiser and a precision.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/footprint.h"

#include "base/error.h"

namespace interlock {
namespace {

bool keeps_masters(Precision precision) {
  return precision != Precision::Fp32 && precision != Precision::Tf32;
}

/// fp32 words of optimiser state a parameter, the master copy apart.
int moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::Sgd:
      return 0;
    case Optimizer::SgdMomentum:
      return 1;
    case Optimizer::Adam:
      return 2;
  }
  CHECK(false, "an optimiser should be one of the three");
}

}  // namespace

double element_bytes(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
    case Precision::Tf32:
      return 4;
    case Precision::Fp16:
    case Precision::Bf16:
    case Precision::Fp8:  // of what products read; tensors stay in 16 bits
      return 2;
  }
  CHECK(false, "a precision should be one of the five");
}

Footprint footprint(std::int64_t parameters, Optimizer optimizer, Precision precision,
                    bool fp32_gradients) {
  const double count = static_cast<double>(parameters);
  const int words = moments(optimizer) + (keeps_masters(precision) ? 1 : 0);
  return {.weights = Bytes(count * element_bytes(precision)),
          .gradients = Bytes(count * (fp32_gradients ? 4 : element_bytes(precision))),
          .optimizer = Bytes(count * 4 * words)};
}

namespace {

OpVariant variant_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::Sgd:
      return OpVariant::Plain;
    case Optimizer::SgdMomentum:
      return OpVariant::Momentum;
    case Optimizer::Adam:
      return OpVariant::Adam;
  }
  CHECK(false, "an optimiser should be one of the three");
}

}  // namespace

std::vector<Work> update_work(std::int64_t parameters, Optimizer optimizer, Precision precision,
                              bool fp32_gradients) {
  if (parameters == 0) return {};
  const Footprint held = footprint(parameters, optimizer, precision, fp32_gradients);
  // With masters the working weights are written only: the step reads their master instead.
  const double weight_passes = keeps_masters(precision) ? 1 : 2;
  // The arithmetic is a few operations a parameter, hidden by the traffic; it is no model flop.
  return {{.op_class = OpClass::Optimizer,
           .bytes = held.weights * weight_passes + held.gradients + held.optimizer * 2,
           .variant = variant_of(optimizer)}};
}

}  // namespace interlock
