// One column after another, each cut into planes: first all lowest bytes, then all second ones.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_columns.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "reports/result/gzip.h"
#include "reports/words/encode.h"

namespace interlock {

ColumnPlace PageColumns::add(const void* column, std::size_t count, std::size_t size) {
  const ColumnPlace place = {bytes_.size(), count};
  const auto* const numbers = static_cast<const char*>(column);
  bytes_.resize(bytes_.size() + count * size);
  char* out = bytes_.data() + place[0];
  for (std::size_t byte = 0; byte < size; ++byte) {  // little-endian on all machines we know
    for (std::size_t i = 0; i < count; ++i) *out++ = numbers[i * size + byte];
  }
  return place;
}

std::string PageColumns::packed() const {
  const std::string packed = deflated(bytes_);
  return base64(packed.data(), packed.size());
}

std::vector<std::int32_t> differences(std::vector<std::int32_t> numbers) {
  std::int32_t last = 0;
  for (std::int32_t& number : numbers) {
    const std::int32_t difference = number - last;
    last = number;
    number = difference;
  }
  return numbers;
}

float coarse(double value) {
  const float least = std::numeric_limits<float>::min();
  constexpr std::uint32_t kDropped = 12;  // bits of the mantissa's 23
  float number = std::max(static_cast<float>(value), least);
  std::uint32_t bits = 0;  // copied: the library of cli/studio/wasm has no bit_cast
  std::memcpy(&bits, &number, sizeof bits);
  bits = bits >> kDropped << kDropped;
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}

}  // namespace interlock
