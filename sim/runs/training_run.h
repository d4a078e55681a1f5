// Training run: what failures, checkpoints and preemptions make of the time of many steps.
// SPDX-License-Identifier: Apache-2.0
//
// Knows nothing of programs: what a step costs is an input. The run is event driven over outages
// and checkpoints, never over steps. Training of equal steps goes on until a device that takes part
// goes down. Then the step under way is lost, and
//
//   - restart: all replicas go back to the last checkpoint that was safely written;
//   - wait: replicas that are whole keep their state; a newcomer copies it from one of them;
//   - drop_replica: likewise, but the replicas that are left go on at once, the batch divided
//     among them; a replica that can be formed again joins between two steps.
//
// Where no replica keeps the state, all go back to the checkpoint. Devices that are idle take the
// places of those that are down; if they are too few, restart and wait wait.
//
// A failure of a device that takes part in a recovery begins it anew. What happens at the instant
// at which steps, a write or a recovery end comes after that end.
//
// Example: 10 steps of 1 s, a checkpoint of 0.5 s every 4 steps, a failure at 6.2 s, 2 s until it
// is detected and 1 s to reload. Steps 0 to 3, a checkpoint, step 4, and 0.7 s of step 5 are run;
// both are lost. From 9.2 s on steps 4 to 9 are run with two checkpoints, and the run ends at 16.2
// s: 10 s useful, 1.7 lost, 1.5 of checkpoints, 3 of restarting; goodput 0.617.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/runs/outages.h"

namespace interlock {

enum class OnFailure { Restart, DropReplica, Wait };

/// Steps between checkpoints. A checkpoint is written between two steps, and one after the last.
struct CheckpointPolicy {
  std::int64_t interval = 0;  // steps; 0: none is ever written
  Seconds write;              // until a checkpoint is safe
  /// Training goes on meanwhile, after `stall`; a failure ends a write that is under way, and the
  /// next checkpoint waits for the one before.
  bool asynchronous = false;
  Seconds stall;
};

struct RunPlan {
  std::int64_t steps = 1;
  Seconds step_time;  // with all replicas; above 0
  int replicas = 1;   // data-parallel
  int devices_per_replica = 1;
  int spares = 0;                   // devices beyond those of the replicas
  std::int64_t micro_batches = 1;   // of a step of one replica, with all replicas
  Seconds micro_batch_time;         // that one more adds to the step of a replica
  bool replicas_hold_state = true;  // each of them all of it; else only all together
  OnFailure on_failure = OnFailure::Restart;
  Seconds detection;  // from a failure until training is stopped
  Seconds reload;     // of a checkpoint, by all
  Seconds regroup;    // and copying the state to newcomers
  Seconds warm_up;    // what filling the pipeline adds to the first step
  CheckpointPolicy checkpoint;
  FailureModel failures;
};

/// The time of a run, divided. wall = useful + lost + checkpoint + restart + idle, to the tick.
struct RunOutcome {
  Seconds wall;
  Seconds useful;      // in steps that lasted
  Seconds lost;        // in steps that were cut short or undone
  Seconds checkpoint;  // standing still for checkpoints, finished or not
  Seconds restart;     // detection, reload, regrouping and warm-up, the first one included
  Seconds idle;        // waiting for devices
  double goodput = 1;  // time of the steps with all replicas and no failure, over `wall`
  std::int64_t steps = 0;
  std::int64_t redone_steps = 0, broken_steps = 0;  // undone; cut short
  std::int64_t micro_batches = 0;         // of all replicas, done once in the steps that lasted
  std::int64_t redone_micro_batches = 0;  // done besides: of undone steps, and parts of cut ones
  std::int64_t failures = 0;              // that hit a replica, or one already being recovered
  std::int64_t rollbacks = 0;             // to a checkpoint
  std::int64_t checkpoints = 0;           // safely written
  int fewest_replicas = 0;                // that made a step
};

/// A stretch of a run. Steps: `steps` whole ones from `first_step` on, by `replicas` replicas.
struct RunSpan {
  enum class Kind { Steps, BrokenStep, Checkpoint, Restart, Idle };
  Kind kind = Kind::Steps;
  Seconds begin, end;
  std::int64_t first_step = 0, steps = 0;
  int replicas = 0;
};

/// The micro-batches of a step that replica `replica` of `live` takes; sizes differ by one at most.
struct MicroBatchRange {
  std::int64_t first = 0, count = 0;
};
MicroBatchRange micro_batches_of(const RunPlan& plan, int live, int replica);

/// Returns the time of a step with `live` replicas: that of the replica with the most
/// micro-batches.
Seconds step_time_of(const RunPlan& plan, int live);

/// Simulates one run; `history`, if asked for, gets its spans in order. Throws: Error if devices
/// are gone for good and the run cannot end, or if it takes beyond a thousand times as long as
/// without failures.
RunOutcome simulate_training_run(const RunPlan& plan, std::uint64_t seed,
                                 std::vector<RunSpan>* history = nullptr);

}  // namespace interlock
