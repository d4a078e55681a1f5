// SlowestReplica: the devices by which a program that folds all replicas into one tells most.
// SPDX-License-Identifier: Apache-2.0
//
// The devices of a stage do not stand for each other if their groups lie differently in nodes. A
// program that follows one of each is a bound by whichever it follows, and the best bound by those
// whose groups take longest.
//
// Example: 12 devices in nodes of 4, in groups of three. Devices 0 to 2 lie in one node, 3 to 5 in
// two, and wait for cards. Replicas that synchronise with both are as slow as the second.
#pragma once

#include <functional>

#include "sim/lower/lower.h"

namespace interlock {

/// Returns how long an exchange of a group of devices takes, alone on the cluster.
using GroupTime = std::function<Seconds(const Exchange&, const std::vector<int>& group)>;

/// Returns by how much to move on from the first devices that `inputs` folds others into, so that
/// the exchanges within their ops take longest; nowhere if all groups are laid alike, or where
/// devices differ in more than that. `time_of` is asked once for each way in which groups lie.
Coordinates slowest_replica(const LowerInputs& inputs, const GroupTime& time_of);

}  // namespace interlock
