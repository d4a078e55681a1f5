// Sharding: how the tensors of a module are divided among the devices that run it together.
// SPDX-License-Identifier: Apache-2.0
//
// A graph built with a sharding has the work, parameters and bytes of one device, and says what the
// devices exchange. Data parallelism is no sharding: replicas run the same graph.
#pragma once

#include <optional>

namespace interlock {

/// How matrix products are divided: by columns and then by rows (Megatron-LM), on a square grid
/// (2D), on several square grids (2.5D), or on a cube (3D).
enum class TensorLayout { OneD, TwoD, TwoAndAHalfD, ThreeD };
/// How attention sees a sequence whose parts are on several devices: keys and values go round a
/// ring, or an all-to-all turns parts of the sequence into parts of the heads (Ulysses).
enum class ContextLayout { Ring, AllToAll };
/// How tokens get to their experts: a copy for each expert, or one for each node that holds any.
enum class ExpertDispatch { Copies, Nodes };

struct Sharding {
  int tensor = 1;  // devices
  TensorLayout tensor_layout = TensorLayout::OneD;
  int tensor_depth = 1;            // TwoAndAHalfD: grids; tensor = depth * side * side
  bool sequence_parallel = false;  // OneD: norms and residuals are divided by sequence
  int context = 1;                 // devices
  ContextLayout context_layout = ContextLayout::Ring;
  int image_rows = 1;                // devices that have a band of rows each of every image
  int image_columns = 1;             // likewise of columns; both: a grid
  int expert = 1;                    // devices that share the experts of a layer between them
  std::optional<int> expert_tensor;  // devices that divide each expert; nothing: as many as tensor
  ExpertDispatch expert_dispatch = ExpertDispatch::Copies;
  int split_brain = 1;          // devices that share fully connected layers between them
  double expert_imbalance = 1;  // tokens of the busiest device over the mean, at least 1

  int image_parts() const { return image_rows * image_columns; }
  int tensor_of_experts() const { return expert_tensor.value_or(tensor); }
};

}  // namespace interlock
