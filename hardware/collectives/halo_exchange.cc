// Halo exchange: the input that a part of a convolution's or pooling's output needs from others.
// SPDX-License-Identifier: Apache-2.0
//
// Halos are uneven: input and output are cut evenly each for itself, and strides and padding move
// one against the other. A halo may be wider than the neighbour's part; then it comes from
// further away in the same step.
#include <algorithm>

#include "base/error.h"
#include "hardware/collectives/grouping.h"
#include "hardware/collectives/movement.h"

namespace interlock {
namespace {

/// The ranges that ranks hold and need along one axis.
struct Line {
  std::vector<IndexRange> own;   // by coordinate
  std::vector<IndexRange> need;  // likewise
};

/// Ranks that differ along `axis` only: one sends the others what they need of its own part.
void exchange_line(const std::vector<Line>& lines, const std::vector<int>& place, std::size_t axis,
                   std::vector<Bytes>& to) {
  const IndexRange own = lines[axis].own[static_cast<std::size_t>(place[axis])];
  double section = 1;
  for (std::size_t other = 0; other < lines.size(); ++other) {
    if (other == axis) continue;
    const auto at = static_cast<std::size_t>(place[other]);
    const IndexRange held = other < axis ? lines[other].need[at] : lines[other].own[at];
    section *= static_cast<double>(held.size());
  }
  for (std::size_t receiver = 0; receiver < to.size(); ++receiver) {
    const IndexRange need = lines[axis].need[receiver];
    const IndexRange common{std::max(own.begin, need.begin), std::min(own.end, need.end)};
    to[receiver] = Bytes(section * static_cast<double>(common.size()));
  }
}

}  // namespace

Movement halo_exchange(const TensorShape& tensor, const CartesianPartition& partition,
                       const std::vector<Window>& windows) {
  const std::size_t dimensions = tensor.shape.size();
  CHECK(partition.shape.size() == dimensions && windows.size() == dimensions,
        "a cut and a window for each dimension of the tensor");
  std::vector<Line> lines(dimensions);
  for (std::size_t axis = 0; axis < dimensions; ++axis) {
    for (int index = 0; index < partition.shape[axis]; ++index) {
      lines[axis].own.push_back(part_of(tensor.shape[axis], partition.shape[axis], index));
      lines[axis].need.push_back(
          input_of(tensor.shape[axis], partition.shape[axis], index, windows[axis]));
    }
  }
  Movement movement;
  std::size_t stride = partition.ranks.size();  // of places that differ by one along the axis
  for (std::size_t axis = 0; axis < dimensions; ++axis) {
    const auto size = static_cast<std::size_t>(partition.shape[axis]);
    stride /= size;
    std::vector<Flow> flows;
    std::vector<Bytes> to(size);
    for (std::size_t position = 0; position < partition.ranks.size(); ++position) {
      const std::vector<int> place = coordinates(partition.shape, position);
      exchange_line(lines, place, axis, to);
      const auto here = static_cast<std::size_t>(place[axis]);
      for (std::size_t other = 0; other < size; ++other) {
        if (other == here || to[other] <= Bytes()) continue;
        const std::size_t receiver = position + other * stride - here * stride;
        flows.push_back({partition.ranks[position], partition.ranks[receiver],
                         to[other] * tensor.element.value()});
      }
    }
    movement.steps.push_back(merged(std::move(flows)));
  }
  return movement;
}

}  // namespace interlock
