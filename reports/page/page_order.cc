// Sorts a log into lanes.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_order.h"

#include <algorithm>

namespace interlock {
namespace {

/// Whether [begin, end] touches the excerpt.
bool shown(const Excerpt& excerpt, Seconds begin, Seconds end) {
  return excerpt.whole || (begin < excerpt.end && end > excerpt.begin);
}

std::vector<PageLane> empty_lanes(std::size_t count) {
  std::vector<PageLane> lanes(count);
  for (std::size_t i = 0; i < count; ++i) lanes[i].of = static_cast<int>(i);
  return lanes;
}

/// The lanes with entries, sorted by start.
template <class Items>
std::vector<PageLane> tidy(std::vector<PageLane> lanes, const Items& items) {
  std::erase_if(lanes, [](const PageLane& lane) { return lane.entries.empty(); });
  for (PageLane& lane : lanes) {
    std::stable_sort(lane.entries.begin(), lane.entries.end(), [&](std::int32_t a, std::int32_t b) {
      return items[a].start < items[b].start;
    });
  }
  return lanes;
}

std::vector<PageLane> device_lanes(const Measurement& measurement, const Excerpt& excerpt) {
  const std::vector<Span>& spans = measurement.log.spans;
  std::vector<PageLane> lanes = empty_lanes(measurement.program.ranks.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!shown(excerpt, spans[i].start, spans[i].end)) continue;
    lanes[spans[i].rank].entries.push_back(static_cast<std::int32_t>(i));
  }
  return lanes;
}

std::vector<PageLane> wire_lanes(const Measurement& measurement, const Excerpt& excerpt) {
  const std::vector<Transfer>& transfers = measurement.log.transfers;
  std::vector<PageLane> lanes = empty_lanes(measurement.program.wires.size());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const int wire = measurement.program.channels[transfers[i].channel].wire;
    if (wire < 0 || !shown(excerpt, transfers[i].start, transfers[i].arrival)) continue;
    lanes[wire].entries.push_back(static_cast<std::int32_t>(i));
  }
  return tidy(std::move(lanes), transfers);
}

std::vector<PageLane> group_lanes(const Measurement& measurement, const Excerpt& excerpt) {
  const std::vector<CollectiveSpan>& spans = measurement.log.collectives;
  std::vector<PageLane> lanes = empty_lanes(measurement.program.lanes.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!shown(excerpt, spans[i].start, spans[i].end)) continue;
    const int lane = measurement.program.collectives[spans[i].collective].lane;
    lanes[lane].entries.push_back(static_cast<std::int32_t>(i));
  }
  return tidy(std::move(lanes), spans);
}

/// Where the entries of `lanes` are, whose first has the number `first`.
std::vector<PagePlace> places(const std::vector<PageLane>& lanes, std::size_t first,
                              std::size_t items) {
  std::vector<PagePlace> places(items);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::int32_t entry = 0;
    for (const std::int32_t item : lanes[i].entries) {
      places[item] = {static_cast<std::int32_t>(first + i), entry++};
    }
  }
  return places;
}

}  // namespace

PagePlace PageOrder::place(const TraceNode& node) const {
  switch (node.kind) {
    case TraceNode::Kind::Span:
      return spans[node.index];
    case TraceNode::Kind::Transfer:
      return transfers[node.index];
    case TraceNode::Kind::Collective:
      return collectives[node.index];
    case TraceNode::Kind::Begin:
      break;
  }
  return {};
}

PageOrder order_for_page(const Measurement& measurement, const Excerpt& excerpt) {
  const TraceLog& log = measurement.log;
  PageOrder order{.devices = device_lanes(measurement, excerpt),
                  .wires = wire_lanes(measurement, excerpt),
                  .groups = group_lanes(measurement, excerpt)};
  const std::size_t wires = order.devices.size(), groups = wires + order.wires.size();
  order.spans = places(order.devices, 0, log.spans.size());
  order.transfers = places(order.wires, wires, log.transfers.size());
  order.collectives = places(order.groups, groups, log.collectives.size());
  return order;
}

void PlaceColumns::add(std::int32_t entry, const PagePlace& named) {
  lanes.push_back(named.lane);
  if (named.lane < 0) {
    steps.push_back(0);
  } else if (named.lane == own_) {
    steps.push_back(entry - named.entry);
  } else {
    steps.push_back(named.entry - last_[named.lane]);
    last_[named.lane] = named.entry;
  }
}

}  // namespace interlock
