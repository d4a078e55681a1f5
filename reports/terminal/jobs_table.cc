// Jobs for a terminal: who loses what, where, and on which links.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "reports/jobs_report.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostLinks = 8;
constexpr double kNothing = 1e-9;  // of a loss

/// Returns numbers in words: "0 to 7", "0, 2, ..., 14" where all are as far apart, "3, 5".
std::string number_words(const std::vector<int>& numbers) {
  const std::size_t count = numbers.size();
  const int step = count > 1 ? numbers[1] - numbers[0] : 1;
  bool even = count > 3 && step > 1;
  for (std::size_t i = 1; even && i < count; ++i) even = numbers[i] - numbers[i - 1] == step;
  if (!even) return list_stages(numbers);
  return std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ", ..., " +
         std::to_string(numbers.back());
}

std::string count_words(std::size_t number, const std::string& noun) {
  return std::to_string(number) + noun + (number == 1 ? "" : "s");
}

/// Returns where a job lies: "nodes 0 to 7", "nodes 0 to 3, 4 devices of each", "devices 0 to 3".
std::string place_words(const Question& job) {
  const Cluster& cluster = job.cluster;
  std::vector<int> devices = job.layout.mesh.placed;
  std::sort(devices.begin(), devices.end());
  std::set<int> found;
  for (const int device : devices) found.insert(node_of(cluster, device));
  const std::vector<int> used(found.begin(), found.end());
  if (nodes(cluster) == 1 || (used.size() == 1 && devices.size() > 1)) {
    const std::string words =
        (devices.size() == 1 ? "device " : "devices ") + number_words(devices);
    return nodes(cluster) == 1 ? words : words + " of node " + std::to_string(used.front());
  }
  const std::string words = (used.size() == 1 ? "node " : "nodes ") + number_words(used);
  const std::size_t each = devices.size() / used.size();
  const auto all = static_cast<std::size_t>(cluster.machines.front().devices_per_node);
  const bool alike = each * used.size() == devices.size();
  return each < all && alike ? words + ", " + count_words(each, " device") + " of each" : words;
}

Seconds step_of(const ScenarioResult& result) { return result.measurement.metrics.step_time; }

/// Returns the busiest link that several jobs load; null if there is none.
const JobsLink* busiest_shared(const JobsResult& result) {
  const auto found = std::find_if(result.links.begin(), result.links.end(),
                                  [](const JobsLink& link) { return link.jobs > 1; });
  return found == result.links.end() ? nullptr : &*found;
}

std::string percent_words(double fraction) {
  return fixed(std::abs(fraction) < kNothing ? 0 : 100 * fraction, 1);
}

Grid jobs_grid(const std::vector<JobsResult>& results) {
  std::vector<double> times, steps;
  std::vector<std::string> names;
  for (const JobsResult& result : results) {
    names.push_back(result.question.name);
    for (const PricedJob& job : result.jobs) {
      times.push_back(step_of(job.alone).value());
      times.push_back(step_of(job.together).value());
    }
  }
  const bool several = results.size() > 1;
  const std::string common = several ? common_name(names) : "";
  const Scale time = scale_of_seconds(times);
  Grid grid{{{"Job", "", false},
             {"Devices", ""},
             {"Where", "", false},
             {"Alone", time.unit},
             {"Together", time.unit},
             {"Loss", "%"}},
            {}};
  if (several) {
    grid.columns.insert(grid.columns.begin(), {"Scenario", "", false});
    grid.columns.push_back({"Shared", "%"});
  } else {
    grid.columns.push_back({"Steps", ""});
  }
  for (const JobsResult& result : results) {
    for (std::size_t j = 0; j < result.jobs.size(); ++j) {
      const PricedJob& job = result.jobs[j];
      const Question& asked = result.question.jobs[j];
      std::vector<Cell> row = {{asked.name},
                               {std::to_string(asked.layout.mesh.placed.size())},
                               {place_words(asked)},
                               {scaled(step_of(job.alone).value(), time)},
                               {scaled(step_of(job.together).value(), time)},
                               {percent_words(job.loss())}};
      if (several) {
        const JobsLink* const link = busiest_shared(result);
        row.insert(row.begin(), {j == 0 ? own_name(result.question.name, common) : ""});
        row.push_back({link && j == 0 ? fixed(100 * link->total, 1) : j == 0 ? kUnknown : ""});
      } else {
        row.back().bar = std::max(0.0, job.loss());
        row.push_back({std::to_string(job.together.measurement.metrics.measured_steps)});
      }
      grid.rows.push_back(std::move(row));
    }
  }
  return grid;
}

/// Returns the links that several jobs load, with the share of each.
Grid shared_links_grid(const JobsResult& result) {
  Grid grid{{{"Shared link", "", false}, {"Busy", "%"}}, {}};
  for (const Question& job : result.question.jobs) grid.columns.push_back({job.name, "%"});
  for (const JobsLink& link : result.links) {
    if (link.jobs < 2) continue;
    if (grid.rows.size() == kMostLinks) break;
    std::vector<Cell> row = {{link.name}, {fixed(100 * link.total, 1), std::min(1.0, link.total)}};
    for (const double share : link.utilisation) row.push_back({fixed(100 * share, 1)});
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

std::string window_words(const JobsResult& result) {
  std::string words = "from " + format(result.begin) + " to " + format(result.end) +
                      ", when all jobs run; steps are means over it";
  if (!result.steady) {
    words += ". They have not settled: its halves differ by " + format_percent(result.drift);
  }
  return words;
}

std::vector<Headline> window_headlines(const JobsResult& result) {
  std::vector<Headline> lines = {
      {"Window", format(result.end - result.begin), window_words(result), !result.steady}};
  double lost = 0, devices = 0;
  for (const PricedJob& job : result.jobs) {
    const double own = job.together.measurement.metrics.devices_total;
    lost += own * job.loss();
    devices += own;
  }
  lines.push_back(
      {"Lost", fixed(std::max(0.0, lost), 1) + " devices",
       "of " + fixed(devices, 0) + ": time of devices that jobs spend waiting for each other"});
  if (!result.links.empty()) {
    const JobsLink& busiest = result.links.front();
    lines.push_back({"Busiest link", busiest.name,
                     format_percent(busiest.total) + " busy, used by " +
                         (busiest.jobs > 1 ? std::to_string(busiest.jobs) + " jobs" : "one job")});
  }
  const auto shared = std::count_if(result.links.begin(), result.links.end(),
                                    [](const JobsLink& link) { return link.jobs > 1; });
  lines.push_back({"Shared links", std::to_string(shared),
                   "of " + std::to_string(result.links.size()) + " that are used"});
  return lines;
}

std::string subtitle(const JobsResult& result) {
  const Cluster& cluster = result.question.cluster;
  const int all = nodes(cluster);
  return count_words(result.jobs.size(), " job") + " on " + std::to_string(cluster.devices) +
         " devices of " + cluster.name + ", " +
         count_words(static_cast<std::size_t>(all), " node") + ", " +
         result.jobs.front().together.measurement.metrics.engine + " engine";
}

}  // namespace

std::string jobs_table(const std::vector<JobsResult>& results, const TableStyle& style) {
  CHECK(!results.empty(), "a table needs a result");
  std::vector<std::string> names;
  for (const JobsResult& result : results) names.push_back(result.question.name);
  const bool several = results.size() > 1;
  const std::string title = several ? common_name(names) : names.front();
  std::string text = title.empty() ? "" : paragraph(title, Ink::Strong, style);
  text += paragraph(subtitle(results.front()), Ink::Faint, style) + "\n";
  text += lay_out(jobs_grid(results), style) + "\n";
  if (!several) {
    const JobsResult& result = results.front();
    text += headline_lines(window_headlines(result), style) + "\n";
    const Grid links = shared_links_grid(result);
    if (!links.rows.empty()) text += lay_out(links, style) + "\n";
  }
  text += paragraph(
      "Loss: of the steps that a job does in a time when it is alone on its devices, "
      "the part that it does not do beside the others.",
      Ink::Faint, style);
  std::string notes;
  for (const JobsResult& result : results) {
    if (several && !result.steady) {
      notes +=
          paragraph(result.question.name + ": window " + window_words(result), Ink::Alarm, style);
    }
    for (const PricedJob& job : result.jobs) {
      for (const std::string& line : warnings(job.alone)) {
        notes += paragraph(job.alone.plan.question.name + ": " + line, Ink::Alarm, style);
      }
    }
  }
  return notes.empty() ? text : text + "\n" + notes;
}

std::vector<ScenarioResult> runs_of_jobs(const std::vector<JobsResult>& results) {
  std::vector<ScenarioResult> runs;
  const bool several = results.size() > 1;
  for (const JobsResult& result : results) {
    for (const PricedJob& job : result.jobs) {
      for (const ScenarioResult* run : {&job.alone, &job.together}) {
        runs.push_back(*run);
        if (!several) continue;
        std::string& name = runs.back().plan.question.name;
        name = result.question.name + " | " + name;
      }
    }
  }
  return runs;
}

}  // namespace interlock
