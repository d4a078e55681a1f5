// Stacked bars of markup and style alone: they are there before any script runs, and in print.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_breakdown.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "reports/charts/chart_axes.h"
#include "reports/page/page_frame.h"
#include "reports/words/encode.h"
#include "reports/words/mesh_words.h"
#include "reports/words/scale.h"
#include "reports/words/time_parts.h"

namespace interlock {
namespace {

constexpr double kRoomForNumber = 0.075;  // share of a bar that holds a number, on a phone too

struct Bar {
  std::string label;           // "device 3"
  std::vector<double> shares;  // by part
};

/// Length of the steps whose shares the devices have: where steps differ, those of the first seed.
Seconds step_of(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!result.varied || metrics.measured_steps < 1) return metrics.step_time;
  return (metrics.window_end - metrics.window_begin) / metrics.measured_steps;
}

/// The ranks to draw, in order: of more than `most` the busiest and the least busy.
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

/// The mean of all devices if there are several, then those drawn.
std::vector<Bar> bars_of(const ScenarioResult& result, const std::vector<int>& ranks) {
  const Metrics& metrics = result.measurement.metrics;
  const std::vector<int> numbers = device_numbers(result.scenario);
  const Seconds step = step_of(result);
  std::vector<Bar> bars;
  if (metrics.devices.size() > 1) {
    Bar mean{"mean", std::vector<double>(time_parts().size(), 0)};
    for (const DeviceMetrics& device : metrics.devices) {
      const std::vector<double> shares = shares_of(metrics, device.rank, step);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        mean.shares[i] += shares[i] / static_cast<double>(metrics.devices.size());
      }
    }
    bars.push_back(std::move(mean));
  }
  for (const int rank : ranks) {
    bars.push_back({"device " + std::to_string(numbers.at(static_cast<std::size_t>(rank))),
                    shares_of(metrics, rank, step)});
  }
  return bars;
}

/// Parts that some bar has.
std::vector<std::size_t> parts_in(const std::vector<Bar>& bars) {
  std::vector<std::size_t> used;
  for (std::size_t part = 0; part < time_parts().size(); ++part) {
    const bool there =
        std::any_of(bars.begin(), bars.end(), [&](const Bar& bar) { return bar.shares[part] > 0; });
    if (there) used.push_back(part);
  }
  return used;
}

/// Class and style of a part. What is idle has the colours of the page, light or dark.
std::string look_of(const TimePart& part, const std::string& more = "") {
  std::string classes = "part", style = more;
  if (part.hatch != Hatch::None) classes += std::string(" hatch-") + name_of(part.hatch);
  if (*part.tone == '\0') {
    style += std::string("background-color:") + part.colour + ";color:" + part.ink;
  } else {
    classes += std::string(" ") + part.tone;
  }
  return " class=\"" + classes + "\"" + (style.empty() ? "" : " style=\"" + style + "\"");
}

std::string legend_html(const std::vector<std::size_t>& parts) {
  std::string html = "<ul class=\"legend\">";
  for (const std::size_t index : parts) {
    const TimePart& part = time_parts()[index];
    html += "<li><span" + look_of(part) + "></span>" + escape_markup(part.name) + "</li>";
  }
  return html + "</ul>\n";
}

std::string bar_html(const Bar& bar, const std::vector<std::size_t>& parts, Seconds step) {
  std::string inside, words;
  for (const std::size_t index : parts) {
    const double share = bar.shares[index];
    if (!(share > 0)) continue;
    const TimePart& part = time_parts()[index];
    const std::string percent = format_percent(share);
    words += (words.empty() ? ": " : ", ") + std::string(part.name) + " " + percent;
    inside += "<i" + look_of(part, "flex-grow:" + exact(share) + ";") + " title=\"" +
              escape_markup(bar.label + ", " + part.name + ": " + percent + " of a step, " +
                            format(step * share)) +
              "\">" + (share >= kRoomForNumber ? "<b>" + fixed(100 * share, 0) + "</b>" : "") +
              "</i>";
  }
  return "<li><span>" + escape_markup(bar.label) + "</span><div role=\"img\" aria-label=\"" +
         escape_markup(bar.label + words) + "\">" + inside + "</div></li>\n";
}

Grid numbers_of(const std::vector<Bar>& bars, const std::vector<std::size_t>& parts) {
  Grid grid{{{"Device", "", false}}, {}};
  for (const std::size_t part : parts) grid.columns.push_back({time_parts()[part].name, "%"});
  for (const Bar& bar : bars) {
    std::vector<Cell> row = {{bar.label}};
    for (const std::size_t part : parts) row.push_back({fixed(100 * bar.shares[part], 1)});
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

std::string note_of(const ScenarioResult& result, std::size_t drawn) {
  const Metrics& metrics = result.measurement.metrics;
  std::string note = "Shares of a step of " + format(step_of(result)) + " (%)";
  if (result.varied && result.varied->seeds > 1) note += ", of the first seed";
  note += metrics.explanation ? "; idle time by what the device waits for." : ".";
  if (drawn < metrics.devices.size()) {
    const std::string half = std::to_string(drawn / 2);
    note += " Of " + std::to_string(metrics.devices.size()) + " devices: their mean, the " + half +
            " busiest and the " + half + " least busy.";
  }
  return note;
}

}  // namespace

std::string breakdown_html(const ScenarioResult& result, std::size_t most_bars) {
  const Metrics& metrics = result.measurement.metrics;
  if (metrics.devices.empty() || metrics.step_time <= Seconds(0)) return "";
  const std::vector<int> ranks = drawn_ranks(metrics.devices, most_bars);
  const std::vector<Bar> bars = bars_of(result, ranks);
  const std::vector<std::size_t> parts = parts_in(bars);
  std::string html = tagged("h3", "", "Where the time goes") +
                     tagged("p", "class=\"note\"", note_of(result, ranks.size())) +
                     legend_html(parts) + "<ul class=\"breakdown\">\n";
  for (const Bar& bar : bars) html += bar_html(bar, parts, step_of(result));
  html +=
      "</ul>\n<p class=\"scale\" aria-hidden=\"true\"><i>0</i><i>25</i><i>50</i><i>75</i>"
      "<i>100 %</i></p>\n";
  return html + "<details><summary>The same as numbers</summary>\n" +
         long_table_html(numbers_of(bars, parts), "breakdown-numbers") + "</details>\n";
}

}  // namespace interlock
