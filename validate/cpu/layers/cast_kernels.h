// Cast kernels: numbers in 8 or 4 bits, with a scale for every few of them.
// SPDX-License-Identifier: Apache-2.0
//
// A cast is the scales of its groups of 128 numbers (4096 of int8), then the codes, int4 two to a
// byte. A scale maps the largest of its numbers to the largest code: 448 of e4m3, 127 or 7.
// Example: {-2, 1, 0.3} in int4 have the scale 2/7 and the codes -7, 4 (of 3.5, to even) and 1.
#pragma once

#include <cstdint>

#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// Casts `count` numbers to `to`, which has cast_bytes(). Numbers beside one that is not finite
/// come back as no numbers.
template <class T>
void cast_numbers(SentFormat format, const T* from, std::int64_t count, char* to);
/// Casts them back.
template <class T>
void cast_back(SentFormat format, const char* from, std::int64_t count, T* to);

}  // namespace interlock
