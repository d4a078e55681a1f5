// Numbers as they lie in memory (little-endian on all machines we know), one column after another.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page_columns.h"

#include <algorithm>
#include <limits>

#include "reports/encode.h"
#include "reports/gzip.h"

namespace interlock {

ColumnPlace PageColumns::add(const void* column, std::size_t count, std::size_t size) {
  constexpr std::size_t kAlignment = 8;  // of typed arrays
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  const ColumnPlace place = {bytes_.size(), count};
  bytes_.append(static_cast<const char*>(column), count * size);
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

float above_zero(double value) {
  return std::max(static_cast<float>(value), std::numeric_limits<float>::min());
}

}  // namespace interlock
