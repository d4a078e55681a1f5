// Looking for GPUs: driver, devices, and which of them reach each other's memory.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/look.h"

#include <array>

#include "validate/cuda/device/nccl.h"
#include "validate/cuda/device/nvml.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

CudaDevice describe(int number, int devices) {
  CudaDevice device = {.number = number};
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, number), "describe a device");
  device.name = properties.name;
  device.major = properties.major;
  device.minor = properties.minor;
  device.sms = properties.multiProcessorCount;
  device.memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  device.bus = bus_of(number);
  for (int other = 0; other < devices; ++other) {
    int reaches = 0;
    if (other == number) continue;
    require(cudaDeviceCanAccessPeer(&reaches, number, other), "which memory a device reaches");
    if (reaches != 0) device.peers.push_back(other);
  }
  read_clocks(device);
  return device;
}

/// Counts devices; whatever keeps CUDA from that is in `report`.
int count_devices(CudaReport& report) {
  cudaRuntimeGetVersion(&report.runtime);
  cudaDriverGetVersion(&report.driver);
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  cudaGetLastError();
  if (status == cudaSuccess && devices > 0) return devices;
  if (report.driver == 0) {
    report.state = CudaState::NoDriver;
    report.sentence = "no GPU: there is no NVIDIA driver here (libcuda.so.1 is not found)";
  } else if (status == cudaErrorInsufficientDriver) {
    report.state = CudaState::NoDriver;
    report.sentence = "no GPU: the NVIDIA driver is too old: it supports CUDA " +
                      version_text(report.driver) + ", expected at least " +
                      version_text(report.runtime / 1000 * 1000) + "; install a newer driver";
  } else {
    report.state = CudaState::NoDevice;
    report.sentence = "no GPU: the NVIDIA driver finds no device";
    if (status != cudaSuccess && status != cudaErrorNoDevice) {
      report.sentence += std::string(": ") + cudaGetErrorString(status);
    }
  }
  return 0;
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string bus_of(int gpu) {
  std::array<char, 32> bus{};
  require(cudaDeviceGetPCIBusId(bus.data(), bus.size(), gpu), "the bus of a device");
  return bus.data();
}

void look(CudaReport& report) {
  report.nvml = nvml_version();
  report.nccl = nccl_version();
  report.nccl_problem = nccl_problem();
  const int devices = count_devices(report);
  if (devices == 0) return;
  report.state = CudaState::Ready;
  for (int number = 0; number < devices; ++number) {
    report.devices.push_back(describe(number, devices));
  }
  const CudaDevice& first = report.devices.front();
  report.sentence = std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs") + ", the first a " +
                    first.name + " with " + std::to_string(first.sms) + " multiprocessors; CUDA " +
                    version_text(report.driver) + " of the driver, " +
                    version_text(report.runtime) + " of the module";
}

}  // namespace interlock::cuda
