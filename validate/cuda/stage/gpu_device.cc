// Runs the work of a stage on a GPU: every call issues it to a stream.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_device.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

bool makes_loss(const Job& job, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  const auto last = static_cast<std::size_t>(modules_of(job, stage).end - 1);
  return job.roles[s].head ||
         job.network.modules[last].layers.back().kind == LayerKind::CrossEntropy;
}

/// Returns the first values of a parameter, drawn by all processors: a large model has some hundred
/// million of them, each a function of its place alone.
std::vector<float> first_values(const TrainedParameter& p, std::uint64_t seed) {
  constexpr std::size_t kPiece = 1 << 16;  // a thread is not worth less
  std::vector<float> values(static_cast<std::size_t>(p.parameter.size()));
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = std::min(most, values.size() / kPiece + 1);
  const auto draw = [&](std::size_t thread) {
    const std::size_t end = (thread + 1) * values.size() / threads;
    for (std::size_t i = thread * values.size() / threads; i < end; ++i) {
      values[i] = static_cast<float>(
          first_value(p.parameter, seed, p.number, static_cast<std::int64_t>(i)));
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(draw, thread);
  draw(0);
  others.clear();  // waits for them
  return values;
}

}  // namespace

GpuDevice::GpuDevice(const Job& job, int stage, int rank, const KernelContext& context,
                     GpuMemories& memories)
    : job_(job),
      stage_(stage),
      rank_(rank),
      context_(context),
      memories_(memories),
      inputs_(job, stage, makes_loss(job, stage)) {
  if (!makes_loss(job, stage)) return;
  // Kernels write them to the host, which looks at them while the run goes on.
  void* losses = nullptr;
  const std::size_t bytes = inputs_.batches().size() * sizeof(float);
  require(cudaHostAlloc(&losses, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
          "memory of the host for losses");
  std::memset(losses, 0, bytes);
  losses_ = static_cast<float*>(losses);
}

GpuDevice::~GpuDevice() { cudaFreeHost(losses_); }

Block GpuDevice::allocate(std::int64_t bytes, MemoryClass memory_class) {
  return memories_[static_cast<std::size_t>(rank_)]->allocate(bytes, memory_class, stream().handle,
                                                              "stage " + std::to_string(stage_));
}

void GpuDevice::clear(char* to, std::int64_t bytes) {
  require(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream().handle),
          "begin with zeros");
}

void GpuDevice::copy(char* to, const char* from, std::int64_t bytes) {
  cuda::scale(stream(), to, from, 1, bytes / number_bytes());
}

void GpuDevice::add(const Block& from, const Block& to) {
  cuda::add(stream(), to.data, to.data, from.data, from.bytes / number_bytes());
}

void GpuDevice::scale(const Block& block, double factor) {
  cuda::scale(stream(), block.data, block.data, static_cast<float>(factor),
              block.bytes / number_bytes());
}

void GpuDevice::cast(const Block&, const Block&, SentFormat) {
  CHECK(false, "casts of messages are refused on GPUs");
}

void GpuDevice::cast_back(const Block&, const Block&, SentFormat) {
  CHECK(false, "casts of messages are refused on GPUs");
}

/// Writes the features of a micro-batch; tokens are read where they are.
void GpuDevice::read_input(char* to, std::int64_t bytes, int micro_batch) {
  const GpuBatch& batch = inputs_.batches()[static_cast<std::size_t>(micro_batch)];
  if (batch.features != nullptr) from_fp32(stream(), to, batch.features, bytes / number_bytes());
}

void GpuDevice::run(const std::vector<Step>& steps, const StageTensors& tensors, StepPart part) {
  GpuBatch batch = inputs_.batches()[static_cast<std::size_t>(tensors.micro_batch)];
  if (losses_ != nullptr) batch.loss = losses_ + tensors.micro_batch;
  run_steps(context_, steps, tensors, batch, part);
}

void GpuDevice::note_loss(int micro_batch, bool replay) {
  CHECK(!replay, "stages on GPUs learn from new inputs alone");
  noted_loss_ = micro_batch;
}

/// Sets the first values of a parameter: masters, of its own numbers, are exact, weights rounded.
void GpuDevice::begin(const TrainedParameter& p) {
  const std::vector<float> values = first_values(p, job_.seed);
  const auto send = [&](char* to, const auto* numbers, std::int64_t count) {
    require(cudaMemcpyAsync(to, numbers, static_cast<std::size_t>(count) * sizeof(numbers[0]),
                            cudaMemcpyHostToDevice, stream().handle),
            "send weights");
    require(cudaStreamSynchronize(stream().handle), "send weights");
  };
  if (p.master != nullptr) send(p.master, values.data() + p.first_own, p.own);
  if (stream().element == Element::Fp32) return send(p.weight, values.data(), p.parameter.size());
  std::vector<__nv_bfloat16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(),
                 [](float value) { return __float2bfloat16_rn(value); });
  send(p.weight, rounded.data(), p.parameter.size());
}

void GpuDevice::descend(const TrainedParameter& p, char* gradient, const StepFactors& factors) {
  if (p.own == 0) return;
  static_assert(static_cast<int>(Optimizer::Sgd) == 0 &&
                static_cast<int>(Optimizer::SgdMomentum) == 1 &&
                static_cast<int>(Optimizer::Adam) == 2);
  const Descent& d = job_.descent;
  const DescentStep step = {.kind = static_cast<int>(d.optimizer),
                            .share = static_cast<float>(factors.mean),
                            .rate = static_cast<float>(d.rate),
                            .momentum = static_cast<float>(d.momentum),
                            .decay = static_cast<float>(p.parameter.decays ? d.decay : 0),
                            .beta1 = static_cast<float>(d.beta1),
                            .beta2 = static_cast<float>(d.beta2),
                            .epsilon = static_cast<float>(d.epsilon),
                            .unbias1 = static_cast<float>(1 / factors.correction1),
                            .unbias2 = static_cast<float>(1 / factors.correction2)};
  const DescentState state = {.weights = p.weight + p.first_own * number_bytes(),
                              .gradients = gradient + p.first_own * number_bytes(),
                              .masters = reinterpret_cast<float*>(p.master),
                              .first = reinterpret_cast<float*>(p.first),
                              .second = reinterpret_cast<float*>(p.second)};
  cuda::descend(stream(), state, step, p.own);
}

std::vector<double> GpuDevice::fetch(const char* numbers, std::int64_t count) {
  if (count == 0) return {};
  const auto size = static_cast<std::size_t>(count);
  auto* exact = reinterpret_cast<float*>(
      context_.scratch->take(count * static_cast<std::int64_t>(sizeof(float)), stream().handle));
  to_fp32(stream(), exact, numbers, count);
  std::vector<float> fetched(size);
  require(cudaMemcpyAsync(fetched.data(), exact, size * sizeof(float), cudaMemcpyDeviceToHost,
                          stream().handle),
          "fetch a dump");
  require(cudaStreamSynchronize(stream().handle), "fetch a dump");
  return {fetched.begin(), fetched.end()};
}

}  // namespace interlock::cuda
