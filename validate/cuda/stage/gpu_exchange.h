// GpuExchange: what replicas of a stage exchange: gradients before an update, weights behind it.
// SPDX-License-Identifier: Apache-2.0
//
// Replicas on GPUs of their own are joined by NCCL. Those that share a GPU cannot be, as NCCL
// refuses a GPU that is listed twice: there each adds up, in the order of ranks, the shard that is
// its own of the blocks of all, on its own multiprocessors, and writes the mean where it belongs.
//
// Example: two replicas of two stages are ranks 0, 1 and 2, 3. Their groups are {0, 2} and {1, 3},
// each with a stream for each of its members.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/program.h"
#include "validate/cuda/device/device_group.h"
#include "validate/cuda/device/nccl.h"
#include "validate/cuda/stage/run_times.h"
#include "validate/stage/stage_device.h"

namespace interlock::cuda {

/// The members of a communicator, in order of their ranks, and the streams that they exchange on.
struct ReplicaGroup {
  std::vector<int> ranks, gpus;
  std::vector<Stream> streams;
  cudaStream_t pace = nullptr;      // of paced links
  std::unique_ptr<NcclGroup> nccl;  // of members on several GPUs
};

/// Returns the groups of all communicators of a program. Throws: Error if members are on several
/// GPUs, and NCCL cannot be opened. REQUIRES: one GPU has at most kMostReplicas of them.
std::vector<ReplicaGroup> make_replica_groups(const Program& program, DeviceGroup& devices,
                                              CudaLink link, Element element);

/// Returns by what means replicas exchange, for the record; empty if there are none.
std::string name_of_exchanges(const std::vector<ReplicaGroup>& groups);

/// Issues a collective of the blocks of all members, on their streams, which stand behind all that
/// it waits for: each gets the mean of all, or of its shard of them and zeros elsewhere, or the
/// shards of all. `shard_bytes`: that each member updates; the last ones may have less.
void exchange(CollectiveKind kind, ReplicaGroup& group, const std::vector<Block>& blocks,
              std::int64_t shard_bytes);

/// The order of NCCL's works on each GPU: that in which they are issued, one at a time. Each waits
/// for its peers, so that two of them which GPUs begin in another order could wait for each other.
class NcclTurns {
 public:
  /// `several`: there are works of several communicators; NCCL orders those of one by itself.
  NcclTurns(Events& events, bool several) : events_(events), several_(several) {}
  /// Makes `stream` of the GPU wait until its turn has come.
  void take(int gpu, cudaStream_t stream) const;
  void end(int gpu, cudaStream_t stream);

 private:
  Events& events_;
  bool several_;
  std::map<int, cudaEvent_t> last_;  // by GPU
};

/// The block that a rank gives to a collective, once all that makes it is issued.
struct GivenBlock {
  Block block;
  std::int64_t shard_bytes = 0;
  cudaEvent_t ready = nullptr, mark = nullptr;  // mark: of when it was ready
};

/// The exchanges of a run under way. `Which`: an event of the program, and its generation.
class GpuExchanges {
 public:
  using Which = std::pair<int, int>;
  struct Setting {
    const Program& program;
    const CudaOptions& options;
    std::vector<ReplicaGroup>& groups;
    bool capturing = false;
  };
  GpuExchanges(const Setting& setting, Events& events, RunTimes& times, NcclTurns& turns)
      : setting_(setting), events_(events), times_(times), turns_(turns) {}

  void join(const Which& which, int rank, const GivenBlock& given) { joined_[which][rank] = given; }
  /// Issues the collective that all members have joined, the last of them by `record`. Returns
  /// events behind it.
  std::vector<cudaEvent_t> carry_out(const Which& which, const Instruction& record);
  /// Returns its place among the collectives of the times; -1: it is none, or has none.
  int place_of(const Which& which) const;

 private:
  cudaEvent_t mark(cudaStream_t stream);

  const Setting setting_;
  Events& events_;
  RunTimes& times_;
  NcclTurns& turns_;
  std::map<Which, std::map<int, GivenBlock>> joined_;  // by rank
  std::map<Which, int> places_;
};

}  // namespace interlock::cuda
