// Writes a duration table as a model file; docs/figures.md says what its keys mean.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/spread.h"
#include "reports/kineto/duration_table.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// As people write it in a scenario; times are whole nanoseconds, or halves of them.
std::string written(Seconds time) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g ms", time.value() * 1e3);
  return text;
}

Json modules_json(const DurationTable& table) {
  Json modules = Json::array();
  for (const MeasuredPart& part : table.parts) {
    const ModuleTimes times = module_times(part);
    Json module = {{"name", clean_utf8(part.name)}};
    const auto add = [&](const char* key, Seconds time) {
      if (time > Seconds(0)) module[key] = written(time);
    };
    add("forward", times.forward);
    add("backward_input", times.backward_input);
    add("backward_weight", times.backward_weight);
    add("update", times.update);
    add("head", times.head);
    modules.push_back(module);
  }
  return modules;
}

Json pipeline_json(const DurationTable& table, const PipelineAnswer& answer) {
  Json ranks = Json::array(), gains = Json::array();
  for (std::size_t r = 0; r < answer.ranks.size(); ++r) {
    const RankUse& use = answer.ranks[r];
    Json rank = {{"file", clean_utf8(table.pipeline.ranks[r].file)}, {"stages", use.stages}};
    if (const auto number = table.pipeline.ranks[r].rank) rank["rank"] = *number;
    rank["clock_shift_s"] = use.clock_shift.value();
    for (int part = 0; part < kRankTimes; ++part) {
      rank[name_of(static_cast<RankTime>(part)) + std::string("_s")] =
          use.time[static_cast<std::size_t>(part)].value();
    }
    ranks.push_back(rank);
  }
  for (const Seconds gain : answer.cost.stage_gain) gains.push_back(gain.value());
  return {{"steps", answer.steps},
          {"window_s", answer.window.value()},
          {"ranks", ranks},
          {"step_s", answer.cost.measured.value()},
          {"replayed_step_s", answer.cost.replayed.value()},
          {"even_ops_step_s", answer.cost.even.value()},
          {"equal_stages_step_s", answer.cost.equal.value()},
          {"stage_gain_s", gains}};
}

Json ops_json(const DurationTable& table) {
  Json ops = Json::array();
  for (const MeasuredPart& part : table.parts) {
    for (int i = 0; i < kPhases; ++i) {
      const OpSamples& samples = part.phases[static_cast<std::size_t>(i)];
      if (samples.busy.empty()) continue;
      const Spread busy = spread_of(samples.busy);
      ops.push_back({{"part", clean_utf8(part.name)},
                     {"op", name_of(static_cast<Phase>(i))},
                     {"n", samples.busy.size()},
                     {"median_s", busy.p50},
                     {"p95_s", busy.p95},
                     {"total_s", total(samples.busy)},
                     {"median_span_s", spread_of(samples.spans).p50}});
    }
  }
  return ops;
}

Json kernels_json(const DurationTable& table) {
  Json kernels = Json::array();
  for (const auto& [name, samples] : table.kernels) {
    const Spread spread = spread_of(samples.durations);
    kernels.push_back({{"name", clean_utf8(name)},
                       {"n", samples.durations.size()},
                       {"median_s", spread.p50},
                       {"p95_s", spread.p95},
                       {"total_s", total(samples.durations)},
                       {"in_ops_s", samples.in_ops}});
  }
  return kernels;
}

Json messages_json(const DurationTable& table) {
  Json messages = Json::array();
  for (const auto& [name, samples] : table.messages) {
    const bool known = !samples.bytes.empty();
    messages.push_back({{"name", clean_utf8(name)},
                        {"n", samples.count},
                        {"n_with_bytes", samples.bytes.size()},
                        {"median_bytes", known ? Json(spread_of(samples.bytes).p50) : Json()},
                        {"total_bytes", known ? Json(total(samples.bytes)) : Json()}});
  }
  return messages;
}

}  // namespace

std::string duration_json(const DurationTable& table) {
  CHECK(!table.files.empty(), "a table is made of traces");
  std::string source = "measured: medians over " + clean_utf8(table.files.front());
  if (table.files.size() > 1) {
    source += " and " + std::to_string(table.files.size() - 1) + " more traces";
  }
  Json files = Json::array();
  for (const std::string& file : table.files) files.push_back(clean_utf8(file));
  Json measured = {
      {"format", "interlock-durations/1"},
      {"files", files},
      {"steps", table.steps},
      {"ops", ops_json(table)},
      {"kernels", kernels_json(table)},
      {"messages", messages_json(table)},
      {"device_time_s",
       {{"in_ops", table.in_ops.value()},
        {"other_kernels", table.other_kernels.value()},
        {"communication", table.communication.value()},
        {"copies", table.copies.value()}}},
      {"left_out", {{"without_time", table.without_time}, {"duplicates", table.duplicates}}}};
  std::string why;
  if (const auto answer = analyse(table.pipeline, why)) {
    measured["pipeline"] = pipeline_json(table, *answer);
  }
  const Json model = {{"kind", "profile"},
                      {"source", source},
                      {"modules", modules_json(table)},
                      {"measured", measured}};
  return model.dump(2) + "\n";
}

}  // namespace interlock
