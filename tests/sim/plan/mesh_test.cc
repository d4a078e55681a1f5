// The mesh of experts lies over the devices of attention: held to loops and to lists by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/mesh.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/plan/data_parallel.h"

namespace interlock::mesh_test {
namespace {

using Group = std::vector<int>;

Mesh mesh_of(int tensor, int context, int data, int expert, std::optional<int> expert_tensor) {
  Mesh mesh;
  mesh.degrees = {tensor, context, data, 2};
  mesh.expert = expert;
  mesh.expert_tensor = expert_tensor;
  return mesh;
}

/// Every group along `axis`, by the devices that it belongs to.
std::map<int, Group> groups(const Mesh& mesh, MeshAxis axis) {
  std::map<int, Group> found;
  for (int d = 0; d < mesh.degree(Dimension::Data); ++d) {
    for (int c = 0; c < mesh.degree(Dimension::Context); ++c) {
      for (int t = 0; t < mesh.degree(Dimension::Tensor); ++t) {
        for (int p = 0; p < mesh.degree(Dimension::Pipeline); ++p) {
          const Coordinates at = {t, c, d, p};
          found[device_of(mesh, at)] = group_of(mesh, axis, at);
        }
      }
    }
  }
  return found;
}

TEST_CASE("experts are folded over eight devices as Megatron-Core folds them") {
  // tensor 2 x context 1 x data 4, experts on 4 devices, each whole: order tp-cp-ep-dp-pp with an
  // expert tensor degree of 1 (megatron/core/parallel_state.py, RankGenerator).
  const Mesh folded = mesh_of(2, 1, 4, 4, 1);
  CHECK(groups(folded, MeshAxis::Tensor)[0] == Group{0, 1});
  CHECK(groups(folded, MeshAxis::Data)[0] == Group{0, 2, 4, 6});
  CHECK(groups(folded, MeshAxis::Expert)[0] == Group{0, 1, 2, 3});
  CHECK(groups(folded, MeshAxis::Expert)[6] == Group{4, 5, 6, 7});
  CHECK(groups(folded, MeshAxis::ExpertData)[1] == Group{1, 5});
  CHECK(groups(folded, MeshAxis::ExpertTensor)[3] == Group{3});
  // Divided as tensors are, experts take every second device.
  const Mesh alike = mesh_of(2, 1, 4, 4, std::nullopt);
  CHECK(groups(alike, MeshAxis::Expert)[0] == Group{0, 2, 4, 6});
  CHECK(groups(alike, MeshAxis::ExpertData)[0] == Group{0});
  // More devices for an expert than for all else: neighbours of other replicas.
  const Mesh wide = mesh_of(1, 2, 4, 2, 4);
  CHECK(groups(wide, MeshAxis::ExpertTensor)[5] == Group{4, 5, 6, 7});
  CHECK(groups(wide, MeshAxis::Expert)[1] == Group{1, 5});
  CHECK(group_size(wide, MeshAxis::ExpertData) == 1);
}

TEST_CASE("in the usual order groups of experts are those of nested loops over the devices") {
  int meshes = 0;
  for (const auto& [t, c, d] : {std::array{1, 1, 8}, {2, 1, 4}, {4, 2, 2}, {2, 2, 3}, {8, 1, 1}}) {
    const int devices = t * c * d;
    for (int parts = 1; parts <= devices; ++parts) {
      for (int expert = 1; expert <= devices; ++expert) {
        if (devices % (parts * expert) != 0) continue;
        ++meshes;
        const Mesh mesh = mesh_of(t, c, d, expert, parts);
        const int copies = devices / (parts * expert);
        auto along =
            std::map{std::pair{MeshAxis::ExpertTensor, groups(mesh, MeshAxis::ExpertTensor)},
                     {MeshAxis::Expert, groups(mesh, MeshAxis::Expert)},
                     {MeshAxis::ExpertData, groups(mesh, MeshAxis::ExpertData)}};
        for (int p = 0; p < 2; ++p) {
          for (int x = 0; x < copies; ++x) {
            for (int e = 0; e < expert; ++e) {
              for (int i = 0; i < parts; ++i) {
                const int first = p * devices;
                const auto number = [&](int copy, int of, int part) {
                  return first + part + parts * (of + expert * copy);
                };
                Group tensor, experts, data;
                for (int other = 0; other < parts; ++other) tensor.push_back(number(x, e, other));
                for (int other = 0; other < expert; ++other) experts.push_back(number(x, other, i));
                for (int other = 0; other < copies; ++other) data.push_back(number(other, e, i));
                const int own = number(x, e, i);
                REQUIRE(along[MeshAxis::ExpertTensor][own] == tensor);
                REQUIRE(along[MeshAxis::Expert][own] == experts);
                REQUIRE(along[MeshAxis::ExpertData][own] == data);
              }
            }
          }
        }
      }
    }
  }
  CHECK(meshes > 50);
}

TEST_CASE("experts that are divided as tensors are lie the same, written out or not") {
  for (const std::array<Dimension, kDimensions>& order :
       {std::array{Dimension::Tensor, Dimension::Context, Dimension::Data, Dimension::Pipeline},
        {Dimension::Data, Dimension::Tensor, Dimension::Pipeline, Dimension::Context},
        {Dimension::Pipeline, Dimension::Context, Dimension::Data, Dimension::Tensor}}) {
    for (const int expert : {1, 2, 3, 6, 12}) {
      Mesh plain = mesh_of(4, 2, 6, expert, std::nullopt);
      plain.order = order;
      Mesh written = plain;
      written.expert_tensor = 4;
      for (const MeshAxis axis : {MeshAxis::Expert, MeshAxis::ExpertData}) {
        CHECK(groups(plain, axis) == groups(written, axis));
      }
      CHECK(groups(plain, MeshAxis::Tensor) == groups(written, MeshAxis::ExpertTensor));
    }
  }
}

TEST_CASE("gradients of experts are added up by those that hold them, whatever holds the rest") {
  StageCost stage;
  stage.whole_gradients = Bytes(100);
  stage.expert_state.gradients = Bytes(60);
  const auto text = [&](const Mesh& mesh) {
    std::string words;
    for (const Exchange& one : gradient_exchanges({}, mesh, stage)) {
      words += one.axis == MeshAxis::Data ? "data " : "expert data ";
      words += std::to_string(group_size(mesh, one.axis)) + ": " +
               std::to_string(static_cast<int>(one.bytes.value())) + "; ";
    }
    return words;
  };
  CHECK(text(mesh_of(2, 1, 4, 4, 1)) == "data 4: 40; expert data 2: 60; ");
  CHECK(text(mesh_of(4, 1, 1, 2, 1)) == "expert data 2: 60; ");
  CHECK(text(mesh_of(2, 1, 4, 8, 1)) == "data 4: 40; ");
  CHECK(text(mesh_of(1, 1, 8, 2, 4)) == "data 8: 40; ");
  // Under ZeRO a device has a part of the states of each.
  CHECK(own_part(mesh_of(4, 1, 1, 2, 1), Bytes(100), Bytes(60)) == Bytes(40 + 30));
}

}  // namespace
}  // namespace interlock::mesh_test
