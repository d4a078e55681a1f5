// GpuRun: one run of a whole program on GPUs: memories, stages and messages of all ranks.
// SPDX-License-Identifier: Apache-2.0
//
// One host thread issues everything in an order in which an event is recorded before a stream waits
// for it, as a stream does not wait at all for an event that is not recorded yet.
// A run is issued as it is, or captured into one graph and then run; the latter only after the
// former, when every product has its algorithm, every kernel is loaded and scratch has its size.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/program/issue_order.h"
#include "validate/cuda/device/device_group.h"
#include "validate/cuda/device/hold.h"
#include "validate/cuda/device/nccl.h"
#include "validate/cuda/stage/gpu_device.h"
#include "validate/cuda/stage/gpu_exchange.h"
#include "validate/cuda/stage/run_times.h"
#include "validate/executors/cuda_executor.h"
#include "validate/executors/executor.h"
#include "validate/stage/stage.h"

namespace interlock::cuda {

/// The devices of a run, and what is kept from run to run.
struct Rig {
  DeviceGroup group;
  std::vector<std::unique_ptr<Products>> products;  // by rank
  std::vector<std::unique_ptr<Scratch>> scratch;
  std::optional<NcclGroup> nccl;
  std::vector<cudaStream_t> ways, arrivals;  // by wire, of the sender and of the receiver
  std::vector<ReplicaGroup> groups;          // by communicator
  std::int64_t memory = 0;                   // bytes of each device

  Rig(const Job& job, const CudaOptions& options);
};

class GpuRun {
 public:
  GpuRun(const Job& job, const CudaOptions& options, Rig& rig, bool capturing);
  ~GpuRun();
  GpuRun(const GpuRun&) = delete;
  GpuRun& operator=(const GpuRun&) = delete;

  /// Issues all, and waits for it. Throws: Error soon after a loss is not a number.
  void run();
  /// Runs the first step alone, so that its products are chosen and its kernels loaded. What it
  /// learns is of no use.
  void warm_up();
  /// Returns losses, memory and dumps. Throws: Error if a loss is not a number.
  Outcome outcome() const;
  const RunTimes& times() const { return times_; }
  /// Returns everything, or what was issued before the run was stopped.
  const std::vector<Issue>& issued() const { return issued_; }
  bool stopped() const { return stopped_; }
  Seconds wall() const { return wall_; }
  /// Returns how long the host issued work, waits for the device left out.
  Seconds issue_time() const { return issue_; }
  /// Returns the bytes of `gpu` that the inputs of its stages take.
  std::int64_t input_bytes(int gpu) const;

 private:
  struct Mail {
    int micro_batch = 0, transfer = -1;
    MessageBlocks here, there;  // at the sender and the receiver
    cudaEvent_t ready = nullptr, arrived = nullptr, mark = nullptr;  // mark: of when it was ready
    LastUse read;                                                    // of what is at the sender
  };
  struct Channeled {
    std::deque<Mail> mail;
    std::deque<cudaEvent_t> taken;  // of bounded channels, oldest first
    std::int64_t sent = 0;
  };
  struct RankState {
    cudaEvent_t last = nullptr;  // behind its last op
    cudaEvent_t last_mark = nullptr;
    int message = -1, collective = -1;  // in the times, since the last op
  };

  /// A loss that was issued, and may not be there yet.
  struct PendingLoss {
    int stage = 0, micro_batch = 0;
    cudaEvent_t behind = nullptr;
  };

  void add_stage(int rank, int index);
  void note_loss(const PendingLoss& loss);
  void check_loss(int stage, int micro_batch) const;
  void issue_all();
  std::size_t end_of_first_step(const std::vector<Issue>& order) const;
  void issue(int rank, const Issue& next);
  void compute(int rank, const Instruction& instruction);
  void send(int rank, const Instruction& instruction);
  void receive(int rank, const Instruction& instruction);
  void record(int rank, const Issue& next);
  void join(int rank, const Instruction& instruction);
  std::pair<int, int> generation_of(const Instruction& instruction) const;
  void wait(int rank, const Instruction& instruction);
  void start_transfer(int index, Mail& mail);
  void ship_all(const Channel& channel, const Mail& mail);
  void begin_together();
  void end_together();
  std::vector<cudaStream_t> streams() const;
  void launch_graph();
  void wait_for_all() const;
  cudaStream_t compute_of(int rank) const;
  cudaEvent_t record_on(cudaStream_t stream);
  Stage& stage(int index) { return *stages_[static_cast<std::size_t>(index)]; }

  Job job_;
  const CudaOptions& options_;
  Rig& rig_;
  bool capturing_;
  Events events_;
  RunTimes times_;
  NcclTurns turns_;
  GpuExchanges exchanges_;
  GpuMemories memories_;
  std::vector<std::unique_ptr<GpuDevice>> devices_;  // by stage
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::set<int>> made_;  // micro-batches whose loss was made, by stage
  std::deque<PendingLoss> pending_;  // oldest first
  std::size_t most_pending_ = 0;     // two steps' losses
  std::vector<Issue> issued_;
  bool stopped_ = false, only_first_ = false;  // only_first: step
  std::vector<Channeled> channels_;
  std::vector<RankState> ranks_;
  std::map<std::pair<int, int>, std::vector<cudaEvent_t>> recorded_;  // by event and generation
  std::chrono::steady_clock::time_point begin_;
  Seconds wall_, issue_, waited_;  // of the host; waited: while it issued
  std::optional<Hold> hold_;       // of ops that run alone
};

/// Runs a job, see run_cuda(). REQUIRES: there is a GPU.
void run_job(const Job& job, const CudaOptions& options, const TraceSink& sink, CudaRun& run);

}  // namespace interlock::cuda
