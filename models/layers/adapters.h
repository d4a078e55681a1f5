// Adapters: low-rank additions to frozen products (LoRA), whose weights may be stored in few bits.
// SPDX-License-Identifier: Apache-2.0
//
// A product y = x W of frozen W becomes y = x W + (x A) B, with A (inputs, rank) and B (rank,
// outputs). Frozen weights have no gradient, no state of an optimiser, and are not exchanged. A
// product that has an adapter keeps x for it; one without keeps nothing that its own gradient
// would have read. Weights of few bits become 16 bits again before each product that reads them.
// Sources: LoRA, arXiv 2106.09685, section 4; QLoRA, arXiv 2305.14314, section 3; names and the
// division among tensor devices: NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/peft/lora.py,
// commit 0191fc5e1b7fb11ef008ce0ec73b7e9f2626d687. What tensor devices exchange of (x A), `rank`
// numbers a token, is not counted.
//
// Example: W of 4096 x 4096 in bf16 with rank 16 for 1000 tokens keeps 33.6 MB of weights, of which
// 16.8 M are frozen and 131,072 trained; with nf4 8.7 MB are frozen. Forward: 33.6 Gflop of W, 0.26
// of A and B.
#pragma once

#include <string>
#include <vector>

#include "models/layers/operators.h"

namespace interlock {

/// Returns `operators` with all weights frozen, and with the adapters of `options`.
std::vector<Operator> adapted(const std::vector<Operator>& operators, const BuildOptions& options);

/// Freezes all weights of `module`, and lets no gradient pass it.
void freeze(Module& module);

}  // namespace interlock
