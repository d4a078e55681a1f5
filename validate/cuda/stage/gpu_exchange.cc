// Exchanges of replicas: by kernels of each member inside a GPU, by NCCL between GPUs.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_exchange.h"

#include <algorithm>

#include "base/error.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

/// Clears all of a block but a shard: no update does, and the next gradients are added to it.
void clear_others(const Stream& stream, const Block& block, NumberRange shard) {
  const std::int64_t size = bytes_of(stream.element);
  const std::int64_t before = shard.first * size, end = before + shard.numbers * size;
  const auto clear = [&](std::int64_t from, std::int64_t bytes) {
    if (bytes == 0) return;
    require(cudaMemsetAsync(block.data + from, 0, static_cast<std::size_t>(bytes), stream.handle),
            "clear gradients of others");
  };
  clear(0, before);
  clear(end, block.bytes - end);
}

/// Makes the sum of `members` replicas their mean: 1/n is of fp32, as in kernels inside a GPU.
void divide(const Stream& stream, const Block& block, NumberRange part, std::size_t members) {
  if (part.numbers == 0) return;
  char* const at = block.data + part.first * bytes_of(stream.element);
  scale(stream, at, at, 1.0F / static_cast<float>(members), part.numbers);
}

/// Issues the part of `member` among replicas that share a GPU.
void share_inside(CollectiveKind kind, const ReplicaGroup& group, const std::vector<Block>& blocks,
                  std::int64_t shard, std::size_t member) {
  const Stream& stream = group.streams[member];
  const std::int64_t size = bytes_of(stream.element), numbers = blocks.front().bytes / size;
  const auto count = static_cast<std::int64_t>(blocks.size());
  const bool whole = kind == CollectiveKind::AllReduce;
  const NumberRange own = shard_of(numbers, whole ? (numbers + count - 1) / count : shard, member);
  if (kind == CollectiveKind::AllGather) {
    for (std::size_t other = 0; other < blocks.size(); ++other) {
      if (other == member) continue;
      scale(stream, blocks[other].data + own.first * size, blocks[member].data + own.first * size,
            1, own.numbers);
    }
    return;
  }
  std::vector<void*> replicas;
  replicas.reserve(blocks.size());
  for (const Block& block : blocks) replicas.push_back(block.data);
  average_replicas(stream, replicas, own, whole ? -1 : static_cast<int>(member));
}

}  // namespace

std::vector<ReplicaGroup> make_replica_groups(const Program& program, DeviceGroup& devices,
                                              CudaLink link, Element element) {
  std::vector<ReplicaGroup> groups;
  for (const Communicator& communicator : program.communicators) {
    ReplicaGroup group = {.ranks = communicator.ranks};
    std::sort(group.ranks.begin(), group.ranks.end());
    for (const int rank : group.ranks) {
      const Member& member = devices.members()[static_cast<std::size_t>(rank)];
      group.gpus.push_back(member.gpu);
      group.streams.push_back({devices.make_stream_beside(rank), member.sms, element});
    }
    if (!devices.one_gpu()) {
      if (const std::string problem = nccl_problem(); !problem.empty()) {
        throw Error("replicas on several GPUs exchange by NCCL, and " + problem +
                    "; install it, or use partitions of one GPU");
      }
      group.nccl = std::make_unique<NcclGroup>(group.gpus);
    } else if (link == CudaLink::Paced) {
      group.pace = devices.make_way(group.ranks.front(), group.ranks.back(), link);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string name_of_exchanges(const std::vector<ReplicaGroup>& groups) {
  if (groups.empty()) return "";
  // All replicas have all stages, so groups are of one size.
  const std::string members =
      (groups.size() == 1 ? "a group" : std::to_string(groups.size()) + " groups") + " of " +
      std::to_string(groups.front().ranks.size());
  if (groups.front().nccl != nullptr) return "NCCL " + nccl_version() + ": " + members + " GPUs";
  return "kernels of each member inside the GPU: " + members + " devices";
}

void exchange(CollectiveKind kind, ReplicaGroup& group, const std::vector<Block>& blocks,
              std::int64_t shard_bytes) {
  const std::int64_t size = bytes_of(group.streams.front().element);
  const std::int64_t numbers = blocks.front().bytes / size, shard = shard_bytes / size;
  if (group.nccl == nullptr) {
    for (std::size_t m = 0; m < blocks.size(); ++m) share_inside(kind, group, blocks, shard, m);
    return;
  }
  std::vector<NcclGroup::Copy> copies;
  for (std::size_t m = 0; m < blocks.size(); ++m) {
    copies.push_back({blocks[m].data, group.streams[m].handle});
  }
  group.nccl->exchange(kind, copies, {group.streams.front().element, numbers, shard});
  if (kind == CollectiveKind::AllGather) return;
  const bool whole = kind == CollectiveKind::AllReduce;
  for (std::size_t m = 0; m < blocks.size(); ++m) {
    const CurrentDevice current(group.gpus[m]);
    const NumberRange own = whole ? NumberRange{0, numbers} : shard_of(numbers, shard, m);
    divide(group.streams[m], blocks[m], own, blocks.size());
    if (!whole) clear_others(group.streams[m], blocks[m], own);
  }
}

void NcclTurns::take(int gpu, cudaStream_t stream) const {
  const auto last = last_.find(gpu);
  if (last == last_.end()) return;
  require(cudaStreamWaitEvent(stream, last->second), "wait for a turn");
}

void NcclTurns::end(int gpu, cudaStream_t stream) {
  if (!several_) return;
  const CurrentDevice current(gpu);
  cudaEvent_t event = events_.make();
  require(cudaEventRecord(event, stream), "end a turn");
  last_[gpu] = event;
}

cudaEvent_t GpuExchanges::mark(cudaStream_t stream) {
  return setting_.options.times ? events_.mark(stream, setting_.capturing) : nullptr;
}

int GpuExchanges::place_of(const Which& which) const {
  const auto found = places_.find(which);
  return found == places_.end() ? -1 : found->second;
}

std::vector<cudaEvent_t> GpuExchanges::carry_out(const Which& which, const Instruction& record) {
  const std::map<int, GivenBlock> joined = std::move(joined_.extract(which).mapped());
  const Program& program = setting_.program;
  const int number = program.events[static_cast<std::size_t>(record.index)].collective;
  const Collective& collective = program.collectives[static_cast<std::size_t>(number)];
  ReplicaGroup& group = setting_.groups[static_cast<std::size_t>(collective.communicator)];
  CHECK(joined.size() == group.ranks.size(), "all members of a group join its collectives");
  MarkedCollective marked = {.collective = number, .micro_batch = record.micro_batch};
  std::vector<Block> blocks;
  blocks.reserve(joined.size());
  for (const auto& [rank, given] : joined) blocks.push_back(given.block);
  // All streams of the group wait for all members: none begins a work that waits for its peers.
  std::vector<cudaStream_t> streams;
  streams.reserve(group.streams.size() + 1);
  for (const Stream& stream : group.streams) streams.push_back(stream.handle);
  if (group.pace != nullptr) streams.push_back(group.pace);
  const auto gpu_of = [&](std::size_t i) { return group.gpus[i < group.gpus.size() ? i : 0]; };
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const CurrentDevice current(gpu_of(i));
    for (const auto& [rank, given] : joined) {
      require(cudaStreamWaitEvent(streams[i], given.ready), "wait for a member");
    }
    if (group.nccl != nullptr) turns_.take(gpu_of(i), streams[i]);
    const std::size_t member = i < group.ranks.size() ? i : 0;
    marked.shares.push_back({.rank = group.ranks[member], .start = mark(streams[i])});
    marked.shares.back().joined = joined.at(group.ranks[member]).mark;
  }
  exchange(collective.kind, group, blocks, joined.begin()->second.shard_bytes);
  if (group.pace != nullptr) {
    pace((collective.occupancy + collective.latency).value(), group.pace);
  }
  std::vector<cudaEvent_t> done;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const CurrentDevice current(gpu_of(i));
    marked.shares[i].end = mark(streams[i]);
    if (group.nccl != nullptr) turns_.end(gpu_of(i), streams[i]);
    done.push_back(events_.make());
    require(cudaEventRecord(done.back(), streams[i]), "record the end of a collective");
  }
  if (setting_.options.times) {
    places_[which] = static_cast<int>(times_.collectives.size());
    times_.collectives.push_back(marked);
  }
  return done;
}

}  // namespace interlock::cuda
