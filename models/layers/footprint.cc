// Footprint: bytes and update work of weights under an optimiser and a precision.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/footprint.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {
namespace {

bool keeps_masters(const OptimizerRule& rule, Precision precision) {
  return rule.masters && precision != Precision::Fp32 && precision != Precision::Tf32;
}

OpVariant variant_of(Optimizer optimizer) {
  if (optimizer == Optimizer::SgdMomentum) return OpVariant::Momentum;
  return optimizer == Optimizer::Adam ? OpVariant::Adam : OpVariant::Plain;
}

constexpr double kFp32 = 4;

/// Returns the bytes of all bases; the averages that they are made from take as many.
double basis_bytes(const WeightCount& weights, const OptimizerRule& rule) {
  if (rule.kind != Optimizer::BasisRotation) return 0;
  return kFp32 * (rule.shorter_sides ? weights.least_squares : weights.squares);
}

/// Returns the bytes of moments of any kind of optimiser, and of what they are turned by.
double moment_bytes_of_kind(const WeightCount& weights, const OptimizerRule& rule) {
  const double all = static_cast<double>(weights.all);
  const double first = stored_bytes(rule.first), second = stored_bytes(rule.second);
  switch (rule.kind) {
    case Optimizer::Sgd:
      return 0;
    case Optimizer::SgdMomentum:
    case Optimizer::Lion:
      return all * first;
    case Optimizer::Adam:
      return all * (first + second);
    case Optimizer::Adafactor:
      return (all - static_cast<double>(weights.matrix) + weights.lines) * second;
    case Optimizer::Muon:
      return all * first + (all - static_cast<double>(weights.hidden)) * second;
    case Optimizer::BasisRotation:
      return all * (first + second) + 2 * basis_bytes(weights, rule);
  }
  CHECK(false, "an optimiser should be one of the seven");
}

/// Returns the bytes of all states but the masters.
double moment_bytes(const WeightCount& weights, const OptimizerRule& rule) {
  const double feedback = rule.feedback ? stored_bytes(*rule.feedback) : 0;
  return moment_bytes_of_kind(weights, rule) + static_cast<double>(weights.all) * feedback;
}

/// Returns the bytes of the weights, whose matrices take `matrix` bytes each.
Bytes weight_bytes(const WeightCount& weights, double matrix, double element) {
  const double hidden = static_cast<double>(weights.hidden);
  return Bytes((static_cast<double>(weights.all) - hidden) * element + hidden * matrix);
}

}  // namespace

double stored_bytes(NumberFormat format) {
  switch (format) {
    case NumberFormat::Fp32:
      return 4;
    case NumberFormat::Fp16:
    case NumberFormat::Bf16:
      return 2;
    case NumberFormat::Fp8:
      return 1;
    case NumberFormat::Int8:
      return 1 + 4.0 / 256;
    case NumberFormat::Mxfp8:
      return 1 + 1.0 / 32;
    case NumberFormat::Nvfp4:
      return 0.5 + 1.0 / 16;
    case NumberFormat::Nf4:
      return 0.5 + 1.0 / 64 + 4.0 / (64 * 256);
  }
  CHECK(false, "a format should be one of the eight");
}

WeightCount::WeightCount(std::int64_t parameters, const std::vector<WeightMatrix>& matrices)
    : all(parameters) {
  for (const WeightMatrix& one : matrices) {
    matrix += one.parameters;
    if (one.hidden) hidden += one.parameters;
    lines += one.count * (one.rows + one.columns);
    if (!one.hidden) continue;
    const double shorter = std::min(one.rows, one.columns);
    squares += one.count * (one.rows * one.rows + one.columns * one.columns);
    least_squares += one.count * shorter * shorter;
  }
}

WeightCount& WeightCount::operator+=(const WeightCount& more) {
  all += more.all;
  hidden += more.hidden;
  matrix += more.matrix;
  lines += more.lines;
  squares += more.squares;
  least_squares += more.least_squares;
  return *this;
}

double element_bytes(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
    case Precision::Tf32:
      return 4;
    case Precision::Fp16:
    case Precision::Bf16:
    case Precision::Fp8:  // of what products read, as Fp4; tensors stay in 16 bits
    case Precision::Fp4:
      return 2;
  }
  CHECK(false, "a precision should be one of the six");
}

std::optional<NumberFormat> product_format(Precision precision) {
  if (precision == Precision::Fp8) return NumberFormat::Fp8;
  if (precision == Precision::Fp4) return NumberFormat::Nvfp4;
  return std::nullopt;
}

namespace {

/// Returns the bytes of an element of a matrix of layers, in all of its copies.
double matrix_bytes(const OptimizerRule& rule, Precision precision) {
  return rule.weights ? rule.weight_copies * stored_bytes(*rule.weights) : element_bytes(precision);
}

}  // namespace

Footprint footprint(const WeightCount& weights, const OptimizerRule& rule, Precision precision,
                    bool fp32_gradients) {
  const double count = static_cast<double>(weights.all), element = element_bytes(precision);
  const double master = keeps_masters(rule, precision) ? stored_bytes(rule.master) : 0;
  const Bytes held = weight_bytes(weights, matrix_bytes(rule, precision), element);
  return {.weights = held,
          .gradients = Bytes(count * (fp32_gradients ? 4 : element)),
          .optimizer = Bytes(count * master + moment_bytes(weights, rule)),
          .predicted = held * rule.predictions};
}

Bytes frozen_weights(const WeightCount& weights, const OptimizerRule& rule, Precision precision) {
  const double element = element_bytes(precision);
  const double matrix = rule.frozen ? stored_bytes(*rule.frozen) : matrix_bytes(rule, precision);
  return weight_bytes(weights, matrix, element);
}

Bytes sent_weights(const WeightCount& weights, const OptimizerRule& rule, Precision precision) {
  const double element = element_bytes(precision);
  const bool eight = rule.weights == NumberFormat::Fp8;
  return weight_bytes(weights, eight ? stored_bytes(NumberFormat::Fp8) : element, element);
}

std::vector<Work> update_work(const WeightCount& weights, const OptimizerRule& rule,
                              Precision precision, const Framework& framework) {
  if (weights.all == 0) return {};
  const Footprint held = footprint(weights, rule, precision, framework.fp32_gradients);
  const Bytes beside(static_cast<double>(weights.all) * framework.update_bytes);
  // With masters the working weights are written only: the step reads their master instead.
  const double weight_passes = keeps_masters(rule, precision) ? 1 : 2;
  const double gradient_passes = rule.kind == Optimizer::Adafactor ? 3 : 1;
  // An average is read and written, and a product is read; bases are for products to read.
  const Bytes bases(basis_bytes(weights, rule));
  // The arithmetic is a few operations a parameter, hidden by the traffic; it is no model flop.
  return {{.op_class = OpClass::Optimizer,
           .bytes = held.weights * weight_passes + held.gradients * gradient_passes +
                    held.optimizer * 2 - bases + held.predicted + beside,
           .variant = variant_of(rule.kind)}};
}

std::vector<Work> orthogonal_work(const std::vector<WeightMatrix>& matrices, double element) {
  constexpr int kSteps = 5;
  std::vector<Work> works;
  for (const WeightMatrix& one : matrices) {
    if (!one.hidden) continue;
    const double n = std::min(one.rows, one.columns), m = std::max(one.rows, one.columns);
    const int launches = kSteps * one.count;
    const auto product = [&](double rows, double columns, double inner) {
      const double touched = rows * inner + inner * columns + rows * columns;
      works.push_back({.op_class = OpClass::Gemm,
                       .flops = Flops(2 * rows * columns * inner * launches),
                       .bytes = Bytes(touched * element * launches),
                       .launches = launches,
                       .shape = {rows, columns, inner},
                       .counted = Flops(0)});
    };
    product(n, n, m);
    product(n, n, n);
    product(n, m, n);
  }
  return works;
}

std::vector<Work> rotation_work(const std::vector<WeightMatrix>& matrices,
                                const OptimizerRule& rule) {
  std::vector<Work> works;
  const auto launched = [](double launches) { return static_cast<int>(std::ceil(launches)); };
  /// `often`: for each update of each matrix.
  const auto product = [&](double rows, double columns, double inner, double often) {
    const double touched = rows * inner + inner * columns + rows * columns;
    works.push_back({.op_class = OpClass::Gemm,
                     .flops = Flops(2 * rows * columns * inner * often),
                     .bytes = Bytes(touched * kFp32 * often),
                     .launches = launched(often),
                     .shape = {rows, columns, inner},
                     .counted = Flops(0)});
  };
  const auto turn = [&](double side, double other, int count) {
    const double renewed = static_cast<double>(count) / rule.basis_every;
    product(side, side, other, count);
    product(side, other, side, 3 * count);
    product(side, side, side, 3 * renewed);  // Qt A Q, whose diagonal orders Q, and A Q
    works.push_back({.op_class = OpClass::Optimizer,
                     .flops = Flops(8.0 / 3 * side * side * side * renewed),
                     .bytes = Bytes(2 * side * side * kFp32 * renewed),
                     .launches = launched(renewed),
                     .variant = OpVariant::Factored,
                     .counted = Flops(0)});
  };
  for (const WeightMatrix& one : matrices) {
    if (!one.hidden) continue;
    const double shorter = std::min(one.rows, one.columns);
    const double longer = std::max(one.rows, one.columns);
    turn(shorter, longer, one.count);
    if (!rule.shorter_sides) turn(longer, shorter, one.count);
  }
  return works;
}

Footprint& operator+=(Footprint& a, const Footprint& b) {
  a.weights += b.weights;
  a.gradients += b.gradients;
  a.optimizer += b.optimizer;
  a.made_gradients += b.made_gradients;
  a.update_buffers += b.update_buffers;
  a.update_copies += b.update_copies;
  a.predicted += b.predicted;
  return a;
}

}  // namespace interlock
