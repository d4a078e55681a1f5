// The part of the loader that reads "parallel", and fits it to model, cluster and strategy.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {"pipeline": 8} under a schedule with one stage on each rank has the size {8 ranks, 8
// stages}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/load/question.h"

namespace interlock {

/// Layers with degrees of their own.
struct LayersKeys {
  int first = 0, end = 0;  // modules
  LayerDegrees degrees;
};

/// "parallel" as written.
struct ParallelKeys {
  std::optional<int> pipeline, stages;
  std::optional<JsonNode> pipeline_node, stages_node, placement;
  Layout asked;  // its mesh is that of one rank; stages, placement and graphs of ranks follow
  std::optional<GradientReduction> gradient_reduction;  // nothing: as the framework does
  std::vector<RankLayout> stage_layouts;                // without graphs
  std::optional<JsonNode> stage_layouts_node;
  std::vector<LayersKeys> layer_layouts;
  std::optional<JsonNode> layer_layouts_node;
  std::optional<int> layers_expert_tensor;  // of all of these, where it is written
  bool delays_weights = false;              // in pairs of micro-batches
  JsonNode node;
};
/// Returns the name of `dimension`; "spatial" where images are divided by the devices that would
/// divide sequences.
std::string name_of(Dimension dimension, const Sharding& sharding);
ParallelKeys read_parallel(const JsonNode& node, Diagnostics& diagnostics);
/// Reports what cannot be trained in workers that exchange weights now and then.
void check_outer(const Question& question, const JsonNode& document, Diagnostics& diagnostics);
/// Reads simulate.fold into `settings`.
void read_fold(const JsonNode& node, SimulationSettings& settings, Diagnostics& diagnostics);

/// The number of ranks and of stages.
struct LayoutSize {
  int ranks = 1, stages = 1;
};
/// The bounds of a layout; each is empty where its section was wrong.
struct LayoutBounds {
  std::optional<int> devices, modules;
  std::vector<int> parts;  // modules of each stage, where the schedule cuts the model itself
  const Strategy* strategy = nullptr;
  const SchedulePolicy* schedule = nullptr;
};
/// Fits "parallel" to the cluster, the model and the strategy; nothing after a diagnostic, or where
/// a bound that is needed is unknown.
std::optional<LayoutSize> fit_layout(const ParallelKeys& parallel, const LayoutBounds& bounds,
                                     Diagnostics& diagnostics);
/// Returns whether a search chooses the ranks of stages: "auto".
bool lays_freely(const ParallelKeys& parallel);
/// Returns the rank of each stage of one copy of the model, or those that a search begins with.
/// Empty after a diagnostic, and where the greedy strategy has modules laid over ranks by their
/// cost.
std::vector<int> read_placement(const ParallelKeys& parallel, const LayoutSize& layout,
                                const LayoutBounds& bounds, Diagnostics& diagnostics);

}  // namespace interlock
