// PageLanes: transfers by wire and collectives by lane, as packed arrays.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page_lanes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reports/encode.h"
#include "reports/mesh_words.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

using Transfers = std::vector<Transfer>;

/// The transfers of each wire that touch the excerpt, by start.
std::vector<Transfers> transfers_by_wire(const Measurement& measurement, const Excerpt& excerpt) {
  std::vector<Transfers> wires(measurement.program.wires.size());
  for (const Transfer& transfer : measurement.log.transfers) {
    const int wire = measurement.program.channels[transfer.channel].wire;
    const bool outside = transfer.start >= excerpt.end || transfer.arrival < excerpt.begin;
    if (wire >= 0 && (excerpt.whole || !outside)) wires[wire].push_back(transfer);
  }
  for (Transfers& wire : wires) {
    std::stable_sort(wire.begin(), wire.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }
  return wires;
}

/// Base64 of `field` of every entry.
template <class Number, class Entries, class Field>
std::string packed(const Entries& entries, const Field& field) {
  std::vector<Number> numbers;
  numbers.reserve(entries.size());
  for (const auto& entry : entries) numbers.push_back(static_cast<Number>(field(entry)));
  return base64(numbers);
}

using Collectives = std::vector<CollectiveSpan>;

/// The collectives of each lane that touch the excerpt, by start.
std::vector<Collectives> collectives_by_lane(const Measurement& measurement,
                                             const Excerpt& excerpt) {
  std::vector<Collectives> lanes(measurement.program.lanes.size());
  for (const CollectiveSpan& span : measurement.log.collectives) {
    const bool outside = span.start >= excerpt.end || span.end < excerpt.begin;
    if (!excerpt.whole && outside) continue;
    lanes[measurement.program.collectives[span.collective].lane].push_back(span);
  }
  for (Collectives& lane : lanes) {
    std::stable_sort(lane.begin(), lane.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
  }
  return lanes;
}

}  // namespace

Json wires_json(const ScenarioResult& result, const Excerpt& excerpt) {
  const Measurement& measurement = result.measurement;
  const std::vector<int> devices = device_numbers(result.scenario);
  const auto wires = transfers_by_wire(measurement, excerpt);
  Json json = Json::array();
  for (std::size_t wire = 0; wire < wires.size(); ++wire) {
    const Transfers& all = wires[wire];
    if (all.empty()) continue;
    using T = const Transfer&;
    json.push_back(
        {{"from", devices.at(measurement.program.wires[wire].from_rank)},
         {"to", devices.at(measurement.program.wires[wire].to_rank)},
         {"count", all.size()},
         {"start", packed<double>(all, [](T t) { return t.start.value(); })},
         {"waited", packed<float>(all, [](T t) { return (t.start - t.sent).value(); })},
         {"occupied", packed<float>(all, [](T t) { return (t.end - t.start).value(); })},
         {"latency", packed<float>(all, [](T t) { return (t.arrival - t.end).value(); })},
         {"channel", packed<std::uint32_t>(all, [](T t) { return t.channel; })},
         {"micro_batch", packed<std::int32_t>(all, [](T t) { return t.micro_batch; })}});
  }
  return json;
}

Json lanes_json(const ScenarioResult& result, const Excerpt& excerpt) {
  const Measurement& measurement = result.measurement;
  const std::vector<int> devices = device_numbers(result.scenario);
  const auto lanes = collectives_by_lane(measurement, excerpt);
  Json json = Json::array();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const Collectives& all = lanes[lane];
    if (all.empty()) continue;
    using C = const CollectiveSpan&;
    const MeshAxis axis = measurement.program.collectives[all.front().collective].axis;
    json.push_back(
        {{"axis", name_of(axis)},
         {"device", devices.at(measurement.program.lanes[lane].ranks.front())},
         {"count", all.size()},
         {"start", packed<double>(all, [](C c) { return c.start.value(); })},
         {"waited", packed<float>(all, [](C c) { return (c.start - c.joined).value(); })},
         {"duration", packed<float>(all, [](C c) { return (c.end - c.start).value(); })},
         {"collective", packed<std::uint32_t>(all, [](C c) { return c.collective; })},
         {"micro_batch", packed<std::int32_t>(all, [](C c) { return c.micro_batch; })}});
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

}  // namespace interlock
