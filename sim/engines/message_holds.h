// MessageHolds: outputs that leave as messages while a head of the sender still has to read them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>

namespace interlock {

/// Remembers messages that either their transfer or the head has finished with, until both have;
/// then their bytes are freed. Time is any type with an order.
/// Example: the transfer of micro-batch 0 on channel 3 ends at 4 s: let_go(3, 0, 4 s) returns
/// nothing. The head is done at 5 s: let_go(3, 0, 5 s) returns 5 s, and nothing is remembered.
template <class Time>
class MessageHolds {
 public:
  /// Notes that the transfer or the head is done with the message at `time`; returns when its bytes
  /// are freed, if the other was done before.
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
