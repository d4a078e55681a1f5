// Adds up changes of memory, and writes the sums whenever time moves on.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/trace_counters.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "reports/traces/trace_tracks.h"

namespace interlock {
namespace {

/// Bytes of one device by class, and which of these are ever held.
struct Held {
  std::array<double, kMemoryClasses + 1> bytes{};
  std::array<bool, kMemoryClasses + 1> ever{};
};

void write_counters(EventText& text, int process, std::int64_t time, const Held& held) {
  for (const bool on_host : {false, true}) {
    const int first = on_host ? kMemoryClasses : 0;
    const int last = on_host ? kMemoryClasses + 1 : kMemoryClasses;
    if (std::find(held.ever.begin() + first, held.ever.begin() + last, true) ==
        held.ever.begin() + last) {
      continue;
    }
    text.element() << R"({"ph":"C","name":")"
                   << (on_host ? "memory of the host (bytes)" : "memory (bytes)") << R"(","pid":)"
                   << process;
    (text << R"(,"ts":)").micros(time);
    text << R"(,"args":)";
    bool any = false;
    for (int i = first; i < last; ++i) {
      if (!held.ever[i]) continue;
      // Sums of bytes that are no whole numbers leave a little below nothing.
      text << (any ? ",\"" : "{\"") << name_of(static_cast<MemoryClass>(i)) << R"(":)"
           << std::max(held.bytes[i], 0.0);
      any = true;
    }
    text << "}}";
  }
}

}  // namespace

void write_memory_counters(EventText& text, const Measurement& measurement) {
  const double of_device = measurement.program.memory_held;
  std::vector<std::vector<std::pair<std::int64_t, const MemoryChange*>>> ranks(
      measurement.program.ranks.size());
  for (const MemoryChange& change : measurement.log.memory) {
    ranks[change.rank].emplace_back(nanoseconds(change.time), &change);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto& changes = ranks[rank];
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Held held;
    const auto kept = always_held(measurement.program.ranks[rank]);
    for (int i = 0; i < kMemoryClasses; ++i) {
      held.bytes[i] = of_device * kept[i].value();
      held.ever[i] = held.bytes[i] > 0;
    }
    for (const auto& [time, change] : changes)
      held.ever[static_cast<int>(change->memory_class)] = true;
    const int process = static_cast<int>(rank) + 1;
    if (changes.empty() || changes.front().first > 0) write_counters(text, process, 0, held);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const MemoryChange& change = *changes[i].second;
      const bool on_host = change.memory_class == MemoryClass::HostStash;
      held.bytes[static_cast<int>(change.memory_class)] += change.bytes * (on_host ? 1 : of_device);
      const bool last = i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
      if (last) write_counters(text, process, changes[i].first, held);
    }
  }
}

}  // namespace interlock
