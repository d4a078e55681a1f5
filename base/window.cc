// Windows over evenly cut dimensions.
// SPDX-License-Identifier: Apache-2.0
#include "base/window.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

/// Elements from the first to the last tap.
std::int64_t reach_of(const Window& window) {
  return std::int64_t{window.dilation} * (window.kernel - 1) + 1;
}

}  // namespace

IndexRange part_of(std::int64_t length, int parts, int index) {
  const std::int64_t least = length / parts;
  const std::int64_t longer = length % parts;
  const std::int64_t begin = index * least + std::min<std::int64_t>(index, longer);
  return {begin, begin + least + (index < longer ? 1 : 0)};
}

std::int64_t output_length(std::int64_t length, const Window& window) {
  const std::int64_t reach = reach_of(window);
  CHECK(length + 2 * std::int64_t{window.padding} >= reach, "a window that fits into the input");
  return (length + 2 * std::int64_t{window.padding} - reach) / window.stride + 1;
}

IndexRange input_of(std::int64_t length, int parts, int index, const Window& window) {
  const IndexRange output = part_of(output_length(length, window), parts, index);
  if (output.size() == 0) {
    const std::int64_t own = part_of(length, parts, index).begin;
    return {own, own};
  }
  const std::int64_t first = output.begin * window.stride - window.padding;
  const std::int64_t last = (output.end - 1) * window.stride - window.padding + reach_of(window);
  return {std::clamp<std::int64_t>(first, 0, length), std::clamp<std::int64_t>(last, 0, length)};
}

Halo halo_of(std::int64_t length, int parts, int index, const Window& window) {
  const IndexRange own = part_of(length, parts, index);
  const IndexRange need = input_of(length, parts, index, window);
  return {own.begin - need.begin, need.end - own.end};
}

}  // namespace interlock
