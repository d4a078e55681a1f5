// Explained: which runs are followed op by op, for the causes of waiting and the critical path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace interlock {

/// Tasks of the longest run that is explained. They fit in a cache: cheaper kept than run again.
inline constexpr std::int64_t kMostTasksExplained = 100'000;

}  // namespace interlock
