// Random factors of mean 1.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/variation.h"

#include <algorithm>
#include <cmath>

#include "base/draws.h"

namespace interlock {

namespace {

constexpr double kMostNormal = 0.25;
constexpr double kSqrt3 = 1.7320508075688772;

}  // namespace

double most_spread(JitterShape shape) {
  switch (shape) {
    case JitterShape::Normal:
      return kMostNormal;
    case JitterShape::Uniform:
      return 1 / kSqrt3;
    case JitterShape::Lognormal:
    case JitterShape::Gamma:
      break;
  }
  return 1;
}

double jitter_factor(const Jitter& jitter, std::uint64_t seed, std::uint64_t stream) {
  Random random(seed, stream);
  const double spread = jitter.spread, variance = spread * spread;
  switch (jitter.shape) {
    case JitterShape::Normal:
      return std::max(0.0, 1 + spread * draw_normal(random));
    case JitterShape::Gamma:
      return variance * draw_gamma(1 / variance, random);
    case JitterShape::Uniform:
      return 1 + kSqrt3 * spread * (2 * random.uniform() - 1);
    case JitterShape::Lognormal:
      break;
  }
  const double log_variance = std::log1p(variance);
  return std::exp(std::sqrt(log_variance) * draw_normal(random) - log_variance / 2);
}

}  // namespace interlock
