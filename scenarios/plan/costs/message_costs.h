// Message costs: copies, gathers and casts that ops pay for what they send and receive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "scenarios/plan/plan.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

/// Adds the copies of messages between ranks that the framework has the kernels' queue make: each
/// op copies what it reads of another rank, and what another rank reads of it.
void add_message_copies(const Plan& plan, std::vector<StageCost>& stages);

/// Adds what puts messages together again that tensor devices sent in parts: an op gathers what it
/// reads of another rank.
void add_message_gathers(const Plan& plan, const PriceInputs& prices,
                         std::vector<StageCost>& stages);

/// Fills in what outputs and their gradients take in the formats in which the strategy sends them.
/// A cast is one kernel that reads one form and writes the other, issued by the host like others.
/// Tensor devices that send a part each cast that part, gather parts as they come, and cast all.
/// Example: 16 MiB of bf16 in fp8 are 8 MiB and 256 KiB of scales; a device of 1 TB/s casts them in
/// (16 + 8.25) MiB / 1 TB/s = 25 us, when they leave and when they are read.
void add_message_casts(const Plan& plan, const PriceInputs& prices, std::vector<StageCost>& stages);

/// Returns the time in which modules [first, last) as a stage cast messages, for a micro-batch on
/// average; empty if none is cast. `rank_of_stage`: empty if it is not known yet.
StageTime cast_time(const Question& question, const PriceInputs& prices,
                    const std::vector<StageCost>& modules, std::vector<int> rank_of_stage);

/// The messages that stages hand on to each other, while no other is under way.
struct StageMessages {
  /// Returns how long the output of module `last` - 1, which ends `stage`, or its gradient occupies
  /// the narrowest link on its way: the longest of all.
  std::function<Seconds(int stage, int last)> occupied;
  /// Returns the time in which what passes the boundary below module `first`, the first of `stage`,
  /// goes up and its gradient down. REQUIRES: stages are a chain.
  std::function<Seconds(int stage, int first)> round_trip;
};
StageMessages stage_messages(const Question& question, const std::vector<StageCost>& modules,
                             const std::vector<int>& rank_of_stage);

}  // namespace interlock
