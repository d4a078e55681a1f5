// Mesh: how the ranks of a parallel run are laid over the devices of a cluster.
// SPDX-License-Identifier: Apache-2.0
//
// A device has four coordinates: its pipeline rank, and among the devices of that rank its data,
// context and tensor coordinates. `order` says which of them changes first from one device to the
// next. Devices of equal weights divide, under ZeRO, the states of the optimiser, gradients and
// weights among them.
//
// Experts have a mesh of their own over the devices of a pipeline rank, as Megatron-Core folds them
// (arXiv 2504.14960): tensor x context x data = expert_tensor x expert x expert_data. It is laid
// along a line: the devices with the tensor coordinate changing first, then those of equal weights
// by their numbers. On it expert_tensor changes first, then expert, then expert_data. If each
// expert is divided as all else is (expert_tensor = tensor), the groups that share the experts are
// neighbours among the devices of equal weights.
//
// Example: tensor 2 x data 2 x pipeline 2 in the usual order, tensor, context, data, pipeline.
//   device     0  1  2  3  4  5  6  7
//   tensor     0  1  0  1  0  1  0  1
//   data       0  0  1  1  0  0  1  1
//   pipeline   0  0  0  0  1  1  1  1
// and with the experts of a layer on 2 devices each:
//   expert_tensor 1     0  0  0  0  1  1  1  1   pipeline
//     expert            0  1  0  1  0  1  0  1
//     expert_data       0  0  1  1  0  0  1  1
//   expert_tensor 2     0  1  0  1  0  1  0  1
//     expert            0  0  1  1  0  0  1  1
// The mesh of a job among others says which devices of the cluster it has: with devices {4, 5, 12,
// 13} those of tensor 2 x pipeline 2 are 4 and 5, and behind them 12 and 13.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/exchange.h"

namespace interlock {

enum class Dimension { Tensor, Context, Data, Pipeline };
inline constexpr int kDimensions = 4;
/// Returns "tensor", "context", "data" and "pipeline".
const std::vector<std::string>& dimension_names();

/// By Dimension.
using Coordinates = std::array<int, kDimensions>;

struct Mesh {
  Coordinates degrees = {1, 1, 1, 1};
  std::array<Dimension, kDimensions> order = {Dimension::Tensor, Dimension::Context,
                                              Dimension::Data, Dimension::Pipeline};
  int tensor_depth = 1;              // of a grid of tensor ranks: depth * side * side
  int context_columns = 1;           // of context as a grid of rows; divides it
  int expert = 1;                    // devices that share the experts of a layer between them
  std::optional<int> expert_tensor;  // devices that divide each expert; nothing: as many as tensor
  int joined = 1;                // data devices whose samples a layer of other degrees has together
  int shard = 1;                 // devices that share one copy of a state; divides data * context
  std::vector<int> placed = {};  // the cluster's numbers of its devices; empty: 0, 1, 2, ...

  int degree(Dimension dimension) const { return degrees[static_cast<int>(dimension)]; }
  int& degree(Dimension dimension) { return degrees[static_cast<int>(dimension)]; }
  int tensor_of_experts() const { return expert_tensor.value_or(degree(Dimension::Tensor)); }
  /// Returns the number of devices that hold equal weights, but for experts.
  int replicas() const { return degree(Dimension::Data) * degree(Dimension::Context); }
  int devices_of_rank() const { return replicas() * degree(Dimension::Tensor); }
  int devices() const { return devices_of_rank() * degree(Dimension::Pipeline); }
  bool operator==(const Mesh&) const = default;
};

/// Returns the device at `at`.
int device_of(const Mesh& mesh, const Coordinates& at);
/// Returns the devices, in the order of the mesh but for grids, that differ from the one at `at`
/// in `axis` only, itself included.
std::vector<int> group_of(const Mesh& mesh, MeshAxis axis, const Coordinates& at);
/// Returns how many those are.
int group_size(const Mesh& mesh, MeshAxis axis);

/// The dimensions of which every coordinate is simulated, by Dimension. Pipeline always is.
using Unfolded = std::array<bool, kDimensions>;
inline constexpr Unfolded kFolded = {false, false, false, true};

/// Returns the coordinates of the ranks that a program simulates, pipeline ranks of one replica
/// together.
std::vector<Coordinates> simulated_ranks(const Mesh& mesh, const Unfolded& unfolded);
/// Returns the coordinates for which each of these ranks stands, relative to it: all of the folded
/// ones.
std::vector<Coordinates> folded_ranks(const Mesh& mesh, const Unfolded& unfolded);
/// Returns the place that is `by` further on, as on a ring.
Coordinates shifted(const Mesh& mesh, Coordinates at, const Coordinates& by);

}  // namespace interlock
