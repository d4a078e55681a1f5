// Sharding: how the tensors of a module are divided among the devices that run it together.
// SPDX-License-Identifier: Apache-2.0
//
// A graph built with a sharding has the work, parameters and bytes of one device, and says what the
// devices exchange. Data parallelism is no sharding: replicas run the same graph.
//
// Example: tensor 4 in one dimension. Of 4,096 x 16,384 weights each device has 4,096 x 4,096, some
// of the columns; of the 16,384 x 4,096 behind them as many rows; then the four add up their
// outputs.
#pragma once

#include <optional>

namespace interlock {

/// How matrix products are divided: by columns and then by rows (Megatron-LM), on a square grid
/// (2D), on several square grids (2.5D), or on a cube (3D).
enum class TensorLayout { OneD, TwoD, TwoAndAHalfD, ThreeD };
/// How attention sees a sequence whose parts are on several devices: keys and values go round a
/// ring, an all-to-all turns parts of the sequence into parts of the heads (Ulysses, arXiv
/// 2309.14509), or both: neighbours turn heads, and the keys of these go round rings of one device
/// of each such group (USP, arXiv 2405.07719; Megatron-Core's a2a+p2p).
enum class ContextLayout { Ring, AllToAll, Hybrid };

/// Names what runs while tokens are on their way to experts and back: nothing, the experts of all
/// tokens (Megatron-Core's --moe-shared-expert-overlap), or another micro-batch
/// (--overlap-moe-expert-parallel-comm).
enum class ExpertOverlap { None, SharedExperts, MicroBatches };

/// How tokens reach the holders of their experts: a copy for each expert in an all-to-all (NCCL),
/// or one for each node, and from there for each device, that holds any of them (DeepEP).
enum class ExpertDispatch { AllToAll, DeepEp };
/// Formats of tokens on their way: that of the training; 16 bits; 8 bits, with a scale of 32 bits
/// for every 128 of them (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
enum class TokenFormat { Training, Bf16, Fp8 };

struct Sharding {
  int tensor = 1;  // devices
  TensorLayout tensor_layout = TensorLayout::OneD;
  int tensor_depth = 1;            // TwoAndAHalfD: grids; tensor = depth * side * side
  bool sequence_parallel = false;  // OneD: norms and residuals are divided by sequence
  int context = 1;                 // devices
  ContextLayout context_layout = ContextLayout::Ring;
  int context_columns = 1;           // Hybrid: neighbours that turn heads; divides context
  int image_rows = 1;                // devices that have a band of rows each of every image
  int image_columns = 1;             // likewise of columns; both: a grid
  int expert = 1;                    // devices that share the experts of a layer between them
  std::optional<int> expert_tensor;  // devices that divide each expert; nothing: as many as tensor
  int split_brain = 1;               // devices that share fully connected layers between them
  double expert_imbalance = 1;       // tokens of the busiest device over the mean, at least 1
  int expert_loads =
      0;  // experts whose loads that was worked out from; 0: it is a number by itself
  ExpertOverlap expert_overlap = ExpertOverlap::None;
  ExpertDispatch expert_dispatch = ExpertDispatch::AllToAll;
  TokenFormat dispatch_format = TokenFormat::Training, combine_format = TokenFormat::Training;

  int image_parts() const { return image_rows * image_columns; }
  /// Returns the devices among which parts of sequences become parts of heads; 1: none do.
  int turning_devices() const {
    if (context_layout == ContextLayout::Hybrid) return context_columns;
    return context_layout == ContextLayout::AllToAll ? context : 1;
  }
  /// Returns the devices of a ring of keys and values; 1: there is none.
  int ring_devices() const { return context / turning_devices(); }
  int tensor_of_experts() const { return expert_tensor.value_or(tensor); }
  bool operator==(const Sharding&) const = default;
};

}  // namespace interlock
