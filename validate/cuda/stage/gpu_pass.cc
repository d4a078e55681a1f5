// GpuPass: issuing a program, and fetching what came out of it.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_pass.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "validate/cuda/device/captured_graph.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"
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

namespace {

/// Of what a GPU has free, that its devices share: the rest is for kernels' scratch and inputs.
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

void add_parameters(GpuStage& stage, int module, bool of_head) {
  const NeuralNetwork& network = stage.job->network;
  const NetworkModule& one = network.modules[static_cast<std::size_t>(module)];
  int number = first_parameter(network, module, of_head);
  const auto parameters =
      of_head ? parameters_of(one.name + ".head", one.head) : parameters_of(one.name, one.layers);
  for (const Parameter& parameter : parameters) {
    stage.parameters.push_back(
        {.parameter = parameter, .number = number++, .of_head = of_head, .at = {}});
  }
}

bool makes_loss(const GpuStage& stage) {
  return stage.role.head || stage.plans.layers->back().kind == LayerKind::CrossEntropy;
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
  memory = options.memory > 0 ? options.memory : memory_of_device(group);
}

GpuPass::GpuPass(const Job& job, const CudaOptions& options, Rig& rig, bool capturing)
    : job_(job),
      options_(options),
      rig_(rig),
      capturing_(capturing),
      made_(static_cast<std::size_t>(job.program.stages)),
      channels_(job.program.channels.size()),
      ranks_(job.program.ranks.size()) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Member& member = rig.group.members()[r];
    const CurrentDevice current(member.gpu);
    times_.gpu.push_back(member.gpu);
    memories_.push_back(
        std::make_unique<GpuMemory>(static_cast<int>(r), rig.memory, options.poison));
  }
  stages_.resize(static_cast<std::size_t>(job.program.stages));
  inputs_.resize(stages_.size());
  losses_.resize(stages_.size(), nullptr);
  try {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const CurrentDevice current(times_.gpu[r]);
      std::vector<GpuStage*> own;
      for (const int stage : job.program.ranks[r].stages) {
        set_up_stage(static_cast<int>(r), stage);
        own.push_back(stages_[static_cast<std::size_t>(stage)].get());
      }
      if (!own.empty()) place_parameters(own, job.program.ranks[r]);
    }
    wait_for_all();
  } catch (...) {
    release_losses();
    throw;
  }
}

GpuPass::~GpuPass() {
  for (const int gpu : times_.gpu) finish_device(gpu);
  release_losses();
}

void GpuPass::release_losses() noexcept {
  for (float*& losses : losses_) {
    cudaFreeHost(losses);
    losses = nullptr;
  }
}

void GpuPass::set_up_stage(int rank, int index) {
  const auto s = static_cast<std::size_t>(index), r = static_cast<std::size_t>(rank);
  const Member& member = rig_.group.members()[r];
  auto stage = std::make_unique<GpuStage>();
  const Element element = job_.precision == Precision::Bf16 ? Element::Bf16 : Element::Fp32;
  stage->job = &job_;
  stage->stage = index;
  stage->role = job_.roles[s];
  stage->plans = plan_stage_of_job(job_, index, static_cast<int>(bytes_of(element)));
  stage->memory = memories_[r].get();
  stage->engine = {.lane = {member.compute, member.sms, element},
                   .products = rig_.products[r].get(),
                   .scratch = rig_.scratch[r].get(),
                   .planned_sms = options_.planned_sms > 0 ? options_.planned_sms : member.sms};
  stage->keeps_versions = job_.program.ranks[r].weight_versions > 1;
  stage->dumps = !capturing_ && job_.dump_step >= 0;
  for (int module = job_.first_module[s]; module < job_.first_module[s + 1]; ++module) {
    add_parameters(*stage, module, false);
  }
  if (stage->role.head) add_parameters(*stage, job_.first_module[s + 1] - 1, true);
  inputs_[s] = std::make_unique<GpuInputs>(job_, index == 0, makes_loss(*stage));
  stage->batches = inputs_[s]->batches();
  if (makes_loss(*stage)) {
    // Kernels write them to the host, which looks at them while the run goes on.
    void* losses = nullptr;
    const std::size_t bytes = stage->batches.size() * sizeof(float);
    require(cudaHostAlloc(&losses, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
            "memory of the host for losses");
    std::memset(losses, 0, bytes);
    losses_[s] = static_cast<float*>(losses);
    most_pending_ += 2 * static_cast<std::size_t>(job_.program.micro_batches);
    stage->losses = losses_[s];
  }
  stages_[s] = std::move(stage);
}

}  // namespace interlock::cuda
