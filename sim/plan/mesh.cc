// Coordinates, devices and groups.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/mesh.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {

namespace {

/// Returns the number in the mesh of the device at `at`.
int number_of(const Mesh& mesh, const Coordinates& at) {
  int device = 0, stride = 1;
  for (const Dimension dimension : mesh.order) {
    device += at[static_cast<int>(dimension)] * stride;
    stride *= mesh.degree(dimension);
  }
  return device;
}

/// Returns the number in the cluster of device `number` of the mesh.
int placed(const Mesh& mesh, int number) {
  return mesh.placed.empty() ? number : mesh.placed[static_cast<std::size_t>(number)];
}

/// Returns all coordinates of which those in `free` run through their degrees and the others are 0;
/// the first dimension changes first.
std::vector<Coordinates> all_coordinates(const Mesh& mesh, const Unfolded& free) {
  std::vector<Coordinates> all = {{0, 0, 0, 0}};
  for (int dimension = kDimensions - 1; dimension >= 0; --dimension) {
    if (!free[dimension]) continue;
    std::vector<Coordinates> longer;
    longer.reserve(all.size() * static_cast<std::size_t>(mesh.degrees[dimension]));
    for (const Coordinates& one : all) {
      for (int i = 0; i < mesh.degrees[dimension]; ++i) {
        longer.push_back(one);
        longer.back()[dimension] = i;
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Returns the devices that agree with `at` in pipeline and tensor coordinates, sorted.
std::vector<int> devices_of_equal_weights(const Mesh& mesh, Coordinates at) {
  at[static_cast<int>(Dimension::Context)] = at[static_cast<int>(Dimension::Data)] = 0;
  std::vector<int> devices = {number_of(mesh, at)};
  devices.reserve(static_cast<std::size_t>(mesh.replicas()));
  int stride = 1;
  // A dimension that changes later adds more than all that change before it do together.
  for (const Dimension dimension : mesh.order) {
    const int degree = mesh.degree(dimension);
    if (dimension == Dimension::Context || dimension == Dimension::Data) {
      const std::size_t before = devices.size();
      for (int i = 1; i < degree; ++i) {
        for (std::size_t d = 0; d < before; ++d) devices.push_back(devices[d] + i * stride);
      }
    }
    stride *= degree;
  }
  return devices;
}

/// Returns the devices along one dimension.
std::vector<int> devices_along(const Mesh& mesh, Dimension dimension, Coordinates at) {
  std::vector<int> devices;
  for (int i = 0; i < mesh.degree(dimension); ++i) {
    at[static_cast<int>(dimension)] = i;
    devices.push_back(number_of(mesh, at));
  }
  return devices;
}

/// Returns from `all` the block of `size` neighbours that holds `device`, or the devices that have
/// its place in each block.
std::vector<int> block_of(const std::vector<int>& all, int device, int size, bool neighbours) {
  const int place = static_cast<int>(std::find(all.begin(), all.end(), device) - all.begin());
  const int count = static_cast<int>(all.size());
  std::vector<int> devices;
  if (neighbours) {
    const auto first = all.begin() + (place - place % size);
    devices.assign(first, first + size);
  } else {
    for (int i = place % size; i < count; i += size) devices.push_back(all[i]);
  }
  return devices;
}

/// Returns the `size` members of `all`, `step` places from each other, of which `place` is one.
std::vector<int> every(const std::vector<int>& all, int place, int step, int size) {
  const int first = place - place / step % size * step;
  std::vector<int> devices;
  devices.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) devices.push_back(all[first + i * step]);
  return devices;
}

/// A grid of tensor ranks is numbered by depth, then row, then column.
int grid_side(const Mesh& mesh) {
  const int cells = mesh.degree(Dimension::Tensor) / mesh.tensor_depth;
  const int side = static_cast<int>(std::lround(std::sqrt(cells)));
  CHECK(side * side == cells, "square grids of tensor ranks");
  return side;
}

std::vector<int> grid_group(const Mesh& mesh, MeshAxis axis, const Coordinates& at) {
  const std::vector<int> all = devices_along(mesh, Dimension::Tensor, at);
  const int side = grid_side(mesh), place = at[static_cast<int>(Dimension::Tensor)];
  const bool row = axis == MeshAxis::TensorRow, column = axis == MeshAxis::TensorColumn;
  const int step = row ? 1 : column ? side : side * side;
  const int size = row || column ? side : mesh.tensor_depth;
  return every(all, place, step, size);
}

/// Returns the devices of the pipeline rank of `at` along which experts are laid.
std::vector<int> expert_line(const Mesh& mesh, Coordinates at) {
  const int tensor = mesh.degree(Dimension::Tensor);
  std::vector<int> line(static_cast<std::size_t>(mesh.devices_of_rank()));
  for (int t = 0; t < tensor; ++t) {
    at[static_cast<int>(Dimension::Tensor)] = t;
    const std::vector<int> equal = devices_of_equal_weights(mesh, at);
    for (std::size_t i = 0; i < equal.size(); ++i) line[i * tensor + t] = equal[i];
  }
  return line;
}

std::vector<int> expert_group(const Mesh& mesh, MeshAxis axis, const Coordinates& at) {
  const std::vector<int> line = expert_line(mesh, at);
  const auto own = std::find(line.begin(), line.end(), number_of(mesh, at));
  const int tensor = mesh.tensor_of_experts();
  const int step = axis == MeshAxis::ExpertTensor ? 1
                   : axis == MeshAxis::Expert     ? tensor
                                                  : tensor * mesh.expert;
  const int place = static_cast<int>(own - line.begin());
  std::vector<int> devices = every(line, place, step, group_size(mesh, axis));
  std::sort(devices.begin(), devices.end());
  return devices;
}

/// Returns a row or a column of context devices, which are numbered by row, then column.
std::vector<int> context_group(const Mesh& mesh, MeshAxis axis, const Coordinates& at) {
  const std::vector<int> all = devices_along(mesh, Dimension::Context, at);
  const int place = at[static_cast<int>(Dimension::Context)];
  const bool in_row = axis == MeshAxis::ContextColumns;
  return block_of(all, all[place], mesh.context_columns, in_row);
}

/// Returns the numbers in the mesh of the devices that differ from the one at `at` in `axis` only.
std::vector<int> numbers_of_group(const Mesh& mesh, MeshAxis axis, const Coordinates& at) {
  const auto of_equal_weights = [&](int size, bool neighbours) {
    return block_of(devices_of_equal_weights(mesh, at), number_of(mesh, at), size, neighbours);
  };
  switch (axis) {
    case MeshAxis::Tensor:
      return devices_along(mesh, Dimension::Tensor, at);
    case MeshAxis::TensorRow:
    case MeshAxis::TensorColumn:
    case MeshAxis::TensorDepth:
      return grid_group(mesh, axis, at);
    case MeshAxis::Context:
      return devices_along(mesh, Dimension::Context, at);
    case MeshAxis::ContextRows:
    case MeshAxis::ContextColumns:
      return context_group(mesh, axis, at);
    case MeshAxis::Expert:
      return mesh.expert_tensor ? expert_group(mesh, axis, at)
                                : of_equal_weights(mesh.expert, true);
    case MeshAxis::ExpertTensor:
      return expert_group(mesh, axis, at);
    case MeshAxis::ExpertData:
      return mesh.expert_tensor ? expert_group(mesh, axis, at)
                                : of_equal_weights(mesh.expert, false);
    case MeshAxis::Data:
      return devices_of_equal_weights(mesh, at);
    case MeshAxis::Shard:
      return of_equal_weights(mesh.shard, true);
    case MeshAxis::Replica:
      return of_equal_weights(mesh.shard, false);
    case MeshAxis::Resharding:
      return block_of(devices_along(mesh, Dimension::Data, at), number_of(mesh, at), mesh.joined,
                      true);
    case MeshAxis::ToHost:
    case MeshAxis::FromHost:
      return {number_of(mesh, at)};
    case MeshAxis::Pipeline:
    case MeshAxis::FromFirst:
      return devices_along(mesh, Dimension::Pipeline, at);
    case MeshAxis::FromLast: {
      std::vector<int> group = devices_along(mesh, Dimension::Pipeline, at);
      std::rotate(group.begin(), group.end() - 1, group.end());
      return group;
    }
  }
  return {};
}

}  // namespace

const std::vector<std::string>& dimension_names() {
  static const std::vector<std::string> names = {"tensor", "context", "data", "pipeline"};
  return names;
}

int device_of(const Mesh& mesh, const Coordinates& at) { return placed(mesh, number_of(mesh, at)); }

std::vector<int> group_of(const Mesh& mesh, MeshAxis axis, const Coordinates& at) {
  std::vector<int> group = numbers_of_group(mesh, axis, at);
  for (int& device : group) device = placed(mesh, device);
  return group;
}

int group_size(const Mesh& mesh, MeshAxis axis) {
  switch (axis) {
    case MeshAxis::Tensor:
      return mesh.degree(Dimension::Tensor);
    case MeshAxis::TensorRow:
    case MeshAxis::TensorColumn:
      return grid_side(mesh);
    case MeshAxis::TensorDepth:
      return mesh.tensor_depth;
    case MeshAxis::Context:
      return mesh.degree(Dimension::Context);
    case MeshAxis::ContextRows:
      return mesh.degree(Dimension::Context) / mesh.context_columns;
    case MeshAxis::ContextColumns:
      return mesh.context_columns;
    case MeshAxis::Expert:
      return mesh.expert;
    case MeshAxis::Data:
      return mesh.replicas();
    case MeshAxis::Shard:
      return mesh.shard;
    case MeshAxis::Replica:
      return mesh.replicas() / mesh.shard;
    case MeshAxis::ExpertData:
      return mesh.devices_of_rank() / (mesh.expert * mesh.tensor_of_experts());
    case MeshAxis::ExpertTensor:
      return mesh.tensor_of_experts();
    case MeshAxis::Pipeline:
    case MeshAxis::FromFirst:
    case MeshAxis::FromLast:
      return mesh.degree(Dimension::Pipeline);
    case MeshAxis::Resharding:
      return mesh.joined;
    case MeshAxis::ToHost:
    case MeshAxis::FromHost:
      break;
  }
  return 1;
}

std::vector<Coordinates> simulated_ranks(const Mesh& mesh, const Unfolded& unfolded) {
  // Pipeline ranks change first, so that those of a replica are neighbours.
  std::vector<Coordinates> ranks;
  Unfolded others = unfolded;
  others[static_cast<int>(Dimension::Pipeline)] = false;
  for (Coordinates one : all_coordinates(mesh, others)) {
    for (int rank = 0; rank < mesh.degree(Dimension::Pipeline); ++rank) {
      one[static_cast<int>(Dimension::Pipeline)] = rank;
      ranks.push_back(one);
    }
  }
  return ranks;
}

std::vector<Coordinates> folded_ranks(const Mesh& mesh, const Unfolded& unfolded) {
  Unfolded folded{};
  std::transform(unfolded.begin(), unfolded.end(), folded.begin(), std::logical_not<>());
  folded[static_cast<int>(Dimension::Pipeline)] = false;
  return all_coordinates(mesh, folded);
}

Coordinates shifted(const Mesh& mesh, Coordinates at, const Coordinates& by) {
  for (int i = 0; i < kDimensions; ++i) at[i] = (at[i] + by[i]) % mesh.degrees[i];
  return at;
}

}  // namespace interlock
