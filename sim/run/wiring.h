// Wiring: the channels, wires and links between stages that lowering hands messages to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/run/op_cost.h"

namespace interlock {

/// Makes channels on demand. Micro-batches in flight at once travel in channels of their own
/// (lane = micro_batch % in_flight), because their order is not known beforehand; token slices do
/// (lane = slice), because their sizes differ.
class Wiring {
 public:
  Wiring(const LowerInputs& inputs, Program& program);

  /// Copy: the weight gradients of one copy of a stage, for another.
  enum class Message { Activation, Gradient, Readout, Copy };
  /// The channel from one stage to another; made at the first call, with the bytes of its message.
  /// `micro_batch`: before whose forward, or for whose op, the message is received.
  int channel(Message message, int from_stage, int to_stage, int micro_batch);
  /// Bytes of one message from a stage to another.
  Bytes message_bytes(Message message, int from_stage, int to_stage, int micro_batch) const;
  /// Marks the wires that use a link of another wire.
  void mark_shared_links();

 private:
  int make_channel(Message message, int from_stage, int to_stage, int micro_batch);
  int replay_op(int stage, int micro_batch);
  int wire(int from_rank, int to_rank);
  int link_index(LinkId id);

  const LowerInputs& inputs_;
  Program& program_;
  OpCosts costs_;
  int lanes_;
  std::vector<int> neighbours_;  // channel of (stage, in or down, lane), -1 until made
  std::unordered_map<std::int64_t, int> readouts_, copies_, wires_, links_;
};

}  // namespace interlock
