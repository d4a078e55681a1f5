// Device group: whole GPUs, green contexts, or plain streams.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/device_group.h"

#include "base/error.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

unsigned flags_of(bool fine) {
#if CUDA_VERSION >= 12060
  return fine ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
#else
  return fine ? 1U : 0U;
#endif
}

int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, gpu), "describe a device");
  return value;
}

/// Throws: Error if no kernel of this module runs on the GPU, which would show at the first launch.
void require_kernels(int gpu) {
  const CurrentDevice current(gpu);
  if (has_kernels_here()) return;
  throw Error("GPU " + std::to_string(gpu) + " has compute capability " +
              std::to_string(attribute(cudaDevAttrComputeCapabilityMajor, gpu)) + "." +
              std::to_string(attribute(cudaDevAttrComputeCapabilityMinor, gpu)) +
              ", and this build has kernels for " + kernel_architectures() +
              "; build again with -DCMAKE_CUDA_ARCHITECTURES=native (8.0 or later is expected)");
}

}  // namespace

PartitionLimits limits_of(const CUdevResource& whole, int major, bool fine) {
  PartitionLimits limits = {.sms = static_cast<int>(whole.sm.smCount)};
  // The driver's documentation: 8 and multiples of 8 from capability 9.0 on, 4 and multiples of 2
  // on 8.x, 2 and multiples of 2 before.
  limits.least = major >= 9 ? 8 : major == 8 ? 4 : 2;
  limits.granularity = major >= 9 ? 8 : 2;
#if CUDA_VERSION >= 13000
  if (whole.sm.minSmPartitionSize > 0) limits.least = static_cast<int>(whole.sm.minSmPartitionSize);
  if (whole.sm.smCoscheduledAlignment > 0) {
    limits.granularity = static_cast<int>(whole.sm.smCoscheduledAlignment);
  }
#endif
  if (fine) limits.least = limits.granularity = 2;
  return limits;
}

DeviceGroup::DeviceGroup(int members, const CudaOptions& options)
    : driver_(find_driver_functions()) {
  try {
    if (options.partitions == 0) {
      take_gpus(members, options);
    } else {
      take_partitions(members, options);
    }
  } catch (...) {
    release();
    throw;
  }
}

DeviceGroup::~DeviceGroup() { release(); }

void DeviceGroup::release() noexcept {
  for (const Member& member : members_) finish_device(member.gpu);
  // Streams before the contexts that they are of.
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  for (CUgreenCtx green : greens_) driver_.green_destroy(green);
  streams_.clear();
  greens_.clear();
}

void DeviceGroup::take_gpus(int members, const CudaOptions& options) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "count devices");
  if (options.device + members > devices) {
    throw Error("asked for " + std::to_string(members) + " GPUs from number " +
                std::to_string(options.device) + " on, this machine has " +
                std::to_string(devices) + "; use partitions of one");
  }
  one_gpu_ = members == 1;
  for (int i = 0; i < members; ++i) {
    const int gpu = options.device + i;
    require_kernels(gpu);
    members_.push_back({gpu, attribute(cudaDevAttrMultiProcessorCount, gpu), make_stream(gpu)});
  }
  divided_ = "GPUs";
  int staged = 0;
  for (int i = 0; i < members; ++i) {
    const CurrentDevice current(members_[i].gpu);
    for (int j = 0; j < members; ++j) {
      int reaches = 0;
      if (i == j) continue;
      require(cudaDeviceCanAccessPeer(&reaches, members_[i].gpu, members_[j].gpu), "peers");
      if (reaches == 0) ++staged;
      if (reaches == 0) continue;
      const cudaError_t status = cudaDeviceEnablePeerAccess(members_[j].gpu, 0);
      if (status != cudaErrorPeerAccessAlreadyEnabled) require(status, "peer access");
      cudaGetLastError();
    }
  }
  notes_.push_back(std::to_string(members) + (members == 1 ? " GPU" : " GPUs"));
  if (staged > 0) {
    notes_.push_back(std::to_string(staged) +
                     " ways between GPUs without peer access: copies go through the host");
  }
}

void DeviceGroup::take_partitions(int members, const CudaOptions& options) {
  if (options.partitions != members) {
    throw Error("asked for " + std::to_string(options.partitions) + " partitions, but there are " +
                std::to_string(members) + " ranks; expected one for each");
  }
  one_gpu_ = true;
  const CurrentDevice current(options.device);
  require(cudaFree(nullptr), "begin");  // the primary context, which green ones stand on
  require_kernels(options.device);
  if (options.split == CudaSplit::Streams) return take_streams(members, options.device);
  if (!driver_.missing.empty()) {
    throw Error("this driver has no partitions (no " + driver_.missing +
                "); install one of CUDA 12.5 or later, or ask for plain streams, whose times are "
                "not those of devices (--streams)");
  }
  std::string refusal;
  if (options.split != CudaSplit::FineGreen) {
    if (split(members, options, flags_of(false), refusal)) return;
    if (options.split == CudaSplit::Green) throw Error(refusal);
    notes_.push_back(refusal);
  }
  std::string finer;
  if (!split(members, options, flags_of(true), finer))
    throw Error(refusal.empty() ? finer : refusal);
}

void DeviceGroup::take_streams(int members, int gpu) {
  const int sms = attribute(cudaDevAttrMultiProcessorCount, gpu);
  for (int i = 0; i < members; ++i) members_.push_back({gpu, sms, make_stream(gpu)});
  divided_ = "plain streams";
  notes_.push_back(std::to_string(members) +
                   " plain streams that share all multiprocessors: times are not those of devices");
}

bool DeviceGroup::split(int members, const CudaOptions& options, unsigned flags,
                        std::string& refusal) {
  CUdevice device = 0;
  CUdevResource whole{};
  require_driver(driver_.device_get(&device, options.device), "find the device");
  require_driver(driver_.device_get_resource(device, &whole, CU_DEV_RESOURCE_TYPE_SM),
                 "count multiprocessors");
  const int major = attribute(cudaDevAttrComputeCapabilityMajor, options.device);
  const PartitionLimits limits = limits_of(whole, major, flags != 0);
  PartitionPlan plan = plan_partitions(limits, members, options.sms);
  refusal = plan.refusal;
  unsigned granted = 0;
  // Multiprocessors come in clusters of unequal size, so the driver may have fewer groups than
  // arithmetic. If no size was asked for, a smaller one may do.
  while (refusal.empty()) {
    require_driver(driver_.split_by_count(nullptr, &granted, &whole, nullptr, flags,
                                          static_cast<unsigned>(plan.sms)),
                   "ask for partitions");
    if (granted >= static_cast<unsigned>(members)) break;
    const bool smaller = options.sms == 0 && plan.sms - limits.granularity >= limits.least;
    if (smaller) {
      plan.sms -= limits.granularity;
      continue;
    }
    refusal = "asked for " + std::to_string(members) + " partitions of " +
              std::to_string(plan.sms) + " multiprocessors, the driver grants " +
              std::to_string(granted) + " of this device's " + std::to_string(limits.sms) +
              "; try " + std::to_string(granted);
  }
  if (!refusal.empty()) return false;
  std::vector<CUdevResource> groups(static_cast<std::size_t>(members));
  CUdevResource rest{};
  granted = static_cast<unsigned>(members);
  require_driver(driver_.split_by_count(groups.data(), &granted, &whole, &rest, flags,
                                        static_cast<unsigned>(plan.sms)),
                 "split the device");
  if (granted != static_cast<unsigned>(members))
    throw Error("CUDA: the device was split otherwise");
  make_partitions(groups, rest, options.device);
  divided_ = flags == 0 ? "green contexts" : "green contexts without regard to clusters";
  std::string note = std::to_string(members) + " green contexts of";
  for (const Member& member : members_) note += " " + std::to_string(member.sms);
  notes_.push_back(note + " multiprocessors, " + std::to_string(link_sms_) + " for links, of " +
                   std::to_string(limits.sms) +
                   (flags == 0 ? "" : ", split without regard to clusters"));
  return true;
}

void DeviceGroup::make_partitions(std::vector<CUdevResource>& groups, CUdevResource& rest,
                                  int gpu) {
  const auto size_of = [&](CUgreenCtx green) {
    CUdevResource got{};
    require_driver(driver_.green_get_resource(green, &got, CU_DEV_RESOURCE_TYPE_SM),
                   "read a partition back");
    return static_cast<int>(got.sm.smCount);
  };
  for (CUdevResource& group : groups) {
    CUgreenCtx green = make_green(group, gpu);
    members_.push_back({gpu, size_of(green), make_green_stream(green)});
  }
  if (rest.type != CU_DEV_RESOURCE_TYPE_SM || rest.sm.smCount == 0) return;
  link_green_ = make_green(rest, gpu);
  link_sms_ = size_of(link_green_);
}

CUgreenCtx DeviceGroup::make_green(CUdevResource& resource, int gpu) {
  CUdevice device = 0;
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  require_driver(driver_.device_get(&device, gpu), "find the device");
  require_driver(driver_.generate_descriptor(&descriptor, &resource, 1), "describe a partition");
  require_driver(driver_.green_create(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM),
                 "make a partition");
  greens_.push_back(green);
  return green;
}

cudaStream_t DeviceGroup::make_green_stream(CUgreenCtx green) {
  CUstream stream = nullptr;
  require_driver(driver_.green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0),
                 "make a stream of a partition");
  streams_.push_back(stream);
  return stream;
}

cudaStream_t DeviceGroup::make_stream(int gpu) {
  const CurrentDevice current(gpu);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
  streams_.push_back(stream);
  return stream;
}

cudaStream_t DeviceGroup::make_way(int from, int to, CudaLink link) {
  const bool inside = members_[from].gpu == members_[to].gpu;
  if (inside && link == CudaLink::Paced && link_green_ != nullptr) {
    return make_green_stream(link_green_);
  }
  return make_stream(members_[from].gpu);
}

cudaStream_t DeviceGroup::make_stream_beside(int member) {
  // Partitions are made in the order of members.
  if (!greens_.empty()) return make_green_stream(greens_[static_cast<std::size_t>(member)]);
  return make_stream(members_[static_cast<std::size_t>(member)].gpu);
}

void DeviceGroup::require_driver(CUresult status, const char* what) const {
  if (status == CUDA_SUCCESS) return;
  const char* words = nullptr;
  driver_.get_error_string(status, &words);
  throw Error(std::string("CUDA driver: ") + what + ": " +
              (words != nullptr ? words : "unknown error"));
}

}  // namespace interlock::cuda
