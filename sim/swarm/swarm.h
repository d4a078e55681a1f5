// Swarm: training by interchangeable peers on slow links, which fail, join and change stages.
// SPDX-License-Identifier: Apache-2.0
//
// Several peers serve each stage, and a micro-batch takes its own way through them: a router of
// each stage deals requests by the measured speed of its peers. Peers keep what they received until
// the gradient has come back, and compute the forward again then. What a dead peer held is sent
// again by the last peer before it that still holds its own; what it had added to its gradients is
// run again. When every micro-batch of a step has been through a stage exactly once, by peers that
// are alive, the stage's peers average their gradients while the next step begins (with weights one
// step old). From time to time a peer moves from the least loaded stage to the most loaded one.
// Source: Ryabinin et al., SWARM Parallelism, ICML 2023 (arXiv 2301.11913); the published router.
//
// Example: two stages whose forward takes 1 s and whose backward takes 2 s, two peers of speed 1
// each. The first stage deals with 2 / (2 x 1 + 2) = 0.5 micro-batches a second, the last one with
// 2 / (1 + 2) = 0.67, so that the swarm does 0.5.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/spread.h"
#include "base/units.h"
#include "sim/runs/outages.h"

namespace interlock {

/// One stage, for one micro-batch, on a peer of speed 1.
struct SwarmStage {
  Seconds forward, backward;  // the backward without computing the forward again
  Seconds update;             // after averaging, beside the requests
  Bytes input;                // received by a forward, and again by a peer that takes over
  Bytes gradient_message;     // of its input, sent to the stage below
  Bytes gradients;            // averaged by its peers
  Bytes state;                // downloaded by a peer that joins the stage
};

/// A peer and its own link to all others: what it sends shares `up`, what it receives `down`.
struct SwarmPeer {
  std::optional<int> stage;  // at the start; nothing: it is not there yet
  double speed = 1;
  BytesPerSecond up, down;
  Seconds latency;  // a message takes the sender's and the receiver's
};

/// How a stage's router deals requests: each to the peer with the least total of assigned time
/// (interleaved weighted round robin), at random in proportion to speed, or in turn.
enum class SwarmRouting { Weighted, Random, RoundRobin };

struct SwarmInputs {
  std::vector<SwarmStage> stages;
  std::vector<SwarmPeer> peers;
  int micro_batches = 1;  // of a step
  double samples_per_micro_batch = 1;
  std::optional<int> in_flight;  // micro-batches on their way; nothing: see enough_in_flight
  SwarmRouting routing = SwarmRouting::Weighted;
  std::optional<Seconds> rebalance_every;
  bool delayed_update = true;       // the next step begins before this one is averaged
  bool redo_lost = true;            // what the dead had added to gradients; else steps go without
  FailureModel failures;            // device i is peer i
  Seconds detection = Seconds(10);  // from a failure until others know
  Seconds duration = Seconds(3600), warm_up;  // figures are of [warm_up, duration)
};

/// Classes of messages.
enum class SwarmMessage { Activation, Gradient, Averaging, State };
constexpr int kSwarmMessages = 4;

struct SwarmOutcome {
  double micro_batches_per_s = 0, samples_per_s = 0;  // run and not lost again
  double best_samples_per_s = 0;          // if the peers there at any time were always dealt best
  std::vector<double> peer_busy;          // computing, of the time in which it is there
  std::vector<double> stage_utilisation;  // the same of all peers of a stage
  Seconds without_a_peer;                 // time in which some stage has none
  // Counts over the whole run:
  std::int64_t steps = 0;                          // averaged by every stage
  std::int64_t forwards = 0, forwards_redone = 0;  // of one stage each
  std::int64_t backwards = 0, backwards_redone = 0;
  std::int64_t gradients_dropped = 0;  // parts of one stage each, where they are not redone
  int failures = 0, joins = 0, moves = 0;
  std::array<Bytes, kSwarmMessages> traffic{};  // by SwarmMessage, arrived or not
  std::vector<Bytes> sent, received;            // of each peer
  Bytes from_source;                            // of the data and of saved states
  Bytes lost, on_way;                           // to or from the dead; at the end
};

/// An event of a gradient, for sinks that keep accounts.
struct SwarmRecord {
  enum class Kind { Added, Gone, HandedOver, Averaged } kind;
  Seconds time;
  int peer = 0, to = 0;            // lives are numbered: one that comes back is a new peer
  std::int64_t step = 0;           // Added, Averaged
  int stage = 0, micro_batch = 0;  // micro_batch: Added only
  std::vector<int> members;        // Averaged
};

/// Simulates `duration` of a swarm. The same seed gives the same outcome.
/// Throws: Error if a stage has no peer and none can ever come.
/// REQUIRES: a peer at every stage; bandwidths, speeds and times of ops above 0.
SwarmOutcome simulate_swarm(const SwarmInputs& inputs, std::uint64_t seed,
                            std::vector<SwarmRecord>* records = nullptr);

/// Returns how many micro-batches keep the slowest stage busy, or its links: twice its rate times
/// the time of an unhindered way there and back (Little's law asks for once), and at least one for
/// each peer.
int enough_in_flight(const SwarmInputs& inputs);

/// Returns the micro-batches per second of stages that have `peers` of speed 1: the rate of the
/// slowest stage, peers / (2 forward + backward); the last stage's forward counts once.
double swarm_rate(const std::vector<SwarmStage>& stages, const std::vector<int>& peers);
/// Returns the best such rate over all ways to deal `peers` to the stages; 0 if there are too few.
double best_swarm_rate(const std::vector<SwarmStage>& stages, int peers);

}  // namespace interlock
