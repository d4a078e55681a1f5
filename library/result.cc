// Results: their numbers, devices, links and timelines.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "library/boundary.h"
#include "library/result_data.h"
#include "reports/page/page_sections.h"
#include "reports/report.h"
#include "reports/result/all_metrics.h"
#include "reports/result/result_json.h"
#include "scenarios/plan/plan.h"

namespace interlock::v0 {
namespace {

using Json = nlohmann::ordered_json;

const char* unit_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::Time:
      return "s";
    case MetricKind::Size:
      return "bytes";
    case MetricKind::Energy:
      return "J";
    case MetricKind::Power:
      return "W";
    case MetricKind::Share:
      return "share";
    case MetricKind::Rate:
      return "1/s";
    case MetricKind::Money:
      return "money";
    case MetricKind::Truth:
      return "truth";
    case MetricKind::Count:
    case MetricKind::Words:
      break;
  }
  return "count";
}

Metric::Better better_of(Better better) {
  using To = Metric::Better;
  return better == Better::More ? To::More : better == Better::Less ? To::Less : To::Neither;
}

/// Returns the rows of the table of metrics that a result of one step has as numbers.
const std::vector<const MetricRow*>& number_rows() {
  static const std::vector<const MetricRow*> rows = [] {
    std::vector<const MetricRow*> found;
    for (const MetricRow& row : all_metrics()) {
      const bool formula = !std::holds_alternative<std::monostate>(row.field);
      if (row.kind != MetricKind::Words && (formula || row.pointer != nullptr)) {
        found.push_back(&row);
      }
    }
    return found;
  }();
  return rows;
}

/// Returns the place of a metric in metrics(). Throws: interlock::Error if there is none.
std::size_t place_of(std::string_view key) {
  const auto& rows = number_rows();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const MetricRow* one) { return key == one->key; });
  if (row != rows.end()) return static_cast<std::size_t>(row - rows.begin());
  throw interlock::Error("there is no metric " + in_quotes(key) +
                         "; expected one of metrics(), such as \"step_time_s\"");
}

std::optional<double> number_at(const Json& document, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!document.contains(at)) return std::nullopt;
  const Json& value = document[at];
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<double> number_of(const MetricRow& row, const ScenarioResult& result,
                                const Json& document) {
  if (std::holds_alternative<std::monostate>(row.field)) return number_at(document, row.pointer);
  return interlock::number_of(row, result.measurement.metrics);
}

Device device_of(const DeviceMetrics& from, int number, const Metrics& metrics) {
  Device device{.rank = from.rank,
                .number = number,
                .stages = from.stages,
                .busy = from.busy,
                .useful = from.useful,
                .peak_memory_bytes = from.peak_memory.value(),
                .peak_stash_bytes = from.peak_stash.value(),
                .used_memory_bytes = from.used_memory.value_or(Bytes(0)).value(),
                .memory_capacity_bytes = from.memory_capacity.value_or(Bytes(0)).value(),
                .peak_time_s = from.peak_time.value()};
  for (int use = 0; use < kTimeUses; ++use) {
    device.time_shares[name_of(static_cast<TimeUse>(use))] = from.time[use];
  }
  for (int i = 0; i < kMemoryClasses; ++i) {
    device.memory_bytes[name_of(static_cast<MemoryClass>(i))] = from.memory[i].value();
  }
  if (!metrics.explanation) return device;
  for (int cause = 0; cause < kBubbleCauses; ++cause) {
    device.bubble_s[name_of(static_cast<BubbleCause>(cause))] =
        metrics.explanation->devices[from.rank][cause];
  }
  return device;
}

Span span_of(const interlock::Span& from, const Program& program) {
  const OpInfo& op = program.ops[from.op];
  const SliceNumber number = slice_number(program, from.micro_batch);
  return {.start_s = from.start.value(),
          .end_s = from.end.value(),
          .exposed_s = from.exposed.value(),
          .rank = from.rank,
          .op = letter(op.kind),
          .stage = model_stage(program, op.stage),
          .micro_batch = number.micro_batch,
          .slice = number.slice};
}

/// Returns what each rank holds from each instant on at which that changes.
std::vector<MemoryPoint> memory_points(const Measurement& measurement) {
  const Program& program = measurement.program;
  std::vector<MemoryChange> changes;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    double kept = 0;
    for (const Bytes bytes : always_held(program.ranks[rank])) kept += bytes.value();
    changes.push_back({.bytes = kept, .rank = static_cast<int>(rank)});
  }
  for (const MemoryChange& change : measurement.log.memory) {
    if (change.memory_class != MemoryClass::HostStash) changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.time < b.time;
  });
  std::vector<MemoryPoint> points;
  for (const MemoryChange& change : changes) {
    const bool same_rank = !points.empty() && points.back().rank == change.rank;
    const double bytes = (same_rank ? points.back().bytes : 0) + program.memory_held * change.bytes;
    if (same_rank && points.back().time_s == change.time.value()) {
      points.back().bytes = bytes;
    } else {
      points.push_back({change.time.value(), change.rank, bytes});
    }
  }
  return points;
}

const Measurement& kept_timeline(const Result::Data& data) {
  if (data.timeline) return data.result.measurement;
  throw interlock::Error(data.result.plan.question.name +
                         ": no timeline was kept; expected Options::timeline to be true");
}

}  // namespace

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all = [] {
    std::vector<Metric> found;
    for (const MetricRow* row : number_rows()) {
      found.push_back({row->key, unit_of(row->kind), better_of(row->better), row->meaning});
    }
    return found;
  }();
  return all;
}

std::vector<std::optional<double>> numbers_of(const ScenarioResult& result, const Json& document) {
  std::vector<std::optional<double>> numbers;
  for (const MetricRow* row : number_rows()) numbers.push_back(number_of(*row, result, document));
  return numbers;
}

Result result_of(ScenarioResult result, bool timeline) {
  auto data = std::make_shared<Result::Data>();
  data->result = std::move(result);
  data->timeline = timeline;
  return Inside::result_with(std::move(data));
}

Result::Result(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

std::string Result::name() const { return data_->result.plan.question.name; }

std::optional<double> Result::metric(std::string_view key) const {
  return at_boundary([&] {
    const std::size_t place = place_of(key);
    const MetricRow& row = *number_rows()[place];
    if (!std::holds_alternative<std::monostate>(row.field)) {
      return interlock::number_of(row, data_->result.measurement.metrics);
    }
    std::call_once(data_->numbers_made, [&] {
      data_->numbers = numbers_of(data_->result, result_document(data_->result));
    });
    return data_->numbers[place];
  });
}

std::optional<double> SweepRow::metric(std::string_view key) const {
  return at_boundary([&] {
    const std::size_t place = place_of(key);
    return metrics.empty() ? std::nullopt : metrics[place];
  });
}

std::vector<Device> Result::devices() const {
  return at_boundary([&] {
    const Metrics& metrics = data_->result.measurement.metrics;
    const std::vector<int> numbers = device_numbers(data_->result.plan);
    std::vector<Device> devices;
    for (const DeviceMetrics& device : metrics.devices) {
      devices.push_back(device_of(device, numbers.at(device.rank), metrics));
    }
    return devices;
  });
}

std::vector<Link> Result::links() const {
  std::vector<Link> links;
  for (const LinkMetrics& link : data_->result.measurement.metrics.links) {
    links.push_back({link.name, link.bytes.value(), link.utilisation, link.stands_for});
  }
  return links;
}

const std::string& Result::json() const {
  at_boundary(
      [&] { std::call_once(data_->json_made, [&] { data_->json = result_json(data_->result); }); });
  return data_->json;
}

std::string Result::table(int width) const {
  return at_boundary([&] { return terminal_table({data_->result}, {.width = width}); });
}

std::vector<Span> Result::timeline() const {
  return at_boundary([&] {
    const Measurement& measurement = kept_timeline(*data_);
    std::vector<Span> spans;
    spans.reserve(measurement.log.spans.size());
    for (const interlock::Span& span : measurement.log.spans) {
      spans.push_back(span_of(span, measurement.program));
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.rank < b.rank; });
    return spans;
  });
}

std::vector<MemoryPoint> Result::memory() const {
  return at_boundary([&] { return memory_points(kept_timeline(*data_)); });
}

std::string Result::svg() const {
  return at_boundary([&] {
    kept_timeline(*data_);
    return svg_timeline(data_->result);
  });
}

std::string report_html(const std::vector<Result>& results) {
  return at_boundary([&] {
    if (results.empty()) throw interlock::Error("a report of no results; expected one or more");
    std::vector<ScenarioResult> inside;
    inside.reserve(results.size());
    for (const Result& result : results) inside.push_back(Inside::data_of(result).result);
    const std::vector<bool> drawn = page_sections(inside).drawn;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (drawn[i]) kept_timeline(Inside::data_of(results[i]));
    }
    return html_report(inside);
  });
}

}  // namespace interlock::v0
