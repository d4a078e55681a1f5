// Messages of a pass: copies beside compute, and who waits for whom.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/error.h"
#include "validate/cuda/cuda_call.h"
#include "validate/cuda/gpu_pass.h"
#include "validate/cuda/links.h"

namespace interlock::cuda {

namespace {

/// Tensors in a message: in list form, one for each loss.
std::int64_t tensors_of(const Channel& channel, const GpuStage& from) {
  return std::lround(channel.bytes.value() / static_cast<double>(from.plans.plan.input));
}

}  // namespace

/// Both stages are on one rank: what was made changes hands in the order of one stream.
void GpuPass::keep_on_rank(int rank, const Channel& channel, Mail& mail) {
  GpuStage& from = stage(channel.from_stage);
  GpuMicroBatch& batch = from.under_way.at(mail.micro_batch);
  if (channel.cargo == Cargo::Gradient) {
    pack(channel, mail);
    return mail.there.swap(mail.here);
  }
  if (!batch.head_is_due) {
    mail.there.emplace_back(0, std::exchange(batch.output, {}));
    batch.sent = true;
    return forget(from, mail.micro_batch);
  }
  Extent copy = from.take(batch.output.bytes, MemoryClass::Boundary, "the output");
  scale(from.engine.lane, copy.data, batch.output.data, 1,
        batch.output.bytes / bytes_of(from.engine.lane.element));
  mail.there.emplace_back(0, copy);
  batch.sent = true;
  ranks_[static_cast<std::size_t>(rank)].last = record_on(compute_of(rank));
}

/// What leaves: of activations the output itself, which stays with its stage until it has left.
void GpuPass::pack(const Channel& channel, Mail& mail) {
  GpuStage& from = stage(channel.from_stage);
  GpuMicroBatch& batch = from.under_way.at(mail.micro_batch);
  if (channel.cargo == Cargo::Activation) return;
  for (std::int64_t n = tensors_of(channel, from); n > 0; --n) {
    CHECK(!batch.outgoing.empty(), "a gradient is made before it is sent");
    mail.here.push_back(std::move(batch.outgoing.front()));
    batch.outgoing.pop_front();
  }
  forget(from, mail.micro_batch);
}

void GpuPass::send(int rank, const Instruction& instruction) {
  const Channel& channel = job_.program.channels[static_cast<std::size_t>(instruction.index)];
  Channeled& queue = channels_[static_cast<std::size_t>(instruction.index)];
  Mail mail = {.micro_batch = instruction.micro_batch};
  if (channel.wire < 0) {
    keep_on_rank(rank, channel, mail);
    queue.mail.push_back(std::move(mail));
    return;
  }
  if (channel.depth > 0 && queue.sent++ >= channel.depth) {
    // Room for it is made by the one so many before.
    require(cudaStreamWaitEvent(compute_of(rank), queue.taken.front()), "wait for room");
    queue.taken.pop_front();
    ranks_[static_cast<std::size_t>(rank)].last = record_on(compute_of(rank));
  }
  pack(channel, mail);
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  mail.ready = state.last;
  mail.mark = state.last_mark;
  if (!channel.synchronous) start_transfer(instruction.index, mail);
  queue.mail.push_back(std::move(mail));
}

/// What a message is read from, with its losses.
std::vector<std::pair<int, Extent*>> GpuPass::sources_of(const Channel& channel, Mail& mail) {
  if (channel.cargo == Cargo::Activation) {
    return {{0, &stage(channel.from_stage).under_way.at(mail.micro_batch).output}};
  }
  std::vector<std::pair<int, Extent*>> sources;
  for (auto& [loss, extent] : mail.here) sources.emplace_back(loss, &extent);
  return sources;
}

void GpuPass::start_transfer(int index, Mail& mail) {
  const Channel& channel = job_.program.channels[static_cast<std::size_t>(index)];
  const auto wire = static_cast<std::size_t>(channel.wire);
  const bool inside = times_.gpu[static_cast<std::size_t>(channel.from_rank)] ==
                      times_.gpu[static_cast<std::size_t>(channel.to_rank)];
  MarkedTransfer transfer = {.channel = index,
                             .micro_batch = mail.micro_batch,
                             .rank = channel.from_rank,
                             .sent = mail.mark};
  if (inside && options_.link == CudaLink::Zero) {
    for (auto& [loss, extent] : sources_of(channel, mail)) {
      mail.there.emplace_back(loss, share(*extent));
    }
    mail.arrived = mail.ready;
    mail.read = {compute_of(channel.from_rank), mail.ready};
  } else {
    cudaStream_t way = rig_.ways[wire], arrival = rig_.arrivals[wire];
    require(cudaStreamWaitEvent(way, mail.ready), "wait for what is sent");
    const std::string what = "a message for stage " + std::to_string(channel.to_stage);
    GpuMemory& memory = *memories_[static_cast<std::size_t>(channel.to_rank)];
    for (auto& [loss, extent] : sources_of(channel, mail)) {
      mail.there.emplace_back(loss,
                              memory.take(extent->bytes, MemoryClass::Boundary, arrival, what));
    }
    if (options_.times) transfer.start = events_.mark(way, capturing_);
    ship_all(channel, mail);
    if (options_.times) transfer.end = events_.mark(way, capturing_);
    mail.read = {way, record_on(way)};
    const CurrentDevice there(times_.gpu[static_cast<std::size_t>(channel.to_rank)]);
    mail.arrived = arrival == way ? mail.read.behind : record_on(arrival);
  }
  if (transfer.sent == nullptr) return;
  mail.transfer = static_cast<int>(times_.transfers.size());
  times_.transfers.push_back(transfer);
}

void GpuPass::ship_all(const Channel& channel, Mail& mail) {
  const auto wire = static_cast<std::size_t>(channel.wire);
  const auto sources = sources_of(channel, mail);
  const double share = 1.0 / static_cast<double>(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Extent &from = *sources[i].second, &to = mail.there[i].second;
    if (rig_.nccl) {
      rig_.nccl->transfer({channel.from_rank, from.data, rig_.ways[wire]},
                          {channel.to_rank, to.data, rig_.arrivals[wire]}, from.bytes);
      continue;
    }
    ship({.to = to.data,
          .from = from.data,
          .bytes = from.bytes,
          .to_gpu = times_.gpu[static_cast<std::size_t>(channel.to_rank)],
          .from_gpu = times_.gpu[static_cast<std::size_t>(channel.from_rank)],
          .latency = i == 0 ? channel.latency.value() : 0,
          .occupancy = channel.occupancy.value() * share,
          .capturing = capturing_},
         options_.link, rig_.ways[wire]);
  }
}

/// The message has arrived: the sender's part is given back behind the copy.
void GpuPass::release(const Channel& channel, Mail& mail) {
  if (channel.cargo == Cargo::Activation) {
    return release_output(stage(channel.from_stage), mail.micro_batch, mail.read);
  }
  for (auto& [loss, extent] : mail.here) give_back(extent, mail.read);
}

void GpuPass::receive(int rank, const Instruction& instruction) {
  const Channel& channel = job_.program.channels[static_cast<std::size_t>(instruction.index)];
  Channeled& queue = channels_[static_cast<std::size_t>(instruction.index)];
  CHECK(!queue.mail.empty(), "a message is sent before it is taken");
  Mail mail = std::move(queue.mail.front());
  queue.mail.pop_front();
  if (channel.wire >= 0) {
    cudaStream_t own = compute_of(rank), other = compute_of(channel.from_rank);
    const bool stands = channel.synchronous || channel.depth == 0;
    cudaEvent_t here = stands ? record_on(own) : nullptr;
    if (channel.synchronous) {
      const CurrentDevice there(times_.gpu[static_cast<std::size_t>(channel.from_rank)]);
      require(cudaStreamWaitEvent(rig_.ways[static_cast<std::size_t>(channel.wire)], here),
              "wait for the receiver");
      start_transfer(instruction.index, mail);
    }
    require(cudaStreamWaitEvent(own, mail.arrived), "wait for a message");
    if (stands) {
      require(cudaStreamWaitEvent(other, here), "wait for the receiver");
      require(cudaStreamWaitEvent(other, mail.arrived), "wait until a message has arrived");
    }
    if (channel.depth > 0) queue.taken.push_back(record_on(own));
    release(channel, mail);
    ranks_[static_cast<std::size_t>(rank)].message = mail.transfer;
  }
  GpuMicroBatch& batch = stage(channel.to_stage).under_way[instruction.micro_batch];
  for (auto& [loss, extent] : mail.there) {
    (channel.cargo == Cargo::Activation ? batch.input : batch.gradients[loss]) = extent;
  }
}

}  // namespace interlock::cuda
