// Parts of a simulated swarm, for the sources of swarm.h only.
// SPDX-License-Identifier: Apache-2.0
//
// A life is one stay of a machine in the swarm; a machine that comes back begins a new life. Other
// peers take a dead life for alive until they notice. Two steps are open at most, so micro-batches
// are numbered in two slots, one for each of these steps.
//
// Example: two stages, four micro-batches a step. Step 3 has slot 3 % 2 = 1: its second micro-batch
// is number 1 x 4 + 1 = 5, and the averaging of its stage 1 has the place 1 x 2 + 1 = 3.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "sim/swarm/swarm.h"

namespace interlock {

constexpr int kNobody = -1, kSource = -2, kDropped = -3;
constexpr double kForever = std::numeric_limits<double>::infinity();

enum class SwarmEventKind {
  Done,
  FirstByte,
  Delivered,
  Sent,
  Outage,
  Noticed,
  Rebalance,
  WarmUp,
  Updated
};
struct SwarmEvent {
  double time = 0;
  std::int64_t order = 0;
  SwarmEventKind kind = SwarmEventKind::Done;
  int about = 0;  // a life, a message, a bulk, or slot * stages + stage
  std::int64_t generation = 0;
};
enum class BulkPurpose { Averaging, HandOver, Load };
struct PeerMessage {
  int from = kNobody, to = kNobody;
  double bytes = 0, up_begin = 0, up_end = 0;
  SwarmMessage kind = SwarmMessage::Activation;
  int about = 0;  // a micro-batch, or a bulk
  std::int64_t token = 0;
};
/// A long transfer in slices, so that messages find gaps.
struct BulkTransfer {
  BulkPurpose purpose = BulkPurpose::Load;
  int from = kNobody, to = kNobody, place = 0;  // Averaging: slot * stages + stage
  std::int64_t generation = 0;
  double slice = 0;
  int unsent = 0, unarrived = 0;
  bool open = false;
};
enum class PeerLife { Loading, Serving, Draining, HandingOver, Dead };
struct LivePeer {
  int machine = 0, stage = 0, next_stage = 0;
  double speed = 1, up = 0, down = 0, latency = 0;
  PeerLife life = PeerLife::Serving;
  double born = 0, died = kForever, at_stage_since = 0;
  double up_free = 0, down_free = 0;
  std::deque<int> queue;  // micro-batches, the running one first
  bool running = false;
  std::int64_t dropped = 0;  // times that it dropped its queue, with the running task
  double began = 0;          // the running task
  /// Exponential averages of service times over those of speed 1: of forwards, and of the rest.
  double forward_slowness = 1, backward_slowness = 1;
  double slowness = 1;                 // of both, as its stage needs them
  double assigned = 0;                 // by the router
  int held = 0;                        // what keeps it from leaving: places in micro-batches
  double queued = 0, queue_since = 0;  // integral of the queue since the last rebalancing
};
enum class SwarmOp { Forward, Backward, Turn };  // Turn: both, of the last stage
struct RoutedBatch {
  bool in_flight = false, finished = false;
  std::int64_t token = 0;  // of its present request; older ones are void
  SwarmOp op = SwarmOp::Forward;
  int stage = 0, executor = kNobody;
  int input_from = kNobody, gradient_from = kNobody;  // not yet arrived
  int back = 0;                    // the next stage to go back through; stages: none yet
  int gradient_at = kNobody;       // who made the gradient of its output
  std::vector<int> holder, owner;  // of each stage: of its input; of its part of the gradient
  std::vector<char> forward_ran, backward_ran;
};
enum class AveragingPhase { Collecting, Averaging, Averaged };
struct StageAveraging {
  AveragingPhase phase = AveragingPhase::Collecting;
  int missing = 0;  // micro-batches
  int pending = 0;  // transfers
  std::int64_t generation = 0;
  std::vector<int> members;
};

}  // namespace interlock
