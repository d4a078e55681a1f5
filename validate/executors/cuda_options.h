// CUDA options: on what of the GPUs a job runs, and what stands for links between its devices.
// SPDX-License-Identifier: Apache-2.0
//
// Read by CUDA sources too, which are C++17.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace interlock {

/// How one GPU becomes several devices. Auto: partitions by green contexts; if the driver refuses
/// their size, finer ones (without large clusters of blocks). Streams: plain ones, which share all
/// multiprocessors, so that their times are not those of devices; never taken unless asked for.
enum class CudaSplit { Auto, Green, FineGreen, Streams };

/// The stand-in for a link between two devices on one GPU. Zero hands over at once; CopyEngine
/// copies beside the kernels; Paced takes as long as the channel's occupancy and latency say.
enum class CudaLink { Zero, CopyEngine, Paced };

/// Replicas that one GPU has in its parts at most: a kernel takes the places of all.
inline constexpr std::size_t kMostReplicas = 128;

struct CudaOptions {
  int device = 0;      // the GPU, or the first of several
  int partitions = 0;  // of that GPU, one for each rank; 0: a GPU for each rank
  int sms = 0;         // multiprocessors of a partition; 0: as many as fit
  CudaSplit split = CudaSplit::Auto;
  CudaLink link = CudaLink::CopyEngine;
  bool nccl = false;      // between GPUs, if it is installed: send and receive instead of copies
  bool graph = false;     // the whole run is one CUDA graph; of one GPU only
  bool times = true;      // events around ops and transfers; else the trace stays empty
  bool untraced = false;  // run once more, before, without these events; see ExecutionRecord
  /// Ops one after the other, nothing beside them, and none begins before all of it is issued.
  bool alone = false;
  bool poison = false;                      // memory is not-a-number before anyone writes it
  int planned_sms = 0;                      // that products are planned for; 0: those of the device
  std::int64_t memory = 0;                  // bytes of each device; 0: as many as are free
  const std::atomic<bool>* stop = nullptr;  // ends the run soon after it becomes true
};

}  // namespace interlock
