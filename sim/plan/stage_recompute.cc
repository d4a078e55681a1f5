// Layers of a stage that are computed again, and those that are not.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_recompute.h"

#include <algorithm>

namespace interlock {
namespace {

/// Layers are computed again even where that takes no time and brings nothing back.
bool is_layer(const StageCost& module) {
  return module.recompute.whole() > Seconds(0) || module.remade > Bytes(0);
}

void keep_everything(StageCost& module) {
  module.stash += module.remade;
  module.workspace -= module.remade;
  module.remade = Bytes(0);
  module.recompute = {};
}

/// Keeps the input of the first layer alone; all of them come back together.
void join(const std::vector<StageCost*>& group) {
  StageCost& first = *group.front();
  Bytes running(0), remade(0);
  for (StageCost* layer : group) {
    running = std::max(running, layer->workspace - layer->remade);
    remade += layer->remade;
    if (layer == &first) continue;
    remade += layer->stash;
    layer->stash = Bytes(0);
  }
  for (StageCost* layer : group) layer->workspace = running + remade;
}

}  // namespace

std::vector<StageCost> recomputed_in_stages(std::vector<StageCost> modules,
                                            const Partition& partition,
                                            const StageRecompute& rule) {
  if (!rule.any()) return modules;
  for (int stage = 0; stage < partition.stages(); ++stage) {
    int layers = 0;
    std::vector<StageCost*> group;
    const auto close = [&] {
      if (group.size() > 1) join(group);
      group.clear();
    };
    const int end = std::min(partition.boundaries[stage + 1], static_cast<int>(modules.size()) - 1);
    for (int m = partition.boundaries[stage]; m < end; ++m) {
      StageCost& module = modules[static_cast<std::size_t>(m)];
      if (!is_layer(module)) continue;
      if (rule.layers && layers++ >= *rule.layers) {
        keep_everything(module);
        continue;
      }
      if (!group.empty() && group.back()->layout != module.layout) close();
      group.push_back(&module);
      if (static_cast<int>(group.size()) == rule.group) close();
    }
    close();
  }
  return modules;
}

StageTime busy_with(const StageRecompute& rule, const std::vector<StageCost>& modules,
                    StageTime all) {
  if (!rule.layers) return all;
  const std::size_t count = modules.size();
  std::vector<Seconds> before(count + 1);  // recomputes of the layers before this module
  std::vector<int> layers(count + 1);
  std::vector<int> layer_at;  // the module of a layer
  for (std::size_t m = 0; m < count; ++m) {
    before[m + 1] = before[m];
    layers[m + 1] = layers[m];
    if (m + 1 == count || !is_layer(modules[m])) continue;
    before[m + 1] += modules[m].recompute.whole();
    ++layers[m + 1];
    layer_at.push_back(static_cast<int>(m));
  }
  return [=, most = *rule.layers](int stage, int first, int last) {
    const auto f = static_cast<std::size_t>(first), l = static_cast<std::size_t>(last);
    const int beyond = layers[f] + most;
    const Seconds busy = all(stage, first, last);
    if (beyond >= layers[l]) return busy;
    const auto end = static_cast<std::size_t>(layer_at[static_cast<std::size_t>(beyond)]);
    return busy - (before[l] - before[end]);
  };
}

}  // namespace interlock
