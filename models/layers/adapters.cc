// Low-rank adapters beside frozen products.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/adapters.h"

namespace interlock {
namespace {

/// The product that an adapter stands beside: sizes of all of its devices together.
struct FrozenProduct {
  double rows = 1, inputs = 1, outputs = 1;
  double devices = 1;  // that divide it
  double count = 1;    // of equal ones, e.g. experts that share the rows between them
};

FrozenProduct product_of(const Operator& op) {
  double whole = 0, held = 0;
  for (const WeightMatrix& matrix : op.matrices) {
    whole += matrix.rows * matrix.columns * matrix.count;
    held += static_cast<double>(matrix.parameters);
  }
  const ProductShape& local = op.forward.shape;
  const double devices = whole / held, count = held / (local.k * local.n);
  const double inputs = op.matrices.front().rows;
  return {.rows = local.m,
          .inputs = inputs,
          .outputs = local.k * local.n * devices / inputs,
          .devices = devices,
          .count = count};
}

/// Returns one of the two products of an adapter, on one of the devices that divide it.
Operator thin_product(const FrozenProduct& base, std::int64_t inputs, std::int64_t outputs,
                      double element) {
  Operator op =
      linear({.rows = base.rows, .inputs = inputs, .outputs = outputs, .bias = false}, element);
  const double part = 1 / base.devices;
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
    work->flops *= part;
    work->bytes *= part;
    (&work->shape == &op.forward.shape ? work->shape.n : work->shape.k) *= part;
  }
  WeightMatrix& matrix = op.matrices.front();
  matrix.count = static_cast<int>(base.count);
  op.parameters = static_cast<std::int64_t>(static_cast<double>(op.parameters) * base.count * part);
  matrix.parameters = op.parameters;
  return op;
}

/// Appends A, B and the sum beside the product `base`.
void append_adapter(const Operator& base, const Adapters& adapters, double element,
                    std::vector<Operator>& all) {
  const FrozenProduct product = product_of(base);
  const int rank = adapters.rank, apart = adapters.fused ? 1 : base.fused;
  const auto inputs = static_cast<std::int64_t>(product.inputs);
  const auto outputs = static_cast<std::int64_t>(product.outputs);
  Operator first = thin_product(product, inputs, std::int64_t{rank} * apart, element);
  Operator second = thin_product(product, rank, outputs, element);
  first.stash = Bytes(0);  // the product has kept it
  first.reads_module_input = base.reads_module_input;
  second.stash *= apart;
  second.remade = base.parts;
  const double made = product.rows * base.forward.shape.n;
  Operator sum = residual(made, element);
  // Backward, what comes through A is added to what comes through W.
  sum.input_gradient.bytes = Bytes(3 * product.rows * base.forward.shape.k * element);
  for (Operator* op : {&first, &second, &sum}) {
    op->parts = base.parts;
    op->expert = base.expert;
    op->waiting = base.waiting;
    op->place = base.place;
    op->replayed = base.replayed;
    all.push_back(*op);
  }
}

/// Weights of few bits, made 16 bits before the product reads them, forward and backward.
Operator dequantised(const Operator& base, NumberFormat format, double element) {
  const double weights = static_cast<double>(base.parameters);
  const Bytes moved(weights * (stored_bytes(format) + element));
  Operator op;
  op.forward = op.input_gradient = {.op_class = OpClass::Elementwise, .bytes = moved};
  op.gradients = base.gradients + Bytes(weights * element);
  op.waiting = base.waiting;
  op.parts = base.parts;
  op.place = base.place;
  op.replayed = base.replayed;
  return op;
}

}  // namespace

std::vector<Operator> adapted(const std::vector<Operator>& operators, const BuildOptions& options) {
  const double element = element_bytes(options.precision);
  const auto adapts_to = [&](const Operator& op) {
    return op.linear && options.adapters.has(*op.linear);
  };
  std::vector<Operator> all;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    Operator op = operators[i];
    op.frozen = op.parameters > 0;
    op.weight_gradient = {.launches = 0};  // of weights that it shares with others, too
    op.weight_exchanges.clear();
    // Nothing else reads the inputs of products of heads. Others read those of routers.
    const bool unread = op.frozen && op.forward.wide && op.forward.shape.batch > 1;
    if (op.learns_alone || unread) op.stash = Bytes(0);
    if (op.learns_alone) {
      op.input_gradient = {.launches = 0};
      op.input_exchanges.clear();
    }
    const bool adapts = adapts_to(op);
    if (adapts && op.keeper > 0) {
      const Operator& keeper = operators[i - static_cast<std::size_t>(op.keeper)];
      if (!adapts_to(keeper)) op.stash = keeper.stash;
    }
    // The kernel of attention reads its own output, which the projection keeps for it.
    if (op.linear && !adapts && op.linear != LinearName::Projection) op.stash = Bytes(0);
    if (op.linear && options.optimizer.frozen) {
      all.push_back(dequantised(op, *options.optimizer.frozen, element));
    }
    all.push_back(op);
    if (adapts) append_adapter(op, options.adapters, element, all);
  }
  return all;
}

void freeze(Module& module) {
  module.backward_input.clear();
  module.first_backward_input.clear();
  module.backward_weight.clear();
  module.recompute.clear();
  module.update.clear();
  for (auto* exchanges : {&module.backward_input_exchanges, &module.first_backward_input_exchanges,
                          &module.backward_weight_exchanges, &module.recompute_exchanges}) {
    exchanges->clear();
  }
  const WeightCount all = weights_of(module), experts = expert_weights_of(module);
  module.frozen += all;
  module.frozen_experts += experts;
  module.matrices.clear();
  module.stash = module.remade = Bytes(0);
}

}  // namespace interlock
