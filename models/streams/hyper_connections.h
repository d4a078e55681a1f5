// Hyper-connections: several residual streams, which every half of a block reads and writes as one.
// SPDX-License-Identifier: Apache-2.0
//
// A half of a block reads a sum of the streams, weighed by numbers made of all of them; what it
// makes is added to each stream by a number, and the streams are mixed by a matrix that some
// iterations make doubly stochastic. The numbers come from one product of the streams, side by
// side, with their norm. Example: of 4 streams of 4,096 numbers a product makes 4 + 4 + 16 of
// 16,384. Sources: Xie et al., mHC: Manifold-Constrained Hyper-Connections, 2026;
// megatron/core/transformer/hyper_connection.py (NVIDIA/Megatron-LM d98e8a6), with a kernel each
// for the numbers, for what is read and for what is written.
#pragma once

#include <vector>

#include "models/layers/operators.h"

namespace interlock {

struct HyperConnections {
  int streams = 1;
  bool operator==(const HyperConnections&) const = default;
};

/// The streams on one device.
struct StreamRows {
  double rows = 1;
  std::int64_t width = 1;
  int streams = 1;
};

/// Adds what makes one stream of all, for a half of a block. The first operator keeps the streams.
void append_stream_read(const StreamRows& shape, double element, std::vector<Operator>& block);
/// Returns the kernel that mixes the streams and adds what a half has made, which it keeps.
Operator stream_write(const StreamRows& shape, double element);
/// Returns the kernel that makes streams of one, all alike.
Operator stream_copies(const StreamRows& shape, double element);
/// Adds what makes one stream of all in front of a readout: a number for each.
void append_stream_end(const StreamRows& shape, double element, std::vector<Operator>& operators);

}  // namespace interlock
