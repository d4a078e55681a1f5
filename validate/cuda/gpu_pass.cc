// GpuPass: issuing a program, and fetching what came out of it.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/gpu_pass.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "validate/cuda/captured_graph.h"
#include "validate/cuda/cuda_call.h"
#include "validate/executors/executor.h"

namespace interlock::cuda {

namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(Clock::now() - begin).count());
}

}  // namespace

cudaStream_t GpuPass::compute_of(int rank) const {
  return rig_.group.members()[static_cast<std::size_t>(rank)].compute;
}

cudaEvent_t GpuPass::record_on(cudaStream_t stream) {
  cudaEvent_t event = events_.make();
  require(cudaEventRecord(event, stream), "record an event");
  return event;
}

void GpuPass::wait_for_all() const {
  for (const int gpu : times_.gpu) {
    const CurrentDevice current(gpu);
    require(cudaDeviceSynchronize(), "run");
  }
}

/// All streams that work is issued to, the first rank's first.
std::vector<cudaStream_t> GpuPass::streams() const {
  std::vector<cudaStream_t> all;
  for (const Member& member : rig_.group.members()) all.push_back(member.compute);
  all.insert(all.end(), rig_.ways.begin(), rig_.ways.end());
  return all;
}

/// On one GPU, every stream begins behind one event, which times count from; captured, that makes
/// all streams part of the graph.
void GpuPass::begin_together() {
  if (!rig_.group.one_gpu()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const CurrentDevice current(times_.gpu[r]);
      times_.begin[times_.gpu[r]] = events_.mark(compute_of(static_cast<int>(r)), false);
    }
    return;
  }
  const std::vector<cudaStream_t> all = streams();
  times_.begin[times_.gpu.front()] = events_.mark(all.front(), capturing_);
  cudaEvent_t begin = record_on(all.front());
  for (std::size_t i = 1; i < all.size(); ++i) {
    require(cudaStreamWaitEvent(all[i], begin), "begin together");
  }
}

void GpuPass::end_together() {
  const std::vector<cudaStream_t> all = streams();
  for (std::size_t i = 1; i < all.size(); ++i) {
    require(cudaStreamWaitEvent(all.front(), record_on(all[i])), "end together");
  }
}

void GpuPass::run() {
  const CurrentDevice current(times_.gpu.front());
  wait_for_all();
  if (capturing_) return launch_graph();
  const Clock::time_point begin = Clock::now();
  begin_together();
  issue_all();
  wait_for_all();
  wall_ = since(begin);
}

void GpuPass::launch_graph() {
  const CapturedGraph graph(compute_of(0), [this] {
    begin_together();
    issue_all();
    end_together();
  });
  const Clock::time_point begin = Clock::now();
  graph.launch();
  require(cudaStreamSynchronize(compute_of(0)), "run a graph");
  wall_ = since(begin);
}

void GpuPass::issue_all() {
  std::vector<int> rank_of_stream(job_.program.streams.size());
  for (std::size_t r = 0; r < job_.program.ranks.size(); ++r) {
    const Rank& rank = job_.program.ranks[r];
    const auto first = rank_of_stream.begin() + rank.first_stream;
    std::fill(first, first + rank.streams, static_cast<int>(r));
  }
  for (const Issue& next : issue_order(job_.program)) {
    stopped_ = !capturing_ && options_.stop != nullptr && *options_.stop;
    if (stopped_) return;
    issued_.push_back(next);
    issue(rank_of_stream[static_cast<std::size_t>(next.stream)], next.instruction);
  }
}

void GpuPass::issue(int rank, const Instruction& instruction) {
  const CurrentDevice current(times_.gpu[static_cast<std::size_t>(rank)]);
  switch (instruction.code) {
    case Opcode::Compute:
      return compute(rank, instruction);
    case Opcode::Send:
      return send(rank, instruction);
    case Opcode::Receive:
      return receive(rank, instruction);
    case Opcode::Record:
      return record(rank, instruction);
    case Opcode::Wait:
      return wait(rank, instruction);
    case Opcode::Allocate:
    case Opcode::Free:
      return;  // stages take and give back what they really use
  }
}

void GpuPass::compute(int rank, const Instruction& instruction) {
  const OpInfo& info = job_.program.ops[static_cast<std::size_t>(instruction.index)];
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  GpuStage& own = stage(info.stage);
  const int micro_batch = instruction.micro_batch;
  MarkedOp op = {.rank = rank, .op = instruction.index, .micro_batch = micro_batch};
  op.message = std::exchange(state.message, -1);
  own.behind = events_.make();
  bool makes = false;  // a loss
  if (options_.times) op.start = events_.mark(compute_of(rank), capturing_);
  switch (info.kind) {
    case OpKind::F:
      run_forward(own, micro_batch);
      if (!own.under_way[micro_batch].output) makes = true;
      break;
    case OpKind::H:
      run_head(own, micro_batch);
      makes = true;
      break;
    case OpKind::I:
    case OpKind::W:
    case OpKind::B:
      run_backward(own, info.kind, info.loss, micro_batch);
      break;
    case OpKind::U:
      run_update(own, micro_batch);
      break;
    case OpKind::R:
      run_again(own, info.loss, micro_batch);
      break;
  }
  require(cudaEventRecord(own.behind, compute_of(rank)), "record the end of an op");
  state.last = own.behind;
  if (options_.times) {
    op.end = state.last_mark = events_.mark(compute_of(rank), capturing_);
    times_.ops.push_back(op);
  }
  if (makes) note_loss(own, micro_batch);
}

/// The host goes on only two steps ahead of the losses, so that it sees in time what went wrong.
void GpuPass::note_loss(const GpuStage& stage, int micro_batch) {
  made_[static_cast<std::size_t>(stage.stage)].insert(micro_batch);
  if (capturing_) return;
  pending_.push_back({stage.stage, micro_batch, stage.behind});
  while (pending_.size() > most_pending_) {
    const PendingLoss oldest = pending_.front();
    pending_.pop_front();
    require(cudaEventSynchronize(oldest.behind), "run");
    check_loss(oldest.stage, oldest.micro_batch);
  }
}

void GpuPass::check_loss(int stage, int micro_batch) const {
  const float loss = losses_[static_cast<std::size_t>(stage)][micro_batch];
  if (!std::isfinite(loss)) throw Error(loss_problem(job_, stage, micro_batch));
}

void GpuPass::record(int rank, const Instruction& instruction) {
  const Event& event = job_.program.events[static_cast<std::size_t>(instruction.index)];
  const int generation = instruction.micro_batch / event.micro_batches;
  recorded_[{instruction.index, generation}].push_back(record_on(compute_of(rank)));
}

void GpuPass::wait(int rank, const Instruction& instruction) {
  if (instruction.micro_batch < 0) return;
  const Event& event = job_.program.events[static_cast<std::size_t>(instruction.index)];
  const int generation = instruction.micro_batch / event.micro_batches;
  for (cudaEvent_t one : recorded_[{instruction.index, generation}]) {
    require(cudaStreamWaitEvent(compute_of(rank), one), "wait for an event");
  }
}

Outcome GpuPass::outcome() const {
  Outcome outcome;
  outcome.losses.resize(stages_.size());
  outcome.dump = dumped_batches(job_);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const GpuStage& own = *stages_[s];
    outcome.dump.insert(outcome.dump.end(), own.dump.begin(), own.dump.end());
    for (const int micro_batch : made_[s]) {
      check_loss(static_cast<int>(s), micro_batch);
      outcome.losses[s][micro_batch] = losses_[s][micro_batch];
    }
  }
  for (const auto& memory : memories_) outcome.memory.push_back(memory->held());
  return outcome;
}

}  // namespace interlock::cuda
