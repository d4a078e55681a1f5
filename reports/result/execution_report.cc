// ExecutionReport: an ExecutionRecord for programs and for people.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/execution_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ExecutedProduct& product) {
  return {{"shape", product.shape},
          {"calls", product.calls},
          {"algorithm", product.algorithm},
          {"tile", product.tile},
          {"stages", product.stages},
          {"split_k", product.split_k},
          {"cluster", product.cluster},
          {"waves", product.waves},
          {"workspace_bytes", product.workspace}};
}

Json json_of(const ReadingRange& range) {
  return {{"least", range.least}, {"median", range.median}, {"most", range.most}};
}

Json json_of(const ClockSummary& summary) {
  Json slowed = Json::object();
  for (const auto& [reason, share] : summary.slowed) slowed[reason] = share;
  return {{"gpu", summary.gpu},
          {"readings", summary.readings},
          {"sm_mhz", json_of(summary.sm_clock)},
          {"memory_mhz", json_of(summary.memory_clock)},
          {"power_w", json_of(summary.power)},
          {"temperature_c", json_of(summary.temperature)},
          {"slowed_share", std::move(slowed)}};
}

/// Returns the readings as an array for each quantity.
Json readings_json(const std::vector<ClockReading>& readings) {
  Json json{{"time_s", Json::array()},  {"gpu", Json::array()},
            {"sm_mhz", Json::array()},  {"memory_mhz", Json::array()},
            {"power_w", Json::array()}, {"temperature_c", Json::array()},
            {"reasons", Json::array()}};
  for (const ClockReading& reading : readings) {
    json["time_s"].push_back(reading.time.value());
    json["gpu"].push_back(reading.gpu);
    json["sm_mhz"].push_back(reading.sm_clock);
    json["memory_mhz"].push_back(reading.memory_clock);
    json["power_w"].push_back(reading.power);
    json["temperature_c"].push_back(reading.temperature);
    json["reasons"].push_back(reading.reasons);
  }
  return json;
}

Json json_of(const ExecutedGpu& gpu) {
  return {{"number", gpu.number},
          {"name", gpu.name},
          {"bus", gpu.bus},
          {"capability", gpu.capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory},
          {"most_sm_mhz", gpu.most_clock},
          {"used_bytes", gpu.used},
          {"asked_bytes", gpu.asked}};
}

/// Returns "4 x 32" of four devices of 32, "64, 60" of two that differ.
std::string sizes_of(const std::vector<ExecutedDevice>& devices) {
  const bool equal = std::all_of(devices.begin(), devices.end(), [&](const ExecutedDevice& one) {
    return one.multiprocessors == devices.front().multiprocessors;
  });
  if (devices.empty()) return "none";
  if (equal) {
    return std::to_string(devices.size()) + " x " + std::to_string(devices.front().multiprocessors);
  }
  std::string text;
  for (const ExecutedDevice& one : devices) {
    text += (text.empty() ? "" : ", ") + std::to_string(one.multiprocessors);
  }
  return text;
}

std::string slowed_words(const ClockSummary& summary) {
  std::string words;
  for (const auto& [reason, share] : summary.slowed) {
    words += (words.empty() ? "" : ", ") + reason + " in " + fixed(100 * share, 0) + "%";
  }
  return words.empty() ? "nothing" : words;
}

std::string bytes_words(std::int64_t bytes) { return format(Bytes(static_cast<double>(bytes))); }

std::string range_words(const ReadingRange& range) {
  return fixed(range.least, 0) + " | " + fixed(range.median, 0) + " | " + fixed(range.most, 0);
}

}  // namespace

Json execution_json(const std::optional<ExecutionRecord>& record) {
  if (!record) return nullptr;
  Json json{{"driver", record->driver},
            {"driver_cuda", record->driver_cuda},
            {"module_cuda", record->module_cuda},
            {"cublaslt", record->cublaslt},
            {"gpus", Json::array()},
            {"divided", record->divided},
            {"devices", Json::array()},
            {"link_multiprocessors", record->link_multiprocessors},
            {"links", record->links},
            {"replicas", record->replicas.empty() ? Json(nullptr) : Json(record->replicas)},
            {"graph", record->graph},
            {"notes", record->notes},
            {"wall_s", record->wall.value()},
            {"untraced_wall_s", record->untraced ? Json(record->untraced->value()) : Json(nullptr)},
            {"host_issue_s", record->issue.value()},
            {"ops", record->lateness.ops},
            {"ops_issued_late", record->lateness.late},
            {"lost_to_late_host_s", record->lateness.lost.value()},
            {"workspace_bytes", record->workspace},
            {"products", Json::array()},
            {"clocks", Json::array()},
            {"clock_readings", readings_json(record->clocks)}};
  for (const ExecutedGpu& gpu : record->gpus) json["gpus"].push_back(json_of(gpu));
  for (const ExecutedDevice& device : record->devices) {
    json["devices"].push_back({{"gpu", device.gpu}, {"multiprocessors", device.multiprocessors}});
  }
  for (const ExecutedProduct& product : record->products) {
    json["products"].push_back(json_of(product));
  }
  for (const ClockSummary& summary : clock_summaries(*record)) {
    json["clocks"].push_back(json_of(summary));
  }
  return json;
}

std::string execution_sentence(const ExecutionRecord& record) {
  std::string text = "Ran on " + (record.gpus.empty() ? "" : record.gpus.front().name + ": ") +
                     record.divided + ", " + sizes_of(record.devices) + " multiprocessors";
  const std::string late = lateness_words(record.lateness);
  const std::string end = late.empty() ? "." : ". " + late;
  const std::vector<ClockSummary> summaries = clock_summaries(record);
  if (summaries.empty()) return text + "; clocks unknown, as NVML is not there" + end;
  for (const ClockSummary& one : summaries) {
    text += "; GPU " + std::to_string(one.gpu) + " at " + fixed(one.sm_clock.least, 0) + " to " +
            fixed(one.sm_clock.most, 0) + " MHz, " + fixed(one.power.median, 0) +
            " W, held back by " + slowed_words(one);
  }
  return text + end;
}

Grid execution_grid(const ExecutionRecord& record) {
  Grid grid{{{"What ran", "", false}, {"", "", false}}, {}};
  const auto add = [&](const std::string& name, const std::string& value) {
    grid.rows.push_back({{name}, {value}});
  };
  for (const ExecutedGpu& gpu : record.gpus) {
    add("GPU " + std::to_string(gpu.number),
        gpu.name + ", " + std::to_string(gpu.multiprocessors) + " multiprocessors, capability " +
            gpu.capability + ", " + bytes_words(gpu.memory) + "; in use " + bytes_words(gpu.used) +
            ", of which we asked for " + bytes_words(gpu.asked));
  }
  add("Driver, toolkit", record.driver + " (CUDA " + record.driver_cuda + "), CUDA " +
                             record.module_cuda + ", cuBLASLt " + record.cublaslt);
  add("Devices", record.divided + ": " + sizes_of(record.devices) + " multiprocessors, " +
                     std::to_string(record.link_multiprocessors) + " for links");
  add("Links", record.links);
  if (!record.replicas.empty()) add("Exchanges of replicas", record.replicas);
  add("Issued", record.graph ? "as one CUDA graph" : "kernel by kernel");
  add("Host, first launch to the end",
      format(record.wall) + ", of which it issued work for " + format(record.issue));
  if (record.untraced) add("The same without events around ops", format(*record.untraced));
  add("Ops that began before all was issued",
      std::to_string(record.lateness.late) + " of " + std::to_string(record.lateness.ops) +
          "; at most " + format(record.lateness.lost) + " of their times is waiting");
  add("Workspace beside tensors", bytes_words(record.workspace));
  for (const std::string& note : record.notes) add("Note", note);
  return grid;
}

Grid product_grid(const ExecutionRecord& record) {
  Grid grid{{{"Product", "", false},
             {"Calls"},
             {"Algorithm"},
             {"Tile"},
             {"Stages"},
             {"Split of k"},
             {"Cluster"},
             {"Waves"},
             {"Workspace", "B"}},
            {}};
  std::vector<ExecutedProduct> products = record.products;
  std::stable_sort(
      products.begin(), products.end(),
      [](const ExecutedProduct& a, const ExecutedProduct& b) { return a.calls > b.calls; });
  for (const ExecutedProduct& one : products) {
    grid.rows.push_back({{one.shape},
                         {std::to_string(one.calls)},
                         {std::to_string(one.algorithm)},
                         {std::to_string(one.tile)},
                         {std::to_string(one.stages)},
                         {std::to_string(one.split_k)},
                         {std::to_string(one.cluster)},
                         {fixed(one.waves, 2)},
                         {std::to_string(one.workspace)}});
  }
  return grid;
}

Grid clock_grid(const ExecutionRecord& record) {
  Grid grid{{{"GPU"},
             {"Readings"},
             {"Multiprocessors: least, median, most", "MHz"},
             {"Memory", "MHz"},
             {"Power", "W"},
             {"Temperature", "C"},
             {"Held back by, share of readings", "", false}},
            {}};
  for (const ClockSummary& one : clock_summaries(record)) {
    grid.rows.push_back({{std::to_string(one.gpu)},
                         {std::to_string(one.readings)},
                         {range_words(one.sm_clock)},
                         {range_words(one.memory_clock)},
                         {range_words(one.power)},
                         {range_words(one.temperature)},
                         {slowed_words(one)}});
  }
  return grid;
}

}  // namespace interlock
