// Wiring: the channels, wires and links between stages that lowering hands messages to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/lower/links/folded_links.h"
#include "sim/lower/links/link_sharing.h"
#include "sim/lower/op_cost.h"

namespace interlock {

/// Names what ranks exchange of a divided vocabulary: outputs of the embedding, added up; their
/// gradient, from the first; inputs of the readout, from the last; what is known of logits; the
/// gradient of these inputs, added up.
enum class VocabularyExchange { Embedded, EmbeddedGradient, Hidden, Logits, HiddenGradient };

/// Makes channels on demand. Micro-batches in flight at once travel in channels of their own
/// (slot = micro_batch % in_flight), because their order is not known beforehand; token slices do
/// (slot = slice), because their sizes differ.
/// Example: two micro-batches in flight. channel(Activation, 0, 1, b) is one channel for b = 0, 2,
/// 4, ... and another for b = 1, 3, 5, ...; both are on the wire from rank 0 to rank 1.
class Wiring {
 public:
  /// `alone`: see FoldedLinks.
  Wiring(const LowerInputs& inputs, bool alone, Program& program);

  /// Returns the channel from one stage to another; made at the first call, with the bytes of its
  /// message. `micro_batch`: before whose forward, or for whose op, the message is received.
  int channel(Cargo cargo, int from_stage, int to_stage, int micro_batch);
  /// Returns the bytes of one message from a stage to another.
  Bytes message_bytes(Cargo cargo, int from_stage, int to_stage, int micro_batch) const;
  /// Returns the collective that `rank` and its group along the exchange's axis do for `stage`.
  int collective(const Exchange& exchange, int rank, int stage);
  /// Adds `channel`, whose ranks and bytes are known; each message passes in `parts`, one after the
  /// other.
  int add_channel(Channel channel, int parts = 1);
  /// Returns the collective of the ranks of `communicator`, each of which is one device.
  int collective_of_communicator(const Exchange& exchange, int communicator);
  /// Returns how many members of a collective's group are simulated.
  int members(int collective) const {
    return static_cast<int>(
        program_.communicators[program_.collectives[collective].communicator].ranks.size());
  }
  /// Gives collectives their wires, replaces links by those that stand for them, and marks what
  /// shares them. Returns why the folding is not exact, or "".
  std::string finish();

 private:
  int make_channel(Cargo cargo, int from_stage, int to_stage, int micro_batch);
  int message_parts(int below) const;
  int replay_op(int stage, int micro_batch);
  int wire(int from_rank, int to_rank);
  void reshard(Channel& channel);
  int part_wire(int whole, const std::vector<LinkId>& way);
  int communicator_of(const Exchange& exchange, int rank);
  using SharedPlan = std::shared_ptr<const CollectivePlan>;
  int add_collective(const Exchange& exchange, const SharedPlan& plan,
                     const CollectiveDoers& doers);
  void add_plan(const SharedPlan& plan, const Exchange& exchange, const CollectiveDoers& doers);

  const LowerInputs& inputs_;
  Program& program_;
  OpCosts costs_;
  bool alone_;
  FoldedLinks folded_;
  std::vector<PlannedCollective> planned_;  // by collective
  std::vector<FoldedLinks::Orbit> orbits_;  // by wire of messages
  std::vector<std::vector<LinkId>> ways_;   // by wire
  std::vector<Seconds> latencies_;          // by wire of messages
  /// Communicators by axis, layout and first device or rank.
  std::map<std::tuple<MeshAxis, int, int>, int> of_group_, of_rank_;
  std::map<int, std::vector<int>> groups_;  // devices, by communicator
  std::map<std::tuple<int, CollectiveKind, double, double, int, TokenRouting>, int> collectives_;
  std::map<std::pair<int, std::vector<LinkId>>, int> part_wires_;
  int slots_;                    // micro-batches in flight or slices
  std::vector<int> neighbours_;  // channel of (stage, in or down, slot), -1 until made
  std::unordered_map<std::int64_t, int> readouts_, copies_, wires_;
};

}  // namespace interlock
