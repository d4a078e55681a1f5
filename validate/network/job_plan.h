// JobPlan: what a job's program and network say together of one stage.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a stage with an input of 8 KiB, a stash of 24 KiB and workspaces of 16 KiB: kept() is 32
// KiB and needed() 16 KiB. If it reads its input again, kept() and needed() are 24 KiB each.
#pragma once

#include <memory>
#include <vector>

#include "validate/network/job.h"
#include "validate/network/stage_plan.h"

namespace interlock {

struct StageJob {
  /// The layers of its modules, one after the other, and those of its head: plans refer to them.
  std::shared_ptr<const std::vector<Layer>> layers, head_layers;
  StagePlan plan;              // with the gradient of its input, where it can have one
  StagePlan plan_without;      // the same without
  StagePlan head_plan;         // of its head, if it has one
  StagePlan head_alone;        // the same where no gradient crosses a boundary, see StageRole
  int again = 0;               // modules that are computed again
  bool runs_again = false;     // the program has ops for that
  bool rereads_input = false;  // its input is the batch, which it asks for again
  bool rebuilds = false;       // its output comes back, and its input is computed from it
  bool returns_input = false;  // which goes down with its gradient, as the stage below needs it
  /// Returns whether its input is not kept: it lies at the start of the workspace, for as long as
  /// an op runs.
  bool drops_input() const { return rereads_input || rebuilds; }
  std::int64_t kept() const { return (drops_input() ? 0 : plan.input) + plan.stash; }
  /// Returns the bytes of the workspace that an op needs.
  std::int64_t needed() const;
  /// Bytes that the program gives an op of the stage, or its head, while it runs.
  std::int64_t workspace = 0, head = 0;
};

/// REQUIRES: the gradient of `loss` reaches the stage.
const Traversal& traversal_of(const StageRole& role, int loss);

/// Returns whether a stage reads the batch itself, not what another stage hands on.
bool reads_batch(const Job& job, int stage);
/// Returns the columns of the input of each stage of the model.
std::vector<int> input_columns(const Job& job);

/// REQUIRES: the job's network lies in one direction. `element`: bytes.
StageJob plan_stage_of_job(const Job& job, int stage, int element);

}  // namespace interlock
