// Draws from distributions, each a function of the stream of numbers that it is given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/random.h"

namespace interlock {

/// Draws a number uniform in (0, 1].
inline double positive_uniform(Random& random) { return 1 - random.uniform(); }
/// Draws from the normal distribution of mean 0 and variance 1. Source: Box and Muller (1958), the
/// cosine half.
double draw_normal(Random& random);
/// Draws from the gamma distribution of mean and variance `shape`. REQUIRES: shape >= 1.
/// Source: by rejection from a cubed normal, Marsaglia and Tsang (2000).
double draw_gamma(double shape, Random& random);

}  // namespace interlock
