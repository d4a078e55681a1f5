// Cuts at which layers of several layouts fold: what stays a group when devices move on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "sim/plan/layer_layouts.h"

namespace interlock::layer_cuts_test {
namespace {

Coordinates place_of(const Mesh& mesh, int device) {
  return place_in(mesh, cut_after(mesh, 1), {0, 0, device, 0});
}

/// Returns whether moving every device on by one of the blocks of `low` in its block of `high`
/// takes each group of `mesh` to a group of its kind.
bool keeps_groups(const Mesh& mesh, int low, int high) {
  const auto moved = [&](int device) {
    const int within = device % high;
    return device - within + (within + low) % high;
  };
  for (const MeshAxis axis : {MeshAxis::Tensor, MeshAxis::Data, MeshAxis::Shard, MeshAxis::Expert,
                              MeshAxis::ExpertTensor, MeshAxis::ExpertData, MeshAxis::Resharding}) {
    for (int device = 0; device < mesh.devices(); ++device) {
      std::set<int> images;
      for (const int member : group_of(mesh, axis, place_of(mesh, device))) {
        images.insert(moved(member));
      }
      const std::vector<int> there = group_of(mesh, axis, place_of(mesh, moved(device)));
      if (images != std::set<int>(there.begin(), there.end())) return false;
    }
  }
  return true;
}

/// The layouts of a run of `tensor` x (`all` / `tensor`) devices.
std::vector<Mesh> meshes(int all, const std::vector<LayerDegrees>& layers, int expert) {
  Mesh mesh;
  mesh.degree(Dimension::Tensor) = layers.front().tensor;
  mesh.degree(Dimension::Data) = all / layers.front().tensor;
  mesh.expert = expert;
  mesh.expert_tensor = layers.front().expert_tensor;
  return meshes_of_layers(mesh, layers, true);
}

/// Returns the blocks of neighbours that stay together: those of degrees, of experts, and `cut`.
std::vector<int> ends_of(const std::vector<Mesh>& layers, int cut) {
  std::set<int> ends = {1, cut, layers.front().devices()};
  for (const Mesh& mesh : layers) {
    const int parts = mesh.tensor_of_experts();
    ends.insert({mesh.degree(Dimension::Tensor), parts, parts * mesh.expert});
  }
  return {ends.begin(), ends.end()};
}

TEST_CASE("groups stay groups when devices move on among the blocks between two cuts") {
  int cuts = 0, none = 0;
  for (const int all : {8, 12, 24, 36}) {
    for (const int one : {1, 2, 3, 4, 6}) {
      for (const int other : {1, 2, 4, 6, 12}) {
        if (other <= one || other % one != 0 || all % other != 0) continue;
        for (const int expert : {1, 2, 3, 4}) {
          for (const std::optional<int> parts : {std::optional<int>(), std::optional<int>(1)}) {
            if (all % (other * expert) != 0) continue;
            const std::vector<Mesh> layers = meshes(
                all,
                {{one, all / one, parts},
                 {other, all / other, parts},
                 {.tensor = one, .data = all / one, .expert_tensor = parts, .joined = other / one}},
                expert);
            const std::vector<int> found = cuts_of_layers(layers);
            none += found.empty();
            for (const int cut : found) {
              INFO(all << " devices, tensor " << one << " and " << other << ", experts on "
                       << expert << ", cut after " << cut);
              const std::vector<int> ends = ends_of(layers, cut);
              for (std::size_t i = 1; i < ends.size(); ++i) {
                REQUIRE(ends[i] % ends[i - 1] == 0);
                for (const Mesh& mesh : layers) CHECK(keeps_groups(mesh, ends[i - 1], ends[i]));
              }
              ++cuts;
            }
          }
        }
      }
    }
  }
  MESSAGE(cuts << " cuts; none where " << none << " lay experts across");
  CHECK(cuts > 100);
  CHECK(none > 0);
}

TEST_CASE("a cut is nested with all degrees") {
  const auto cuts = [](int all, int one, int other) {
    return cuts_of_layers(meshes(all, {{one, all / one}, {other, all / other}}, 1));
  };
  CHECK(cuts(16, 2, 8) == std::vector<int>{1, 2, 4, 8, 16});
  CHECK(cuts(24, 2, 6) == std::vector<int>{1, 2, 6, 12, 24});
  CHECK(cuts(12, 1, 12) == std::vector<int>{1, 2, 3, 4, 6, 12});
  // Moving on by one of twelve does not keep the pairs of tensor 2, as by one of its own does.
  CHECK_FALSE(keeps_groups(meshes(12, {{2, 6}}, 1).front(), 1, 12));
  CHECK(keeps_groups(meshes(12, {{2, 6}}, 1).front(), 1, 2));
}

}  // namespace
}  // namespace interlock::layer_cuts_test
