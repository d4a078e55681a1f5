// PageData: lanes of ops, messages, collectives and memory as packed arrays, and what names them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/page/page_columns.h"
#include "reports/traces/trace_tracks.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "reports/words/palette.h"
#include "sim/causes/causes.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// The entries of a lane: indices in a list of the log, by start.
struct PageLane {
  int of = 0;  // the rank, wire, or communicator
  std::vector<std::int32_t> entries;
};

struct PagePlace {
  std::int32_t lane = -1, entry = -1;  // -1: not on the page
};

/// Lanes are numbered: first devices, all of them; then wires and communicators, those that
/// show something.
struct PageOrder {
  std::vector<PageLane> devices, wires, groups;
  std::vector<PagePlace> spans, transfers, collectives;  // by index in the log

  PagePlace place(const TraceNode& node) const;
};

/// Returns whether [begin, end] touches the excerpt.
bool shown(const Excerpt& excerpt, Seconds begin, Seconds end) {
  return excerpt.whole || (begin < excerpt.end && end > excerpt.begin);
}

/// Returns the time when an entry is over.
Seconds end_of(const Transfer& transfer) { return transfer.arrival; }
template <class Item>
Seconds end_of(const Item& item) {
  return item.end;
}

/// Sorts the `items` that the excerpt shows into `count` lanes; lane_of(item) is -1 for none.
template <class Item, class LaneOf>
std::vector<PageLane> sort_into(std::size_t count, const std::vector<Item>& items,
                                const Excerpt& excerpt, const LaneOf& lane_of) {
  std::vector<PageLane> lanes(count);
  for (std::size_t i = 0; i < count; ++i) lanes[i].of = static_cast<int>(i);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const int lane = lane_of(items[i]);
    if (lane < 0 || !shown(excerpt, items[i].start, end_of(items[i]))) continue;
    lanes[lane].entries.push_back(static_cast<std::int32_t>(i));
  }
  return lanes;
}

/// Returns the lanes that have entries, and sorts these by start.
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

/// Returns the place of every item in `lanes`, whose first has the number `first`.
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
  const Program& program = measurement.program;
  PageOrder order;
  order.devices = sort_into(program.ranks.size(), log.spans, excerpt,
                            [](const Span& span) { return span.rank; });
  order.wires = tidy(
      sort_into(program.wires.size(), log.transfers, excerpt,
                [&](const Transfer& transfer) { return program.channels[transfer.channel].wire; }),
      log.transfers);
  order.groups = tidy(sort_into(program.communicators.size(), log.collectives, excerpt,
                                [&](const CollectiveSpan& span) {
                                  return program.collectives[span.collective].communicator;
                                }),
                      log.collectives);
  const std::size_t wires = order.devices.size(), groups = wires + order.wires.size();
  order.spans = places(order.devices, 0, log.spans.size());
  order.transfers = places(order.wires, wires, log.transfers.size());
  order.collectives = places(order.groups, groups, log.collectives.size());
  return order;
}

/// Nodes that entries of one lane name, as columns that compress well. An entry on the lane itself
/// is written as the distance back to it; on others as the distance from the one named last there.
class PlaceColumns {
 public:
  /// REQUIRES: `own` is the lane of all who name.
  PlaceColumns(std::int32_t own, std::size_t lanes) : own_(own), last_(lanes, 0) {}
  /// Adds the place that entry number `entry` of the lane names.
  void add(std::int32_t entry, const PagePlace& named);

  std::vector<std::int32_t> lanes, steps;

 private:
  std::int32_t own_;
  std::vector<std::int32_t> last_;
};

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

struct PageParts {
  const ScenarioResult& result;
  const Excerpt& excerpt;
  PageOrder order;
  std::optional<Causes> causes;   // of the whole log, where it is the whole run
  std::vector<int> devices = {};  // their numbers, by rank
  PageColumns columns = {};

  const Program& program() const { return result.measurement.program; }
  const TraceLog& log() const { return result.measurement.log; }
  std::size_t lanes() const {
    return order.devices.size() + order.wires.size() + order.groups.size();
  }
};

/// Times as distances, each from where the reader is by then; so that nothing adds up.
class GapColumn {
 public:
  explicit GapColumn(Seconds begin) : now_(begin.value()) {}
  void add(Seconds time) {
    const double gap = time.value() - now_;
    constexpr double kRounding = 1e-12;
    const bool none = std::abs(gap) <= kRounding * std::abs(time.value());
    gaps.push_back(none ? 0 : static_cast<float>(gap));
    now_ += gaps.back();
  }
  /// Moves the place of the reader on by the length of the entry that begins there.
  void pass(double seconds) { now_ += seconds; }

  std::vector<float> gaps;

 private:
  double now_;
};

/// Returns a time for people to read, not to add up.
float told(Seconds time) { return time > Seconds(0) ? coarse(time.value()) : 0; }

/// Ops of one rank, field by field.
struct SpanColumns {
  explicit SpanColumns(Seconds begin) : start(begin) {}

  GapColumn start;  // from the end of the one before
  std::vector<float> duration, exposed;
  std::vector<std::uint32_t> op;
  std::vector<std::int32_t> micro_batch;
  bool as_planned = true;  // every duration is its op's
  bool exposes = false;
};

bool as_planned(const Span& span, const OpInfo& op) {
  const double error = (span.end - span.start - op.duration).value();
  return std::abs(error) <= 1e-9 * op.duration.value();
}

SpanColumns columns_of(const PageLane& lane, const PageParts& parts) {
  SpanColumns columns(parts.excerpt.begin);
  for (const std::int32_t index : lane.entries) {
    const Span& span = parts.log().spans[index];
    if (!as_planned(span, parts.program().ops[span.op])) columns.as_planned = false;
  }
  for (const std::int32_t index : lane.entries) {
    const Span& span = parts.log().spans[index];
    const OpInfo& op = parts.program().ops[span.op];
    columns.duration.push_back(static_cast<float>((span.end - span.start).value()));
    columns.start.add(span.start);
    columns.start.pass(columns.as_planned ? op.duration.value() : columns.duration.back());
    columns.exposed.push_back(told(span.exposed));
    columns.op.push_back(static_cast<std::uint32_t>(span.op));
    columns.micro_batch.push_back(span.micro_batch);
    if (span.exposed > Seconds(0)) columns.exposes = true;
  }
  return columns;
}

/// Adds the cause of each entry of lane number `own`.
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

Json spans_json(const PageLane& lane, PageParts& parts) {
  const SpanColumns spans = columns_of(lane, parts);
  PageColumns& columns = parts.columns;
  Json json{{"gap", columns.add(spans.start.gaps)},
            {"op", columns.add(spans.op)},
            {"micro_batch", columns.add(differences(spans.micro_batch))}};
  if (!spans.as_planned) json["duration"] = columns.add(spans.duration);
  if (spans.exposes) json["exposed"] = columns.add(spans.exposed);
  if (!parts.causes) return json;
  add_causes(json, parts.causes->spans, lane, lane.of, parts);
  std::vector<std::uint8_t> waits;
  for (const std::int32_t index : lane.entries) {
    waits.push_back(static_cast<std::uint8_t>(parts.causes->spans[index].wait));
  }
  json["wait"] = columns.add(waits);
  return json;
}

/// Changes of one rank, and the bytes by class when the excerpt begins.
struct MemoryHistory {
  std::array<double, kMemoryClasses> at_begin{};
  std::vector<MemoryChange> changes;
};

std::vector<MemoryHistory> memory_by_rank(const PageParts& parts) {
  const Excerpt& excerpt = parts.excerpt;
  const double held = parts.program().memory_held;
  std::vector<MemoryHistory> ranks(parts.program().ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (int i = 0; i < kMemoryClasses; ++i) {
      ranks[rank].at_begin[i] = held * parts.program().ranks[rank].resident[i].value();
    }
  }
  for (const MemoryChange& change : parts.log().memory) {
    if (change.memory_class == MemoryClass::HostStash) continue;
    MemoryHistory& rank = ranks[change.rank];
    if (change.time < excerpt.begin) {
      rank.at_begin[static_cast<int>(change.memory_class)] += held * change.bytes;
    } else if (excerpt.whole || change.time < excerpt.end) {
      rank.changes.push_back(change);
      rank.changes.back().bytes *= held;
    }
  }
  for (MemoryHistory& rank : ranks) {
    std::stable_sort(rank.changes.begin(), rank.changes.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return ranks;
}

/// Returns the changes of memory. A change is its distance in time from the one before, and an
/// index into the few pairs of class and bytes that occur. Distances are coarse, but start where
/// the reader is by then: an error of one is made good by the next.
Json memory_json(const MemoryHistory& memory, PageParts& parts) {
  std::map<std::pair<int, double>, std::uint16_t> index;
  Json pairs = Json::array();
  std::vector<float> gaps;
  std::vector<std::uint16_t> kinds;
  double time = parts.excerpt.begin.value();  // as the reader will add it up
  Seconds last = parts.excerpt.begin;
  for (const MemoryChange& change : memory.changes) {
    const std::pair key{static_cast<int>(change.memory_class), change.bytes};
    const auto [found, is_new] = index.try_emplace(key, static_cast<std::uint16_t>(index.size()));
    if (is_new) pairs.push_back({key.first, key.second});
    CHECK(index.size() <= 65535, "a rank has few kinds of buffer");
    gaps.push_back(change.time == last ? 0 : coarse(change.time.value() - time));
    last = change.time;
    kinds.push_back(found->second);
    time += gaps.back();
  }
  return {{"at_begin", memory.at_begin},
          {"pairs", pairs},
          {"gap", parts.columns.add(gaps)},
          {"kind", parts.columns.add(kinds)}};
}

/// Writes the ops and the memory of each device: an object for each.
Json ranks_json(PageParts& parts) {
  const auto memory = memory_by_rank(parts);
  Json json = Json::array();
  for (const PageLane& lane : parts.order.devices) {
    const auto rank = static_cast<std::size_t>(lane.of);
    const DeviceMetrics& metrics = parts.result.measurement.metrics.devices[rank];
    json.push_back({{"device", parts.devices.at(rank)},
                    {"stages", list_stages(metrics.stages)},
                    {"capacity", metrics.memory_capacity.value_or(Bytes(0)).value()},
                    {"several", parts.program().ranks[rank].stages.size() > 1},
                    {"spans", spans_json(lane, parts)},
                    {"memory", memory_json(memory[rank], parts)}});
  }
  return json;
}

/// Returns `field` of every entry of a lane.
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

/// Adds the ops that made and used each message: entries of the lanes of its devices, -1 where
/// there is none.
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

/// Writes the messages of each wire, in the order of its lanes.
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

/// Writes the collectives of each communicator.
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
        {"rank", parts.program().communicators[lane.of].ranks.front()},
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

Json ops_json(const Program& program) {
  Json json = Json::array();
  for (const OpInfo& op : program.ops) {
    json.push_back({{"letter", std::string(1, letter(op.kind))},
                    {"stage", model_stage(program, op.stage)},
                    {"loss", model_stage(program, op.loss)},
                    {"useful", op.useful},
                    {"pale", is_pale(op)},
                    {"duration", op.duration.value()},
                    {"communication", op.communication.value()}});
  }
  return json;
}

Json channels_json(const Program& program) {
  Json json = Json::array();
  for (const Channel& channel : program.channels) {
    json.push_back({model_stage(program, channel.from_stage),
                    model_stage(program, channel.to_stage), channel.bytes.value()});
  }
  return json;
}

Json collectives_json(const Program& program) {
  Json json = Json::array();
  for (const Collective& collective : program.collectives) {
    json.push_back({name_of(collective.kind), model_stage(program, collective.stage),
                    collective.bytes.value()});
  }
  return json;
}

/// Returns the op that the critical path of the measured steps ends with: its lane and entry.
Json path_end(const PageParts& parts) {
  if (!parts.causes) return nullptr;
  const Metrics& metrics = parts.result.measurement.metrics;
  const auto path =
      critical_path(parts.log(), *parts.causes, metrics.window_begin, metrics.window_end);
  for (auto part = path.rbegin(); part != path.rend(); ++part) {
    const PagePlace place = parts.order.place(part->node);
    if (place.lane >= 0) return {place.lane, place.entry};
  }
  return nullptr;
}

Json palette_json(const Program& program) {
  Json kinds = Json::array(), classes = Json::array();
  for (const OpKind kind : kOpKindsInOrder) {
    const bool used = std::any_of(program.ops.begin(), program.ops.end(),
                                  [&](const OpInfo& op) { return op.kind == kind; });
    const Swatch look = swatch(kind);
    kinds.push_back({{"letter", std::string(1, letter(kind))},
                     {"colour", look.colour},
                     {"ink", look.ink},
                     {"meaning", meaning_in(program, kind)},
                     {"used", used}});
  }
  for (int i = 0; i < kMemoryClasses; ++i) {
    const Swatch look = swatch(static_cast<MemoryClass>(i));
    classes.push_back({{"colour", look.colour}, {"meaning", look.meaning}});
  }
  return {{"kinds", kinds}, {"classes", classes}};
}

}  // namespace

std::string page_data(const ScenarioResult& result, const Excerpt& excerpt) {
  const Metrics& metrics = result.measurement.metrics;
  const Program& program = result.measurement.program;
  PageParts parts{.result = result,
                  .excerpt = excerpt,
                  .order = order_for_page(result.measurement, excerpt),
                  .causes = find_causes(program, result.measurement.log),
                  .devices = device_numbers(result.plan)};
  Json json{{"name", clean_utf8(result.plan.question.name)},
            {"step_time", metrics.step_time.value()},
            {"steps", metrics.measured_steps},
            {"micro_batches", program.micro_batches},
            {"slices", program.slices},
            {"parts", program.slice_counts},
            {"window", {metrics.window_begin.value(), metrics.window_end.value()}},
            {"range", {excerpt.begin.value(), excerpt.end.value()}},
            {"palette", palette_json(program)},
            {"ops", ops_json(program)},
            {"channels", channels_json(program)},
            {"collectives", collectives_json(program)},
            {"ranks", ranks_json(parts)},
            {"wires", wires_json(parts)},
            {"groups", groups_json(parts)},
            {"path_end", path_end(parts)}};
  json["columns"] = parts.columns.packed();
  return json.dump();
}

}  // namespace interlock
