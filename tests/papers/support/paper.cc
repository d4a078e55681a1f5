// Loads and runs the scenarios of papers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/papers/support/paper.h"

#include <algorithm>
#include <cstdio>

namespace interlock {
namespace {

bool has(const Question& scenario, const std::string& label) {
  return std::any_of(scenario.swept.begin(), scenario.swept.end(),
                     [&](const SweptValue& value) { return value.label == label; });
}

}  // namespace

Paper::Paper(const std::string& name, const std::vector<std::string>& overrides,
             const std::vector<std::vector<std::string>>& among)
    : name_(name) {
  const std::string path = std::string(PAPERS_FOLDER "/") + name + ".json";
  for (const Question& scenario : load_questions(read_scenario_document(path, overrides))) {
    const bool asked = std::all_of(among.begin(), among.end(), [&](const auto& labels) {
      return std::any_of(labels.begin(), labels.end(),
                         [&](const std::string& label) { return has(scenario, label); });
    });
    if (asked) results_.push_back(run_scenario(scenario, false));
  }
}

const ScenarioResult& Paper::at(const std::vector<std::string>& labels) const {
  const ScenarioResult* found = nullptr;
  std::string wanted;
  for (const std::string& label : labels) wanted += " | " + label;
  for (const ScenarioResult& result : results_) {
    const bool all = std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
      return has(result.plan.question, label);
    });
    if (!all) continue;
    INFO(name_ << wanted << " is one result");
    REQUIRE(found == nullptr);
    found = &result;
  }
  INFO(name_ << wanted << " is a result");
  REQUIRE(found != nullptr);
  return *found;
}

double Paper::step(const std::vector<std::string>& labels) const {
  return at(labels).measurement.metrics.step_time.value();
}

double Paper::memory(const std::vector<std::string>& labels) const {
  Bytes most;
  for (const DeviceMetrics& device : at(labels).measurement.metrics.devices) {
    most = std::max(most, device.peak_memory);
  }
  return most.value();
}

double Paper::stash(const std::vector<std::string>& labels) const {
  double sum = 0;
  const auto& devices = at(labels).measurement.metrics.devices;
  for (const DeviceMetrics& device : devices) sum += device.peak_stash.value();
  return sum / static_cast<double>(devices.size());
}

double Paper::traffic(const std::vector<std::string>& labels) const {
  double sum = 0;
  for (const LinkMetrics& link : at(labels).measurement.metrics.links) {
    sum += link.bytes.value() * link.stands_for;
  }
  return sum;
}

double Paper::samples(const std::vector<std::string>& labels) const {
  return at(labels).measurement.metrics.samples_per_s.value();
}

void tell(const std::string& what, double published, double found) {
  std::printf("  %s: published or derived %.4g, simulated %.4g\n", what.c_str(), published, found);
}

}  // namespace interlock
