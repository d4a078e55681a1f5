// PageData: what the scripts of the HTML page draw, as JSON with packed arrays.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "reports/encode.h"
#include "reports/figures.h"
#include "reports/mesh_words.h"
#include "reports/page_lanes.h"
#include "reports/palette.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// Spans of one rank, field by field.
struct SpanArrays {
  std::vector<double> start;
  std::vector<float> duration, exposed;
  std::vector<std::uint32_t> op;
  std::vector<std::int32_t> micro_batch;
  bool as_planned = true;  // every duration is its op's
  bool exposes = false;
};

void append(SpanArrays& arrays, const Span& span, Seconds planned) {
  const Seconds duration = span.end - span.start;
  arrays.start.push_back(span.start.value());
  arrays.duration.push_back(static_cast<float>(duration.value()));
  arrays.exposed.push_back(static_cast<float>(span.exposed.value()));
  arrays.op.push_back(static_cast<std::uint32_t>(span.op));
  arrays.micro_batch.push_back(span.micro_batch);
  const double error = (duration - planned).value();
  if (std::abs(error) > 1e-9 * planned.value()) arrays.as_planned = false;
  if (span.exposed > Seconds(0)) arrays.exposes = true;
}

Json spans_json(const SpanArrays& arrays) {
  Json json{{"count", arrays.start.size()},
            {"start", base64(arrays.start)},
            {"op", base64(arrays.op)},
            {"micro_batch", base64(arrays.micro_batch)}};
  if (!arrays.as_planned) json["duration"] = base64(arrays.duration);
  if (arrays.exposes) json["exposed"] = base64(arrays.exposed);
  return json;
}

std::vector<SpanArrays> spans_by_rank(const Measurement& measurement, const Excerpt& excerpt) {
  std::vector<SpanArrays> ranks(measurement.program.ranks.size());
  for (const Span& span : measurement.log.spans) {
    if (span.start >= excerpt.end && !excerpt.whole) continue;
    if (span.end <= excerpt.begin && !excerpt.whole) continue;
    append(ranks[span.rank], span, measurement.program.ops[span.op].duration);
  }
  return ranks;
}

/// Changes of one rank: bytes by class at the excerpt's begin, then time steps and kinds of change.
struct MemoryArrays {
  std::array<double, kMemoryClasses> at_begin{};
  std::vector<MemoryChange> changes;
};

std::vector<MemoryArrays> memory_by_rank(const Measurement& measurement, const Excerpt& excerpt) {
  std::vector<MemoryArrays> ranks(measurement.program.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (int i = 0; i < kMemoryClasses; ++i) {
      ranks[rank].at_begin[i] = measurement.program.ranks[rank].resident[i].value();
    }
  }
  for (const MemoryChange& change : measurement.log.memory) {
    if (change.memory_class == MemoryClass::HostStash) continue;
    MemoryArrays& rank = ranks[change.rank];
    if (change.time < excerpt.begin) {
      rank.at_begin[static_cast<int>(change.memory_class)] += change.bytes;
    } else if (excerpt.whole || change.time < excerpt.end) {
      rank.changes.push_back(change);
    }
  }
  for (MemoryArrays& rank : ranks) {
    std::stable_sort(rank.changes.begin(), rank.changes.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return ranks;
}

/// As a float above 0, however small or rounded: a gap of 0 means the same instant.
float positive(double gap) {
  return std::max(static_cast<float>(gap), std::numeric_limits<float>::min());
}

/// A change is its distance in time from the one before and an index into the few pairs of class
/// and bytes that occur: six bytes instead of seventeen.
Json memory_json(const MemoryArrays& memory, Seconds begin) {
  std::map<std::pair<int, double>, std::uint16_t> index;
  Json pairs = Json::array();
  std::vector<float> gaps;
  std::vector<std::uint16_t> kinds;
  double time = begin.value();  // as the reader will add it up
  Seconds last = begin;
  for (const MemoryChange& change : memory.changes) {
    const std::pair key{static_cast<int>(change.memory_class), change.bytes};
    const auto [found, is_new] = index.try_emplace(key, static_cast<std::uint16_t>(index.size()));
    if (is_new) pairs.push_back({key.first, key.second});
    CHECK(index.size() <= 65535, "a rank has few kinds of buffer");
    gaps.push_back(change.time == last ? 0 : positive(change.time.value() - time));
    last = change.time;
    kinds.push_back(found->second);
    time += gaps.back();
  }
  return {{"count", gaps.size()},
          {"at_begin", memory.at_begin},
          {"pairs", pairs},
          {"gap", base64(gaps)},
          {"kind", base64(kinds)}};
}

Json ranks_json(const ScenarioResult& result, const Excerpt& excerpt) {
  const Measurement& measurement = result.measurement;
  const std::vector<int> devices = device_numbers(result.scenario);
  const auto spans = spans_by_rank(measurement, excerpt);
  const auto memory = memory_by_rank(measurement, excerpt);
  Json json = Json::array();
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    json.push_back({{"device", devices.at(rank)},
                    {"stages", list_stages(measurement.metrics.devices[rank].stages)},
                    {"several", measurement.program.ranks[rank].stages.size() > 1},
                    {"spans", spans_json(spans[rank])},
                    {"memory", memory_json(memory[rank], excerpt.begin)}});
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

/// `<` never occurs in JSON outside strings, so that no element can end or begin in the data.
std::string without_markup(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page_data(const ScenarioResult& result, const Excerpt& excerpt) {
  const Measurement& measurement = result.measurement;
  const Metrics& metrics = measurement.metrics;
  const Json json{{"name", clean_utf8(result.scenario.name)},
                  {"step_time", metrics.step_time.value()},
                  {"steps", metrics.measured_steps},
                  {"micro_batches", measurement.program.micro_batches},
                  {"slices", measurement.program.slices},
                  {"parts", measurement.program.parts},
                  {"window", {metrics.window_begin.value(), metrics.window_end.value()}},
                  {"range", {excerpt.begin.value(), excerpt.end.value()}},
                  {"capacity", metrics.memory_capacity.value()},
                  {"palette", palette_json(measurement.program)},
                  {"ops", ops_json(measurement.program)},
                  {"channels", channels_json(measurement.program)},
                  {"ranks", ranks_json(result, excerpt)},
                  {"wires", wires_json(result, excerpt)},
                  {"lanes", lanes_json(result, excerpt)},
                  {"collectives", collectives_json(measurement.program)}};
  return without_markup(json.dump());
}

}  // namespace interlock
