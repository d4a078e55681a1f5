// Least squares: the parameters that make a vector of residuals as short as possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <functional>

namespace interlock {

using ResidualsOf = std::function<Eigen::VectorXd(const Eigen::VectorXd& parameters)>;

/// Returns a local minimum of the sum of squares, searched from `start` with derivatives by
/// differences. Source: Levenberg (1944) and Marquardt (1963), damping along the diagonal.
Eigen::VectorXd least_squares(const ResidualsOf& residuals_of, const Eigen::VectorXd& start);

}  // namespace interlock
