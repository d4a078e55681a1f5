// Casts of what passes between stages.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/layers/cast_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "sim/plan/schedules/message_bytes.h"

namespace interlock {
namespace {

constexpr int kLargestE4m3 = 0x7e;  // 448; the code behind it is no number

double largest_of(SentFormat format) {
  return format == SentFormat::Fp8 ? 448 : format == SentFormat::Int8 ? 127 : 7;
}

/// Returns the code of `value`, a number of at most 448 or so: three bits behind a leading one, or
/// multiples of 2^-9 below 2^-6.
unsigned e4m3_of(double value) {
  const double size = std::abs(value);
  const int exponent = size > 0 ? std::max(std::ilogb(size), -6) : -6;
  const int multiple = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));
  // A multiple of 16 is the next exponent's first number, as codes have it.
  const int code = std::min((exponent + 6) * 8 + multiple, kLargestE4m3);
  return static_cast<unsigned>(code) | (std::signbit(value) ? 0x80U : 0U);
}

double e4m3_at(unsigned code) {
  const int low = static_cast<int>(code & 7U), exponent = static_cast<int>(code >> 3U & 15U);
  const double size = exponent == 0 ? std::ldexp(low, -9) : std::ldexp(8 + low, exponent - 10);
  return (code & 0x80U) != 0 ? -size : size;
}

int whole_of(double value, int largest) {
  return std::clamp(static_cast<int>(std::nearbyint(value)), -largest, largest);
}

unsigned code_of(SentFormat format, double value) {
  if (format == SentFormat::Fp8) return e4m3_of(value);
  const int largest = static_cast<int>(largest_of(format));
  return static_cast<unsigned>(whole_of(value, largest)) & (largest == 7 ? 15U : 255U);
}

double value_at(SentFormat format, unsigned code) {
  if (format == SentFormat::Fp8) return e4m3_at(code);
  if (format == SentFormat::Int8) return static_cast<std::int8_t>(code);
  return static_cast<int>(code) - ((code & 8U) != 0 ? 16 : 0);
}

/// Returns the scale of `count` numbers; no number if one of them is not finite.
template <class T>
float scale_of(SentFormat format, const T* from, std::int64_t count) {
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(from[i])) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, std::abs(static_cast<double>(from[i])));
  }
  return static_cast<float>(most / largest_of(format));
}

}  // namespace

template <class T>
void cast_numbers(SentFormat format, const T* from, std::int64_t count, char* to) {
  const std::int64_t group = numbers_of_scale(format);
  char* const codes = to + cast_scales(format, count) * static_cast<std::int64_t>(sizeof(float));
  const bool pairs = format == SentFormat::Int4;
  for (std::int64_t first = 0; first < count; first += group, to += sizeof(float)) {
    const std::int64_t end = std::min(first + group, count);
    const float scale = scale_of(format, from + first, end - first);
    std::memcpy(to, &scale, sizeof scale);
    for (std::int64_t i = first; i < end; ++i) {
      const unsigned code = scale > 0 ? code_of(format, static_cast<double>(from[i]) / scale) : 0;
      if (!pairs) {
        codes[i] = static_cast<char>(code);
      } else if (i % 2 == 0) {
        codes[i / 2] = static_cast<char>(code);
      } else {
        const auto low = static_cast<unsigned char>(codes[i / 2]);
        codes[i / 2] = static_cast<char>(low | code << 4U);
      }
    }
  }
}

template <class T>
void cast_back(SentFormat format, const char* from, std::int64_t count, T* to) {
  const std::int64_t group = numbers_of_scale(format);
  const char* const codes =
      from + cast_scales(format, count) * static_cast<std::int64_t>(sizeof(float));
  const bool pairs = format == SentFormat::Int4;
  for (std::int64_t i = 0; i < count; ++i) {
    float scale = 0;
    std::memcpy(&scale, from + i / group * static_cast<std::int64_t>(sizeof scale), sizeof scale);
    unsigned code = static_cast<unsigned char>(codes[pairs ? i / 2 : i]);
    if (pairs) code = i % 2 == 0 ? code & 15U : code >> 4U;
    to[i] = static_cast<T>(value_at(format, code) * scale);
  }
}

template void cast_numbers(SentFormat, const float*, std::int64_t, char*);
template void cast_numbers(SentFormat, const double*, std::int64_t, char*);
template void cast_back(SentFormat, const char*, std::int64_t, float*);
template void cast_back(SentFormat, const char*, std::int64_t, double*);

}  // namespace interlock
