// Message bytes: what numbers take that pass between stages in a format of their own.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 300 numbers in int4 are three scales of 4 bytes, and 150 bytes of codes.
#pragma once

#include <cstdint>

#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// Returns how many numbers share a scale.
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

}  // namespace interlock
