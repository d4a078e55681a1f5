// Program: what a runtime would be given to run a training job. Every engine and executor takes it.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank has one or more in-order streams of small instructions. A rank with several streams
// runs one Compute at a time: when it becomes free, the first that is ready by priority (see
// Schedule; then the lower stage, then the lower stream), or, if `order` is filled, the one whose
// turn it is. Dependencies are stream order, channels and events; nothing else.
//
// Example: 1F1B of two stages and four micro-batches. Channel 0 carries activations up, channel 1
// gradients down; micro-batches in brackets are those of the first turn.
//   rank 0, repeats = steps, stride 4:
//     1 x { Allocate stash (0), Allocate output (0), F (0), Send 0 (0) }
//     3 x { Allocate stash (1), Allocate output (1), F (1), Send 0 (1),
//           Receive 1 (0), B (0), Free gradient (0), Free stash (0) }
//     1 x { Receive 1 (3), B (3), Free gradient (3), Free stash (3) }    1 x { U (3) }
//     computes F0 F1 B0 F2 B1 F3 B2 B3 U
//   rank 1, repeats = steps, stride 4:
//     4 x { Receive 0 (0), Allocate stash (0), Free input (0), F (0),
//           Allocate gradient (0), B (0), Free stash (0), Send 1 (0) }    1 x { U (3) }
//     computes F0 B0 F1 B1 F2 B2 F3 B3 U
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/plan/schedules/schedule.h"
#include "sim/program/instruction.h"
#include "sim/program/variation.h"
#include "sim/program/wires.h"

namespace interlock {

/// A kind of compute op: one stage, one letter, one loss.
struct OpInfo {
  OpKind kind = OpKind::F;
  int stage = 0;
  int loss = 0;
  bool useful = false;  // F, I, W, B of the main network for the weights' own loss
  Seconds duration;
  Flops flops;                 // executed
  Seconds communication = {};  // of the duration: waiting for exchanges inside the op
  std::vector<std::pair<int, int>> inside = {};  // these: collectives, and how many of each
  bool replay = false;  // a whole turn on an old input, see Channel::replay
  double compute_bound = 0, memory_bound = 0, messages = 0;  // of the duration, see OpCost
  Flops counted = {};                                        // behind MFU, see base/work.h
};

/// The shares that kernels lose to communication beside them on their device. See
/// sim/engines/kernel_rates.h.
struct Interference {
  double collective_sms = 0, message_sms = 0;  // shares of multiprocessors, of each
  double token_sms = 0;                        // of a collective that carries tokens to experts
  BytesPerSecond memory_bandwidth = {};        // of a device; 0: no contention

  bool any() const {
    return collective_sms > 0 || message_sms > 0 || token_sms > 0 || memory_bandwidth.value() > 0;
  }
};

struct Buffer {
  MemoryClass memory_class = MemoryClass::Stash;
  int stage = 0;
  Bytes bytes;
  int message = -1;  // channel: its messages, which the sender reads beside the transfer; see Free
};

/// The bytes that a device keeps in the memory of its host.
struct HostMemory {
  Bytes optimizer;  // states that are updated there
  Bytes gradients;  // on their way to the update
  Bytes stash;      // the most at any time
  Bytes total() const { return optimizer + gradients + stash; }
};

struct Rank {
  std::int32_t first_stream = 0, streams = 1;
  std::vector<int> stages;
  int weight_versions = 1;                       // the most that it keeps of any of its stages
  std::array<Bytes, kMemoryClasses> resident{};  // held from start to end
  Bytes libraries;                               // likewise, beside all tensors
  HostMemory host;                               // likewise
  Bytes update_copies;                           // from an update to the next step, see Footprint
  std::vector<std::int32_t> order;  // stream (0-based in the rank) of each Compute; frozen programs
};

struct Program {
  int stages = 1;    // of all copies of the model, see Schedule
  int copies = 1;    // of one replica
  int replicas = 1;  // that are simulated one by one
  int slices = 1;
  std::vector<int> slice_counts;  // slices of each micro-batch, where they differ, see Schedule
  int micro_batches = 1;          // of one step
  int steps = 1;
  int update_every = 1;         // micro-batches that one update of a stage uses
  int pattern = 1;              // micro-batches after which the order of work repeats
  int version_lag = 0;          // updates that weights are behind, whatever the order
  int ahead = 0;                // forwards before an earlier backward across steps, see Schedule
  double ticks_per_second = 1;  // every duration is a whole number of ticks
  double memory_held = 1;       // bytes that a device's allocator holds for each that is allocated
  Variation variation;          // of durations, in engines
  std::shared_ptr<const PackedTimes> packed;  // nothing: equal micro-batches take equal times
  std::vector<Interference> interference;     // by rank; empty: nothing slows kernels down
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
  std::vector<Communicator> communicators;
  bool ignores_contention = false;  // links are shared that it gives to each user alone
  std::string folding_problem;  // why ranks that stand for several are not exact; empty if they are
  /// Frozen programs: the channel of each message of a wire, in order. Empty: order of sending.
  std::vector<std::vector<std::int32_t>> wire_order;
};

/// Returns what a rank holds from start to end, with its libraries' memory as workspace.
std::array<Bytes, kMemoryClasses> always_held(const Rank& rank);

/// A micro-batch of the program in the user's terms: counted through the run, and a slice of it.
struct SliceNumber {
  int micro_batch = 0, slice = 0;
};
SliceNumber slice_number(const Program& program, int micro_batch);
/// Returns the user's micro-batches in a step.
int whole_micro_batches(const Program& program);

/// Returns the stage of the model, whichever copy it is of.
inline int model_stage(const Program& program, int stage) {
  return stage % (program.stages / program.copies / program.replicas);
}
/// Turns that segment `index` of the program makes in `stream`, which it belongs to.
std::int64_t turns_of(const Program& program, const Stream& stream, int index);
/// Counts computes, messages between ranks and joinings of collectives, over the whole run.
std::int64_t count_tasks(const Program& program);
/// Returns true if two wires share a link, so that times depend on contention.
bool shares_links(const Program& program);
/// Returns true if a rank chooses its order at run time.
bool chooses_order(const Program& program);

}  // namespace interlock
