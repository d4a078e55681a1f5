// Sorts the entries of a log by name, and by time in each place.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/log_index.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace interlock {
namespace {

/// For each of `entries` the one before it, by start, with the same place; -1 if it is the first.
template <class Entry, class PlaceOf>
std::vector<std::int32_t> entries_before(const std::vector<Entry>& entries, std::size_t places,
                                         const PlaceOf& place_of) {
  std::vector<std::int32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return entries[a].start < entries[b].start;
  });
  std::vector<std::int32_t> last(places, -1), before(entries.size());
  for (const std::int32_t i : order) before[i] = std::exchange(last[place_of(entries[i])], i);
  return before;
}

}  // namespace

bool LogPlaces::Place::operator<(const Place& other) const {
  return std::tie(what, micro_batch, index) < std::tie(other.what, other.micro_batch, other.index);
}

void LogPlaces::add(std::int32_t what, std::int32_t micro_batch, std::size_t index) {
  places_.push_back({what, micro_batch, static_cast<std::int32_t>(index)});
}

void LogPlaces::sort() { std::sort(places_.begin(), places_.end()); }

std::int32_t LogPlaces::take(std::int32_t what, std::int32_t micro_batch) {
  auto place = std::lower_bound(places_.begin(), places_.end(), Place{what, micro_batch, 0});
  while (place != places_.end() && place->taken) ++place;
  if (place == places_.end() || place->what != what || place->micro_batch != micro_batch) return -1;
  place->taken = true;
  return place->index;
}

std::vector<std::int32_t> LogPlaces::all(std::int32_t what, std::int32_t micro_batch) const {
  std::vector<std::int32_t> indices;
  auto place = std::lower_bound(places_.begin(), places_.end(), Place{what, micro_batch, 0});
  for (; place != places_.end() && place->what == what && place->micro_batch == micro_batch;
       ++place) {
    indices.push_back(place->index);
  }
  return indices;
}

LogIndex index_log(const Program& program, const TraceLog& log) {
  LogIndex index;
  for (std::size_t i = 0; i < log.spans.size(); ++i) {
    index.spans.add(log.spans[i].op, log.spans[i].micro_batch, i);
  }
  for (std::size_t i = 0; i < log.transfers.size(); ++i) {
    index.transfers.add(log.transfers[i].channel, log.transfers[i].micro_batch, i);
  }
  for (std::size_t i = 0; i < log.collectives.size(); ++i) {
    index.collectives.add(log.collectives[i].collective, log.collectives[i].micro_batch, i);
  }
  index.spans.sort();
  index.transfers.sort();
  index.collectives.sort();
  index.span_before =
      entries_before(log.spans, program.ranks.size(), [](const Span& span) { return span.rank; });
  index.transfer_before = entries_before(
      log.transfers, program.wires.size(),
      [&](const Transfer& transfer) { return program.channels[transfer.channel].wire; });
  index.collective_before = entries_before(
      log.collectives, program.lanes.size(),
      [&](const CollectiveSpan& span) { return program.collectives[span.collective].lane; });
  return index;
}

}  // namespace interlock
