// Passages: in which order an op's kernels and the ways of tokens to experts and back take turns.
// SPDX-License-Identifier: Apache-2.0
//
// A device has one stream of kernels and one of messages. In each layer that has experts a forward
// computes what comes before them (attention, the router), sends tokens to the holders of their
// experts, computes the experts, and sends what they made back; a backward does the reverse. Alone,
// an op waits for each way, but for kernels that stand beside it. A pair of a forward and a
// backward takes turns, layer by layer, so that the ways of one run beside the kernels of the
// other:
//
//   kernels   around(F)       | experts(B)            | experts(F)      | around(B)
//   messages  back(B)         | there(F)  then there(B)                 | back(F)
//
// Weight gradients that are delayed come behind the gradients of their inputs, so that messages do
// not wait for them. Source: megatron/core/models/common/model_chunk_schedule_plan.py
// (NVIDIA/Megatron-LM d98e8a6); DeepSeek-V3, arXiv 2412.19437, figure 4, has the same order.
//
// Example: two layers' forward of 2 s around and 3 s of experts, ways of 1 s: 2 (2 + 1 + 3 + 1) s.
#pragma once

#include <array>
#include <vector>

#include "base/exchange.h"
#include "base/work.h"

namespace interlock {

/// Kernels of an op by where they stand, all layers together.
struct PlacedTimes {
  std::array<Seconds, kKernelPlaces> at;
  Seconds apart;  // of modules whose tokens pass to no experts
  Seconds total() const;
};

/// One op: `turns` layers that are alike.
struct PassageChain {
  int turns = 0;
  bool back = false;    // a backward: the way back comes first
  PlacedTimes times;    // of all kernels, but for
  PlacedTimes delayed;  // weight gradients that no message waits for
};

/// Kernels run, or a message begins, or must have arrived.
struct PassageStep {
  enum class Kind { Kernels, Begin, End };
  Kind kind = Kind::Kernels;
  int op = 0;         // of a pair: 0 forward, 1 backward
  Seconds time = {};  // Kernels
  TokenWay way = TokenWay::None;
  int turn = 0;
};

/// Returns the steps of an op alone.
std::vector<PassageStep> steps_alone(const PassageChain& op);
/// Returns the steps of a forward and a backward of different micro-batches that take turns. Layers
/// that one of them has more run alone.
std::vector<PassageStep> steps_of_pair(const PassageChain& forward, const PassageChain& backward);

/// Durations of the messages of an op.
struct WayTimes {
  Seconds there, back;
};
/// Returns how long steps take if no other group sends: a step begins when those before it in its
/// stream are done, kernels after all messages that have ended before them.
Seconds time_of(const std::vector<PassageStep>& steps, const std::array<WayTimes, 2>& ways);

}  // namespace interlock
