// Times probes in random order and keeps what is steady.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/protocol.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/error_summary.h"
#include "base/random.h"

namespace interlock {
namespace {

std::vector<double> sorted_copy(std::vector<double> values) {
  CHECK(!values.empty(), "readings");
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed, 7);
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.integer(0, static_cast<int>(i) - 1))]);
  }
  return order;
}

}  // namespace

Sample sample_of(const Probe& probe, const Readings& readings) {
  const std::vector<double> busy = sorted_copy(readings.busy);
  const auto count = static_cast<double>(busy.size());
  // Ranks r and n + 1 - r enclose the median with 95 %: 10 and 22 of 31.
  const double rank = std::max(1.0, std::floor((count - 1.96 * std::sqrt(count)) / 2));
  const auto low = static_cast<std::size_t>(rank) - 1;
  const std::size_t quarter = busy.size() / 4;
  Sample sample;
  sample.precision = probe.precision;
  sample.work = probe.work;
  sample.kernel = readings.kernel;
  sample.time = Seconds(median_of(busy));
  sample.low = Seconds(busy[low]);
  sample.high = Seconds(busy[busy.size() - 1 - low]);
  sample.wall = Seconds(median_of(readings.wall));
  sample.spread = (busy[busy.size() - 1 - quarter] - busy[quarter]) / sample.time.value();
  return sample;
}

MeasuredSamples measure(const Bench& bench, const std::vector<Probe>& probes,
                        const Protocol& protocol) {
  MeasuredSamples measured;
  if (probes.empty()) return measured;
  const auto time = [&](std::size_t probe) {
    return sample_of(probes[probe], bench.time(probes[probe], protocol.readings, protocol.beside));
  };
  std::vector<std::optional<Sample>> kept(probes.size());
  std::vector<std::size_t> again;
  const std::vector<std::size_t> order = shuffled(probes.size(), protocol.seed);
  Seconds first;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Sample sample = time(order[i]);
    if (i == 0) first = sample.time;
    if (sample.spread <= bench.most_spread) {
      kept[order[i]] = sample;
    } else {
      again.push_back(order[i]);
    }
    if (protocol.progress && ((i + 1) % 50 == 0 || i + 1 == order.size())) {
      protocol.progress("kernels: " + std::to_string(i + 1) + " of " +
                        std::to_string(order.size()));
    }
  }
  for (const std::size_t probe : again) {
    const Sample sample = time(probe);
    if (sample.spread <= bench.most_spread) {
      kept[probe] = sample;
    } else {
      ++measured.rejected;
    }
  }
  measured.drift = time(order.front()).time / first - 1;
  for (const std::optional<Sample>& sample : kept) {
    if (sample) measured.samples.push_back(*sample);
  }
  return measured;
}

}  // namespace interlock
