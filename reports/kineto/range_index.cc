// Finds ranges by their start, then climbs.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/range_index.h"

#include <algorithm>
#include <utility>

namespace interlock {

RangeIndex::RangeIndex(std::vector<NamedRange> ranges) : ranges_(std::move(ranges)) {
  std::stable_sort(ranges_.begin(), ranges_.end(), [](const NamedRange& a, const NamedRange& b) {
    return std::pair(a.start, -a.end) < std::pair(b.start, -b.end);
  });
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    while (!open.empty() && ranges_[open.back()].end < ranges_[i].end) open.pop_back();
    around_.push_back(open.empty() ? -1 : open.back());
    open.push_back(static_cast<std::int32_t>(i));
  }
}

std::optional<std::int32_t> RangeIndex::at(std::int64_t instant) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), instant,
                       [](std::int64_t at, const NamedRange& range) { return at < range.start; });
  auto position = static_cast<std::int32_t>(after - ranges_.begin()) - 1;
  while (position >= 0 && ranges_[position].end < instant) position = around_[position];
  if (position < 0) return std::nullopt;
  return ranges_[position].index;
}

}  // namespace interlock
