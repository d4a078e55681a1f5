// Message bytes: what numbers take that pass between stages in a format of their own.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 300 numbers in int4 are three scales of 4 bytes, and 150 bytes of codes.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// Returns whether stages send outputs or gradients in formats of their own.
inline bool casts_messages(const Strategy& strategy) {
  return strategy.activation_format != SentFormat::Computed ||
         strategy.gradient_format != SentFormat::Computed;
}

/// Returns how many numbers share a scale. Source: Dettmers et al., arXiv 2110.02861, for int8
/// (block size recalled).
constexpr std::int64_t numbers_of_scale(SentFormat format) {
  return format == SentFormat::Int8 ? 4096 : 128;
}
constexpr std::int64_t cast_scales(SentFormat format, std::int64_t numbers) {
  return (numbers + numbers_of_scale(format) - 1) / numbers_of_scale(format);
}
/// Returns the bytes of a cast, its scales included. REQUIRES: a format other than Computed.
constexpr std::int64_t cast_bytes(SentFormat format, std::int64_t numbers) {
  const std::int64_t codes = format == SentFormat::Int4 ? (numbers + 1) / 2 : numbers;
  return codes + 4 * cast_scales(format, numbers);
}

/// Returns the bytes in `format` of a tensor whose numbers take `element` bytes each.
inline Bytes cast_bytes(SentFormat format, Bytes tensor, double element) {
  constexpr double kRounding = 1e-6;  // of a quotient that is a whole number
  const double numbers = std::ceil(tensor.value() / element - kRounding);
  return Bytes(static_cast<double>(cast_bytes(format, static_cast<std::int64_t>(numbers))));
}

}  // namespace interlock
