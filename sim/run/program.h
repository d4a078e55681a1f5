// Program: what a runtime would be given to run a training job. Every engine and executor takes it.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank has one or more in-order streams of small instructions. A rank with several streams
// runs one Compute at a time: when it becomes free, the first that is ready by priority, or, if
// `order` is filled, the one whose turn it is. Dependencies are stream order, channels and events;
// nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exchange.h"
#include "base/units.h"
#include "sim/plan/schedule.h"
#include "sim/run/instruction.h"

namespace interlock {

/// A kind of compute op: one stage, one letter, one loss.
struct OpInfo {
  OpKind kind = OpKind::F;
  int stage = 0;
  int loss = 0;
  bool useful = false;  // F, I, W, B of the main network for the weights' own loss
  Seconds duration;
  Flops flops;
  Seconds communication = {};  // of the duration: waiting for exchanges inside the op
  std::vector<std::pair<int, int>> inside = {};  // these: collectives, and how many of each
  bool replay = false;  // a whole turn on an old input, see Channel::replay
};

/// Bytes over a wire, aggregated over all steps of what sends them.
struct WireFlow {
  int wire = 0;
  Bytes bytes;
};

/// A queue of messages from a stage to a neighbour. Order is kept.
struct Channel {
  static constexpr int kUnlimited = -1;
  int from_rank = 0, to_rank = 0;
  int from_stage = 0, to_stage = 0;
  int wire = -1;  // -1: both stages are on one rank; messages arrive at once
  /// Messages sent and not yet taken. 0: rendezvous, see docs/design.md: a sender stands at its
  /// Send for as long as its message will have to wait at the receiver.
  int depth = kUnlimited;
  /// The op that the receiver runs, and runs again, while it waits for a message, but for the first
  /// one; -1: it waits idle.
  int replay = -1;
  bool synchronous = false;    // the transfer needs both streams, from its start to its arrival
  bool from_resident = false;  // a copy of resident bytes: nothing to give back once it has left
  Bytes bytes;                         // on one device of the sender
  std::optional<Bytes> received = {};  // on one of the receiver, if not as many
  Seconds occupancy;                   // bytes / bandwidth of the wire
  Seconds latency;                     // follows, occupies nothing
  std::vector<WireFlow> flows = {};    // of a message, all at once; empty: `bytes` over `wire`
};

/// The way between two ranks. Its messages are first in, first out. Flows of collectives have wires
/// of their own.
struct Wire {
  int from_rank = 0, to_rank = 0;
  int lane = -1;           // of the collectives that use it; -1: it carries messages
  int part_of = -1;        // carries flows of the messages of this wire; -1: whole messages
  std::vector<int> links;  // in Program::links
  BytesPerSecond bandwidth;
  bool shared = false;  // another wire uses one of its links, but for those of the same lane
};

struct ProgramLink {
  std::string name;
  BytesPerSecond bandwidth;  // times `share`
  /// Messages that are simulated over those that really use a link at once: less than 1 where equal
  /// ones are left out, more where the link stands for several.
  double share = 1;
  int stands_for = 1;  // links of the machine
};

struct Buffer {
  MemoryClass memory_class = MemoryClass::Stash;
  int stage = 0;
  Bytes bytes;
};

/// A generation is complete once all have recorded it; or, of a collective, which begins then, once
/// that is done.
struct Event {
  int recorders = 1;      // Records that complete a generation
  int micro_batches = 1;  // that a generation spans
  int collective = -1;    // in Program::collectives
};

/// What the members of a group exchange. Those of one lane (a communicator) come one after the
/// other, in the order in which their last members join.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  MeshAxis axis = MeshAxis::Data;
  int stage = 0;
  int lane = 0;
  Bytes bytes;          // S of an Exchange
  Seconds occupancy;    // of the busiest link, alone
  Seconds latency;      // of all its steps; follows, occupies nothing but the lane
  bool shared = false;  // another lane, or a wire of messages, uses one of its links
  using Flow = WireFlow;
  std::vector<Flow> flows;  // all at once, over wires of the lane
};

struct Lane {
  std::vector<int> ranks;  // members that are simulated
};

struct Rank {
  std::int32_t first_stream = 0, streams = 1;
  std::vector<int> stages;
  int weight_versions = 1;                       // the most that it keeps of any of its stages
  std::array<Bytes, kMemoryClasses> resident{};  // held from start to end
  std::vector<std::int32_t> order;  // stream (0-based in the rank) of each Compute; frozen programs
};

struct Program {
  int stages = 1;    // of all copies of the model, see Schedule
  int copies = 1;    // of one replica
  int replicas = 1;  // that are simulated one by one
  int slices = 1;
  std::vector<int> parts;  // slices of each micro-batch, where they differ, see Schedule
  int micro_batches = 1;   // of one step
  int steps = 1;
  int update_every = 1;         // micro-batches that one update of a stage uses
  int pattern = 1;              // micro-batches after which the order of work repeats
  int version_lag = 0;          // updates that weights are behind, whatever the order
  int ahead = 0;                // forwards before an earlier backward across steps, see Schedule
  double ticks_per_second = 1;  // every duration is a whole number of ticks
  std::vector<Instruction> instructions;
  std::vector<Segment> segments;
  std::vector<Stream> streams;
  std::vector<Rank> ranks;
  std::vector<OpInfo> ops;
  std::vector<Channel> channels;
  std::vector<Wire> wires;
  std::vector<ProgramLink> links;
  std::vector<Buffer> buffers;
  std::vector<Event> events;
  std::vector<Collective> collectives;
  std::vector<Lane> lanes;
  std::string folding_problem;  // why ranks that stand for several are not exact; empty if they are
  /// Frozen programs: the channel of each message of a wire, in order. Empty: order of sending.
  std::vector<std::vector<std::int32_t>> wire_order;
};

/// What the user calls a micro-batch of the program: one of his, counted through the run, and a
/// slice of it.
struct SliceNumber {
  int micro_batch = 0, slice = 0;
};
SliceNumber slice_number(const Program& program, int micro_batch);
/// The user's micro-batches in a step.
int whole_micro_batches(const Program& program);

/// The stage of the model, whichever copy it is of.
inline int model_stage(const Program& program, int stage) {
  return stage % (program.stages / program.copies / program.replicas);
}
/// Turns that segment `index` of the program makes in `stream`, which it belongs to.
std::int64_t turns_of(const Program& program, const Stream& stream, int index);
/// Computes, messages between ranks and joinings of collectives, over the whole run.
std::int64_t count_tasks(const Program& program);
/// Whether two wires share a link, so that only an engine with contention is exact.
bool shares_links(const Program& program);
/// Whether some rank chooses its order at run time.
bool chooses_order(const Program& program);

}  // namespace interlock
