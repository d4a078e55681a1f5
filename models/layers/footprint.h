// Footprint: the bytes and the update work that a parameter costs under an optimiser and precision.
// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision (fp16, bf16, fp8) keeps an fp32 master copy beside the working weights; it
// counts as optimiser state. With Adam that makes 2 + 2 + 12 = 16 bytes a parameter.
// Source: ZeRO (arXiv 1910.02054), section 3.1.
#pragma once

#include <cstdint>
#include <vector>

#include "base/work.h"

namespace interlock {

enum class Optimizer { Sgd, SgdMomentum, Adam };

/// Bytes of one element of a tensor in `precision`. 8-bit training keeps tensors in 16 bits; its
/// linear layers multiply 8-bit copies (NVIDIA Transformer Engine's recipe).
double element_bytes(Precision precision);

/// Bytes held for `parameters` trainable parameters.
struct Footprint {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;  // masters and moments
};
/// `fp32_gradients`: gradients are kept in fp32 whatever the precision is (Megatron-LM's main
/// gradients: 18 bytes a parameter with Adam).
Footprint footprint(std::int64_t parameters, Optimizer optimizer, Precision precision,
                    bool fp32_gradients = false);

/// One optimiser step over `parameters`: every state is read and written once.
std::vector<Work> update_work(std::int64_t parameters, Optimizer optimizer, Precision precision,
                              bool fp32_gradients = false);

}  // namespace interlock
