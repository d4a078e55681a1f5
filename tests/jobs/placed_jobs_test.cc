// Places of jobs, which differ in their links alone.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "scenarios/jobs/placement.h"
#include "scenarios/jobs/price_jobs.h"
#include "sim/plan/mesh.h"

namespace interlock::placed_jobs_test {
namespace {

using Kind = PlacementRule::Kind;

Cluster nodes_of_eight(int nodes) {
  Cluster cluster;
  cluster.devices = 8 * nodes;
  cluster.machines.front().devices_per_node = 8;
  cluster.machines.front().cards_per_node = 8;
  return cluster;
}

std::vector<int> numbers(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<int> joined(std::vector<int> all, const std::vector<int>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Places jobs that have `devices` devices each. REQUIRES: it is right.
std::vector<std::vector<int>> placed(int nodes, int devices,
                                     const std::vector<PlacementRule>& rules) {
  std::vector<UnplacedJob> jobs;
  for (const PlacementRule& rule : rules) {
    jobs.push_back({"job " + std::to_string(jobs.size()), devices, rule, {}});
  }
  Diagnostics diagnostics;
  auto all = place_jobs(nodes_of_eight(nodes), jobs, diagnostics);
  CHECK(diagnostics.empty());
  return all;
}

TEST_CASE("packed jobs take the first free devices, spread ones whole nodes in turn") {
  const auto packed = placed(4, 16, {{Kind::Packed}, {Kind::Packed}});
  CHECK(packed[0] == numbers(0, 16));
  CHECK(packed[1] == numbers(16, 16));
  const auto spread = placed(4, 16, {{Kind::Spread}, {Kind::Spread}});
  CHECK(spread[0] == joined(numbers(0, 8), numbers(16, 8)));
  CHECK(spread[1] == joined(numbers(8, 8), numbers(24, 8)));
  const auto mixed = placed(6, 16, {{Kind::Spread}, {Kind::Nodes, {1, 4}}, {Kind::Spread}});
  CHECK(mixed[1] == joined(numbers(8, 8), numbers(32, 8)));
  CHECK(mixed[0] == joined(numbers(0, 8), numbers(24, 8)));
  CHECK(mixed[2] == joined(numbers(16, 8), numbers(40, 8)));
}

TEST_CASE("a job on more nodes than it fills has as many devices of each, beside others there") {
  const auto all = placed(4, 16, {{Kind::Nodes, {0, 1, 2, 3}}, {Kind::Packed}});
  for (int node = 0; node < 4; ++node) {
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(4 * node + i);
      CHECK(all[0][at] == 8 * node + i);
      CHECK(all[1][at] == 8 * node + 4 + i);
    }
  }
}

TEST_CASE("nodes and devices are taken in the order in which they are written") {
  CHECK(placed(4, 16, {{Kind::Nodes, {3, 0}}})[0] == joined(numbers(24, 8), numbers(0, 8)));
  CHECK(placed(1, 3, {{Kind::Devices, {5, 1, 2}}})[0] == std::vector<int>{5, 1, 2});
}

TEST_CASE("a placed mesh has the devices of its list, and groups in the order of the mesh") {
  Mesh mesh;
  mesh.degrees = {2, 1, 2, 1};  // tensor 2, data 2
  mesh.placed = {12, 13, 4, 5};
  CHECK(device_of(mesh, {0, 0, 0, 0}) == 12);
  CHECK(device_of(mesh, {1, 0, 1, 0}) == 5);
  CHECK(group_of(mesh, MeshAxis::Tensor, {0, 0, 1, 0}) == std::vector<int>{4, 5});
  CHECK(group_of(mesh, MeshAxis::Data, {1, 0, 0, 0}) == std::vector<int>{13, 5});
  mesh.shard = 2;
  CHECK(group_of(mesh, MeshAxis::Shard, {0, 0, 0, 0}) == std::vector<int>{12, 4});
}

double step_on(const std::string& placement) {
  const std::string text = R"({
    "cluster": {"machine": "dgx-a100-80g", "nodes": 5},
    "jobs": [{"scenario": {
      "model": "gpt2", "cluster": {"machine": "dgx-a100-80g", "nodes": 2},
      "parallel": {"pipeline": 2, "data": 4, "tensor": 2},
      "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 32,
                   "optimizer": "adam"}}, "placement": )" +
                           placement + "}]}";
  const JobsResult result = price_jobs(load_jobs(parse_json(text, "jobs.json")).front(), false);
  return result.jobs.front().together.measurement.metrics.step_time.value();
}

TEST_CASE("below one switch a job takes the same step on any two nodes") {
  const double first = step_on(R"("packed")");
  CHECK(first > 0);
  CHECK(step_on(R"({"nodes": [1, 4]})") == first);
  CHECK(step_on(R"({"nodes": [3, 2]})") == first);
  // With neighbours of the mesh on different nodes all that tensor ranks exchange leaves its node.
  CHECK(step_on(R"({"devices": [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]})") >
        1.05 * first);
}

}  // namespace
}  // namespace interlock::placed_jobs_test
