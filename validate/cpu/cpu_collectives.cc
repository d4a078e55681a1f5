// Threads that write blocks, meet, and leave the exchange to the last of them.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_collectives.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "validate/cpu/cpu_device.h"
#include "validate/cpu/replica_exchange.h"
#include "validate/executors/stopwatch.h"
#include "validate/stage/shard.h"

namespace interlock {
namespace {

constexpr int kCollectiveWarmUps = 2;

/// Threads that wait for each other; the last one works before all go on.
class Meeting {
 public:
  explicit Meeting(int members) : members_(members) {}
  template <class Last>
  void join(const Last& last) {
    std::unique_lock lock(mutex_);
    if (++joined_ < members_) {
      changed_.wait(lock, [this, round = round_] { return round_ != round || members_ == 0; });
      return;
    }
    if (members_ == 0) return;
    last();
    joined_ = 0;
    ++round_;
    changed_.notify_all();
  }
  /// Lets all go on, now and later, with nothing done.
  void call_off() {
    const std::scoped_lock lock(mutex_);
    members_ = 0;
    changed_.notify_all();
  }

 private:
  int members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int joined_ = 0, round_ = 0;
};

/// The blocks of replicas, each in the memory of its own rank, and the device that adds them up.
class ReplicaBlocks {
 public:
  ReplicaBlocks(CollectiveKind kind, int members, std::int64_t bytes)
      : kind_(kind), shard_((bytes / kNumber + members - 1) / members * kNumber) {
    for (int rank = 0; rank < members; ++rank) {
      const std::int64_t room = addresses_of_rank(static_cast<std::size_t>(members));
      memories_.push_back(std::make_unique<CpuMemory>(rank, room, false));
      blocks_.push_back(memories_.back()->allocate(bytes, MemoryClass::Gradients));
      std::fill_n(numbers(blocks_.back().data), bytes / kNumber, 1.F);
    }
    device_ = std::make_unique<CpuDevice<float>>(job_, 0, options_, *memories_.front(), losses_);
  }
  /// Writes what a member gives: the gradients of its samples, or its own weights.
  void write(std::size_t member) {
    const Block& block = blocks_[member];
    const bool all = kind_ != CollectiveKind::AllGather;
    const NumberRange own =
        all ? NumberRange{0, block.bytes} : shard_of(block.bytes, shard_, member);
    std::fill_n(numbers(block.data + own.first), own.numbers / kNumber, 1.F);
  }
  void exchange() { exchange_replicas(*device_, kind_, blocks_, shard_); }

 private:
  static constexpr std::int64_t kNumber = sizeof(float);
  static float* numbers(char* data) { return reinterpret_cast<float*>(data); }

  CollectiveKind kind_;
  std::int64_t shard_;
  Program program_;
  NeuralNetwork network_;
  Job job_{.program = program_, .network = network_};
  CpuOptions options_;
  StageLosses losses_;
  std::vector<std::unique_ptr<CpuMemory>> memories_;  // by member
  std::vector<Block> blocks_;                         // likewise
  std::unique_ptr<StageDevice> device_;
};

}  // namespace

Readings time_cpu_collective(CollectiveKind kind, int members, Bytes bytes, int count) {
  ReplicaBlocks blocks(kind, members, static_cast<std::int64_t>(bytes.value()));
  Meeting meeting(members);
  Readings readings;
  const auto take_part = [&](std::size_t member) {
    for (int i = -kCollectiveWarmUps; i < count; ++i) {
      blocks.write(member);
      meeting.join([&] {
        const Stopwatch watch;
        blocks.exchange();
        const Seconds cpu = watch.cpu(), wall = watch.wall();
        if (i < 0) return;
        readings.busy.push_back(cpu.value());
        readings.wall.push_back(wall.value());
      });
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (int member = 1; member < members; ++member) {
      threads.emplace_back(take_part, static_cast<std::size_t>(member));
    }
  } catch (...) {
    meeting.call_off();
    throw;
  }
  take_part(0);
  threads.clear();  // joined
  return readings;
}

void add_collectives(Bench& bench) {
  const auto threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads < 2) return;
  bench.collective = time_cpu_collective;
  bench.most_members = threads;
  bench.collectives = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                       CollectiveKind::ReduceScatter};
  bench.most_exchanged = Bytes(1 << 26);
}

}  // namespace interlock
