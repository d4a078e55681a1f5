// RunPlan of a scenario: what its "run" means for the step that was measured.
// SPDX-License-Identifier: Apache-2.0
//
// Example: pipeline 16 x data 128 without ZeRO has 128 replicas of 16 devices, each of which holds
// the whole state; with ZeRO a replica holds a part of it.
#pragma once

#include <optional>

#include "scenarios/load/question.h"
#include "sim/measure/metrics.h"
#include "sim/runs/checkpoint_interval.h"
#include "sim/runs/goodput.h"

namespace interlock {

/// Outcome of a run's seeds.
struct RunResult {
  RunPlan plan;
  RunStatistics statistics;
  std::optional<CheckpointCosts> costs;  // where checkpoints are written and something fails
};

/// Facts about the steps of a run.
struct StepFacts {
  const Metrics& metrics;
  std::optional<double> samples, tokens;  // of a step, all replicas together
  int micro_batches = 1;                  // of a step
  Seconds micro_batch_time;               // that one more adds to a step
};

/// Which devices train the same thing: each replica has all of the model.
struct ReplicaLayout {
  int replicas = 1, devices_per_replica = 1;
  bool hold_state = true;  // each all of it
};
ReplicaLayout replica_layout(const Question& question);

/// Simulates the run of `question`. REQUIRES: it has one. Throws: Error if it cannot end.
RunResult simulate_run(const Question& question, const StepFacts& facts);

}  // namespace interlock
