// KnownPrices: prices that were worked out before, for questions that differ in little.
// SPDX-License-Identifier: Apache-2.0
//
// A search asks for thousands of plans of one model on one cluster. Those of equal degrees, sizes
// and recomputation have modules of the same prices, whatever their schedule and partition; and few
// meshes have groups of their own, so that exchanges are priced, and their flows followed over
// links, again and again. Their orders of work are few, too. Not for several threads at once.
//
// Example: plans of pipeline 4 x data 2 under gpipe and under 1f1b have one entry in `modules`,
// which is priced once, and in it one entry in `cuts`, for 4 parts. Pipeline 2 x data 4 is another
// mesh, and another entry in `modules`.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "models/layers/model_graph.h"
#include "sim/lower/links/known_flows.h"
#include "sim/plan/mesh.h"
#include "sim/plan/partition.h"
#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/schedules/strategy.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

struct KnownPrices {
  /// All that the time of an exchange depends on, but the kind of cluster.
  using ExchangeKey = std::array<double, 28>;
  struct ExchangeHash {
    std::size_t operator()(const ExchangeKey& key) const;
  };
  std::unordered_map<ExchangeKey, Seconds, ExchangeHash> exchanges;
  /// Times by what is exchanged and by which devices, since meshes have groups in common.
  std::map<std::pair<std::array<double, 10>, std::vector<int>>, Seconds> of_groups;

  /// All that a balanced partition depends on, but modules and links: the parts, the strategy, the
  /// ranks of stages, whether they pass lists on and split backwards, the micro-batches of an
  /// update and in flight, and the devices that send a part each of a message.
  using CutKey = std::tuple<int, Strategy, std::vector<int>, bool, bool, int, int, int>;

  /// The modules of a graph on the device at a place of a mesh.
  struct Modules {
    SharedList<Module> of;
    int devices = 1;  // of the cluster
    Mesh mesh;
    Coordinates at = {};
    bool divided = false;  // without their vocabulary, see sim/plan/vocabulary.h
    std::shared_ptr<const std::vector<StageCost>> prices;
    /// The balanced partitions of these.
    std::map<CutKey, Partition> cuts = {};
  };
  std::list<Modules> modules;  // the one that was used last comes first

  /// Schedules, by what they were made from; the one that was used last comes first.
  std::list<std::pair<ScheduleInputs, Schedule>> schedules;

  std::shared_ptr<KnownFlows> flows = std::make_shared<KnownFlows>();
};

}  // namespace interlock
