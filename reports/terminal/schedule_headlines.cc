// The headlines that a schedule is judged by, for the terminal.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "reports/headlines/explanation_headlines.h"
#include "reports/headlines/known_memory.h"
#include "reports/terminal/terminal_grid.h"

namespace interlock {
namespace {

/// A change of how many micro-batches a rank holds; those of one instant count together.
struct BusyChange {
  Seconds time;
  int rank = 0, held = 0;
};

/// Lists where ranks begin to hold a micro-batch and where they end: with a whole backward, or with
/// the weight half of one.
std::vector<BusyChange> changes_of(const Measurement& measurement) {
  std::vector<BusyChange> changes;
  std::set<std::pair<int, int>> whole;  // stages and micro-batches
  for (const Span& span : measurement.log.spans) {
    const OpInfo& op = measurement.program.ops[span.op];
    const std::pair<int, int> visit = {op.stage, span.micro_batch};
    if (op.kind == OpKind::F) changes.push_back({span.start, span.rank, 1});
    if (op.kind == OpKind::B) whole.insert(visit);
    const bool ends = op.kind == OpKind::B || (op.kind == OpKind::W && !whole.contains(visit));
    if (ends) changes.push_back({span.end, span.rank, -1});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const BusyChange& a, const BusyChange& b) {
    return a.time < b.time || (a.time == b.time && a.held < b.held);
  });
  return changes;
}

std::string micro_batches(int number) {
  return std::to_string(number) + (number == 1 ? " micro-batch" : " micro-batches");
}

}  // namespace

std::vector<int> most_held(const ScenarioResult& result) {
  const Measurement& measurement = result.measurement;
  std::vector<int> held(measurement.program.ranks.size(), 0), most = held;
  for (const BusyChange& change : changes_of(measurement)) {
    held[change.rank] += change.held;
    most[change.rank] = std::max(most[change.rank], held[change.rank]);
  }
  return most;
}

std::vector<Headline> schedule_headlines(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  const std::vector<int> devices = device_numbers(result.plan);
  const std::vector<int> held = most_held(result);
  const auto most = std::max_element(held.begin(), held.end());
  const auto largest = std::max_element(
      metrics.devices.begin(), metrics.devices.end(),
      [](const DeviceMetrics& a, const DeviceMetrics& b) { return a.peak_stash < b.peak_stash; });
  const DeviceMetrics& fullest = fullest_device(metrics);
  std::vector<Headline> headlines = {
      {"Step time", format(metrics.step_time), micro_batches(result.plan.micro_batches)},
      idle_headline(metrics),
      {"Peak stash", micro_batches(*most),
       "of one stage each, on device " + std::to_string(devices.at(most - held.begin()))},
      knows_memory(metrics) ? Headline{"Peak memory", format(fullest.peak_memory),
                                       "device " + std::to_string(devices.at(fullest.rank)) +
                                           " of " + format(*metrics.memory_capacity),
                                       !metrics.fits_in_memory}
                            : unknown_memory(result)};
  if (largest->peak_stash > Bytes(0)) {
    headlines[2].note += "; at most " + format(largest->peak_stash) + ", on device " +
                         std::to_string(devices.at(largest->rank));
  }
  return headlines;
}

}  // namespace interlock
