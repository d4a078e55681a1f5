// Sorts the entries of a log by name, and by time in each place.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/log_index.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace interlock {
namespace {

constexpr double kJust = 1 - 1e-9;  // engines that share links are no more exact

template <class Entry>
std::vector<std::int32_t> in_order(const std::vector<Entry>& entries, Seconds Entry::*time) {
  std::vector<std::int32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return entries[a].*time < entries[b].*time;
  });
  return order;
}

/// Returns, for each of `entries`, the one before it, by start, with the same place; -1 if it is
/// the first.
template <class Entry, class PlaceOf>
std::vector<std::int32_t> entries_before(const std::vector<Entry>& entries, std::size_t places,
                                         const PlaceOf& place_of) {
  std::vector<std::int32_t> last(places, -1), before(entries.size());
  for (const std::int32_t i : in_order(entries, &Entry::start)) {
    before[i] = std::exchange(last[place_of(entries[i])], i);
  }
  return before;
}

template <class Entry>
LogPlaces places_of(const std::vector<Entry>& entries, std::int32_t Entry::*what) {
  LogPlaces places;
  for (const std::int32_t i : in_order(entries, &Entry::start)) {
    places.add(entries[i].*what, entries[i].micro_batch, i);
  }
  places.sort();
  return places;
}

}  // namespace

bool LogPlaces::Place::operator<(const Place& other) const {
  return std::tie(what, micro_batch) < std::tie(other.what, other.micro_batch);
}

void LogPlaces::add(std::int32_t what, std::int32_t micro_batch, std::int32_t index) {
  places_.push_back({what, micro_batch, index});
}

void LogPlaces::sort() { std::stable_sort(places_.begin(), places_.end()); }

std::int32_t LogPlaces::take(std::int32_t what, std::int32_t micro_batch) {
  auto place = std::lower_bound(places_.begin(), places_.end(), Place{what, micro_batch, 0});
  const auto is_one = [&] {
    return place != places_.end() && place->what == what && place->micro_batch == micro_batch;
  };
  while (is_one() && place->taken) ++place;
  if (!is_one()) return -1;
  place->taken = true;
  return place->index;
}

CollectivePlaces::CollectivePlaces(const Program& program, const TraceLog& log)
    : log_(&log),
      entries_(program.collectives.size()),
      first_(program.collectives.size(), 0),
      taken_(log.collectives.size(), false) {
  for (const std::int32_t i : in_order(log.collectives, &CollectiveSpan::joined)) {
    entries_[log.collectives[i].collective].push_back(i);
  }
}

std::int32_t CollectivePlaces::find(const Event& event, int micro_batch, Seconds at) const {
  const std::vector<std::int32_t>& entries = entries_[event.collective];
  for (std::size_t i = first_[event.collective]; i < entries.size(); ++i) {
    const CollectiveSpan& span = log_->collectives[entries[i]];
    const bool same = span.micro_batch / event.micro_batches == micro_batch / event.micro_batches;
    if (same && !taken_[entries[i]] && span.joined >= at * kJust) return entries[i];
  }
  return -1;
}

void CollectivePlaces::take(std::int32_t entry) {
  taken_[entry] = true;
  const auto collective = static_cast<std::size_t>(log_->collectives[entry].collective);
  const std::vector<std::int32_t>& entries = entries_[collective];
  std::size_t& first = first_[collective];
  while (first < entries.size() && taken_[entries[first]]) ++first;
}

LogIndex index_log(const Program& program, const TraceLog& log) {
  const auto wire_of = [&](const Transfer& transfer) {
    return program.channels[transfer.channel].wire;
  };
  const auto communicator_of = [&](const CollectiveSpan& span) {
    return program.collectives[span.collective].communicator;
  };
  return {.spans = places_of(log.spans, &Span::op),
          .transfers = places_of(log.transfers, &Transfer::channel),
          .collectives = CollectivePlaces(program, log),
          .span_before = entries_before(log.spans, program.ranks.size(),
                                        [](const Span& span) { return span.rank; }),
          .transfer_before = entries_before(log.transfers, program.wires.size(), wire_of),
          .collective_before =
              entries_before(log.collectives, program.communicators.size(), communicator_of)};
}

}  // namespace interlock
