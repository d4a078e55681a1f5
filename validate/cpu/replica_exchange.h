// Replica exchange: what the replicas of a stage that are threads give each other.
// SPDX-License-Identifier: Apache-2.0
//
// One thread does it all, when every replica has given its block.
//
// Example: an all-reduce of {1, 2} and {3, 6} leaves {2, 4} in both; a reduce-scatter in shards of
// one number {2, 0} and {0, 4}; an all-gather of {2, -} and {-, 4} the blocks {2, 4}.
#pragma once

#include <vector>

#include "base/exchange.h"
#include "validate/stage/stage_device.h"

namespace interlock {

/// Carries out a collective of replicas, in whose order blocks come: each gets the mean of all
/// (AllReduce), or of its shard of them and zeros elsewhere (ReduceScatter), or the shards of all
/// (AllGather). A sum is made in the order of the blocks. REQUIRES: blocks of equal bytes, of which
/// `shard_bytes` are a replica's own (see shard.h; an all-reduce asks for none).
void exchange_replicas(StageDevice& device, CollectiveKind kind, const std::vector<Block>& blocks,
                       std::int64_t shard_bytes);

}  // namespace interlock
