// Normal and gamma variates.
// SPDX-License-Identifier: Apache-2.0
#include "base/draws.h"

#include <cmath>

namespace interlock {
namespace {

constexpr double kTwoPi = 6.283185307179586;

}  // namespace

double draw_normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(random)));
  return radius * std::cos(kTwoPi * random.uniform());
}

double draw_gamma(double shape, Random& random) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = draw_normal(random);
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double bound = normal * normal / 2 + d - d * v + d * std::log(v);
    if (std::log(positive_uniform(random)) < bound) return d * v;
  }
}

}  // namespace interlock
