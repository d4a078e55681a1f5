// The search for a rhythm of micro-batches, and metrics that grow with it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/periods.h"

#include <algorithm>

#include "base/random.h"
#include "sim/measure/metric_table.h"
#include "sim/program/ticks.h"

namespace interlock {

BatchLog::BatchLog(const Program& program)
    : program_(program),
      batches_(static_cast<std::size_t>(program.micro_batches) * program.steps) {}

void BatchLog::add(const Span& span) {
  // The update belongs to all micro-batches of its step.
  if (program_.ops[span.op].kind == OpKind::U) return;
  Batch& batch = batches_[span.micro_batch];
  const double start = in_ticks(program_, span.start);
  const std::uint64_t weight = mix64(static_cast<std::uint64_t>(span.op)) | 1;
  batch.weighted_starts += weight * static_cast<std::uint64_t>(start);
  batch.weights += weight;
  batch.begin = batch.begin < 0 ? start : std::min(batch.begin, start);
  batch.end = std::max(batch.end, in_ticks(program_, span.end));
}

/// Logs a transfer: a wire may fall behind for long before an op waits for it.
void BatchLog::add(const Transfer& transfer) {
  const auto channel = static_cast<std::uint64_t>(transfer.channel);
  const std::uint64_t weight = mix64(~channel) | 1;
  Batch& batch = batches_[transfer.micro_batch];
  const double start = in_ticks(program_, transfer.start);
  batch.weighted_starts += weight * static_cast<std::uint64_t>(start);
  batch.weights += weight;
  batch.end = std::max(batch.end, in_ticks(program_, transfer.arrival));
}

void BatchLog::add(const CollectiveSpan& span) {
  const auto collective = static_cast<std::uint64_t>(span.collective);
  const std::uint64_t weight = mix64(collective ^ 0x5555555555555555) | 1;
  Batch& batch = batches_[span.micro_batch];
  batch.weighted_starts += weight * static_cast<std::uint64_t>(in_ticks(program_, span.start));
  batch.weights += weight;
  batch.end = std::max(batch.end, in_ticks(program_, span.end));
}

bool BatchLog::alike(const Batch& earlier, const Batch& later) const {
  const auto shift = static_cast<std::uint64_t>(later.begin - earlier.begin);
  return later.weights == earlier.weights &&
         later.weighted_starts == earlier.weighted_starts + earlier.weights * shift;
}

/// Returns the most micro-batches of a step that begin before an earlier one has ended.
int BatchLog::most_under_way(int step) const {
  const auto first = batches_.begin() + static_cast<std::ptrdiff_t>(step) * program_.micro_batches;
  const auto last = first + program_.micro_batches;
  std::vector<double> begins;
  for (auto b = first; b != last; ++b) begins.push_back(b->begin);
  std::sort(begins.begin(), begins.end());
  std::ptrdiff_t most = 0;
  for (auto b = first; b != last; ++b) {
    const auto from = std::lower_bound(begins.begin(), begins.end(), b->begin);
    most = std::max(most, std::lower_bound(from, begins.end(), b->end) - from);
  }
  return static_cast<int>(most);
}

bool BatchLog::has_rhythm(int step, int rhythm, int under_way) const {
  const std::size_t first = static_cast<std::size_t>(step) * program_.micro_batches;
  const std::size_t end = first + program_.micro_batches;
  int length = 0;
  double shift = -1;
  for (std::size_t b = first; b + rhythm < end; ++b) {
    const Batch &earlier = batches_[b], &later = batches_[b + rhythm];
    if (!alike(earlier, later)) {
      length = 0;
      continue;
    }
    const double between = later.begin - earlier.begin;
    length = between == shift ? length + 1 : 1;
    shift = between;
    if (length > under_way + rhythm) return true;
  }
  return false;
}

int BatchLog::rhythm(int first_step, int steps, int period) const {
  std::vector<int> under_way;
  for (int step = first_step; step < first_step + steps; ++step) {
    under_way.push_back(most_under_way(step));
  }
  const int longest = program_.micro_batches / 3;
  for (int rhythm = period; rhythm <= longest; rhythm += period) {
    int step = 0;
    while (step < steps && has_rhythm(first_step + step, rhythm, under_way[step])) ++step;
    if (step == steps) return rhythm;
  }
  return 0;
}

namespace {

/// Returns whether all metrics that must not depend on the number of periods are equal.
bool comparable(const Metrics& a, const Metrics& b) {
  if (!a.steady || !b.steady || a.fill_steps != b.fill_steps ||
      a.measured_steps != b.measured_steps || a.fill_latency != b.fill_latency ||
      a.staleness.size() != b.staleness.size()) {
    return false;
  }
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    const DeviceMetrics &x = a.devices[d], &y = b.devices[d];
    if (x.peak_memory != y.peak_memory || x.peak_stash != y.peak_stash ||
        x.allocated_peak != y.allocated_peak || x.memory != y.memory ||
        x.host.stash != y.host.stash) {
      return false;
    }
  }
  return std::equal(a.staleness.begin(), a.staleness.end(), b.staleness.begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

}  // namespace

std::optional<Metrics> add_periods(const Metrics& shorter, const Metrics& longer,
                                   std::int64_t periods) {
  if (!comparable(shorter, longer)) return std::nullopt;
  const auto n = static_cast<double>(periods);
  auto grown = [n](auto a, auto b) { return b + n * (b - a); };
  Metrics whole = longer;
  whole.step_time = grown(shorter.step_time, longer.step_time);
  // Shares of time become times, grow, and become shares again.
  auto share = [&](double a, double b) {
    if (whole.step_time <= Seconds(0)) return b;
    return grown(a * shorter.step_time, b * longer.step_time) / whole.step_time;
  };
  for (const MetricRow& row : step_metrics()) {
    const auto a = number_of(row, shorter), b = number_of(row, longer);
    if (row.growth == Growth::Linear && b) set_number(row, grown(*a, *b), whole);
    if (row.growth == Growth::Share && b) set_number(row, share(*a, *b), whole);
  }
  whole.skipped_tasks = whole.tasks - longer.tasks;
  for (std::size_t d = 0; d < whole.devices.size(); ++d) {
    const DeviceMetrics &a = shorter.devices[d], &b = longer.devices[d];
    whole.devices[d].busy = share(a.busy, b.busy);
    whole.devices[d].useful = share(a.useful, b.useful);
    for (int use = 0; use < kTimeUses; ++use) {
      whole.devices[d].time[use] = share(a.time[use], b.time[use]);
    }
    whole.devices[d].peak_time = grown(a.peak_time, b.peak_time);  // it may be at the end
  }
  whole.limiting_device = first_of_busiest(whole.devices);
  whole.explanation.reset();  // it is of a shorter step
  for (std::size_t l = 0; l < whole.links.size(); ++l) {
    const LinkMetrics &a = shorter.links[l], &b = longer.links[l];
    whole.links[l].bytes = grown(a.bytes, b.bytes);
    whole.links[l].utilisation = share(a.utilisation, b.utilisation);
  }
  for (auto& [updates, count] : whole.staleness) {
    count += periods * (count - shorter.staleness.at(updates));
  }
  return whole;
}

}  // namespace interlock
