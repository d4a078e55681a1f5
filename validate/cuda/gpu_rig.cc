// The devices of a run, and setting a pass up on them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "validate/cuda/cuda_call.h"
#include "validate/cuda/gpu_pass.h"

namespace interlock::cuda {

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
