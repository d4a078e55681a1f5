// MemoryReserve: memory of a device that the tensors of a plan cannot have.
// SPDX-License-Identifier: Apache-2.0
//
// A process holds memory beside the tensors that peaks count. Searches choose plans whose peaks
// leave it free. Example: tensor 8, pipeline 4 and data 2 on A100s of 80 GiB, without a framework
// that says its own: 0.4 GB of context; 688 MiB for the communicator of 8, as much for that of 4,
// and 544 MiB for that of 2; and a tenth of what the allocator hands out. Tensors may take 70.6
// GiB.
#pragma once

#include <optional>
#include <string>

#include "hardware/devices/device.h"
#include "scenarios/load/question.h"

namespace interlock {

struct MemoryReserve {
  Bytes process;     // of a device, whatever its tensors
  double held = 0;   // by the allocator beyond what it has handed out, over that
  double share = 0;  // of the device
};

/// Prices what a process of `question` holds on `device`:
///   - a CUDA context: the framework's, or 0.4 GB, as kernels are loaded when they are first used
///     (github.com/pytorch/pytorch/issues/109888; a device that is no GPU of NVIDIA or AMD
///     has none);
///   - a communicator's buffers: 544 MiB for two devices, 688 MiB for more
///     (github.com/NVIDIA/nccl/issues/964, four A100 behind NVLink), of each dimension of the mesh;
///   - for all-to-alls, 3.28 GB for seven peers inside a node (github.com/NVIDIA/nccl/issues/1685,
///     eight H100), of each peer as much: an assumption, as that way between nodes is one buffer;
///   - what the allocator keeps and cannot hand out: a tenth, as torchtitan's 8B on 64 H200 (0.09),
///     where peaks do not have the framework's own already. Workspaces of libraries are in it.
MemoryReserve priced_reserve(const Question& question, const Device& device);
/// Returns whether processes of `device` hold contexts and communicators of these kinds.
bool is_gpu(const Device& device);

/// Returns the memory that a process uses whose tensors take `peak`.
inline Bytes used_memory(const MemoryReserve& reserve, Bytes peak) {
  return peak * (1 + reserve.held) + reserve.process;
}

/// Returns the share of its memory that the peak of each device may take; of a mixed cluster the
/// least. `asked` stands in the place of the price.
double usable_share(const Question& question, const std::optional<MemoryReserve>& asked);

/// Says what the reserve of the largest part is made of: "2.3 GiB for its context and 3
/// communicators, and 10% more than tensors take for its allocator".
std::string reserve_words(const Question& question, const std::optional<MemoryReserve>& asked);

}  // namespace interlock
