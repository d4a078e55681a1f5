// GpuRun: issuing a program, and fetching what came out of it.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "validate/cuda/device/captured_graph.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/device/op_range.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

using Clock = std::chrono::steady_clock;

Seconds time_since(Clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(Clock::now() - begin).count());
}

}  // namespace

cudaStream_t GpuRun::compute_of(int rank) const {
  return rig_.group.members()[static_cast<std::size_t>(rank)].compute;
}

cudaEvent_t GpuRun::record_on(cudaStream_t stream) {
  cudaEvent_t event = events_.make();
  require(cudaEventRecord(event, stream), "record an event");
  return event;
}

void GpuRun::wait_for_all() const {
  for (const int gpu : times_.gpu) {
    const CurrentDevice current(gpu);
    require(cudaDeviceSynchronize(), "run");
  }
}

/// Returns all streams that work is issued to, the first rank's first.
std::vector<cudaStream_t> GpuRun::streams() const {
  std::vector<cudaStream_t> all;
  for (const Member& member : rig_.group.members()) all.push_back(member.compute);
  all.insert(all.end(), rig_.ways.begin(), rig_.ways.end());
  for (const ReplicaGroup& group : rig_.groups) {
    for (const Stream& stream : group.streams) all.push_back(stream.handle);
    if (group.pace != nullptr) all.push_back(group.pace);
  }
  return all;
}

/// Makes every stream of one GPU begin behind one event, which times count from; captured, that
/// makes all streams part of the graph.
void GpuRun::begin_together() {
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

void GpuRun::end_together() {
  const std::vector<cudaStream_t> all = streams();
  for (std::size_t i = 1; i < all.size(); ++i) {
    require(cudaStreamWaitEvent(all.front(), record_on(all[i])), "end together");
  }
}

void GpuRun::run() {
  const CurrentDevice current(times_.gpu.front());
  wait_for_all();
  if (capturing_) return launch_graph();
  begin_ = Clock::now();
  begin_together();
  issue_all();
  issue_ = time_since(begin_) - waited_;
  wait_for_all();
  wall_ = time_since(begin_);
}

void GpuRun::warm_up() {
  only_first_ = true;
  run();
}

void GpuRun::launch_graph() {
  const CapturedGraph graph(compute_of(0), [this] {
    begin_together();
    issue_all();
    end_together();
  });
  begin_ = Clock::now();
  graph.launch();
  issue_ = time_since(begin_);
  require(cudaStreamSynchronize(compute_of(0)), "run a graph");
  wall_ = time_since(begin_);
}

void GpuRun::issue_all() {
  std::vector<int> rank_of_stream(job_.program.streams.size());
  for (std::size_t r = 0; r < job_.program.ranks.size(); ++r) {
    const Rank& rank = job_.program.ranks[r];
    const auto first = rank_of_stream.begin() + rank.first_stream;
    std::fill(first, first + rank.streams, static_cast<int>(r));
  }
  std::vector<Issue> order = issue_order(job_.program);
  if (only_first_) order.resize(end_of_first_step(order));
  for (const Issue& next : order) {
    stopped_ = !capturing_ && options_.stop != nullptr && *options_.stop;
    if (stopped_) return;
    issued_.push_back(next);
    issue(rank_of_stream[static_cast<std::size_t>(next.stream)], next);
  }
}

/// Returns the place behind the last op of the first step.
std::size_t GpuRun::end_of_first_step(const std::vector<Issue>& order) const {
  const auto last = std::find_if(order.rbegin(), order.rend(), [&](const Issue& one) {
    return one.instruction.code == Opcode::Compute &&
           one.instruction.micro_batch < job_.program.micro_batches;
  });
  return static_cast<std::size_t>(order.rend() - last);
}

void GpuRun::issue(int rank, const Issue& next) {
  const CurrentDevice current(times_.gpu[static_cast<std::size_t>(rank)]);
  const Instruction& instruction = next.instruction;
  switch (instruction.code) {
    case Opcode::Compute:
      return compute(rank, instruction);
    case Opcode::Send:
      return send(rank, instruction);
    case Opcode::Receive:
      return receive(rank, instruction);
    case Opcode::Record:
      return record(rank, next);
    case Opcode::Wait:
      return wait(rank, instruction);
    case Opcode::Allocate:
    case Opcode::Free:
      return;  // stages allocate and free what they really use
  }
}

void GpuRun::compute(int rank, const Instruction& instruction) {
  const OpInfo& info = job_.program.ops[static_cast<std::size_t>(instruction.index)];
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  GpuDevice& device = *devices_[static_cast<std::size_t>(info.stage)];
  MarkedOp op = {.rank = rank, .op = instruction.index, .micro_batch = instruction.micro_batch};
  op.message = std::exchange(state.message, -1);
  op.collective = std::exchange(state.collective, -1);
  const OpRange range(info, instruction.micro_batch);
  if (hold_) {
    wait_for_all();
    hold_->close(compute_of(rank));
  }
  state.last = events_.make();
  device.begin_use({compute_of(rank), state.last});
  if (options_.times) op.start = events_.mark(compute_of(rank), capturing_);
  stage(info.stage).run(info, instruction.micro_batch)();
  require(cudaEventRecord(state.last, compute_of(rank)), "record the end of an op");
  if (options_.times) {
    op.end = state.last_mark = events_.mark(compute_of(rank), capturing_);
    if (!capturing_ && !hold_) op.issued = time_since(begin_);
    times_.ops.push_back(op);
  }
  if (hold_) {
    hold_->open();
    wait_for_all();
  }
  if (const int made = device.take_noted_loss(); made >= 0) {
    note_loss({info.stage, made, state.last});
  }
}

/// Keeps the host at most two steps ahead of the losses, so that it sees in time what went wrong.
void GpuRun::note_loss(const PendingLoss& loss) {
  made_[static_cast<std::size_t>(loss.stage)].insert(loss.micro_batch);
  if (capturing_) return;
  pending_.push_back(loss);
  while (pending_.size() > most_pending_) {
    const PendingLoss oldest = pending_.front();
    pending_.pop_front();
    const Clock::time_point begin = Clock::now();
    require(cudaEventSynchronize(oldest.behind), "run");
    waited_ += time_since(begin);
    check_loss(oldest.stage, oldest.micro_batch);
  }
}

void GpuRun::check_loss(int stage, int micro_batch) const {
  const float loss = devices_[static_cast<std::size_t>(stage)]->losses()[micro_batch];
  if (!std::isfinite(loss)) throw Error(loss_problem(job_, stage, micro_batch));
}

/// Returns the event of a Record or a Wait, and its generation.
std::pair<int, int> GpuRun::generation_of(const Instruction& instruction) const {
  const Event& event = job_.program.events[static_cast<std::size_t>(instruction.index)];
  return {instruction.index, instruction.micro_batch / event.micro_batches};
}

void GpuRun::record(int rank, const Issue& next) {
  const Instruction& instruction = next.instruction;
  const Event& event = job_.program.events[static_cast<std::size_t>(instruction.index)];
  std::vector<cudaEvent_t>& recorded = recorded_[generation_of(instruction)];
  if (event.collective < 0) return recorded.push_back(record_on(compute_of(rank)));
  join(rank, instruction);
  if (next.completes) recorded = exchanges_.carry_out(generation_of(instruction), instruction);
}

/// Has a rank join what the replicas of a stage exchange: its gradients, or its weights.
void GpuRun::join(int rank, const Instruction& instruction) {
  const Program& program = job_.program;
  const int number = program.events[static_cast<std::size_t>(instruction.index)].collective;
  const Collective& collective = program.collectives[static_cast<std::size_t>(number)];
  for (const int index : program.ranks[static_cast<std::size_t>(rank)].stages) {
    if (model_stage(program, index) != collective.stage) continue;
    Stage& own = stage(index);
    const bool weights = collective.kind == CollectiveKind::AllGather;
    const Block block = weights ? own.newest_weights() : own.gradients(instruction.micro_batch);
    GivenBlock given = {.block = block, .shard_bytes = own.shard_bytes()};
    given.ready = record_on(compute_of(rank));
    if (options_.times) given.mark = events_.mark(compute_of(rank), capturing_);
    exchanges_.join(generation_of(instruction), rank, given);
  }
}

void GpuRun::wait(int rank, const Instruction& instruction) {
  if (instruction.micro_batch < 0) return;
  const std::pair<int, int> which = generation_of(instruction);
  for (cudaEvent_t one : recorded_[which]) {
    require(cudaStreamWaitEvent(compute_of(rank), one), "wait for an event");
  }
  const int exchanged = exchanges_.place_of(which);
  if (exchanged >= 0) ranks_[static_cast<std::size_t>(rank)].collective = exchanged;
}

Outcome GpuRun::outcome() const {
  Outcome outcome = empty_outcome(job_);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const int stage = static_cast<int>(s);
    StageLosses losses;
    for (const int micro_batch : made_[s]) {
      check_loss(stage, micro_batch);
      losses.own[micro_batch] = devices_[s]->losses()[micro_batch];
    }
    add_results(job_, stage, losses, stages_[s]->dump(), outcome);
  }
  for (const auto& memory : memories_) outcome.memory.push_back(memory->held());
  return outcome;
}

void GpuRun::send(int rank, const Instruction& instruction) {
  const Channel& channel = job_.program.channels[static_cast<std::size_t>(instruction.index)];
  Channeled& queue = channels_[static_cast<std::size_t>(instruction.index)];
  Mail mail = {.micro_batch = instruction.micro_batch};
  if (channel.wire < 0) {
    // Sender and receiver share one stream, whose order keeps the message safe.
    mail.there = stage(channel.from_stage).hand_over(channel, mail.micro_batch);
    queue.mail.push_back(std::move(mail));
    return;
  }
  if (channel.depth > 0 && queue.sent++ >= channel.depth) {
    // The message `depth` places before this one makes room for it when it is taken.
    require(cudaStreamWaitEvent(compute_of(rank), queue.taken.front()), "wait for room");
    queue.taken.pop_front();
    ranks_[static_cast<std::size_t>(rank)].last = record_on(compute_of(rank));
  }
  mail.here = stage(channel.from_stage).pack(channel, mail.micro_batch);
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  mail.ready = state.last;
  mail.mark = state.last_mark;
  if (!channel.synchronous) start_transfer(instruction.index, mail);
  queue.mail.push_back(std::move(mail));
}

void GpuRun::start_transfer(int index, Mail& mail) {
  const Channel& channel = job_.program.channels[static_cast<std::size_t>(index)];
  const auto wire = static_cast<std::size_t>(channel.wire);
  const bool inside = times_.gpu[static_cast<std::size_t>(channel.from_rank)] ==
                      times_.gpu[static_cast<std::size_t>(channel.to_rank)];
  MarkedTransfer transfer = {.channel = index,
                             .micro_batch = mail.micro_batch,
                             .rank = channel.from_rank,
                             .sent = mail.mark};
  if (inside && options_.link == CudaLink::Zero) {
    for (const auto& [loss, block] : mail.here) mail.there.emplace_back(loss, share(block));
    mail.arrived = mail.ready;
    mail.read = {compute_of(channel.from_rank), mail.ready};
  } else {
    cudaStream_t way = rig_.ways[wire], arrival = rig_.arrivals[wire];
    require(cudaStreamWaitEvent(way, mail.ready), "wait for what is sent");
    const std::string what = "a message for stage " + std::to_string(channel.to_stage);
    GpuMemory& memory = *memories_[static_cast<std::size_t>(channel.to_rank)];
    for (const auto& [loss, block] : mail.here) {
      mail.there.emplace_back(loss,
                              memory.allocate(block.bytes, MemoryClass::Boundary, arrival, what));
    }
    const int from_gpu = times_.gpu[static_cast<std::size_t>(channel.from_rank)];
    const int to_gpu = times_.gpu[static_cast<std::size_t>(channel.to_rank)];
    if (rig_.nccl) {
      turns_.take(from_gpu, way);
      turns_.take(to_gpu, arrival);
    }
    if (options_.times) transfer.start = events_.mark(way, capturing_);
    ship_all(channel, mail);
    if (options_.times) transfer.end = events_.mark(way, capturing_);
    if (rig_.nccl) {
      turns_.end(from_gpu, way);
      turns_.end(to_gpu, arrival);
    }
    mail.read = {way, record_on(way)};
    const CurrentDevice there(times_.gpu[static_cast<std::size_t>(channel.to_rank)]);
    mail.arrived = arrival == way ? mail.read.behind : record_on(arrival);
  }
  if (transfer.sent == nullptr) return;
  mail.transfer = static_cast<int>(times_.transfers.size());
  times_.transfers.push_back(transfer);
}

void GpuRun::ship_all(const Channel& channel, const Mail& mail) {
  const auto wire = static_cast<std::size_t>(channel.wire);
  const double share = 1.0 / static_cast<double>(mail.here.size());
  for (std::size_t i = 0; i < mail.here.size(); ++i) {
    const Block &from = mail.here[i].second, &to = mail.there[i].second;
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

void GpuRun::receive(int rank, const Instruction& instruction) {
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
    // The sender's block is freed behind the copy.
    devices_[static_cast<std::size_t>(channel.from_stage)]->begin_use(mail.read);
    stage(channel.from_stage).release(channel, mail.micro_batch, mail.here);
    ranks_[static_cast<std::size_t>(rank)].message = mail.transfer;
  }
  stage(channel.to_stage).receive(channel, instruction.micro_batch, mail.there);
}

namespace {

/// The part of a GPU's free memory that its devices share: the rest is for kernels' scratch and
/// inputs.
constexpr double kShare = 0.8;

std::int64_t memory_of_device(const DeviceGroup& group) {
  std::int64_t least = 0;
  for (const Member& member : group.members()) {
    const CurrentDevice current(member.gpu);
    std::size_t free = 0, all = 0;
    require(cudaMemGetInfo(&free, &all), "free memory");
    const auto here = std::count_if(group.members().begin(), group.members().end(),
                                    [&](const Member& other) { return other.gpu == member.gpu; });
    const auto share =
        static_cast<std::int64_t>(static_cast<double>(free) * kShare / static_cast<double>(here));
    least = least == 0 ? share : std::min(least, share);
  }
  return least;
}

}  // namespace

Rig::Rig(const Job& job, const CudaOptions& options)
    : group(static_cast<int>(job.program.ranks.size()), options) {
  std::vector<int> gpus;
  for (const Member& member : group.members()) {
    gpus.push_back(member.gpu);
    products.push_back(std::make_unique<Products>(member.gpu));
    scratch.push_back(std::make_unique<Scratch>());
  }
  if (options.nccl && group.one_gpu()) {
    throw Error("NCCL sends nothing inside one GPU; leave it out, or use several GPUs");
  }
  if (options.nccl) nccl.emplace(gpus);
  for (const Wire& wire : job.program.wires) {
    ways.push_back(group.make_way(wire.from_rank, wire.to_rank, options.link));
    // NCCL receives on a stream of the receiver's GPU.
    arrivals.push_back(nccl ? group.make_way(wire.to_rank, wire.from_rank, options.link)
                            : ways.back());
  }
  const Element element = job.precision == Precision::Bf16 ? Element::Bf16 : Element::Fp32;
  groups = make_replica_groups(job.program, group, options.link, element);
  memory = options.memory > 0 ? options.memory : memory_of_device(group);
}

GpuRun::GpuRun(const Job& job, const CudaOptions& options, Rig& rig, bool capturing)
    : job_(job),
      options_(options),
      rig_(rig),
      capturing_(capturing),
      turns_(events_, !rig.groups.empty()),
      exchanges_({job_.program, options_, rig_.groups, capturing}, events_, times_, turns_),
      made_(static_cast<std::size_t>(job.program.stages)),
      channels_(job.program.channels.size()),
      ranks_(job.program.ranks.size()) {
  if (capturing) job_.dump_step = -1;  // which waits for a stream
  if (options.alone) hold_.emplace();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Member& member = rig.group.members()[r];
    const CurrentDevice current(member.gpu);
    times_.gpu.push_back(member.gpu);
    memories_.push_back(
        std::make_unique<GpuMemory>(static_cast<int>(r), rig.memory, options.poison));
  }
  stages_.resize(static_cast<std::size_t>(job.program.stages));
  devices_.resize(stages_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const CurrentDevice current(times_.gpu[r]);
    const Rank& rank = job.program.ranks[r];
    std::vector<Stage*> own;
    for (const int index : rank.stages) {
      add_stage(static_cast<int>(r), index);
      own.push_back(&stage(index));
    }
    if (!own.empty()) place_parameters(own, rank);
  }
  wait_for_all();
}

std::int64_t GpuRun::input_bytes(int gpu) const {
  std::int64_t bytes = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (times_.gpu[r] != gpu) continue;
    for (const int stage : job_.program.ranks[r].stages) {
      bytes += devices_[static_cast<std::size_t>(stage)]->input_bytes();
    }
  }
  return bytes;
}

GpuRun::~GpuRun() {
  for (const int gpu : times_.gpu) finish_device(gpu);
}

void GpuRun::add_stage(int rank, int index) {
  const auto s = static_cast<std::size_t>(index), r = static_cast<std::size_t>(rank);
  const Member& member = rig_.group.members()[r];
  const Element element = job_.precision == Precision::Bf16 ? Element::Bf16 : Element::Fp32;
  const KernelContext context = {
      .stream = {member.compute, member.sms, element},
      .products = rig_.products[r].get(),
      .scratch = rig_.scratch[r].get(),
      .planned_sms = options_.planned_sms > 0 ? options_.planned_sms : member.sms};
  devices_[s] = std::make_unique<GpuDevice>(job_, index, rank, context, memories_);
  stages_[s] = std::make_unique<Stage>(job_, job_.program.ranks[r], index, *devices_[s]);
  if (devices_[s]->losses() != nullptr) {
    most_pending_ += 2 * static_cast<std::size_t>(job_.program.micro_batches);
  }
}

}  // namespace interlock::cuda
