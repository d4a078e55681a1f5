// What devices do and hold over time, as columns.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/headlines/figures.h"
#include "reports/page/page_parts.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

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

/// Why each op began, see find_causes.
void add_causes(Json& json, const PageLane& lane, PageParts& parts) {
  PlaceColumns causes(lane.of, parts.lanes());
  std::vector<std::uint8_t> waits;
  std::int32_t entry = 0;
  for (const std::int32_t index : lane.entries) {
    const Cause& cause = parts.causes->spans[index];
    causes.add(entry++, parts.order.place(cause.node));
    waits.push_back(static_cast<std::uint8_t>(cause.wait));
  }
  json["cause_lane"] = parts.columns.add(causes.lanes);
  json["cause_step"] = parts.columns.add(causes.steps);
  json["wait"] = parts.columns.add(waits);
}

Json spans_json(const PageLane& lane, PageParts& parts) {
  const SpanColumns spans = columns_of(lane, parts);
  PageColumns& columns = parts.columns;
  Json json{{"gap", columns.add(spans.start.gaps)},
            {"op", columns.add(spans.op)},
            {"micro_batch", columns.add(differences(spans.micro_batch))}};
  if (!spans.as_planned) json["duration"] = columns.add(spans.duration);
  if (spans.exposes) json["exposed"] = columns.add(spans.exposed);
  if (parts.causes) add_causes(json, lane, parts);
  return json;
}

/// Changes of one rank, and the bytes by class when the excerpt begins.
struct MemoryHistory {
  std::array<double, kMemoryClasses> at_begin{};
  std::vector<MemoryChange> changes;
};

std::vector<MemoryHistory> memory_by_rank(const PageParts& parts) {
  const Excerpt& excerpt = parts.excerpt;
  std::vector<MemoryHistory> ranks(parts.program().ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (int i = 0; i < kMemoryClasses; ++i) {
      ranks[rank].at_begin[i] = parts.program().ranks[rank].resident[i].value();
    }
  }
  for (const MemoryChange& change : parts.log().memory) {
    if (change.memory_class == MemoryClass::HostStash) continue;
    MemoryHistory& rank = ranks[change.rank];
    if (change.time < excerpt.begin) {
      rank.at_begin[static_cast<int>(change.memory_class)] += change.bytes;
    } else if (excerpt.whole || change.time < excerpt.end) {
      rank.changes.push_back(change);
    }
  }
  for (MemoryHistory& rank : ranks) {
    std::stable_sort(rank.changes.begin(), rank.changes.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return ranks;
}

/// A change is its distance in time from the one before, and an index into the few pairs of class
/// and bytes that occur. Distances are coarse, but start where the reader is by then: what is lost
/// of one comes with the next.
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

}  // namespace

Json ranks_json(PageParts& parts) {
  const auto memory = memory_by_rank(parts);
  Json json = Json::array();
  for (const PageLane& lane : parts.order.devices) {
    const auto rank = static_cast<std::size_t>(lane.of);
    const DeviceMetrics& metrics = parts.result.measurement.metrics.devices[rank];
    json.push_back({{"device", parts.devices.at(rank)},
                    {"stages", list_stages(metrics.stages)},
                    {"several", parts.program().ranks[rank].stages.size() > 1},
                    {"spans", spans_json(lane, parts)},
                    {"memory", memory_json(memory[rank], parts)}});
  }
  return json;
}

}  // namespace interlock
