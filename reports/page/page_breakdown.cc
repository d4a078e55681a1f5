// The chart of one result for a page, and its numbers as a table.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_breakdown.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "reports/charts/paper_figures.h"
#include "reports/page/page_frame.h"
#include "reports/words/scale.h"
#include "reports/words/time_parts.h"

namespace interlock {
namespace {

/// Returns the length of the steps whose shares the devices have: where steps differ, those of the
/// first seed.
Seconds step_of(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!result.varied || metrics.measured_steps < 1) return metrics.step_time;
  return (metrics.window_end - metrics.window_begin) / metrics.measured_steps;
}

/// Returns the ranks to draw, in order: of more than `most` the busiest and the least busy.
std::vector<int> drawn_ranks(const std::vector<DeviceMetrics>& devices, std::size_t most) {
  std::vector<int> ranks(devices.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  if (ranks.size() <= most) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return devices[a].busy > devices[b].busy; });
  const auto half = static_cast<std::ptrdiff_t>(most / 2);
  ranks.erase(ranks.begin() + half, ranks.end() - half);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<double> shares_of(const Metrics& metrics, int rank, Seconds step) {
  const auto index = static_cast<std::size_t>(rank);
  const Bubbles* bubbles = metrics.explanation ? &metrics.explanation->devices[index] : nullptr;
  return part_shares(metrics.devices[index].time, bubbles, step.value());
}

/// Returns the mean of all devices if there are several, then those drawn.
BarPanel bars_of(const ScenarioResult& result, const std::vector<int>& ranks) {
  const Metrics& metrics = result.measurement.metrics;
  const std::vector<int> numbers = device_numbers(result.plan);
  const Seconds step = step_of(result);
  BarPanel panel;
  if (metrics.devices.size() > 1) {
    std::vector<double> mean(time_parts().size(), 0);
    for (const DeviceMetrics& device : metrics.devices) {
      const std::vector<double> shares = shares_of(metrics, device.rank, step);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        mean[i] += shares[i] / static_cast<double>(metrics.devices.size());
      }
    }
    panel.bars.emplace_back("mean");
    panel.values.push_back(std::move(mean));
  }
  for (const int rank : ranks) {
    panel.bars.push_back(std::to_string(numbers.at(static_cast<std::size_t>(rank))));
    panel.values.push_back(shares_of(metrics, rank, step));
  }
  return panel;
}

Grid numbers_of(const BarChart& chart) {
  Grid grid{{{"Device", "", false}}, {}};
  for (const BarPart& part : chart.parts) grid.columns.push_back({part.name, "%"});
  const BarPanel& panel = chart.panels.front();
  for (std::size_t bar = 0; bar < panel.bars.size(); ++bar) {
    std::vector<Cell> row = {{panel.bars[bar]}};
    for (const double share : panel.values[bar]) row.push_back({fixed(100 * share, 1)});
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

std::string note_of(const ScenarioResult& result, std::size_t drawn) {
  const Metrics& metrics = result.measurement.metrics;
  std::string note = "Shares of a step of " + format(step_of(result));
  if (result.varied && result.varied->seeds > 1) note += ", of the first seed";
  note += metrics.explanation ? "; idle time by what the device waits for" : "";
  if (drawn < metrics.devices.size()) {
    const std::string half = std::to_string(drawn / 2);
    note += ". Of " + std::to_string(metrics.devices.size()) + " devices: their mean, the " + half +
            " busiest and the " + half + " least busy";
  }
  return note;
}

}  // namespace

std::string breakdown_html(const ScenarioResult& result, std::size_t most_bars,
                           const std::string& id) {
  const Metrics& metrics = result.measurement.metrics;
  if (metrics.devices.empty() || metrics.step_time <= Seconds(0)) return "";
  const std::vector<int> ranks = drawn_ranks(metrics.devices, most_bars);
  BarChart chart = breakdown_chart({bars_of(result, ranks)});
  chart.title = note_of(result, ranks.size());
  chart.page_id = id;
  return tagged("h3", "", "Where the time goes") + bar_chart_html(chart) +
         "<details><summary>The same as numbers</summary>\n" +
         long_table_html(numbers_of(chart), "breakdown-numbers") + "</details>\n";
}

}  // namespace interlock
