// Scenarios of parallel layouts, and whether two runs of one tell the same of every device.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/layout_trial.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

namespace interlock {

std::string small_transformer(int layers, bool experts) {
  return R"({"kind": "transformer", "hidden_size": 256, "attention_heads": 8, "vocab_size": 512,
             "sequence_length": 64, "attention": "fused", "layers": )" +
         std::to_string(layers) +
         (experts ? R"(, "experts": 8, "experts_per_token": 2, "capacity_factor": 1.25})" : "}");
}

std::string divisible_transformer(int layers, bool experts) {
  return R"({"kind": "transformer", "hidden_size": 384, "attention_heads": 24, "vocab_size": 768,
             "sequence_length": 192, "attention": "fused", "layers": )" +
         std::to_string(layers) +
         (experts ? R"(, "experts": 24, "experts_per_token": 2, "capacity_factor": 1.25})" : "}");
}

std::string document(const LayoutTrial& trial) {
  return "{\"name\": \"layout\", \"model\": " + trial.model + ",\n\"cluster\": " + trial.cluster +
         ",\n\"parallel\": {" + trial.parallel + "},\n\"training\": {" + trial.training +
         "},\n\"partition\": " + trial.partition +
         (trial.variation.empty() ? "" : ",\n\"variation\": {" + trial.variation + "}") +
         ",\n\"simulate\": {\"engine\": \"" + trial.engine + "\", \"fold\": " + trial.fold +
         (trial.skip_periods ? "" : ", \"skip_periods\": false") +
         (trial.memory_contention ? ", \"memory_contention\": true" : "") + "}}";
}

Question load(const LayoutTrial& trial) {
  return load_questions(parse_json(document(trial), "layout")).front();
}

std::string folded_dimensions(const Unfolded& unfolded) {
  std::string text;
  for (int i = 0; i + 1 < kDimensions; ++i) {
    if (!unfolded[i]) text += (text.empty() ? "\"" : ", \"") + dimension_names()[i] + "\"";
  }
  return "[" + text + "]";
}

ScenarioResult run(const LayoutTrial& trial) { return run_scenario(load(trial), false); }

namespace {

/// Compares figures, and keeps the first that differ.
struct Comparison {
  double epsilon;
  std::string difference = {};

  void compare(const std::string& what, double folded, double whole) {
    const double scale = std::max(std::abs(folded), std::abs(whole));
    if (!difference.empty() || std::abs(folded - whole) <= epsilon * scale) return;
    std::ostringstream text;
    text.precision(17);
    text << what << ": " << folded << " folded, " << whole << " whole";
    difference = text.str();
  }
  void compare(const std::string& what, std::optional<double> folded, std::optional<double> whole) {
    compare(what, folded.value_or(-1), whole.value_or(-1));
  }
  void compare(const DeviceMetrics& folded, const DeviceMetrics& whole) {
    const std::string device = "device " + std::to_string(whole.rank) + ", ";
    // Times that differ by their rounding make shares of next to nothing.
    compare(device + "busy", 1 + folded.busy, 1 + whole.busy);
    compare(device + "useful", 1 + folded.useful, 1 + whole.useful);
    compare(device + "peak memory", folded.peak_memory.value(), whole.peak_memory.value());
    compare(device + "peak stash", folded.peak_stash.value(), whole.peak_stash.value());
    for (int kind = 0; kind < kMemoryClasses; ++kind) {
      compare(device + name_of(static_cast<MemoryClass>(kind)) + " at the peak",
              folded.memory[kind].value(), whole.memory[kind].value());
    }
    for (int use = 0; use < kTimeUses; ++use) {
      compare(device + "time: " + name_of(static_cast<TimeUse>(use)), 1 + folded.time[use],
              1 + whole.time[use]);
    }
    compare(device + "allocated", folded.allocated_peak.value(), whole.allocated_peak.value());
    compare(device + "weight versions", double(folded.weight_versions),
            double(whole.weight_versions));
  }
};

/// The rank of the folded run that stands for each rank of the whole one.
std::vector<int> representatives(const Plan& folded, const Plan& whole) {
  std::map<Coordinates, int> ranks;
  const Mesh &few = simulated_mesh(folded), &all = simulated_mesh(whole);
  const std::vector<Coordinates> simulated = simulated_ranks(few, folded.unfolded);
  for (std::size_t r = 0; r < simulated.size(); ++r) ranks[simulated[r]] = static_cast<int>(r);
  std::vector<int> found;
  for (Coordinates at : simulated_ranks(all, whole.unfolded)) {
    at = place_in(few, all, at);
    for (int i = 0; i + 1 < kDimensions; ++i) {
      if (!folded.unfolded[i]) at[i] = 0;
    }
    found.push_back(ranks.at(at));
  }
  return found;
}

}  // namespace

std::string difference(const ScenarioResult& folded, const ScenarioResult& whole, double epsilon) {
  const Metrics &few = folded.measurement.metrics, &all = whole.measurement.metrics;
  Comparison comparison{epsilon};
  comparison.compare("step time", few.step_time.value(), all.step_time.value());

  comparison.compare("busy", few.busy, all.busy);
  comparison.compare("mfu", few.mfu, all.mfu);
  comparison.compare("hfu", few.hfu, all.hfu);
  comparison.compare("samples", few.samples_per_s, all.samples_per_s);
  const double step = all.step_time.value();
  comparison.compare("exposed communication", few.exposed_communication.value() + step,
                     all.exposed_communication.value() + step);
  const std::vector<int> stands_for = representatives(folded.plan, whole.plan);
  for (std::size_t d = 0; d < all.devices.size(); ++d) {
    comparison.compare(few.devices[static_cast<std::size_t>(stands_for[d])], all.devices[d]);
  }
  // A link of the folded run has the mean of those that it stands for.
  const auto all_bytes = [](const Metrics& metrics) {
    return std::accumulate(metrics.links.begin(), metrics.links.end(), 0.0,
                           [](double sum, const LinkMetrics& link) {
                             return sum + link.bytes.value() * link.stands_for;
                           });
  };
  comparison.compare("bytes of all links", all_bytes(few), all_bytes(all));
  return comparison.difference;
}

}  // namespace interlock
