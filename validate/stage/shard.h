// Shards: which numbers of a stage each of its replicas updates.
// SPDX-License-Identifier: Apache-2.0
//
// Example: of 10 numbers three replicas have 4 each: 0 to 3, 4 to 7, and the third one 8 and 9.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace interlock {

/// A part of a list of numbers.
struct NumberRange {
  std::int64_t first = 0, numbers = 0;
};

/// Returns what replica `member` has of `all` numbers, of which each has `each`; the last ones may
/// have less, or none.
inline NumberRange shard_of(std::int64_t all, std::int64_t each, std::size_t member) {
  const std::int64_t first = std::min(all, static_cast<std::int64_t>(member) * each);
  return {first, std::min(each, all - first)};
}

}  // namespace interlock
