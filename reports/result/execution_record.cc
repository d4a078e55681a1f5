// Readings of clocks in short, and NVML's reasons in words.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/execution_record.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error_summary.h"
#include "base/text.h"

namespace interlock {
namespace {

ReadingRange range_of(const std::vector<const ClockReading*>& readings,
                      double (*value)(const ClockReading&)) {
  std::vector<double> values;
  values.reserve(readings.size());
  for (const ClockReading* reading : readings) values.push_back(value(*reading));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, median_of(values), *most};
}

/// Returns what held the clock back, the most frequent first. An idle GPU is not held back.
std::vector<std::pair<std::string, double>> slowed_by(
    const std::vector<const ClockReading*>& readings) {
  constexpr std::uint64_t kIdle = 1;
  std::map<std::uint64_t, int> counts;
  for (const ClockReading* reading : readings) {
    for (int bit = 0; bit < 64; ++bit) {
      const std::uint64_t reason = std::uint64_t{1} << bit;
      if ((reading->reasons & reason) != 0 && reason != kIdle) ++counts[reason];
    }
  }
  std::vector<std::pair<std::string, double>> slowed;
  slowed.reserve(counts.size());
  for (const auto& [reason, count] : counts) {
    slowed.emplace_back(name_of_clock_reason(reason), count / static_cast<double>(readings.size()));
  }
  std::stable_sort(slowed.begin(), slowed.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return slowed;
}

}  // namespace

HostLateness lateness_of(const std::vector<IssuedSpan>& spans) {
  HostLateness all;
  for (const IssuedSpan& span : spans) {
    ++all.ops;
    all.busy += span.end - span.start;
    if (span.issued <= span.start) continue;
    ++all.late;
    all.lost += std::min(span.end, span.issued) - span.start;
  }
  return all;
}

std::string lateness_words(const HostLateness& lateness) {
  constexpr double kLittle = 0.02;
  if (lateness.lost <= kLittle * lateness.busy) return "";
  return "The host was late: " + std::to_string(lateness.late) + " of " +
         std::to_string(lateness.ops) + " ops began before all of them was issued, and up to " +
         format(lateness.lost) + " of " + format(lateness.busy) +
         " of op times is waiting for it; use --graph.";
}

std::vector<ClockSummary> clock_summaries(const ExecutionRecord& record) {
  std::map<int, std::vector<const ClockReading*>> by_gpu;
  for (const ClockReading& reading : record.clocks) by_gpu[reading.gpu].push_back(&reading);
  std::vector<ClockSummary> summaries;
  for (const auto& [gpu, readings] : by_gpu) {
    const auto range = [&own = readings](double (*value)(const ClockReading&)) {
      return range_of(own, value);
    };
    summaries.push_back(
        {.gpu = gpu,
         .readings = static_cast<int>(readings.size()),
         .sm_clock = range([](const ClockReading& r) { return double(r.sm_clock); }),
         .memory_clock = range([](const ClockReading& r) { return double(r.memory_clock); }),
         .power = range([](const ClockReading& r) { return r.power; }),
         .temperature = range([](const ClockReading& r) { return double(r.temperature); }),
         .slowed = slowed_by(readings)});
  }
  return summaries;
}

std::string name_of_clock_reason(std::uint64_t bit) {
  // NVML's reference, "Clocks event reasons".
  static const std::map<std::uint64_t, std::string> names = {{0x1, "idle"},
                                                             {0x2, "clocks of applications"},
                                                             {0x4, "power cap"},
                                                             {0x8, "hardware slow-down"},
                                                             {0x10, "boost with other GPUs"},
                                                             {0x20, "heat, by software"},
                                                             {0x40, "heat, by hardware"},
                                                             {0x80, "power brake"},
                                                             {0x100, "clocks of displays"}};
  if (const auto known = names.find(bit); known != names.end()) return known->second;
  std::ostringstream text;
  text << "reason 0x" << std::hex << bit;
  return text.str();
}

}  // namespace interlock
