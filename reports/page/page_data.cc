// PageData: what the scripts of the HTML page draw, as JSON with packed arrays.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reports/page/page_parts.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "reports/words/palette.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

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

/// The op that the critical path of the measured steps ends with: its lane and entry.
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
                  .devices = device_numbers(result.scenario)};
  Json json{{"name", clean_utf8(result.scenario.name)},
            {"step_time", metrics.step_time.value()},
            {"steps", metrics.measured_steps},
            {"micro_batches", program.micro_batches},
            {"slices", program.slices},
            {"parts", program.parts},
            {"window", {metrics.window_begin.value(), metrics.window_end.value()}},
            {"range", {excerpt.begin.value(), excerpt.end.value()}},
            {"capacity", metrics.memory_capacity.value()},
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
