// RunConditions and SwarmConditions: what a scenario says about a training run, or about a swarm.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {"steps": 1000000, "failures": {"device_mtbf": "1000 h"}, "checkpoint": {"interval": "1
// h", "bandwidth": "1 GB/s"}} has the length {Steps, 1e6}, a checkpoint of the rule Written every
// 3,600 s, a device that fails every 3.6e6 s, and 20 seeds. {"peers": 6, "speed": [1, 0.75], "up":
// "1 Gb/s"} gives each stage six peers, of which every second one is three quarters as fast, and
// which send and receive 125 MB/s.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "scenarios/load/goal.h"
#include "sim/runs/training_run.h"
#include "sim/swarm/swarm.h"

namespace interlock {

/// run.checkpoint. Lengths that are not written follow from others, or from what a step showed.
struct CheckpointConditions {
  enum class Rule { Optimal, Young, Daly, Written };
  Rule rule = Rule::Optimal;
  std::optional<std::int64_t> steps;  // Written: one of the two
  std::optional<Seconds> interval;
  std::optional<Seconds> write;  // else bytes / bandwidth
  std::optional<Bytes> bytes;    // of each device; else its weights and optimiser states
  BytesPerSecond bandwidth;      // of each device to where checkpoints are
  bool asynchronous = false;
  Seconds stall;
};

/// run.failures.
struct FailureConditions {
  std::optional<Seconds> device, link, node;  // mean times between failures, of one
  double shape = 1;
  std::optional<Seconds> replacement = Seconds(0);  // nothing: never
  std::vector<DeviceEvent> trace;
};

struct RunConditions {
  TrainingLength length;
  std::optional<CheckpointConditions> checkpoint;
  FailureConditions failures;
  OnFailure on_failure = OnFailure::Restart;
  Seconds detection;
  std::optional<Seconds> reload;  // else as long as a write
  Seconds regroup;
  int spares = 0;
  int seeds = 20;
};

struct SwarmConditions {
  std::vector<int> peers;  // of each stage; one number: of every stage
  // Peers take the values of a list in turn.
  std::vector<double> speeds = {1};
  std::vector<BytesPerSecond> up, down;  // down: empty if as up
  std::vector<Seconds> latencies = {Seconds(0)};
  SwarmRouting routing = SwarmRouting::Weighted;
  std::optional<Seconds> rebalance_every;
  bool int8 = false;
  std::optional<int> in_flight;
  bool delayed_update = true, redo_lost = true;
  FailureConditions failures;
  Seconds detection = Seconds(10);
  Seconds duration = Seconds(3600);
  std::optional<Seconds> warm_up;  // else a tenth of the duration
  int seeds = 5;
};

/// Reads the "failures" at `path` of the contract.
FailureConditions read_failures(std::string_view path, const JsonNode& node,
                                Diagnostics& diagnostics);
/// Reads "run".
RunConditions read_run(const JsonNode& node, Diagnostics& diagnostics);
/// Reads "swarm".
SwarmConditions read_swarm(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
