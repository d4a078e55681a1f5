// What "variation" means for the layout, the folding and the engines of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "scenarios/load/parallel_keys.h"

namespace interlock {
namespace {

/// "there is no rank 4; expected 0 to 3".
void check_number(const char* what, int number, int count, const JsonNode& node,
                  Diagnostics& diagnostics) {
  if (number < count) return;
  report(diagnostics, node,
         std::string("there is no ") + what + " " + std::to_string(number) + "; expected 0 to " +
             std::to_string(count - 1));
}

void check_straggler(const Straggler& straggler, const Scenario& scenario, const JsonNode& node,
                     Diagnostics& diagnostics) {
  const int number = straggler.devices.number;
  if (straggler.devices.of == SlowDevices::Of::Rank) {
    check_number("rank", number, scenario.ranks, node.child("rank"), diagnostics);
  } else {
    check_number("device", number, scenario.mesh.devices(), node.child("device"), diagnostics);
  }
  const auto check_step = [&](const char* key, const std::optional<int>& step) {
    if (!step || *step <= scenario.steps) return;
    report(diagnostics, node.child(key),
           "step " + std::to_string(*step) + " is not measured; expected 1 to the " +
               std::to_string(scenario.steps) + " of training.steps");
  };
  check_step("from_step", straggler.first_step);
  check_step("to_step", straggler.last_step);
}

/// One simulated rank stands for several devices where ranks have layouts of their own.
void check_single_devices(const ParallelKeys& parallel, const VariationConditions& variation,
                          const JsonNode& node, Diagnostics& diagnostics) {
  const std::vector<RankLayout>& layouts = parallel.stage_layouts;
  const bool several = !layouts.empty() && layouts.front().devices() > 1;
  const bool single =
      std::any_of(variation.stragglers.begin(), variation.stragglers.end(),
                  [](const Straggler& s) { return s.devices.of == SlowDevices::Of::Device; });
  if (!several || !(variation.random() || single)) return;
  report(diagnostics, node,
         "under \"stage_layouts\" the devices of a rank are simulated as one; expected no jitter, "
         "and stragglers that are a \"rank\"");
}

}  // namespace

bool VariationConditions::varies() const {
  return random() || std::any_of(stragglers.begin(), stragglers.end(),
                                 [](const Straggler& s) { return !s.always(); });
}

void check_variation(const Scenario& scenario, const ParallelKeys& parallel,
                     const std::optional<Cluster>& cluster, const JsonNode& document,
                     Diagnostics& diagnostics) {
  if (!scenario.variation) return;
  const VariationConditions& variation = *scenario.variation;
  const JsonNode node = document.child("variation");
  for (std::size_t i = 0; i < variation.stragglers.size(); ++i) {
    check_straggler(variation.stragglers[i], scenario, node.child("stragglers").item(i),
                    diagnostics);
  }
  for (std::size_t i = 0; cluster && i < variation.slow_links.size(); ++i) {
    const JsonNode way = node.child("slow_links").item(i);
    const SlowWay& slow = variation.slow_links[i];
    check_number("device", slow.from, cluster->devices, way.child("from"), diagnostics);
    check_number("device", slow.to, cluster->devices, way.child("to"), diagnostics);
  }
  const int speeds = static_cast<int>(variation.speeds.size());
  if (speeds > 0 && speeds != scenario.ranks) {
    report(diagnostics, node.child("speeds"),
           "has the speeds of " + std::to_string(speeds) + " ranks; expected one for each of the " +
               std::to_string(scenario.ranks) + " pipeline ranks");
  }
  check_single_devices(parallel, variation, node, diagnostics);
}

void slow_links_of(Scenario& scenario) {
  if (!scenario.variation) return;
  for (const SlowWay& way : scenario.variation->slow_links) {
    slow_link(scenario.cluster, way.from, way.to, way.slowdown);
  }
}

std::vector<SlowDevices> always_slow(const VariationConditions& variation) {
  std::vector<SlowDevices> slow;
  for (const Straggler& straggler : variation.stragglers) {
    if (straggler.always()) slow.push_back(straggler.devices);
  }
  for (std::size_t rank = 0; rank < variation.speeds.size(); ++rank) {
    if (variation.speeds[rank] == 1) continue;
    slow.push_back({SlowDevices::Of::Rank, static_cast<int>(rank), 1 / variation.speeds[rank]});
  }
  return slow;
}

std::string variation_folding_problem(const Scenario& scenario, const Unfolded& unfolded) {
  if (!scenario.variation) return "";
  const VariationConditions& variation = *scenario.variation;
  if (variation.random() && folded_ranks(scenario.mesh, unfolded).size() > 1) {
    return "jitter makes equal devices differ";
  }
  std::string problem = slow_folding_problem(always_slow(variation), scenario.mesh, unfolded);
  for (const Straggler& straggler : variation.stragglers) {
    if (!problem.empty() || straggler.always()) continue;
    problem = slow_folding_problem({straggler.devices}, scenario.mesh, unfolded);
  }
  return problem;
}

Variation variation_of(const Scenario& scenario) {
  const VariationConditions& conditions = *scenario.variation;
  Variation variation = {.seed = static_cast<std::uint64_t>(scenario.seed),
                         .compute = conditions.jitter,
                         .transfers = conditions.link_jitter};
  for (const Straggler& straggler : conditions.stragglers) {
    if (straggler.always()) continue;
    const auto by_rank =
        slowdowns({straggler.devices}, scenario.mesh, scenario.unfolded.value_or(kFolded));
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (by_rank[rank] == 1) continue;
      variation.slow.push_back({static_cast<int>(rank), straggler.first_step.value_or(1) - 1,
                                straggler.last_step.value_or(scenario.steps), by_rank[rank]});
    }
  }
  return variation;
}

}  // namespace interlock
