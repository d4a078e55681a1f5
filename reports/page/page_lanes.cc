// Messages by wire and collectives by lane, as columns.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/page/page_parts.h"
#include "reports/traces/trace_tracks.h"
#include "reports/words/mesh_words.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// `field` of every entry of a lane.
template <class Number, class Items, class Field>
std::vector<Number> column(const PageLane& lane, const Items& items, const Field& field) {
  std::vector<Number> numbers;
  numbers.reserve(lane.entries.size());
  for (const std::int32_t index : lane.entries) {
    numbers.push_back(static_cast<Number>(field(items[index])));
  }
  return numbers;
}

/// Starts, each from the one before.
template <class Items>
std::vector<float> start_gaps(const PageLane& lane, const Items& items, Seconds begin) {
  GapColumn gaps(begin);
  for (const std::int32_t index : lane.entries) gaps.add(items[index].start);
  return std::move(gaps.gaps);
}

/// Why each entry of lane number `own` began.
void add_causes(Json& json, const std::vector<Cause>& causes, const PageLane& lane,
                std::int32_t own, PageParts& parts) {
  PlaceColumns columns(own, parts.lanes());
  std::int32_t entry = 0;
  for (const std::int32_t index : lane.entries) {
    columns.add(entry++, parts.order.place(causes[index].node));
  }
  json["cause_lane"] = parts.columns.add(columns.lanes);
  json["cause_step"] = parts.columns.add(columns.steps);
}

/// The ops that made and used each message: entries of the lanes of its devices, -1 where there is
/// none.
void add_ends(Json& json, const std::vector<MessageEnds>& ends, const PageLane& lane,
              PageParts& parts) {
  std::vector<std::int32_t> made, used;
  const auto entry_of = [&](std::int32_t span) {
    return span < 0 ? -1 : parts.order.spans[span].entry;
  };
  for (const std::int32_t index : lane.entries) {
    made.push_back(entry_of(ends[index].made));
    used.push_back(entry_of(ends[index].used));
  }
  json["made"] = parts.columns.add(differences(std::move(made)));
  json["used"] = parts.columns.add(differences(std::move(used)));
}

}  // namespace

Json wires_json(PageParts& parts) {
  const std::vector<Transfer>& all = parts.log().transfers;
  const std::vector<MessageEnds> ends = message_ends(parts.program(), parts.log());
  PageColumns& columns = parts.columns;
  Json json = Json::array();
  auto number = static_cast<std::int32_t>(parts.order.devices.size());
  for (const PageLane& lane : parts.order.wires) {
    const Wire& wire = parts.program().wires[lane.of];
    using T = const Transfer&;
    const auto floats = [&](auto field) { return columns.add(column<float>(lane, all, field)); };
    const auto batches = column<std::int32_t>(lane, all, [](T t) { return t.micro_batch; });
    Json entry{
        {"from", wire.from_rank},
        {"to", wire.to_rank},
        {"gap", columns.add(start_gaps(lane, all, parts.excerpt.begin))},
        {"waited", floats([](T t) { return told(t.start - t.sent); })},
        {"occupied", floats([](T t) { return (t.end - t.start).value(); })},
        {"latency", floats([](T t) { return (t.arrival - t.end).value(); })},
        {"what", columns.add(column<std::uint32_t>(lane, all, [](T t) { return t.channel; }))},
        {"micro_batch", columns.add(differences(batches))}};
    add_ends(entry, ends, lane, parts);
    if (parts.causes) add_causes(entry, parts.causes->transfers, lane, number, parts);
    json.push_back(std::move(entry));
    ++number;
  }
  return json;
}

Json groups_json(PageParts& parts) {
  const std::vector<CollectiveSpan>& all = parts.log().collectives;
  PageColumns& columns = parts.columns;
  Json json = Json::array();
  auto number = static_cast<std::int32_t>(parts.order.devices.size() + parts.order.wires.size());
  for (const PageLane& lane : parts.order.groups) {
    const Collective& first = parts.program().collectives[all[lane.entries.front()].collective];
    using C = const CollectiveSpan&;
    const auto floats = [&](auto field) { return columns.add(column<float>(lane, all, field)); };
    const auto batches = column<std::int32_t>(lane, all, [](C c) { return c.micro_batch; });
    Json entry{
        {"axis", name_of(first.axis)},
        {"rank", parts.program().lanes[lane.of].ranks.front()},
        {"gap", columns.add(start_gaps(lane, all, parts.excerpt.begin))},
        {"waited", floats([](C c) { return told(c.start - c.joined); })},
        {"occupied", floats([](C c) { return (c.end - c.start).value(); })},
        {"what", columns.add(column<std::uint32_t>(lane, all, [](C c) { return c.collective; }))},
        {"micro_batch", columns.add(differences(batches))}};
    if (parts.causes) add_causes(entry, parts.causes->collectives, lane, number, parts);
    json.push_back(std::move(entry));
    ++number;
  }
  return json;
}

}  // namespace interlock
