// CPU collectives: what the replicas of a training on threads give each other, timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/calibration/bench.h"

namespace interlock {

/// Times `count` collectives of `members` threads, `bytes` as in base/exchange.h. Each thread
/// writes what it gives; the last to join carries the collective out, as in a training, and its
/// times are those that count. REQUIRES: two members, and a kind that exchange_replicas() knows.
Readings time_cpu_collective(CollectiveKind kind, int members, Bytes bytes, int count);

/// Has the bench of this machine's processors time the collectives of replicas, among as many
/// threads as there are processors; of a single one, nothing.
void add_collectives(Bench& bench);

}  // namespace interlock
