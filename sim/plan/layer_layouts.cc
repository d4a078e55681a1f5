// Meshes of layers, and the model whose layers have them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/layer_layouts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

int& coordinate(Coordinates& at, Dimension dimension) { return at[static_cast<int>(dimension)]; }

/// Calls `visit` with every list of exchanges of a module.
template <class Visit>
void for_exchanges(Module& module, Visit visit) {
  visit(module.forward_exchanges);
  visit(module.backward_input_exchanges);
  visit(module.first_backward_input_exchanges);
  visit(module.backward_weight_exchanges);
  visit(module.recompute_exchanges);
  visit(module.head.exchanges);
}

/// A tensor between two layers: bytes of a device, as the layer before leaves them and as the layer
/// behind reads them.
struct Handover {
  Bytes before, behind;
};

/// Returns whether the tensor is divided among tensor devices, too, so that devices hold as much of
/// it in each layout.
bool is_in_parts(const Handover& tensor) {
  return std::abs(tensor.before / tensor.behind - 1) < 1e-9;
}

/// Lays the input of `module` anew. `groups` is the layout of the groups that do so.
void add_resharding(const Handover& tensor, int groups, Module& module) {
  const Exchange all_to_all = {.kind = CollectiveKind::AllToAll,
                               .axis = MeshAxis::Resharding,
                               .bytes = tensor.before,
                               .layout = groups};
  const Exchange gather = {.kind = CollectiveKind::AllGather,
                           .axis = MeshAxis::Resharding,
                           .bytes = std::max(tensor.before, tensor.behind),
                           .layout = groups};
  const bool in_parts = is_in_parts(tensor), joins = tensor.behind > tensor.before;
  if (in_parts || joins) module.forward_exchanges.push_back(in_parts ? all_to_all : gather);
  const bool goes_back = !module.backward_input.empty();
  if (goes_back && (in_parts || !joins)) {
    module.backward_input_exchanges.push_back(in_parts ? all_to_all : gather);
    module.first_backward_input_exchanges.push_back(in_parts ? all_to_all : gather);
  }
  // Forward, the module keeps what it reads, and the other form goes. Backward, nothing else holds
  // the two forms of the gradient.
  module.relaid = tensor.before + (goes_back ? tensor.behind : Bytes(0));
}

/// Returns the layout of the groups between which tensors go from one layout to the other.
LayerDegrees groups_between(const LayerDegrees& one, const LayerDegrees& other) {
  const LayerDegrees& narrow = one.tensor < other.tensor ? one : other;
  const LayerDegrees& wide = one.tensor < other.tensor ? other : one;
  CHECK(wide.tensor % narrow.tensor == 0, "one tensor degree divides the other");
  return {.tensor = narrow.tensor,
          .data = narrow.data,
          .expert_tensor = narrow.expert_tensor,
          .has_experts = narrow.has_experts,
          .joined = wide.tensor / narrow.tensor};
}

int number_of(const LayerDegrees& layout, std::vector<LayerDegrees>& layouts) {
  const auto known = std::find(layouts.begin(), layouts.end(), layout);
  if (known == layouts.end()) {
    layouts.push_back(layout);
    return static_cast<int>(layouts.size()) - 1;
  }
  return static_cast<int>(known - layouts.begin());
}

}  // namespace

std::vector<Mesh> meshes_of_layers(const Mesh& mesh, const std::vector<LayerDegrees>& layouts,
                                   bool shards) {
  if (layouts.empty()) return {mesh};
  std::vector<Mesh> meshes;
  for (const LayerDegrees& layout : layouts) {
    Mesh own = mesh;
    own.degree(Dimension::Tensor) = layout.tensor;
    own.degree(Dimension::Data) = layout.data;
    own.expert_tensor = layout.expert_tensor;
    if (!layout.has_experts) own.expert = 1;
    own.joined = layout.joined;
    own.shard = shards ? own.replicas() : 1;
    CHECK(own.devices() == mesh.devices(), "as many devices in each layout");
    meshes.push_back(own);
  }
  return meshes;
}

Coordinates place_in(const Mesh& layer, const Mesh& own, Coordinates at) {
  const int number = coordinate(at, Dimension::Tensor) +
                     coordinate(at, Dimension::Data) * own.degree(Dimension::Tensor);
  coordinate(at, Dimension::Tensor) = number % layer.degree(Dimension::Tensor);
  coordinate(at, Dimension::Data) = number / layer.degree(Dimension::Tensor);
  return at;
}

Mesh cut_after(const Mesh& mesh, int neighbours) {
  Mesh cut = mesh;
  const int all = mesh.degree(Dimension::Tensor) * mesh.degree(Dimension::Data);
  cut.degree(Dimension::Tensor) = neighbours;
  cut.degree(Dimension::Data) = all / neighbours;
  return cut;
}

std::vector<int> cuts_of_layers(const std::vector<Mesh>& layers) {
  std::vector<int> ends;  // of groups of neighbours
  for (const Mesh& mesh : layers) {
    const int tensor = mesh.degree(Dimension::Tensor), parts = mesh.tensor_of_experts();
    ends.insert(ends.end(), {tensor, tensor * mesh.joined});
    if (mesh.expert == 1 && parts == tensor) continue;
    if (mesh.degree(Dimension::Context) > 1) return {};  // experts and context may lie across
    ends.insert(ends.end(), {parts, parts * mesh.expert});
  }
  const Mesh& first = layers.front();
  const int all = first.degree(Dimension::Tensor) * first.degree(Dimension::Data);
  std::vector<int> cuts;
  for (int cut = 1; cut <= all; ++cut) {
    const auto fits = [&](int end) { return end % cut == 0 || cut % end == 0; };
    if (all % cut == 0 && std::ranges::all_of(ends, fits)) cuts.push_back(cut);
  }
  const bool nested =
      std::ranges::all_of(ends, [&](int end) { return std::ranges::binary_search(cuts, end); });
  return nested ? cuts : std::vector<int>();
}

ModelGraph join_layers(const std::vector<ModelGraph>& graphs, const std::vector<int>& of_module,
                       std::vector<LayerDegrees>& layouts) {
  ModelGraph joined = graphs.front();
  std::vector<Module> modules;
  modules.reserve(of_module.size());
  for (std::size_t m = 0; m < of_module.size(); ++m) {
    const int layout = of_module[m];
    Module module = graphs.at(layout).modules.at(m);
    module.layout = layout;
    for_exchanges(module, [&](std::vector<Exchange>& exchanges) {
      for (Exchange& exchange : exchanges) exchange.layout = layout;
    });
    if (m > 0 && of_module[m - 1] != layout) {
      const int groups =
          number_of(groups_between(layouts[of_module[m - 1]], layouts[layout]), layouts);
      const Handover tensor = {modules.back().output, graphs[layout].modules[m - 1].output};
      add_resharding(tensor, groups, module);
    }
    modules.push_back(std::move(module));
  }
  joined.modules = std::move(modules);
  joined.packed = {};
  if (joined.slice) {
    joined.slice = [graphs, of_module, layouts](const TokenSlice& slice) {
      std::vector<ModelGraph> slices;
      for (const ModelGraph& graph : graphs) slices.push_back(graph.slice(slice));
      std::vector<LayerDegrees> same = layouts;
      return join_layers(slices, of_module, same);
    };
  }
  return joined;
}

std::vector<StageCost> parts_by_layout(const std::vector<StageCost>& modules, int first, int last,
                                       bool has_head) {
  std::vector<StageCost> parts;
  const auto part_of = [&](int layout) -> StageCost& {
    const auto known = std::find_if(parts.begin(), parts.end(),
                                    [&](const StageCost& part) { return part.layout == layout; });
    if (known != parts.end()) return *known;
    parts.push_back({.modules = 0, .layout = layout});
    return parts.back();
  };
  for (int module = first; module < last; ++module) {
    StageCost& part = part_of(modules[module].layout);
    append_module(part, modules[module], first);
    part.places.push_back(module - first);
  }
  if (parts.size() < 2) return {};
  if (has_head) {
    const StageCost& top = modules[last - 1];
    StageCost& part = part_of(top.layout);
    part.head_update = top.head_update;
    part.state += top.head_state;
  }
  return parts;
}

std::span<const StageCost> parts_of(const StageCost& stage) {
  return stage.parts.empty() ? std::span(&stage, 1) : std::span(stage.parts);
}

}  // namespace interlock
