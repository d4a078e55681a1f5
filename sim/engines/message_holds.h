// MessageHolds: outputs that leave as messages while a head of the sender still has to read them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>

namespace interlock {

/// Two let go of each: the transfer when it ends, and the head. Only what one of them let go of is
/// remembered. Time is of any kind that orders.
template <class Time>
class MessageHolds {
 public:
  /// Notes that one of the two lets go of the message at `time`; returns when its bytes are freed,
  /// if that was the second.
  std::optional<Time> let_go(int channel, int micro_batch, Time time) {
    const auto [entry, first] = times_.try_emplace({channel, micro_batch}, time);
    if (first) return {};
    const Time later = entry->second < time ? time : entry->second;
    times_.erase(entry);
    return later;
  }

 private:
  std::map<std::pair<int, int>, Time> times_;
};

}  // namespace interlock
