// CPU movers: kernels whose time goes with the bytes that they touch, and their operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "validate/calibration/bench.h"
#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

/// A matrix that a kernel works on for as long as the kernel is there.
using Operand = std::shared_ptr<Matrix<float>>;

/// Returns random normal numbers. They repeat: what matters is that they are neither zeros nor
/// equal.
Operand normal_operand(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed);

inline ConstMatrixView<float> read(const Operand& operand) {
  return {operand->data(), operand->rows(), operand->cols()};
}
inline MatrixView<float> write(const Operand& operand) {
  return {operand->data(), operand->rows(), operand->cols()};
}

/// REQUIRES: probe.kind is none of the products.
std::function<void()> mover_kernel(const Probe& probe);

}  // namespace interlock
