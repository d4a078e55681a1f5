// Adds up, and copies, the blocks of the replicas of a stage.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/replica_exchange.h"

#include "base/error.h"
#include "validate/stage/shard.h"

namespace interlock {
namespace {

/// Returns the shard of replica `number` of a block.
Block own_block(const Block& block, std::int64_t shard_bytes, std::size_t number) {
  const auto [begin, bytes] = shard_of(block.bytes, shard_bytes, number);
  return {.data = block.data + begin, .bytes = bytes};
}

/// Clears all of a block but the shard of a replica.
void clear_others(StageDevice& device, const Block& block, const Block& shard) {
  const std::int64_t before = shard.data - block.data;
  device.clear(block.data, before);
  device.clear(shard.data + shard.bytes, block.bytes - before - shard.bytes);
}

bool is_of_replicas(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::AllGather;
}

}  // namespace

void exchange_replicas(StageDevice& device, CollectiveKind kind, const std::vector<Block>& blocks,
                       std::int64_t shard_bytes) {
  CHECK(is_of_replicas(kind), "a sum, or shards");
  const Block& first = blocks.front();
  if (kind != CollectiveKind::AllGather) {
    for (std::size_t i = 1; i < blocks.size(); ++i) device.add(blocks[i], first);
    device.scale(first, 1.0 / static_cast<double>(blocks.size()));
  }
  if (kind == CollectiveKind::AllReduce) {
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      device.copy(blocks[i].data, first.data, first.bytes);
    }
    return;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block shard = own_block(blocks[i], shard_bytes, i);
    if (kind == CollectiveKind::AllGather) {
      for (std::size_t to = 0; to < blocks.size(); ++to) {
        if (to == i) continue;
        device.copy(own_block(blocks[to], shard_bytes, i).data, shard.data, shard.bytes);
      }
    } else if (i > 0) {
      device.copy(shard.data, own_block(first, shard_bytes, i).data, shard.bytes);
      clear_others(device, blocks[i], shard);
    }
  }
  if (kind == CollectiveKind::ReduceScatter) {
    clear_others(device, first, own_block(first, shard_bytes, 0));
  }
}

}  // namespace interlock
