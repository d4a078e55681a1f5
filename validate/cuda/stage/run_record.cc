// RunRecord: devices, versions, products and memory of a run.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/run_record.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "validate/cuda/device/links.h"
#include "validate/cuda/device/look.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

/// Returns the products of all devices; those that ran alike are counted together.
std::vector<ExecutedProduct> products_of(const Rig& rig) {
  std::vector<ExecutedProduct> all;
  const auto key = [](const ExecutedProduct& p) {
    return std::tie(p.shape, p.algorithm, p.tile, p.stages, p.split_k, p.cluster);
  };
  for (const auto& products : rig.products) {
    for (const ExecutedProduct& one : products->record()) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const ExecutedProduct& p) { return key(p) == key(one); });
      if (known == all.end()) {
        all.push_back(one);
      } else {
        known->calls += one.calls;
      }
    }
  }
  return all;
}

std::set<int> gpus_of(const Rig& rig) {
  std::set<int> gpus;
  for (const Member& member : rig.group.members()) gpus.insert(member.gpu);
  return gpus;
}

/// Returns the bytes of `gpu` that the run asked for: tensors, inputs, scratch and workspaces.
std::int64_t asked_bytes(const Rig& rig, const GpuRun& gpu_run, int gpu) {
  std::int64_t bytes = gpu_run.input_bytes(gpu);
  for (std::size_t r = 0; r < rig.group.members().size(); ++r) {
    if (rig.group.members()[r].gpu != gpu) continue;
    bytes += rig.memory + rig.scratch[r]->bytes() + Products::kWorkspace;
  }
  return bytes;
}

ExecutedGpu describe(const CudaDevice& device) {
  ExecutedGpu gpu = {
      .number = device.number,
      .name = device.name,
      .bus = device.bus,
      .capability = std::to_string(device.major) + "." + std::to_string(device.minor),
      .multiprocessors = device.sms,
      .memory = device.memory,
      .most_clock = device.sm_limit};
  return gpu;
}

}  // namespace

std::vector<SampledGpu> sampled_gpus(const Rig& rig) {
  std::vector<SampledGpu> gpus;
  for (const int gpu : gpus_of(rig)) gpus.push_back({gpu, bus_of(gpu)});
  return gpus;
}

ExecutionRecord record_of(const Rig& rig, const GpuRun& gpu_run, const CudaOptions& options) {
  CudaReport report;
  look(report);
  ExecutionRecord record = {.driver = report.nvml,
                            .driver_cuda = version_text(report.driver),
                            .module_cuda = version_text(report.runtime),
                            .cublaslt = std::to_string(cublasLtGetVersion()),
                            .divided = rig.group.divided(),
                            .link_multiprocessors = rig.group.link_sms(),
                            .links = rig.nccl ? "NCCL" : name_of_link(options.link, options.graph),
                            .replicas = name_of_exchanges(rig.groups),
                            .notes = rig.group.notes(),
                            .products = products_of(rig),
                            .wall = gpu_run.wall(),
                            .issue = gpu_run.issue_time(),
                            .lateness = gpu_run.times().lateness()};
  for (const int gpu : gpus_of(rig)) {
    ExecutedGpu one = describe(report.devices.at(static_cast<std::size_t>(gpu)));
    const CurrentDevice current(gpu);
    std::size_t free = 0, all = 0;
    require(cudaMemGetInfo(&free, &all), "free memory");
    one.used = static_cast<std::int64_t>(all - free);
    one.asked = asked_bytes(rig, gpu_run, gpu);
    record.gpus.push_back(one);
  }
  for (const Member& member : rig.group.members()) {
    record.devices.push_back({member.gpu, member.sms});
  }
  for (const auto& scratch : rig.scratch) {
    record.workspace = std::max(record.workspace, scratch->bytes() + Products::kWorkspace);
  }
  if (options.link == CudaLink::Paced && rig.group.link_sms() == 0) {
    record.notes.emplace_back("paced copies have no multiprocessors of their own");
  }
  return record;
}

}  // namespace interlock::cuda
