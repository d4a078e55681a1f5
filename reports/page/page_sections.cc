// Chooses the sections of a page: the first result, the fastest, the Pareto front, then the others.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_sections.h"

#include "reports/charts/pareto.h"
#include "reports/headlines/headlines.h"

namespace interlock {
namespace {

constexpr std::size_t kFew = 4;  // results that are all open

/// Returns the results on the Pareto front of throughput against memory, among those that fit; the
/// last one is the fastest.
std::vector<std::size_t> front_of(const std::vector<ScenarioResult>& results) {
  const MetricRow& throughput = common_rate(results);
  std::vector<std::size_t> fitting;
  std::vector<double> memory, rates;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Metrics& metrics = results[i].measurement.metrics;
    if (!metrics.fits_in_memory) continue;
    fitting.push_back(i);
    memory.push_back(fullest_device(metrics).peak_memory.value());
    rates.push_back(*number_of(throughput, metrics));
  }
  std::vector<std::size_t> front = pareto_front(memory, rates);
  for (std::size_t& i : front) i = fitting[i];
  return front;
}

}  // namespace

PageSections page_sections(const std::vector<ScenarioResult>& results) {
  const std::size_t count = results.size();
  PageSections sections{std::vector(count, false), std::vector(count, count <= kFew),
                        std::vector<std::string>(count)};
  const std::vector<std::size_t> front = front_of(results);
  for (const std::size_t i : front) {
    sections.open[i] = true;
    sections.marks[i] = i == front.back() ? "fastest" : "Pareto front";
  }
  sections.open[0] = true;
  sections.drawn = sections.open;
  std::size_t left = kMostDrawn;
  for (const bool drawn : sections.drawn) left -= drawn && left > 0 ? 1 : 0;
  for (std::size_t i = 0; i < count && left > 0; ++i) {
    if (sections.drawn[i]) continue;
    sections.drawn[i] = true;
    --left;
  }
  return sections;
}

}  // namespace interlock
