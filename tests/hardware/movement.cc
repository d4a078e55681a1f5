// Movements between partitions: copies, sums, halos, and changes of how a tensor is cut.
// SPDX-License-Identifier: Apache-2.0
#include "tests/hardware/movement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "hardware/collectives/grouping.h"

namespace interlock {
namespace {

std::size_t ranks_of(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, [](std::size_t all, int one) {
    return all * static_cast<std::size_t>(one);
  });
}

void check_grid(const CartesianPartition& partition) {
  REQUIRE_MESSAGE(ranks_of(partition.shape) == partition.ranks.size(),
                  "as many ranks as the grid has places");
}

std::size_t position_of(const std::vector<int>& shape, const std::vector<int>& place) {
  std::size_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    position =
        position * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(place[axis]);
  }
  return position;
}

void add(std::vector<Flow>& flows, int from, int to, Bytes bytes) {
  if (from != to && bytes > Bytes()) flows.push_back({from, to, bytes});
}

/// A part of one dimension and the elements that it has in common with a given range.
struct Overlap {
  int part = 0;
  std::int64_t elements = 0;
};

std::vector<Overlap> overlaps(std::int64_t length, int parts, const IndexRange& range) {
  std::vector<Overlap> found;
  if (range.size() == 0) return found;
  // Parts have length / parts elements or one more: this guess is never too far to the right.
  const std::int64_t longest = (length + parts - 1) / parts;
  for (auto part = static_cast<int>(range.begin / longest); part < parts; ++part) {
    const IndexRange other = part_of(length, parts, part);
    if (other.begin >= range.end) break;
    const IndexRange common{std::max(range.begin, other.begin), std::min(range.end, other.end)};
    if (common.size() > 0) found.push_back({part, common.size()});
  }
  return found;
}

/// Calls `visit` with every combination of one overlap for each axis.
void for_each_block(const std::vector<std::vector<Overlap>>& by_axis, std::vector<int>& place,
                    std::int64_t elements,
                    const std::function<void(const std::vector<int>&, std::int64_t)>& visit) {
  if (place.size() == by_axis.size()) return visit(place, elements);
  for (const Overlap& overlap : by_axis[place.size()]) {
    place.push_back(overlap.part);
    for_each_block(by_axis, place, elements * overlap.elements, visit);
    place.pop_back();
  }
}

CartesianPartition only(int rank, std::size_t dimensions) {
  return {std::vector<int>(dimensions, 1), {rank}};
}

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

Movement adjoint(const Movement& movement) {
  Movement back;
  for (auto step = movement.steps.rbegin(); step != movement.steps.rend(); ++step) {
    Traffic turned{*step, {}};
    reverse(turned);
    back.steps.push_back(merged(std::move(turned.flows)));
  }
  return back;
}

Bytes volume(const Movement& movement) {
  Bytes sum;
  for (const std::vector<Flow>& step : movement.steps) {
    for (const Flow& flow : step) sum += flow.bytes;
  }
  return sum;
}

CollectivePlan plan_movement(const Cluster& cluster, const std::vector<int>& devices,
                             const Movement& movement) {
  CollectivePlan plan;
  plan.algorithm = CollectiveAlgorithm::Direct;
  Seconds in_turn;
  for (const std::vector<Flow>& step : movement.steps) {
    std::vector<Flow> flows;
    Seconds slowest;
    for (const Flow& flow : step) {
      const int from = devices.at(static_cast<std::size_t>(flow.from));
      const int to = devices.at(static_cast<std::size_t>(flow.to));
      if (from == to) continue;
      flows.push_back({from, to, flow.bytes});
      slowest = std::max(slowest, hop(cluster, from, to));
    }
    in_turn += occupancy(cluster, flows);
    plan.latency += slowest;
    plan.flows.insert(plan.flows.end(), flows.begin(), flows.end());
  }
  plan.flows = merged(std::move(plan.flows));
  plan.latency += std::max(Seconds(), in_turn - occupancy(cluster, plan.flows));
  return plan;
}

std::vector<int> coordinates(const std::vector<int>& shape, std::size_t position) {
  std::vector<int> place(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    place[axis] = static_cast<int>(position % size);
    position /= size;
  }
  return place;
}

Movement send_receive(int from, int to, Bytes bytes) {
  Movement movement{{{}}};
  add(movement.steps[0], from, to, bytes);
  return movement;
}

Movement broadcast(const CartesianPartition& from, const CartesianPartition& to, Bytes bytes) {
  check_grid(from);
  check_grid(to);
  REQUIRE_MESSAGE(from.shape.size() == to.shape.size(), "grids of as many dimensions");
  Movement movement{{{}}};
  for (std::size_t position = 0; position < to.ranks.size(); ++position) {
    std::vector<int> place = coordinates(to.shape, position);
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      REQUIRE_MESSAGE((from.shape[axis] == to.shape[axis] || from.shape[axis] == 1),
                      "equal dimensions, or 1 where copies come from");
      if (from.shape[axis] == 1) place[axis] = 0;
    }
    add(movement.steps[0], from.ranks[position_of(from.shape, place)], to.ranks[position], bytes);
  }
  movement.steps[0] = merged(std::move(movement.steps[0]));
  return movement;
}

Movement sum_reduce(const CartesianPartition& from, const CartesianPartition& to, Bytes bytes) {
  return adjoint(broadcast(to, from, bytes));
}

Movement all_sum_reduce(const CartesianPartition& partition, const std::vector<int>& axes,
                        Bytes bytes) {
  check_grid(partition);
  CartesianPartition first{partition.shape, {}};
  for (const int axis : axes) first.shape.at(static_cast<std::size_t>(axis)) = 1;
  for (std::size_t position = 0; position < ranks_of(first.shape); ++position) {
    const std::vector<int> place = coordinates(first.shape, position);
    first.ranks.push_back(partition.ranks[position_of(partition.shape, place)]);
  }
  Movement movement = sum_reduce(partition, first, bytes);
  movement.steps.push_back(broadcast(first, partition, bytes).steps[0]);
  return movement;
}

Movement scatter(const TensorShape& tensor, int root, const CartesianPartition& to) {
  return repartition(tensor, only(root, tensor.shape.size()), to);
}

Movement gather(const TensorShape& tensor, const CartesianPartition& from, int root) {
  return repartition(tensor, from, only(root, tensor.shape.size()));
}

Movement repartition(const TensorShape& tensor, const CartesianPartition& from,
                     const CartesianPartition& to) {
  check_grid(from);
  check_grid(to);
  const std::size_t dimensions = tensor.shape.size();
  REQUIRE_MESSAGE((from.shape.size() == dimensions && to.shape.size() == dimensions),
                  "grids of as many dimensions as the tensor");
  Movement movement{{{}}};
  for (std::size_t position = 0; position < from.ranks.size(); ++position) {
    const std::vector<int> place = coordinates(from.shape, position);
    std::vector<std::vector<Overlap>> by_axis;
    for (std::size_t axis = 0; axis < dimensions; ++axis) {
      const IndexRange own = part_of(tensor.shape[axis], from.shape[axis], place[axis]);
      by_axis.push_back(overlaps(tensor.shape[axis], to.shape[axis], own));
    }
    std::vector<int> other;
    for_each_block(by_axis, other, 1, [&](const std::vector<int>& at, std::int64_t elements) {
      add(movement.steps[0], from.ranks[position], to.ranks[position_of(to.shape, at)],
          tensor.element * static_cast<double>(elements));
    });
  }
  movement.steps[0] = merged(std::move(movement.steps[0]));
  return movement;
}

Movement halo_exchange(const TensorShape& tensor, const CartesianPartition& partition,
                       const std::vector<Window>& windows) {
  const std::size_t dimensions = tensor.shape.size();
  REQUIRE_MESSAGE((partition.shape.size() == dimensions && windows.size() == dimensions),
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
