// Levenberg-Marquardt for a handful of parameters.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/least_squares.h"

#include <Eigen/Cholesky>

namespace interlock {
namespace {

constexpr int kMostSteps = 200;
constexpr double kStep = 1e-6;       // of the differences; parameters are logarithms
constexpr double kSmallest = 1e-12;  // relative gain at which it ends
constexpr double kMostDamping = 1e12;

Eigen::MatrixXd derivatives(const ResidualsOf& residuals_of, const Eigen::VectorXd& at) {
  Eigen::MatrixXd jacobian;
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    Eigen::VectorXd above = at, below = at;
    above[i] += kStep;
    below[i] -= kStep;
    const Eigen::VectorXd slope = (residuals_of(above) - residuals_of(below)) / (2 * kStep);
    if (i == 0) jacobian.resize(slope.size(), at.size());
    jacobian.col(i) = slope;
  }
  return jacobian;
}

}  // namespace

Eigen::VectorXd least_squares(const ResidualsOf& residuals_of, const Eigen::VectorXd& start) {
  Eigen::VectorXd at = start;
  Eigen::VectorXd residuals = residuals_of(at);
  double damping = 1e-3;
  for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
    const Eigen::MatrixXd jacobian = derivatives(residuals_of, at);
    const Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
    const Eigen::VectorXd slope = jacobian.transpose() * residuals;
    bool better = false;
    while (!better && damping < kMostDamping) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() += damping * (normal.diagonal().array() + 1e-12).matrix();
      const Eigen::VectorXd next = at - damped.ldlt().solve(slope);
      const Eigen::VectorXd changed = residuals_of(next);
      const double gain = residuals.squaredNorm() - changed.squaredNorm();
      better = gain > 0;  // not where it is no number
      damping *= better ? 0.2 : 5;
      if (!better) continue;
      const bool ends = gain <= kSmallest * residuals.squaredNorm();
      at = next;
      residuals = changed;
      if (ends) return at;
    }
  }
  return at;
}

}  // namespace interlock
