// GpuBench: graphs between events, and what else is going on meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/gpu_bench.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "validate/cuda/bench/gpu_collectives.h"
#include "validate/cuda/device/captured_graph.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/device/look.h"
#include "validate/cuda/device/nvml.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUp = 5e-3;        // s, before the clock of a GPU is what it will be
constexpr int kAttempts = 3;            // at readings at one clock
constexpr double kNeighboursShare = 3;  // of the time alone that neighbours get work for, at first
constexpr double kMostNeighbours = 24;  // likewise, before they are given up
constexpr int kLaunches = 50;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

CudaOptions options_of(int device, int partitions) {
  CudaOptions options;
  options.device = device;
  options.partitions = partitions > 1 ? partitions : 0;
  return options;
}

/// Returns a second GPU, where messages go to one.
int members_of(int device, int partitions) {
  if (partitions > 1) return partitions;
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "count devices");
  return device + 1 < devices ? 2 : 1;
}

}  // namespace

/// Executions as one graph, with events on both sides inside it.
struct GpuBench::Timed {
  Events events;
  cudaStream_t stream;
  int repeats;
  cudaEvent_t begin = nullptr, end = nullptr;
  CapturedGraph graph;

  Timed(cudaStream_t on, int times, const std::function<void(int)>& issue)
      : stream(on), repeats(times), graph(on, [&] {
          begin = events.mark(on, true);
          for (int i = 0; i < times; ++i) issue(i);
          end = events.mark(on, true);
        }) {}

  /// Seconds on the device and on the wall, of one execution.
  std::pair<double, double> once() const {
    const Clock::time_point start = Clock::now();
    graph.launch();
    require(cudaStreamSynchronize(stream), "run a kernel");
    const double wall = since(start);
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "read a time");
    return {milliseconds / 1e3 / repeats, wall / repeats};
  }
};

GpuBench::GpuBench(int device, int partitions)
    : partitions_(partitions),
      group_(members_of(device, partitions), options_of(device, partitions)),
      products_(device) {
  look(report_);
  device_ = report_.devices.at(static_cast<std::size_t>(device));
  int cache = 0;
  require(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "describe a device");
  cache_ = cache;
}

GpuBench::~GpuBench() { finish_device(device_.number); }

KernelContext GpuBench::context() {
  return {{member().compute, member().sms, Element::Fp32}, &products_, &scratch_, member().sms};
}

int GpuBench::clock() {
  CudaDevice now = device_;
  now.sm_clock = 0;
  read_clocks(now);
  return now.sm_clock;
}

/// Fills the cache with something else.
void GpuBench::flush() {
  cudaStream_t stream = member().compute;
  char* other = flushed_.take(2 * cache_, stream);
  require(cudaMemsetAsync(other, 1, static_cast<std::size_t>(2 * cache_), stream), "flush");
  require(cudaStreamSynchronize(stream), "flush");
}

GpuNeighbours* GpuBench::neighbours(Beside beside, Precision precision) {
  if (beside == Beside::Nothing) return nullptr;
  std::unique_ptr<GpuNeighbours>& kept = neighbours_[{beside, precision}];
  if (!kept) kept = std::make_unique<GpuNeighbours>(group_, beside, precision);
  return kept.get();
}

Readings GpuBench::read(const Executions& executions, const std::function<void(int)>& issue,
                        int count, GpuNeighbours* beside) {
  const int repeats = executions.repeats;
  const Timed timed(member().compute, repeats, issue);
  double alone = 0;
  const Clock::time_point begin = Clock::now();
  do {
    alone = timed.once().first;
  } while (since(begin) < kWarmUp);
  double share = kNeighboursShare;
  Readings readings;
  for (int i = 0; i < count;) {
    if (beside == nullptr) {
      if (executions.cold) flush();
    } else {
      beside->begin(Seconds(alone * repeats * share), member().compute);
    }
    const auto [busy, wall] = timed.once();
    const bool counts = beside == nullptr || beside->busy() || share > kMostNeighbours;
    if (beside != nullptr) beside->wait();
    if (!counts) {
      share *= 2;  // they were done too soon
      continue;
    }
    readings.busy.push_back(busy);
    readings.wall.push_back(wall);
    ++i;
  }
  return readings;
}

Readings GpuBench::time(const Probe& probe, int count, Beside beside) {
  const CurrentDevice current(device_.number);
  const GpuProbe kernel(probe, context(), arena_, probe.warm ? 0 : cache_);
  const auto issue = [&](int number) { kernel.issue(number); };
  require(cudaStreamSynchronize(member().compute), "run a kernel");
  const int repeats = repeats_of(Timed(member().compute, 1, issue).once().first);
  Readings readings;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int before = clock();
    readings = read({repeats, !probe.warm}, issue, count, neighbours(beside, probe.precision));
    if (!clock_moved(before, clock())) break;
  }
  readings.kernel = kernel.kernel();
  return readings;
}

/// The least that is ever launched: a kernel that copies one number.
Readings GpuBench::launch(int count) {
  const CurrentDevice current(device_.number);
  const Stream stream = context().stream;
  char* numbers = arena_.take(512, stream.handle);
  fill_with_noise(stream, numbers, 512);
  const auto issue = [&](int) { scale(stream, numbers + 256, numbers, 1, 1); };
  issue(0);
  require(cudaStreamSynchronize(stream.handle), "run a kernel");
  return read({kLaunches, true}, issue, count, nullptr);
}

Readings GpuBench::copy(Bytes bytes, int count) {
  const bool apart = group_.members().size() > 1;
  const int from = device_.number, to = apart ? group_.members()[1].gpu : from;
  const auto size = static_cast<std::int64_t>(bytes.value());
  if (way_ == nullptr) way_ = group_.make_way(0, apart ? 1 : 0, CudaLink::CopyEngine);
  const CurrentDevice current(from);
  char* here = here_.take(size, way_);
  fill_with_noise({way_, 1, Element::Fp32}, here, size / 4 * 4);
  char* there = nullptr;
  {
    const CurrentDevice other(to);
    there = there_.take(size, way_);
  }
  const Shipment shipment = {
      .to = there, .from = here, .bytes = size, .to_gpu = to, .from_gpu = from};
  Readings readings;
  for (int i = -2; i < count; ++i) {  // two to warm up
    Events events;
    // Behind something, so that the device waits for no call of the host.
    char* other = flushed_.take(2 * cache_, way_);
    require(cudaMemsetAsync(other, 1, static_cast<std::size_t>(2 * cache_), way_), "flush");
    cudaEvent_t begin = events.mark(way_, false);
    ship(shipment, CudaLink::CopyEngine, way_);
    cudaEvent_t end = events.mark(way_, false);
    require(cudaStreamSynchronize(way_), "copy");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "read a time");
    if (i >= 0) readings.busy.push_back(milliseconds / 1e3);
  }
  readings.wall = readings.busy;
  return readings;
}

BenchFacts GpuBench::facts() const {
  BenchFacts facts = {.kind = "cuda", .name = device_.name};
  const std::string sms = std::to_string(member().sms);
  if (partitions_ > 1) {
    facts.name += ", one of " + std::to_string(partitions_) + " partitions of " + sms;
  }
  facts.processor = device_.name + ", " + std::to_string(device_.sms) +
                    " multiprocessors, capability " + std::to_string(device_.major) + "." +
                    std::to_string(device_.minor) + "; " + sms + " measured";
  for (const std::string& note : group_.notes()) facts.processor += "; " + note;
  facts.driver = (report_.nvml.empty() ? "driver" : "driver " + report_.nvml) + " of CUDA " +
                 version_text(report_.driver) + ", module of CUDA " +
                 version_text(report_.runtime) + ", cuBLASLt " +
                 std::to_string(cublasLtGetVersion());
  facts.clocks = "unknown";
  if (device_.sm_limit > 0) {
    facts.clocks = std::to_string(device_.sm_clock) + " MHz before the first kernel, at most " +
                   std::to_string(device_.sm_limit) + " MHz; memory " +
                   std::to_string(device_.memory_clock) + " MHz";
  }
  facts.memory = Bytes(static_cast<double>(memory()));
  return facts;
}

void open_bench(int device, int partitions, Bench& bench) {
  const auto gpu = std::make_shared<GpuBench>(device, partitions);
  bench.facts = gpu->facts();
  bench.precisions = {Precision::Fp32, Precision::Bf16};
  // Strict fp32 reaches some tens of TFLOP/s on the largest GPUs, 16 bits almost a thousand.
  bench.most_flops[static_cast<std::size_t>(Precision::Fp32)] = Flops(1.5e11 / partitions);
  bench.most_flops[static_cast<std::size_t>(Precision::Bf16)] = Flops(2e12 / partitions);
  bench.longest_side = 16384;
  bench.multiprocessors = gpu->multiprocessors();
  bench.most_bytes = Bytes(std::min(static_cast<double>(gpu->memory()) / 32,
                                    std::max(4e8, 8.0 * static_cast<double>(gpu->cache()))));
  bench.cold = true;
  bench.most_spread = 0.04;  // of normal numbers, a standard deviation of 3 %
  bench.time = [gpu](const Probe& probe, int count, Beside beside) {
    return gpu->time(probe, count, beside);
  };
  bench.launch = [gpu](int count) { return gpu->launch(count); };
  const int others = static_cast<int>(gpu->report().devices.size()) - device;
  if (partitions == 1 && others > 1 && !nccl_version().empty()) {
    const auto collectives = std::make_shared<GpuCollectives>(device, others);
    bench.most_members = others;
    bench.collective = [collectives](CollectiveKind kind, int members, Bytes bytes, int count) {
      return collectives->time(kind, members, bytes, count);
    };
  }
  bench.copy = [gpu](Bytes bytes, int count) { return gpu->copy(bytes, count); };
}

}  // namespace interlock::cuda
