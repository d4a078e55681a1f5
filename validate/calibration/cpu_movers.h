// CPU movers: kernels whose time goes with the bytes that they touch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <functional>

#include "validate/calibration/bench.h"

namespace interlock {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Random normal numbers. They repeat: what matters is that they are neither zeros nor equal.
RowMatrix normal_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed);

/// REQUIRES: probe.kind is none of the products.
std::function<void()> mover_kernel(const Probe& probe);

}  // namespace interlock
