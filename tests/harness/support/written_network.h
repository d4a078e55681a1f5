// A residual MLP written out in plain loops: a reference without the layers that are trained.
// SPDX-License-Identifier: Apache-2.0
//
// Its slopes are complex steps.
// The slope of a function f of real numbers that is analytic is Im f(x + ih) / h for a tiny h; no
// difference is taken, so it is exact to the last bits (Squire and Trapp, SIAM Review 40, 1998).
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validate/network/job.h"

namespace interlock::written {

using Number = std::complex<double>;
using Vector = std::vector<Number>;
using Weights = std::map<std::string, Vector>;

/// Modules that run as one: "input", "block0", ..., "readout" of a residual MLP.
struct Stage {
  std::vector<std::string> modules;
  Weights weights;
  std::int64_t rows = 1;
  std::string head;  // "block0.head" of a stage that has one
  bool has_loss() const { return modules.back() == "readout"; }
};

/// Returns the output of `stage` for `x`, row-major; of a stage with a loss, one number: its mean
/// over rows.
Vector forward(const Stage& stage, const Vector& x, const std::vector<std::int32_t>& targets);

/// The input of a block of a reversible network, the only module of `stage`, from its output:
/// x2 = y2 - G(y1), x1 = y1 - F(x2), the halves of the width.
Vector rebuilt(const Stage& stage, const Vector& y);

struct Slopes {
  Weights weights;
  Vector input;
};
/// Slopes of the sum of `dy` times what the stage makes; of a loss, `dy` is {1}.
Slopes backward(const Stage& stage, const Vector& x, const Vector& dy,
                const std::vector<std::int32_t>& targets);

/// The loss of a stage alone: its own, or that of its head.
Number loss_of(const Stage& stage, const Vector& x, const std::vector<std::int32_t>& targets);
/// Its slopes in all weights of the stage and its head.
Weights slopes_of_loss(const Stage& stage, const Vector& x,
                       const std::vector<std::int32_t>& targets);

/// weights - rate * slopes.
void descend(Weights& weights, const Weights& slopes, double rate);

/// The stages of `job`, with the weights of `first`: the arrays "weights/" of a dump of step 0.
std::vector<Stage> stages_of(const Job& job,
                             const std::map<std::string, std::vector<double>>& first);

}  // namespace interlock::written
