// Costs of single ops, and of parts of a stage; StageCost is made of them.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a forward of 13 modules of gpt2-medium on 8 tensor devices of a DGX A100: an OpCost of
// 974 us of kernels (42.3 Gflop) that waits 964 us for 25 all-reduces of 2 MiB.
#pragma once

#include <array>
#include <vector>

#include "base/exchange.h"
#include "hardware/devices/device.h"
#include "models/layers/token_slice.h"
#include "sim/plan/passages.h"

namespace interlock {

/// The cost of one op.
struct OpCost {
  Seconds time;          // of its kernels
  Flops flops;           // executed
  Flops counted = {};    // behind MFU, see base/work.h
  Seconds waiting = {};  // for its exchanges, as far as they do not run beside the kernels
  std::vector<Exchange> exchanges = {};  // equal ones counted together
  // Shares of the time that wait for arithmetic and for memory. The rest: launches, message copies.
  double compute_bound = 0, memory_bound = 0;
  double messages = 0;  // share of the time that casts and copies of messages take
  std::array<Seconds, kKernelPlaces> at = {};  // of `time`: kernels of modules whose tokens pass
  /// Adds a cost. Nothing is exchanged beside the kernels of another op: what waits, waits.
  OpCost& operator+=(const OpCost& other);
  /// REQUIRES: `part` was added before.
  OpCost& operator-=(const OpCost& part);
  Seconds whole() const { return time + waiting; }
  /// Returns its kernels by place, `scale` times as long.
  PlacedTimes placed(double scale = 1) const;

 private:
  /// Mixes the shares of this cost and of `sign` times the other one, before their times are added.
  void mix(const OpCost& other, double sign);
};

/// Going back through the last modules of a stage only.
struct LinkCost {
  OpCost backward_input, backward_weight, recompute;
  OpCost first_backward_input;  // the part of backward_input that nothing below needs
};

/// A rank's part of a divided vocabulary, one micro-batch. See VocabularySplit.
struct VocabularyCost {
  OpCost s, t, e, g;
  Bytes hidden;      // what crosses between ranks: an input of the readout, an output of embedding
  Bytes statistics;  // of logits, that ranks reduce: the largest, the sum, that of the target
  Bytes kept;        // from S to T
  Bytes workspace;   // of S and T
};

/// Parts of the costs of a slice: those of layers that attend to all slices before it.
struct ContextCost {
  OpCost forward, backward_input, recompute;
  SliceContext bytes;
};

}  // namespace interlock
