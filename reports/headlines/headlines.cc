// Headlines: the headline numbers of a result and the words around them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/headlines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/text.h"
#include "reports/headlines/economics_headlines.h"
#include "reports/headlines/explanation_headlines.h"
#include "reports/headlines/known_memory.h"
#include "reports/headlines/run_headlines.h"
#include "reports/headlines/swarm_headlines.h"
#include "reports/headlines/variation_headlines.h"
#include "reports/words/mesh_words.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"
#include "scenarios/plan/measure_plan.h"
#include "scenarios/plan/reserve.h"
#include "scenarios/simulate/economics.h"

namespace interlock {
namespace {

constexpr double kTera = 1e12;

/// Returns the classes of memory by what they hold, the largest first.
std::array<int, kMemoryClasses> classes_by_size(const std::array<Bytes, kMemoryClasses>& memory) {
  std::array<int, kMemoryClasses> order{};
  for (int i = 0; i < kMemoryClasses; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return memory[a] > memory[b]; });
  return order;
}

std::string plural(std::int64_t count, const std::string& noun, const char* ending = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : ending);
}

Headline step_headline(const Metrics& metrics) {
  std::string note = "mean of " + plural(metrics.measured_steps, "step");
  if (metrics.measured_steps == 1 && metrics.fill_steps == 0) note = "one step, nothing before it";
  if (metrics.fill_steps > 0) note += " after " + plural(metrics.fill_steps, "step") + " of fill";
  return {"Step time", format(metrics.step_time), note};
}

/// Returns "1.23 k tokens/s/GPU; 5.89 GPU-hours a step"; the hours of large steps only.
std::string rate_of_device(const Metrics& metrics, const MetricRow& rate) {
  constexpr double kLeastHours = 0.01;
  const double devices = metrics.devices_total;
  const double hours = device_hours(devices, metrics.step_time);
  const std::string each =
      format_number(*number_of(rate, metrics) / devices) + " " + rate_unit(rate) + "/GPU";
  return hours < kLeastHours ? each : each + "; " + format_number(hours) + " GPU-hours a step";
}

Headline throughput_headline(const Metrics& metrics) {
  const MetricRow rate =
      telling_rate([&](const MetricRow& row) { return number_of(row, metrics).has_value(); });
  const std::string number = format_number(*number_of(rate, metrics));
  Headline headline{"Throughput", number + " " + rate_unit(rate), ""};
  if (metrics.tokens_per_s && metrics.samples_per_s) {
    headline.note = format_number(*metrics.samples_per_s) + " samples/s; ";
  }
  if (metrics.tokens_per_s || metrics.samples_per_s) {
    headline.note += rate_of_device(metrics, rate);
  }
  return headline;
}

/// Returns the flops of the model that a device executes a second; nothing if that is unknown.
std::optional<FlopsPerSecond> flops_of_device(const ScenarioResult& result) {
  const std::optional<double>& mfu = result.measurement.metrics.mfu;
  if (!mfu) return std::nullopt;
  return measure_inputs(result.plan).peak * *mfu;
}

Headline mfu_headline(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!metrics.mfu) return {"MFU", "unknown", "model flops or peak rate not known"};
  std::string note = format(*flops_of_device(result)) + "/GPU; ";
  note += metrics.hfu && *metrics.hfu != *metrics.mfu
              ? "HFU " + format_percent(*metrics.hfu) + ", all executed"
              : "model flops of the peak";
  if (metrics.attention_flops != "none") {
    note += "; counts " + metrics.attention_flops + " attention";
  }
  return {"MFU", format_percent(*metrics.mfu), note};
}

Headline exposed_headline(const Metrics& metrics) {
  const double share =
      metrics.step_time > Seconds(0) ? metrics.exposed_communication / metrics.step_time : 0;
  return {"Exposed comm.", format(metrics.exposed_communication),
          format_percent(share) + " of a step, mean over devices"};
}

/// Returns how often workers that train apart exchange a fragment of their weights; nothing where
/// all train together.
std::vector<Headline> outer_headline(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!metrics.outer_exchanges || !metrics.outer_exchange_s) return {};
  const OuterSteps& outer = result.plan.question.layout.data_parallel.outer;
  const int exchanges = static_cast<int>(*metrics.outer_exchanges);
  std::string note = format(Seconds(*metrics.outer_exchange_s)) + " each";
  if (outer.overlap > 0) {
    note += ", beside steps";
    if (outer.fragments > 1) {
      note += ": at most " + std::to_string(outer.on_the_way(exchanges)) + " of " +
              std::to_string(outer.fragments) + " fragments on their way";
    }
  }
  return {{"Outer exchanges",
           std::to_string(exchanges) + " in " + std::to_string(outer.every) + " steps", note}};
}

Headline memory_headline(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!knows_memory(metrics)) return unknown_memory(result);
  const DeviceMetrics& device = fullest_device(metrics);
  const std::string where = "on " + device_name(result.plan, device.rank);
  Headline headline{"Peak memory", format(device.peak_memory), where};
  if (!metrics.memory_capacity) return headline;
  headline.note = "of " + format(*metrics.memory_capacity) + " " + where;
  const Bytes spare = *metrics.memory_capacity - device.peak_memory;
  if (spare >= Bytes(0)) {
    const Bytes left = std::max(spare, Bytes(0));
    headline.note += "; fits, " + format(left) + " to spare (" +
                     format_percent(left / *metrics.memory_capacity) + ")";
  } else {
    headline.note += "; does not fit, over by " + format(-spare);
    headline.alarm = true;
  }
  return headline;
}

/// Nothing where it is not known.
std::vector<Headline> used_headline(const ScenarioResult& result) {
  const DeviceMetrics& device = fullest_device(result.measurement.metrics);
  if (!device.used_memory || !knows_memory(result.measurement.metrics)) return {};
  const std::string words = reserve_words(result.plan.question, {});
  Headline headline{"Memory in use", format(*device.used_memory),
                    words.empty() ? "" : "with " + words};
  const std::optional<Bytes>& capacity = device.memory_capacity;
  if (capacity && *device.used_memory > *capacity && device.peak_memory <= *capacity) {
    headline.note += "; may not fit, over by " + format(*device.used_memory - *capacity);
    headline.alarm = true;
  }
  return {headline};
}

/// Nothing where nothing is kept there.
std::vector<Headline> host_headline(const Metrics& metrics) {
  const Bytes kept = metrics.host_memory;
  if (kept <= Bytes(0)) return {};
  Headline headline{"Host memory", format(kept), "of the node whose devices keep most there"};
  if (const std::optional<Bytes>& capacity = metrics.host_capacity) {
    headline.alarm = kept > *capacity;
    headline.note = "of " + format(*capacity) + " of a node";
    headline.note += headline.alarm ? "; does not fit, over by " + format(kept - *capacity)
                                    : "; fits, " + format(*capacity - kept) + " to spare";
  }
  return {headline};
}

Headline limiting_headline(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  const int number = device_numbers(result.plan).at(metrics.limiting_device);
  Headline headline{"Limiting device", std::to_string(number), ""};
  for (const DeviceMetrics& device : metrics.devices) {
    if (device.rank != metrics.limiting_device) continue;
    headline.note = (device.stages.size() == 1 ? "stage " : "stages ") +
                    list_stages(device.stages) + ", busy " + format_percent(device.busy);
  }
  return headline;
}

}  // namespace

std::vector<Headline> classes_headline(const std::array<Bytes, kMemoryClasses>& memory) {
  Bytes all;
  for (const Bytes bytes : memory) all += bytes;
  Headline headline{"At that peak", "", ""};
  for (const int held : classes_by_size(memory)) {
    const Bytes bytes = memory[held];
    if (bytes <= all * 1e-3) break;
    const std::string words = short_name(static_cast<MemoryClass>(held)) + (" " + format(bytes));
    if (headline.value.empty()) {
      headline.value = words;
    } else {
      headline.note += (headline.note.empty() ? "" : ", ") + words;
    }
  }
  if (headline.value.empty()) return {};
  return {headline};
}

std::vector<Headline> all_headlines(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  std::vector<Headline> headlines = {
      step_headline(metrics),
      throughput_headline(metrics),
      {"Busy", format_percent(metrics.busy), "executing anything, mean over devices"},
      {"Useful", format_percent(metrics.useful), "no heads, recompute or extra traversals"},
      mfu_headline(result),
      idle_headline(metrics),
      exposed_headline(metrics)};
  for (Headline& headline : outer_headline(result)) headlines.push_back(std::move(headline));
  headlines.push_back(memory_headline(result));
  const auto memory =
      knows_memory(metrics) ? fullest_device(metrics).memory : std::array<Bytes, kMemoryClasses>{};
  for (Headline& headline : classes_headline(memory)) headlines.push_back(std::move(headline));
  for (Headline& headline : used_headline(result)) headlines.push_back(std::move(headline));
  for (Headline& headline : host_headline(metrics)) headlines.push_back(std::move(headline));
  headlines.push_back(limiting_headline(result));
  for (Headline& headline : explanation_headlines(result)) headlines.push_back(std::move(headline));
  for (Headline& headline : economics_headlines(result)) headlines.push_back(std::move(headline));
  for (Headline& headline : variation_headlines(result)) headlines.push_back(std::move(headline));
  for (Headline& headline : run_headlines(result)) headlines.push_back(std::move(headline));
  for (Headline& headline : swarm_headlines(result)) headlines.push_back(std::move(headline));
  return headlines;
}

namespace {

/// Adds a line for each part of a workload that could not be used.
void add_notes(const TraceNotes& notes, std::vector<std::string>& lines) {
  if (notes.without_time > 0) {
    lines.push_back("Nodes without a duration: " + plural(notes.without_time, "op") +
                    ", which the simulation takes to end at once.");
  }
  if (notes.others > 0) {
    lines.push_back("Nodes that are not of the device: " + plural(notes.others, "node") +
                    " (e.g. of hosts), which take no time.");
  }
}

/// Returns "24 micro-batches", or of replicas that have numbers of their own "36 (replica 0), 12
/// (replicas 1 to 3) micro-batches".
std::string batches_in_words(const Plan& plan) {
  const std::vector<int>& counts = plan.replica_micro_batches;
  if (counts.empty()) return plural(plan.micro_batches, "micro-batch", "es");
  std::string words;
  for (std::size_t first = 0, last = 0; first < counts.size(); first = last + 1) {
    last = first;
    while (last + 1 < counts.size() && counts[last + 1] == counts[first]) ++last;
    words +=
        (words.empty() ? "" : ", ") + std::to_string(counts[first]) +
        (first == last ? " (replica " + std::to_string(first)
                       : " (replicas " + std::to_string(first) + " to " + std::to_string(last)) +
        ")";
  }
  return words + " micro-batches";
}

}  // namespace

std::string subtitle(const ScenarioResult& result) {
  const Plan& plan = result.plan;
  const Question& scenario = plan.question;
  const Metrics& metrics = result.measurement.metrics;
  std::string line = workload_name(scenario) + " on " + device_words(result);
  if (const TraceWorkload* const trace = scenario.trace()) {
    return line + ", execution traces of " + plural(trace->steps.steps, "step") + ", " +
           metrics.engine + " engine";
  }
  const Strategy& strategy = scenario.training().strategy;
  line += ", " + plural(plan.partition.stages(), "stage") + ", " + name_of(strategy) +
          (strategy.kind == StrategyKind::Inference ? "" : " training") + crossings_of(strategy) +
          ", " + plan.schedule.kind->name + " schedule, " + batches_in_words(plan);
  if (!plan.slices.empty()) {
    const auto slices = static_cast<std::int64_t>(plan.slices.size());
    line += " of " + plural(slices, "token slice");
  }
  if (!plan.sized_batches.empty()) {
    std::int64_t slices = 0;
    for (const SizedBatch& batch : plan.sized_batches) slices += std::ssize(batch.slices);
    line += " of several sizes with " + plural(slices, "token slice") + " in all";
  }
  line += " a step, " + metrics.engine + " engine";
  return line;
}

std::vector<std::string> warnings(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  std::vector<std::string> lines;
  if (!metrics.steady) {
    lines.push_back("Not steady: steps still differ after " + plural(metrics.fill_steps, "step") +
                    " of fill; the figures are means over " +
                    plural(metrics.measured_steps, "step") + ".");
  }
  const DeviceMetrics& device = fullest_device(metrics);
  if (metrics.memory_capacity && device.peak_memory > *metrics.memory_capacity) {
    lines.push_back("Does not fit: " + device_name(result.plan, device.rank) + " needs " +
                    format(device.peak_memory - *metrics.memory_capacity) + " more than its " +
                    format(*metrics.memory_capacity) + ".");
  }
  if (metrics.host_is_full()) {
    lines.push_back("Does not fit: devices of a node keep " +
                    format(metrics.host_memory - *metrics.host_capacity) +
                    " more with their host than its " + format(*metrics.host_capacity) + ".");
  }
  const std::string& peak = result.confidence.at_peak;
  if (!peak.empty()) {
    lines.push_back("At the peak: " + peak + R"(. Write an "efficiency" into the device.)");
  }
  if (const TraceWorkload* const trace = result.plan.question.trace()) {
    add_notes(trace->notes, lines);
  }
  return lines;
}

MetricRow common_rate(const std::vector<ScenarioResult>& results) {
  return telling_rate([&](const MetricRow& row) {
    return std::all_of(results.begin(), results.end(), [&](const ScenarioResult& result) {
      return number_of(row, result.measurement.metrics).has_value();
    });
  });
}

std::string list_stages(const std::vector<int>& stages) {
  const auto count = static_cast<int>(stages.size());
  if (count > 2 && stages.back() - stages.front() == count - 1) {
    return std::to_string(stages.front()) + " to " + std::to_string(stages.back());
  }
  std::string list;
  for (const int stage : stages) list += (list.empty() ? "" : ", ") + std::to_string(stage);
  return list;
}

namespace {

constexpr std::string_view kNameBreak = " | ";  // as sweeps name their scenarios

Cell percent(double fraction) { return {fixed(100 * fraction, 1)}; }
Cell percent(std::optional<double> fraction) {
  return fraction ? percent(*fraction) : Cell{kUnknown};
}
Cell percent_bar(double fraction) { return {fixed(100 * fraction, 1), fraction}; }

/// Returns the two classes that hold most at the peak: "stash 61%, weights 20%".
std::string largest_classes(const DeviceMetrics& device) {
  if (device.peak_memory <= Bytes(0)) return kUnknown;
  const std::array<int, kMemoryClasses> order = classes_by_size(device.memory);
  std::string text;
  for (int i = 0; i < 2; ++i) {
    const double share = device.memory[order[i]] / device.peak_memory;
    if (share < 0.005) break;
    if (!text.empty()) text += ", ";
    text += short_name(static_cast<MemoryClass>(order[i]));
    text.append(" ").append(fixed(100 * share, 0)).append("%");
  }
  return text;
}

/// Memory left at the peak; negative where it does not fit, and in bytes where that is more than
/// the device has.
Cell spare_memory(const Metrics& metrics, const DeviceMetrics& device) {
  if (!device.memory_capacity || !knows_memory(metrics)) return {kUnknown};
  const double share = 1 - device.peak_memory / *device.memory_capacity;
  if (share < -1) {
    return {"lacks " + format(device.peak_memory - *device.memory_capacity), std::nullopt, true};
  }
  return {fixed(100 * share, 1), std::nullopt, share < 0};
}

/// Adds a column with the names of the devices, where these differ.
void add_kinds(const ScenarioResult& result, const std::vector<int>& numbers, Grid& grid) {
  const Cluster& cluster = result.plan.question.cluster;
  if (!is_mixed(cluster)) return;
  grid.columns.insert(grid.columns.begin() + 1, {"Kind", "", false});
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    std::vector<Cell>& cells = grid.rows[row];
    cells.insert(cells.begin() + 1, {machine_of(cluster, numbers.at(row)).device.name});
  }
}

/// Adds a column of `numbers`, of which 0 are unknown.
void add_numbers(const Column& column, const std::vector<double>& numbers, Grid& grid) {
  const Scale scale = scale_of_numbers(numbers, column.unit);
  grid.columns.push_back(column);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    grid.rows[i].push_back({numbers[i] > 0 ? scaled(numbers[i], scale) : kUnknown});
  }
}

template <class Value>
std::vector<double> values_of(const std::vector<ScenarioResult>& results, const Value& value) {
  std::vector<double> values;
  values.reserve(results.size());
  for (const auto& result : results) values.push_back(value(result.measurement.metrics));
  return values;
}

}  // namespace

Grid shorten(const Grid& grid, std::size_t most, const std::vector<int>& keep) {
  if (grid.rows.size() <= most) return grid;
  Grid shorter{grid.columns, {}};
  const std::size_t tail = (most - std::min(most, keep.size())) / 2;
  for (std::size_t i = 0; i < grid.rows.size(); ++i) {
    const bool kept = std::find(keep.begin(), keep.end(), static_cast<int>(i)) != keep.end();
    const bool at_end = i < tail || i >= grid.rows.size() - tail;
    if (kept || at_end) shorter.rows.push_back(grid.rows[i]);
  }
  return shorter;
}

std::string rows_left_out(const Grid& shown, const Grid& all) {
  return "Shown: " + std::to_string(shown.rows.size()) + " of " + std::to_string(all.rows.size()) +
         " rows; the result JSON has all.";
}

Grid device_grid(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  std::vector<double> peaks;
  for (const auto& device : metrics.devices) peaks.push_back(device.peak_memory.value());
  const Scale memory = scale_of_bytes(peaks);
  Grid grid{{{"Device", ""},
             {"Stages", "", false},
             {"Busy", "%"},
             {"Useful", "%"},
             {"Peak memory", memory.unit},
             {"Spare", "%"},
             {"Mostly", "", false}},
            {}};
  const std::vector<int> numbers = device_numbers(result.plan);
  const bool known = knows_memory(metrics);
  for (const auto& device : metrics.devices) {
    grid.rows.push_back({{std::to_string(numbers.at(device.rank))},
                         {list_stages(device.stages)},
                         percent_bar(device.busy),
                         percent(device.useful),
                         {known ? scaled(device.peak_memory.value(), memory) : kUnknown},
                         spare_memory(metrics, device),
                         {known ? largest_classes(device) : kUnknown}});
  }
  add_kinds(result, numbers, grid);
  return grid;
}

Grid link_grid(const ScenarioResult& result) {
  const auto& links = result.measurement.metrics.links;
  std::vector<double> bytes{0};
  for (const auto& link : links) bytes.push_back(link.bytes.value());
  const Scale scale = scale_of_bytes(bytes);
  Grid grid{{{"Link", "", false}, {"Per step", scale.unit}, {"Utilisation", "%"}}, {}};
  for (const auto& link : links) {
    grid.rows.push_back(
        {{link.name}, {scaled(link.bytes.value(), scale)}, percent_bar(link.utilisation)});
  }
  return grid;
}

std::string common_name(const std::vector<std::string>& names) {
  std::string common = names.at(0);
  for (const std::string& name : names) {
    const auto differs = std::mismatch(common.begin(), common.end(), name.begin(), name.end());
    common.erase(differs.first, common.end());
  }
  const std::size_t bar = common.rfind(kNameBreak);
  return bar == std::string::npos ? "" : common.substr(0, bar);
}

std::string common_name(const std::vector<ScenarioResult>& results) {
  std::vector<std::string> names;
  names.reserve(results.size());
  for (const ScenarioResult& result : results) names.push_back(result.plan.question.name);
  return common_name(names);
}

std::string own_name(const std::string& name, const std::string& common) {
  return common.empty() ? name : name.substr(common.size() + kNameBreak.size());
}

std::string comparison_note() {
  return "Speed-up: throughput over that of the first. Useful: no heads, recompute or extra "
         "traversals. Memory: the peak of the fullest device. Exposed: idle in a step while a "
         "message is on its way.";
}

namespace {

/// Returns whether results have several numbers of devices.
bool devices_differ(const std::vector<ScenarioResult>& results) {
  const auto devices = values_of(results, [](const Metrics& m) { return m.devices_total; });
  return std::ranges::adjacent_find(devices, std::ranges::not_equal_to{}) != devices.end();
}

/// Adds rates of a device where `results` have several numbers of devices (else the throughput says
/// as much), and flops of a device where these have several peaks (else the MFU does).
void add_device_columns(const std::vector<ScenarioResult>& results, const MetricRow& throughput,
                        Grid& grid) {
  std::set<double> peaks;
  std::vector<double> rates, flops;
  for (const ScenarioResult& result : results) {
    const Metrics& metrics = result.measurement.metrics;
    const FlopsPerSecond flops_per_s = flops_of_device(result).value_or(FlopsPerSecond(0));
    if (metrics.mfu) peaks.insert(measure_inputs(result.plan).peak.value());
    rates.push_back(*number_of(throughput, metrics) / metrics.devices_total);
    flops.push_back(flops_per_s.value() / kTera);
  }
  Column column = {.head = "Each GPU", .unit = rate_unit(throughput), .if_room = true};
  if (devices_differ(results)) add_numbers(column, rates, grid);
  column.unit = "TFLOP/s";
  if (peaks.size() > 1) add_numbers(column, flops, grid);
}

/// Adds GPU-hours of a step where `results` have several numbers of devices (else the step time
/// says as much), and where no goal has GPU-hours of its own.
void add_hours_column(const std::vector<ScenarioResult>& results, Grid& grid) {
  const std::string head = "GPU-hours";
  const bool of_goals = std::ranges::count(grid.columns, head, &Column::head) > 0;
  if (of_goals || !devices_differ(results)) return;
  const auto hours = [](const Metrics& m) { return device_hours(m.devices_total, m.step_time); };
  add_numbers({.head = head, .unit = "a step", .if_room = true}, values_of(results, hours), grid);
}

/// Length and goodput of whole training runs, where there are any.
void add_run_columns(const std::vector<ScenarioResult>& results, Grid& grid) {
  std::vector<double> lengths;
  for (const ScenarioResult& result : results) {
    if (result.run) lengths.push_back(result.run->statistics.wall.mean);
  }
  if (lengths.empty()) return;
  const Scale length = scale_of_seconds(lengths);
  grid.columns.push_back({"Run", length.unit});
  grid.columns.push_back({"Goodput", "%"});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::optional<RunResult>& run = results[i].run;
    grid.rows[i].push_back({run ? scaled(run->statistics.wall.mean, length) : kUnknown});
    grid.rows[i].push_back(
        percent(run ? std::optional(run->statistics.goodput.mean) : std::nullopt));
  }
}

}  // namespace

Grid comparison_grid(const std::vector<ScenarioResult>& results) {
  const MetricRow& throughput = common_rate(results);
  const std::string common = common_name(results);
  const auto steps = values_of(results, [](const Metrics& m) { return m.step_time.value(); });
  const auto rates =
      values_of(results, [&](const Metrics& m) { return *number_of(throughput, m); });
  const auto peaks =
      values_of(results, [](const Metrics& m) { return fullest_device(m).peak_memory.value(); });
  const auto waits =
      values_of(results, [](const Metrics& m) { return m.exposed_communication.value(); });
  const Scale step = scale_of_seconds(steps);
  const Scale memory = scale_of_bytes(peaks);
  const Scale wait = scale_of_seconds(waits);
  const Scale rate = scale_of_numbers(rates, rate_unit(throughput));
  Grid grid{{{"Scenario", "", false},
             {"Step time", step.unit},
             {"Speed-up", "×"},
             {"Throughput", rate.unit},
             {"Busy", "%"},
             {"Useful", "%"},
             {"MFU", "%"},
             {"Memory", memory.unit},
             {"Spare", "%"},
             {"Exposed", wait.unit}},
            {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Metrics& metrics = results[i].measurement.metrics;
    const bool comparable = rates[0] > 0;
    grid.rows.push_back({{own_name(results[i].plan.question.name, common)},
                         {scaled(steps[i], step)},
                         {comparable ? fixed(rates[i] / rates[0], 2) : kUnknown},
                         {scaled(rates[i], rate)},
                         percent_bar(metrics.busy),
                         percent(metrics.useful),
                         percent(metrics.mfu),
                         {knows_memory(metrics) ? scaled(peaks[i], memory) : kUnknown, std::nullopt,
                          !metrics.fits_in_memory},
                         spare_memory(metrics, fullest_device(metrics)),
                         {scaled(waits[i], wait)}});
  }
  add_device_columns(results, throughput, grid);
  add_variation_columns(results, grid);
  add_range_columns(results, grid);
  add_run_columns(results, grid);
  add_swarm_columns(results, grid);
  add_economics_columns(results, grid);
  add_hours_column(results, grid);
  return grid;
}

}  // namespace interlock
