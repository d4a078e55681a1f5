// Movements of data, carried out on numbers: volumes, results, and adjoints by dot products.
// SPDX-License-Identifier: Apache-2.0
//
// Each primitive is written here as single copies and additions between cells of ranks, found by
// going through all indices. Its adjoint is made by taking these in reverse, so that
// <A x, y> = <x, A* y> judges cells; what crosses from rank to rank judges the volumes.
#include "tests/hardware/movement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.h"

namespace interlock::movement_test {
namespace {

constexpr double kElement = 4;
using Index = std::vector<std::int64_t>;
/// A rank and one of its places in memory.
using Cell = std::pair<int, std::int64_t>;
using Volumes = std::map<std::pair<int, int>, double>;

/// `to` becomes `from`, or grows by it.
struct Op {
  Cell from;
  Cell to;
  bool adds = false;
};

struct LinearProgram {
  std::vector<Cell> inputs;
  std::vector<Op> ops;
  std::vector<Cell> outputs;
};

using Memory = std::map<Cell, double>;

Memory forward(const LinearProgram& program, Memory memory) {
  for (const Op& op : program.ops) {
    const double value = memory[op.from];
    memory[op.to] = op.adds ? memory[op.to] + value : value;
  }
  return memory;
}

Memory backward(const LinearProgram& program, Memory gradient, Volumes& moved) {
  for (auto op = program.ops.rbegin(); op != program.ops.rend(); ++op) {
    const double value = gradient[op->to];
    if (!op->adds) gradient[op->to] = 0;
    gradient[op->from] += value;
    if (op->from.first != op->to.first) moved[{op->to.first, op->from.first}] += kElement;
  }
  return gradient;
}

double dot(const std::vector<Cell>& cells, Memory& a, Memory& b) {
  double sum = 0;
  for (const Cell& cell : cells) sum += a[cell] * b[cell];
  return sum;
}

Memory random_values(const std::vector<Cell>& cells, std::uint64_t stream) {
  Random random(7, stream);
  Memory memory;
  for (const Cell& cell : cells) memory[cell] = 2 * random.uniform() - 1;
  return memory;
}

Volumes volumes(const Movement& movement) {
  Volumes sums;
  for (const auto& step : movement.steps) {
    for (const Flow& flow : step) {
      CHECK_NE(flow.from, flow.to);
      sums[{flow.from, flow.to}] += flow.bytes.value();
    }
  }
  return sums;
}

void check_volumes(const Volumes& found, const Volumes& expected) {
  CHECK_EQ(found.size(), expected.size());
  for (const auto& [ends, bytes] : expected) {
    const auto other = found.find(ends);
    REQUIRE(other != found.end());
    CAPTURE(other->first.first);
    CAPTURE(other->first.second);
    CHECK(other->second == doctest::Approx(bytes).epsilon(1e-12));
  }
}

/// The movement's volumes are those of the program, its adjoint's those of the program in reverse,
/// and that is the adjoint.
void check_movement(const Movement& movement, const LinearProgram& program) {
  Volumes there;
  for (const Op& op : program.ops) {
    if (op.from.first != op.to.first) there[{op.from.first, op.to.first}] += kElement;
  }
  check_volumes(volumes(movement), there);
  Memory x = random_values(program.inputs, 1);
  Memory y = random_values(program.outputs, 2);
  Memory ax = forward(program, x);
  Volumes back;
  Memory ay = backward(program, y, back);
  check_volumes(volumes(adjoint(movement)), back);
  const double left = dot(program.outputs, ax, y);
  INFO("<A x, y> = " << left);
  CHECK(left == doctest::Approx(dot(program.inputs, x, ay)).epsilon(1e-12));
  double bytes = 0;
  for (const auto& [ends, moved] : there) bytes += moved;
  CHECK(volume(movement).value() == doctest::Approx(bytes));
  CHECK_EQ(volume(adjoint(movement)), volume(movement));
}

/// Calls `visit` with every index of `shape`, and its number.
void for_each_index(const Index& shape,
                    const std::function<void(const Index&, std::int64_t)>& visit) {
  const std::int64_t all =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t number = 0; number < all; ++number) {
    Index index(shape.size());
    std::int64_t rest = number;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      index[axis] = rest % shape[axis];
    }
    visit(index, number);
  }
}

/// Which part of an evenly cut length has element `at`: parts are dealt out one element at a time.
int part_with(std::int64_t length, int parts, std::int64_t at) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < length; ++i) ++sizes[static_cast<std::size_t>(i % parts)];
  int part = 0;
  while (at >= sizes[static_cast<std::size_t>(part)]) at -= sizes[static_cast<std::size_t>(part++)];
  return part;
}

int owner(const Index& shape, const CartesianPartition& partition, const Index& index) {
  int position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    position = position * partition.shape[axis] +
               part_with(shape[axis], partition.shape[axis], index[axis]);
  }
  return partition.ranks[static_cast<std::size_t>(position)];
}

/// Elements from their owner under one partition to that under another; outputs lie at 1000 on.
LinearProgram by_ownership(const Index& shape, const CartesianPartition& from,
                           const CartesianPartition& to) {
  LinearProgram program;
  for_each_index(shape, [&](const Index& index, std::int64_t number) {
    const Cell source{owner(shape, from, index), number};
    const Cell target{owner(shape, to, index), 1000 + number};
    program.inputs.push_back(source);
    program.outputs.push_back(target);
    program.ops.push_back({source, target, false});
  });
  return program;
}

constexpr int kElements = 3;
const Bytes kPart(kElements* kElement);

/// Copies from the rank of `from` that is above or below each rank of `to` on a grid of rows x
/// columns; `from` has one row.
LinearProgram copies_down(const std::vector<int>& from, const std::vector<int>& to) {
  LinearProgram program;
  for (int i = 0; i < kElements; ++i) {
    for (const int rank : from) program.inputs.push_back({rank, i});
    for (std::size_t k = 0; k < to.size(); ++k) {
      const Cell target{to[k], 1000 + i};
      program.outputs.push_back(target);
      program.ops.push_back({{from[k % from.size()], i}, target, false});
    }
  }
  return program;
}

LinearProgram sums_up(const std::vector<int>& from, const std::vector<int>& to) {
  LinearProgram program;
  for (int i = 0; i < kElements; ++i) {
    for (const int rank : to) program.outputs.push_back({rank, 1000 + i});
    for (std::size_t k = 0; k < from.size(); ++k) {
      program.inputs.push_back({from[k], i});
      program.ops.push_back({{from[k], i}, {to[k % to.size()], 1000 + i}, true});
    }
  }
  return program;
}

}  // namespace

TEST_CASE("a message is copied there, and its gradient is sent back and added") {
  LinearProgram program;
  for (int i = 0; i < kElements; ++i) {
    program.inputs.push_back({2, i});
    program.ops.push_back({{2, i}, {5, i}, false});
    program.outputs.push_back({2, i});
    program.outputs.push_back({5, i});
  }
  check_movement(send_receive(2, 5, kPart), program);
  CHECK_EQ(volume(send_receive(3, 3, kPart)), Bytes());
}

TEST_CASE("a broadcast's adjoint is a sum, and a sum's a broadcast") {
  const std::vector<int> row = {4, 1, 2};
  const std::vector<int> grid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  check_movement(broadcast({{1, 3}, row}, {{4, 3}, grid}, kPart), copies_down(row, grid));
  check_movement(sum_reduce({{4, 3}, grid}, {{1, 3}, row}, kPart), sums_up(grid, row));
  check_movement(broadcast({{1, 1}, {7}}, {{4, 3}, grid}, kPart), copies_down({7}, grid));
  check_movement(sum_reduce({{4, 3}, grid}, {{1, 1}, {7}}, kPart), sums_up(grid, {7}));
}

TEST_CASE("a sum that all know is its own adjoint") {
  // Columns of a 2 x 3 grid: ranks 0 and 3, 1 and 4, 2 and 5; the sum is made at the first.
  LinearProgram program;
  for (int i = 0; i < kElements; ++i) {
    for (int column = 0; column < 3; ++column) {
      for (const int rank : {column, column + 3}) {
        program.inputs.push_back({rank, i});
        program.outputs.push_back({rank, 1000 + i});
        program.ops.push_back({{rank, i}, {column, 500 + i}, true});
      }
      for (const int rank : {column, column + 3}) {
        program.ops.push_back({{column, 500 + i}, {rank, 1000 + i}, false});
      }
    }
  }
  const Movement movement = all_sum_reduce({{2, 3}, {0, 1, 2, 3, 4, 5}}, {0}, kPart);
  check_movement(movement, program);
  CHECK_EQ(volumes(movement), volumes(adjoint(movement)));
  const Movement everyone = all_sum_reduce({{2, 3}, {0, 1, 2, 3, 4, 5}}, {0, 1}, kPart);
  CHECK_EQ(volume(everyone), 2 * 5 * kPart);
}

TEST_CASE("scatter and gather are each other's adjoints") {
  const Index shape = {5, 7};
  const CartesianPartition parts{{2, 3}, {3, 1, 0, 2, 5, 4}};
  const CartesianPartition root{{1, 1}, {1}};
  const TensorShape tensor{shape, Bytes(kElement)};
  check_movement(scatter(tensor, 1, parts), by_ownership(shape, root, parts));
  check_movement(gather(tensor, parts, 1), by_ownership(shape, parts, root));
  CHECK_EQ(volumes(adjoint(scatter(tensor, 1, parts))), volumes(gather(tensor, parts, 1)));
}

TEST_CASE("a repartition moves each element from its old owner to its new one") {
  const Index shape = {5, 7, 4};
  const std::vector<CartesianPartition> partitions = {{{2, 3, 1}, {0, 1, 2, 3, 4, 5}},
                                                      {{1, 2, 4}, {7, 6, 5, 4, 3, 2, 1, 0}},
                                                      {{6, 1, 1}, {2, 3, 4, 5, 6, 7}},
                                                      {{1, 1, 3}, {0, 1, 2}},
                                                      {{1, 1, 1}, {4}}};
  for (const CartesianPartition& from : partitions) {
    for (const CartesianPartition& to : partitions) {
      const Movement movement = repartition({shape, Bytes(kElement)}, from, to);
      check_movement(movement, by_ownership(shape, from, to));
      CHECK_EQ(volumes(adjoint(movement)),
               volumes(repartition({shape, Bytes(kElement)}, to, from)));
    }
  }
}

TEST_CASE("a movement on a cluster takes its steps one after the other") {
  const Cluster cluster{.machines = {{.devices_per_node = 8,
                                      .port_latency = Seconds(1e-6),
                                      .port_bandwidth = BytesPerSecond(100e9)}},
                        .devices = 8};
  const Movement movement = all_sum_reduce({{4}, {0, 1, 2, 3}}, {0}, Bytes(1e6));
  const CollectivePlan plan = plan_movement(cluster, {7, 5, 3, 1}, movement);
  MESSAGE("three times 1 MB into one port, and three times out of it: 2 (1 us + 3 MB / 100 GB/s)");
  CHECK(time_alone(cluster, plan).value() == doctest::Approx(2 * (1e-6 + 3e6 / 100e9)));
  CHECK_EQ(plan.flows.size(), 6);
}

}  // namespace interlock::movement_test
