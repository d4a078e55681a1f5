// Channels, wires and collectives: how the ranks of a program reach each other.
// SPDX-License-Identifier: Apache-2.0
//
// Example: two stages on two devices of a DGX A100, messages of 1 MB.
//   stage 0 -> channel 0 (activations, 1 MB: 4.33 us at 231 GB/s, then 3.4 us of latency)
//           -> wire 0 (rank 0 to rank 1) -> links "gpu0 up", "gpu1 down"     -> stage 1
//   stage 1 -> channel 1 (gradients)
//           -> wire 1 (rank 1 to rank 0) -> links "gpu1 up", "gpu0 down"     -> stage 0
// A second stage on rank 0 would add channels, not wires: its messages queue on wire 0. With tensor
// devices the exchanges inside ops have wires of their own that cross "gpu0 up" too, so that
// wire 0 is shared and its times depend on who meets whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exchange.h"
#include "base/units.h"

namespace interlock {

/// Bytes over a wire, aggregated over all steps of what sends them.
struct WireFlow {
  int wire = 0;
  Bytes bytes;
};

/// Bytes over a link, times ProgramLink::share.
struct LinkBytes {
  int link = 0;
  Bytes bytes;
};

/// Names what messages carry. Copy: the weight gradients of one copy of a stage, for another.
/// Context: what attention that another rank makes reads, and makes; numbered by whose it is.
/// Weights: those of a stage, for another copy of it. Sums: their gradients, of copies so far.
enum class Cargo : std::uint8_t { Activation, Gradient, Readout, Copy, Context, Weights, Sums };

/// A queue of messages from a stage to a neighbour. Order is kept.
struct Channel {
  static constexpr int kUnlimited = -1;
  Cargo cargo = Cargo::Activation;
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
  bool sender_waits = false;   // its stream stands until the message has left
  bool in_line = false;        // streams beside ops send its messages, and take synchronous ones
  bool from_resident = false;  // a copy of resident bytes: nothing to give back once it has left
  bool read_by_head = false;   // of the sender, too: given back when both have, see Buffer::message
  Bytes bytes;                 // on one device of the sender
  std::optional<Bytes> received = {};  // on one of the receiver, if not as many
  /// On a device of either end: the whole tensor, if a message is a part of it that other devices
  /// make whole again. See `held_by_sender`.
  std::optional<Bytes> held = {};
  Seconds occupancy;                 // bytes / bandwidth of the wire
  Seconds latency;                   // follows, occupies nothing
  std::vector<WireFlow> flows = {};  // of a message, all at once; empty: `bytes` over `wire`
};

/// Returns the bytes that a device of the sender gives back when a message has left.
inline Bytes held_by_sender(const Channel& channel) { return channel.held.value_or(channel.bytes); }

/// Returns the bytes that a device of the receiver holds from when a message is sent.
inline Bytes held_by_receiver(const Channel& channel) {
  return channel.held.value_or(channel.received.value_or(channel.bytes));
}

/// The way between two ranks. Its messages are first in, first out; of those that several streams
/// hand over at one instant, any may be first. Flows of collectives have wires of their own.
struct Wire {
  int from_rank = 0, to_rank = 0;
  int communicator = -1;   // of the collectives that use it; -1: it carries messages
  int part_of = -1;        // carries flows of the messages of this wire; -1: whole messages
  std::vector<int> links;  // in Program::links; what is there k times carries equals, k in all
  BytesPerSecond bandwidth;
  bool shared =
      false;  // another wire uses one of its links, but for those of the same communicator
};

struct ProgramLink {
  std::string name;
  BytesPerSecond bandwidth;  // times `share`
  /// Messages that are simulated over those that really use a link at once: less than 1 where equal
  /// ones are left out, more where the link stands for several.
  double share = 1;
  int stands_for = 1;              // links of the machine
  std::vector<std::string> likes;  // their names, where two programs must be compared
};

/// A generation is complete once all have recorded it; or, of a collective, which begins then, once
/// that is done.
struct Event {
  int recorders = 1;      // Records that complete a generation
  int micro_batches = 1;  // that a generation spans
  int collective = -1;    // in Program::collectives
  int gives_back = -1;    // in Program::buffers: what each member no longer holds when it is done
  int next = -1;          // event that is recorded when this one is complete: a collective's answer
  int message = -1;       // in line: the channel of a message that who waits stands for
  int kept = 5;           // complete generations of a collective that may still be waited for
  bool in_turn = false;   // who records it stands until the collectives before it are done
};

/// An exchange of the members of a group. Collectives of one communicator come one after
/// the other, in the order in which their last members join; those of several streams that are
/// joined at one instant, by micro-batch, then by stream.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  MeshAxis axis = MeshAxis::Data;
  int stage = 0;
  int communicator = 0;
  Bytes bytes;              // S of an Exchange
  Bytes back;               // likewise
  Seconds occupancy;        // of the busiest link, alone
  Seconds own_occupancy;    // likewise, without its equals where ranks stand for others
  bool known_late = false;  // `occupancy`, only when all flows of a program are
  Seconds latency;          // of all its steps; follows, occupies nothing but the communicator
  Bytes memory_bytes;       // that it reads and writes in the memory of a member, at least
  bool shared = false;      // another communicator, or a wire of messages, uses one of its links
  using Flow = WireFlow;
  std::vector<Flow> flows;  // all at once, over wires of the communicator
  /// Bytes that it and its equals carry, where ranks stand for others; else its flows say them.
  std::vector<LinkBytes> loads = {};
};

struct Communicator {
  std::vector<int> ranks;  // members that are simulated
};

struct Program;
/// Returns how long a message of `channel` occupies its way where it meets no other: less than
/// Channel::occupancy if its rank stands for others whose equal messages cross the same links.
Seconds occupancy_alone(const Program& program, const Channel& channel);

}  // namespace interlock
