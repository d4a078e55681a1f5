// Makes a swarm of the stages of a scenario, and simulates it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/long_run/swarm_plan.h"

#include <string>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/contract/limits.h"
#include "scenarios/load/loader.h"
#include "sim/plan/schedules/message_bytes.h"

namespace interlock {
namespace {

constexpr double kMostSwarmOps = 3e8;  // of all seeds
constexpr double kMostParts = 2e7;     // of gradients: stages x micro-batches

int stage_count(const Question& question) {
  return parts_of(question.training().strategy, question.layout.stages);
}

/// Peers of each stage.
std::vector<int> peers_of(const Question& question) {
  const std::vector<int>& written = question.swarm->peers;
  if (written.size() > 1) return written;
  return std::vector<int>(static_cast<std::size_t>(stage_count(question)), written.front());
}

template <class Value>
const Value& in_turn(const std::vector<Value>& values, std::size_t peer) {
  return values[peer % values.size()];
}

std::vector<SwarmPeer> make_peers(const Question& question) {
  const SwarmConditions& swarm = *question.swarm;
  const std::vector<int> counts = peers_of(question);
  std::vector<SwarmPeer> peers;
  for (int stage = 0; stage < static_cast<int>(counts.size()); ++stage) {
    for (int i = 0; i < counts[stage]; ++i) {
      const std::size_t peer = peers.size();
      const BytesPerSecond up = in_turn(swarm.up, peer);
      peers.push_back({.stage = stage,
                       .speed = in_turn(swarm.speeds, peer),
                       .up = up,
                       .down = swarm.down.empty() ? up : in_turn(swarm.down, peer),
                       .latency = in_turn(swarm.latencies, peer)});
    }
  }
  return peers;
}

std::vector<SwarmStage> make_stages(const Question& question, const std::vector<StageCost>& costs) {
  const double element = element_bytes(question.training().precision);
  const auto message = [&](Bytes bytes) {
    return question.swarm->int8 ? cast_bytes(SentFormat::Int8, bytes, element) : bytes;
  };
  std::vector<SwarmStage> stages;
  for (std::size_t stage = 0; stage < costs.size(); ++stage) {
    const StageCost& cost = costs[stage];
    const Bytes input = stage > 0 ? message(costs[stage - 1].output) : Bytes(0);
    stages.push_back({.forward = cost.forward.time,
                      .backward = cost.backward_input.time + cost.backward_weight.time,
                      .update = cost.update.time,
                      .input = input,
                      .gradient_message = input,
                      .gradients = cost.state.gradients,
                      .state = cost.state.weights + cost.state.optimizer});
  }
  return stages;
}

void check_length(const SwarmInputs& inputs, int seeds) {
  double speeds = 0, work = 0;
  for (const SwarmPeer& peer : inputs.peers) speeds += peer.speed;
  for (std::size_t stage = 0; stage < inputs.stages.size(); ++stage) {
    const SwarmStage& cost = inputs.stages[stage];
    work += (2 * cost.forward + cost.backward).value();
    if (cost.forward + cost.backward > Seconds(0)) continue;
    throw Error("stage " + std::to_string(stage) +
                " takes no time, so a swarm has no speed to go by; expected modules that take "
                "some, or fewer stages");
  }
  const double rate = speeds / work;
  const double ops =
      2 * rate * static_cast<double>(inputs.stages.size()) * inputs.duration.value() * seeds;
  if (ops <= kMostSwarmOps) return;
  throw Error("the swarm runs about " + format_number(ops) + " ops in " + format(inputs.duration) +
              " under " + std::to_string(seeds) + " seeds; expected at most " +
              format_number(kMostSwarmOps) +
              ", by a shorter \"duration\", larger micro-batches or fewer \"seeds\"");
}

/// Checks that the peers fit the stages.
void check_peers(const Question& question, const JsonNode& swarm, Diagnostics& diagnostics) {
  const std::size_t written = question.swarm->peers.size();
  const int stages = stage_count(question);
  const JsonNode node = swarm.child("peers");
  if (written > 1 && written != static_cast<std::size_t>(stages)) {
    report(diagnostics, node,
           "expected a number of peers for each of the " + std::to_string(stages) +
               " stages, got " + std::to_string(written) + " numbers");
    return;
  }
  double all = 0;
  for (const int count : peers_of(question)) all += count;
  if (all > kMostPeers) {
    report(diagnostics, node,
           format_number(all) + " peers in all; expected at most " + format_number(kMostPeers));
    return;
  }
  if (all < 1) report(diagnostics, node, "no peer at all; expected one for each stage");
  for (const DeviceEvent& event : question.swarm->failures.trace) {
    if (event.first < all) continue;
    report(diagnostics, swarm.child("failures").child("trace"),
           "there is no peer " + std::to_string(event.first) + "; expected devices below the " +
               format_number(all) + " peers of the swarm, those that join later included");
    return;
  }
}

}  // namespace

void check_swarm(const Question& question, const JsonNode& swarm, Diagnostics& diagnostics) {
  const Training& training = question.training();
  if (training.strategy.kind != StrategyKind::Global) {
    report(diagnostics, swarm,
           "peers of a swarm send gradients through all stages; expected \"strategy\": "
           "\"global\"");
  }
  if (question.layout.mesh.devices() != question.layout.mesh.degree(Dimension::Pipeline)) {
    report(diagnostics, swarm,
           "a peer of a swarm is one device, and peers of a stage are its data parallelism; "
           "expected \"parallel\" with nothing but \"pipeline\" and \"stages\"");
  }
  if (training.slices) {
    report(diagnostics, swarm,
           "a swarm sends whole micro-batches of one size; expected a schedule that "
           "leaves sequences whole");
  }
  const double parts = static_cast<double>(training.micro_batches) * stage_count(question);
  if (parts > kMostParts) {
    report(diagnostics, swarm,
           "a step has " + format_number(parts) + " micro-batches x stages; expected at most " +
               format_number(kMostParts));
  }
  check_peers(question, swarm, diagnostics);
}

SwarmResult simulate_swarm_of(const Question& question, const std::vector<StageCost>& stages) {
  const SwarmConditions& swarm = *question.swarm;
  SwarmResult result;
  SwarmInputs& inputs = result.inputs;
  inputs.stages = make_stages(question, stages);
  inputs.peers = make_peers(question);
  inputs.micro_batches = question.training().micro_batches;
  inputs.samples_per_micro_batch = question.training().graph.samples_per_micro_batch.value_or(1);
  inputs.routing = swarm.routing;
  inputs.rebalance_every = swarm.rebalance_every;
  inputs.delayed_update = swarm.delayed_update;
  inputs.redo_lost = swarm.redo_lost;
  inputs.detection = swarm.detection;
  inputs.duration = swarm.duration;
  inputs.warm_up = swarm.warm_up.value_or(swarm.duration / 10);
  const FailureConditions& failures = swarm.failures;
  if (failures.device) {
    const int peers = static_cast<int>(inputs.peers.size());
    inputs.failures.kinds = {{.mean_life = *failures.device, .parts = peers}};
  }
  inputs.failures.shape = failures.shape;
  inputs.failures.replacement = failures.replacement;
  inputs.failures.trace = failures.trace;
  check_length(inputs, swarm.seeds);
  inputs.in_flight = swarm.in_flight.value_or(enough_in_flight(inputs));
  result.statistics =
      swarm_over_seeds(inputs, static_cast<std::uint64_t>(question.simulation.seed), swarm.seeds);
  return result;
}

}  // namespace interlock
