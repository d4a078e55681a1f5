// Tensor layouts: work, parameters, bytes and exchanges of one device's part of an operator.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/tensor_layout.h"

#include "base/error.h"

namespace interlock {
namespace {

/// Returns the members of a collective on one axis, and the elements of S.
Exchange exchange(CollectiveKind kind, MeshAxis axis, double elements, double element) {
  return {.kind = kind, .axis = axis, .bytes = Bytes(elements * element)};
}

int side_of(const Sharding& sharding) {
  const std::optional<int> side = grid_side(sharding);
  CHECK(side, "a sharding that is built with should have been checked to be a grid");
  return *side;
}

bool divides_columns(const Sharding& sharding) {
  return sharding.tensor_layout != TensorLayout::OneD && sharding.tensor > 1;
}

bool is_cube(const Sharding& sharding) { return sharding.tensor_layout == TensorLayout::ThreeD; }

/// Row: the sum over all parts of the inputs is left where it is needed.
void exchange_sums(Operator& op, double outputs, bool sequence_parallel, double element) {
  using enum CollectiveKind;
  constexpr MeshAxis kAxis = MeshAxis::Tensor;
  if (!sequence_parallel) {
    op.forward_exchanges = {exchange(AllReduce, kAxis, outputs, element)};
    return;
  }
  op.forward_exchanges = {exchange(ReduceScatter, kAxis, outputs, element)};
  op.input_exchanges = {exchange(AllGather, kAxis, outputs, element)};
}

/// Column: the mirror image. With sequence parallelism the gathered input is not kept but gathered
/// again for the gradient of the weights, beside the product before it.
/// Source: Korthikanti et al., arXiv 2205.05198, section 4.2.2.
void exchange_inputs(Operator& op, double inputs, bool sequence_parallel, double element) {
  using enum CollectiveKind;
  constexpr MeshAxis kAxis = MeshAxis::Tensor;
  if (!sequence_parallel) {
    op.input_exchanges = {exchange(AllReduce, kAxis, inputs, element)};
    return;
  }
  op.forward_exchanges = {exchange(AllGather, kAxis, inputs, element)};
  op.input_exchanges = {exchange(ReduceScatter, kAxis, inputs, element)};
  op.weight_exchanges = op.forward_exchanges;
  op.weight_exchanges.front().overlapped = true;
}

Operator linear_on_line(const Linear& whole, LinearRole role, const Sharding& sharding,
                        double element) {
  Linear part = whole;
  (role == LinearRole::Column ? part.outputs : part.inputs) /= sharding.tensor;
  Operator op = linear(part, element);
  if (role == LinearRole::Column) {
    if (sharding.sequence_parallel) op.stash *= 1.0 / sharding.tensor;
    exchange_inputs(op, whole.rows * static_cast<double>(whole.inputs), sharding.sequence_parallel,
                    element);
  } else {
    exchange_sums(op, whole.rows * static_cast<double>(whole.outputs), sharding.sequence_parallel,
                  element);
  }
  return op;
}

Work repeated(Work work, int times) {
  work.flops *= times;
  work.bytes *= times;
  work.launches *= times;
  return work;
}

/// Returns the block of a grid: one step of SUMMA is the product of two of them.
Linear block_of(const Linear& whole, const Sharding& sharding) {
  const int side = side_of(sharding);
  return {.rows = whole.rows / outer_parts(sharding).rows,
          .inputs = whole.inputs / side,
          .outputs = whole.outputs / side,
          .bias = false};
}

/// Y = X W broadcasts blocks of X along rows and of W along columns; the gradient of X broadcasts W
/// and adds up along rows, that of W broadcasts X and adds up along columns. Copies of W in other
/// grids get the sum of their gradients.
Operator linear_on_grid(const Linear& whole, const Sharding& sharding, double element) {
  using enum CollectiveKind;
  const int side = side_of(sharding);
  const Linear block = block_of(whole, sharding);
  Operator op = linear(block, element);
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
    *work = repeated(*work, side);
  }
  const double inputs = block.rows * static_cast<double>(block.inputs);
  const double weights = static_cast<double>(op.parameters);
  op.gradients += Bytes((inputs + weights) * element);  // blocks that are passing through
  if (side > 1) {
    const auto steps = [&](CollectiveKind kind, MeshAxis axis, double elements) {
      Exchange sweep = exchange(kind, axis, elements, element);
      sweep.count = side;
      return sweep;
    };
    const Exchange along_columns = steps(Broadcast, MeshAxis::TensorColumn, weights);
    const Exchange along_rows = steps(Broadcast, MeshAxis::TensorRow, inputs);
    op.forward_exchanges = {along_rows, along_columns};
    op.input_exchanges = {along_columns, steps(Reduce, MeshAxis::TensorRow, inputs)};
    op.weight_exchanges = {along_rows, steps(Reduce, MeshAxis::TensorColumn, weights)};
  }
  if (sharding.tensor > side * side) {
    op.weight_exchanges.push_back(exchange(AllReduce, MeshAxis::TensorDepth, weights, element));
  }
  if (whole.bias) {
    add_bias(op, block.outputs, block.rows * static_cast<double>(block.outputs), element);
  }
  return op;
}

/// Gathers X and W and scatters the sum Y; backward, gathers the gradient of Y and scatters those
/// of X and W. The gathered X and W are kept, as Colossal-AI does.
Operator linear_on_cube(const Linear& whole, LinearRole role, const Sharding& sharding,
                        double element) {
  using enum CollectiveKind;
  const int side = side_of(sharding);
  const Linear gathered = {.rows = whole.rows / side,
                           .inputs = whole.inputs / side,
                           .outputs = whole.outputs / side,
                           .bias = false};
  Operator op = linear(gathered, element);
  const double inputs = gathered.rows * static_cast<double>(gathered.inputs);
  const double outputs = gathered.rows * static_cast<double>(gathered.outputs);
  const double weights = static_cast<double>(op.parameters);
  op.parameters /= side;
  op.matrices.front().parameters = op.parameters;
  op.stash += Bytes(weights * element);
  const bool column = role == LinearRole::Column;
  const MeshAxis gathers = column ? MeshAxis::TensorRow : MeshAxis::TensorDepth;
  const MeshAxis adds = column ? MeshAxis::TensorDepth : MeshAxis::TensorRow;
  op.forward_exchanges = {exchange(AllGather, gathers, inputs, element),
                          exchange(AllGather, MeshAxis::TensorColumn, weights, element),
                          exchange(ReduceScatter, adds, outputs, element)};
  op.input_exchanges = {exchange(AllGather, adds, outputs, element),
                        exchange(ReduceScatter, gathers, inputs, element)};
  op.weight_exchanges = {exchange(ReduceScatter, MeshAxis::TensorColumn, weights, element)};
  if (whole.bias) add_bias(op, gathered.outputs, outputs / side, element);
  return op;
}

/// Returns the axis that divides the columns of a pair's input (of a Row layer: of its output).
MeshAxis outer_columns_axis(const Sharding& sharding) {
  return is_cube(sharding) ? MeshAxis::TensorDepth : MeshAxis::TensorRow;
}

/// The devices that share out the entries of a table between them, and the rows they look up.
struct LookupGroup {
  MeshAxis axis = MeshAxis::Tensor;
  int devices = 1;
  double rows = 1;
  std::int64_t width = 1;
  std::int64_t entries = 1;
};

LookupGroup lookup_group(const Lookup& whole, const Sharding& sharding) {
  if (!divides_columns(sharding)) {
    return {.devices = sharding.tensor,
            .rows = whole.rows,
            .width = whole.width,
            .entries = whole.entries / sharding.tensor};
  }
  const int side = side_of(sharding);
  return {.axis = is_cube(sharding) ? MeshAxis::TensorRow : MeshAxis::TensorColumn,
          .devices = side,
          .rows = whole.rows / outer_parts(sharding).rows * side,
          .width = whole.width / side,
          .entries = whole.entries / side};
}

}  // namespace

ActivationParts outer_parts(const Sharding& sharding) {
  if (divides_columns(sharding)) return inner_parts(sharding);
  return {.rows = sharding.sequence_parallel ? sharding.tensor : 1};
}

ActivationParts inner_parts(const Sharding& sharding) {
  if (!divides_columns(sharding)) return {.columns = sharding.tensor};
  const int side = side_of(sharding);
  return {.rows = sharding.tensor / side, .columns = side};
}

ActivationParts output_parts(const Sharding& sharding, LinearRole role) {
  return role == LinearRole::Column ? inner_parts(sharding) : outer_parts(sharding);
}

std::optional<int> grid_side(const Sharding& sharding) {
  if (sharding.tensor_layout == TensorLayout::OneD) return std::nullopt;
  const std::int64_t depth =
      sharding.tensor_layout == TensorLayout::TwoAndAHalfD ? sharding.tensor_depth : 1;
  for (std::int64_t side = 1; side * side * depth <= sharding.tensor; ++side) {
    const std::int64_t devices = side * side * (is_cube(sharding) ? side : depth);
    if (devices == sharding.tensor) return static_cast<int>(side);
  }
  return std::nullopt;
}

Operator sharded_linear(const Linear& whole, LinearRole role, const Sharding& sharding,
                        double element) {
  if (sharding.tensor == 1) return linear(whole, element);
  Operator op = !divides_columns(sharding) ? linear_on_line(whole, role, sharding, element)
                : is_cube(sharding)        ? linear_on_cube(whole, role, sharding, element)
                                           : linear_on_grid(whole, sharding, element);
  WeightMatrix& matrix = op.matrices.front();
  matrix.rows = static_cast<double>(whole.inputs);
  matrix.columns = static_cast<double>(whole.outputs);
  return op;
}

Operator sharded_norm(const Norm& whole, const Sharding& sharding, double element) {
  const ActivationParts parts = outer_parts(sharding);
  Operator op = normalisation(whole.rows * static_cast<double>(whole.width) * parts.share(),
                              whole.parameters / parts.columns, element);
  if (parts.columns > 1) {
    // Two fp32 sums a row: of the inputs and their squares; backward, of what reaches each.
    op.forward_exchanges = {exchange(CollectiveKind::AllReduce, outer_columns_axis(sharding),
                                     2 * whole.rows / parts.rows, 4)};
    op.input_exchanges = op.forward_exchanges;
  }
  return op;
}

Operator sharded_lookup(const Lookup& whole, const Sharding& sharding, double element) {
  using enum CollectiveKind;
  const LookupGroup group = lookup_group(whole, sharding);
  const double rows = group.rows * static_cast<double>(group.width);
  const double found = rows / group.devices;  // the rest are zeros
  const double table = static_cast<double>(group.entries * group.width);
  Operator op = {
      .forward = {.op_class = OpClass::Embedding, .bytes = Bytes((found + rows) * element)},
      .weight_gradient = {.op_class = OpClass::Embedding, .bytes = Bytes(3 * found * element)},
      .parameters = group.entries * group.width,
      .table = group.entries * group.width,
      .matrices = {{.rows = static_cast<double>(whole.entries),
                    .columns = static_cast<double>(whole.width),
                    .parameters = group.entries * group.width,
                    .hidden = false}},
      .stash = Bytes(group.rows * 8),  // entries are named by 64-bit numbers
      .gradients = Bytes(rows * element)};
  if (group.devices > 1) {
    const bool scatters = sharding.sequence_parallel || divides_columns(sharding);
    op.forward_exchanges = {
        exchange(scatters ? ReduceScatter : AllReduce, group.axis, rows, element)};
    if (scatters) op.weight_exchanges = {exchange(AllGather, group.axis, rows, element)};
  }
  if (!divides_columns(sharding)) return op;
  const int side = side_of(sharding);
  if (is_cube(sharding)) {
    op.parameters /= side;
    op.matrices.front().parameters = op.parameters;
    append_exchanges(op.forward_exchanges,
                     {exchange(AllGather, MeshAxis::TensorColumn, table, element)});
    append_exchanges(op.weight_exchanges,
                     {exchange(ReduceScatter, MeshAxis::TensorColumn, table, element)});
  } else if (sharding.tensor > side * side) {
    append_exchanges(op.weight_exchanges,
                     {exchange(AllReduce, MeshAxis::TensorDepth, table, element)});
  }
  return op;
}

Operator sharded_cross_entropy(double rows, std::int64_t classes, LinearRole role,
                               const Sharding& sharding, double element) {
  const ActivationParts parts = output_parts(sharding, role);
  Operator op = cross_entropy(rows / parts.rows, classes / parts.columns, element);
  if (parts.columns > 1) {
    // Three numbers in fp32 a row: the largest logit, the sum of exponentials, the target's logit.
    MeshAxis axis = MeshAxis::Tensor;
    if (divides_columns(sharding)) {
      axis = role == LinearRole::Column ? MeshAxis::TensorRow : outer_columns_axis(sharding);
    }
    op.forward_exchanges = {exchange(CollectiveKind::AllReduce, axis, rows / parts.rows, 4)};
    op.forward_exchanges.front().count = 3;
  }
  return op;
}

}  // namespace interlock
