// LayerLayouts: layers that divide the devices of their stage otherwise than other layers do.
// SPDX-License-Identifier: Apache-2.0
//
// The tensor x data devices of a pipeline rank stay the same, and so do all other dimensions; a
// layout says how many of them divide a layer, and how many its samples. Data devices take the
// samples of one micro-batch of all of them in turn: those of a layer with half as many have twice
// as many each. Of two tensor degrees one divides the other. Numbers of layouts (Module::layout,
// Exchange::layout) count from 0, which is how the run divides what has no layout of its own.
//
// Where the layout changes between two layers, the tensor between them is laid anew within groups
// of neighbours (MeshAxis::Resharding): as many as the ratio of the degrees. Tensor devices that
// hold copies gather the samples of a group, or keep their own; going back it is the other way
// round. Tensor devices that hold a part each (of the sequence, of features) exchange all to all.
// Source: slice-gather of Galvatron, arXiv 2211.13878, section 3.2.
//
// Example: tensor 2 x data 4, and a layer of tensor 8, data 1.
//   device            0  1  2  3  4  5  6  7
//   tensor 2: data    0  0  1  1  2  2  3  3
//   resharding        {0, 2, 4, 6}, {1, 3, 5, 7}: a quarter of the samples each before, then all
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/layers/model_graph.h"
#include "sim/plan/mesh.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

struct LayerDegrees {
  int tensor = 1, data = 1;
  std::optional<int> expert_tensor;  // see Mesh
  bool has_experts = true;           // else its layers have none, and their mesh no such groups
  /// Data devices between which tensors are laid anew: no layout of layers, but one of groups.
  int joined = 1;
  bool operator==(const LayerDegrees&) const = default;
};

/// Returns `mesh` as each of `layouts` divides it; itself alone if there are none. `shards`: states
/// are divided among all devices of equal weights.
std::vector<Mesh> meshes_of_layers(const Mesh& mesh, const std::vector<LayerDegrees>& layouts,
                                   bool shards);
/// Returns the place in `layer` of the device at `at` of `own`, another layout of it.
Coordinates place_in(const Mesh& layer, const Mesh& own, Coordinates at);
/// Returns `mesh` as it is folded: its tensor coordinate counts `neighbours` of the tensor x data
/// devices of a rank, its data coordinate such blocks.
Mesh cut_after(const Mesh& mesh, int neighbours);
/// Returns the numbers of neighbours, in order, after which `layers` may be cut, to be folded on
/// either side: those that are nested with all groups of neighbours. Devices then move on as the
/// digits of a number do, one for each two blocks that follow each other: turning one digit takes
/// every group of each layout to a group of its kind. So devices that differ in digits on one side
/// of the cut do the same. Example: tensor 2 and 8 of 16 devices may be cut after 1, 2, 4, 8 and
/// 16. Cut after 4, device 13 is of the second eight, there of the second four, there of the first
/// pair, there the second. Tensor 2 and 6 may not be cut after 3.
std::vector<int> cuts_of_layers(const std::vector<Mesh>& layers);

/// Takes each module from the graph of its layout, tells the layout to its exchanges, and adds what
/// lays tensors anew between layers. Appends the groups that do so to `layouts`.
/// REQUIRES: graphs[l] is the model as layouts[l] divides it.
ModelGraph join_layers(const std::vector<ModelGraph>& graphs, const std::vector<int>& of_module,
                       std::vector<LayerDegrees>& layouts);

/// Returns the states and updates of modules [first, last) by their layouts; nothing if they have
/// one. `has_head`: the last one's head is used.
std::vector<StageCost> parts_by_layout(const std::vector<StageCost>& modules, int first, int last,
                                       bool has_head);
/// Returns the parts of a stage, each of one layout: the stage itself if all of it has one.
std::span<const StageCost> parts_of(const StageCost& stage);

}  // namespace interlock
