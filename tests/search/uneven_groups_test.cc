// Groups that lie differently in nodes: estimates are those of the slowest, and what leads is best.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "hardware/collectives/collective.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_estimate.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/sweep/sweep_plan.h"
#include "sim/lower/links/slowest_replica.h"
#include "sim/plan/vocabulary.h"
#include "tests/support/cases.h"

namespace interlock::uneven_groups_test {
namespace {

using Json = nlohmann::ordered_json;

/// A mixture on 12 or 24 devices in nodes of 4, whose divisors by three lie across nodes.
Json space(Random& random) {
  const int devices = 12 * random.integer(1, 2);
  const auto bandwidth = [&](int least, int most) {
    return std::to_string(random.integer(least, most)) + " GB/s";
  };
  return {{"model",
           {{"kind", "transformer"},
            {"layers", random.integer(4, 6)},
            {"hidden_size", 768},
            {"attention_heads", 12},
            {"ffn_hidden_size", 3072},
            {"vocab_size", 6144},
            {"sequence_length", 128 * random.integer(1, 4)},
            {"experts", 12},
            {"experts_per_token", 2},
            {"expert_ffn_hidden_size", 768}}},
          {"cluster",
           {{"kind", "machine"},
            {"device",
             {{"name", "small"},
              {"memory", "40 GB"},
              {"memory_bandwidth", "400 GB/s"},
              {"launch_overhead", "2 us"},
              {"peak", {{"fp32", "10 TFLOP/s"}, {"bf16", "80 TFLOP/s"}}},
              {"efficiency", "peak"}}},
            {"devices_per_node", 4},
            {"nodes", devices / 4},
            {"port", {{"latency", "2 us"}, {"bandwidth", bandwidth(50, 300)}}},
            {"cards",
             {{"per_node", random.integer(0, 1) == 0 ? 4 : 1},
              {"latency", "4 us"},
              {"bandwidth", bandwidth(4, 40)}}}}},
          {"parallel", {{"sequence_parallel", true}, {"overlap_gradients", false}}},
          {"training",
           {{"strategy", "global"},
            {"global_batch_size", 24},
            {"optimizer", "adam"},
            {"recompute", "none"},
            {"schedule", "1f1b"},
            {"steps", 2}}}};
}

/// Returns all plans of `space`.
std::vector<JsonValue> all_plans(const Json& space) {
  std::vector<JsonValue> plans;
  const int devices = 4 * space["cluster"]["nodes"].get<int>();
  for (const int tensor : {1, 2, 3}) {
    for (const int pipeline : {1, 2, 3}) {
      if (devices % (tensor * pipeline) != 0) continue;
      const int data = devices / tensor / pipeline;
      for (const int expert : {1, 2, 3, 6}) {
        for (const int expert_tensor : tensor > 1 ? std::vector{1, tensor} : std::vector{1}) {
          if (data * tensor % (expert * expert_tensor) != 0) continue;
          for (const int size : {1, 2}) {
            if (24 / data % size != 0 || 24 % data != 0) continue;
            Json plan = space;
            plan["parallel"].update({{"tensor", tensor},
                                     {"pipeline", pipeline},
                                     {"data", data},
                                     {"expert", expert},
                                     {"expert_tensor", expert_tensor},
                                     {"zero_stage", 1}});
            plan["training"]["micro_batch_size"] = size;
            plans.push_back(parse_json(plan.dump(), "plan.json"));
          }
        }
      }
    }
  }
  return plans;
}

std::optional<Plan> plan_of(const JsonValue& document) {
  try {
    return lay_out(load_point(std::make_shared<const JsonValue>(document))).ordered();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Returns the plan that is simulated, with devices folded as far as is exact.
Plan whole_plan_of(const JsonValue& document) {
  return make_plan(load_point(std::make_shared<const JsonValue>(document)));
}

double simulated(const JsonValue& document) {
  return estimate_step(whole_plan_of(document), Grade::Simulation).time.value();
}

/// Returns what the exchanges of each replica take in one op of each kind, by the coordinates of
/// its first device, over every group by itself.
std::map<Coordinates, double> times_of_replicas(const LowerInputs& inputs) {
  std::map<Coordinates, double> times;
  const Mesh& mesh = inputs.mesh;
  for (int device = 0; device < mesh.devices_of_rank(); ++device) {
    const int tensor = mesh.degree(Dimension::Tensor);
    const Coordinates by = {device % tensor, 0, device / tensor, 0};
    double& sum = times[by];
    for (std::size_t stage = 0; stage < inputs.stages.size(); ++stage) {
      Coordinates at = by;
      at[static_cast<std::size_t>(Dimension::Pipeline)] = inputs.schedule.rank_of_stage[stage];
      for (const OpCost* cost : costs_of_ops(inputs.stages[stage])) {
        for (const Exchange& one : cost->exchanges) {
          const std::vector<int> group = group_of(mesh, one.axis, at);
          if (group.size() < 2) continue;
          const CollectivePlan plan = plan_exchange(inputs.cluster, group, one);
          sum += one.count * time_alone(inputs.cluster, plan).value();
        }
      }
    }
  }
  return times;
}

/// Returns how many collectives of tensors and experts, in a program without contention, do not
/// take what those of the replica at `by` take; counts all of them in `seen`.
int strange_collectives(LowerInputs inputs, const Coordinates& by, int& seen) {
  inputs.contention = false;
  inputs.written_out = true;
  const Program program = lower(inputs);
  if (program.folding_problem.empty()) return 0;
  int strange = 0;
  for (const Collective& one : program.collectives) {
    if (one.axis != MeshAxis::Tensor && one.axis != MeshAxis::Expert) continue;
    Coordinates at = by;
    at[static_cast<std::size_t>(Dimension::Pipeline)] = inputs.schedule.rank_of_stage[one.stage];
    const std::vector<int> group = group_of(inputs.mesh, one.axis, at);
    const CollectivePlan plan = plan_collective(inputs.cluster, group, one.kind, one.bytes, {});
    const double time = time_alone(inputs.cluster, plan).value();
    const double took = (one.latency + one.occupancy).value();
    strange += std::abs(took - time) > 1e-9 * time;
    ++seen;
  }
  return strange;
}

TEST_CASE("a look follows the replica whose groups take longest, and no step is shorter") {
  Random random(3, 1);
  int apart = 0, looks = 0, seen = 0;
  for (int i = 0; i < cases(2); ++i) {
    for (const JsonValue& document : all_plans(space(random))) {
      auto plan = plan_of(document);
      if (!plan) continue;
      plan->unfolded = kFolded;
      LowerInputs inputs = lower_inputs(*plan);
      order_steps(*plan, inputs, 2);
      const Coordinates by = slowest_replica(inputs, [&](const Exchange& one, const auto& group) {
        return time_alone(inputs.cluster, plan_exchange(inputs.cluster, group, one));
      });
      const auto times = times_of_replicas(inputs);
      double most = 0;
      for (const auto& [at, time] : times) most = std::max(most, time);
      CHECK(times.at(by) == doctest::Approx(most).epsilon(1e-9));
      if (times.at({}) < 0.99 * most) {
        ++apart;
        CHECK(strange_collectives(inputs, by, seen) == 0);
      }
      const StepEstimate look = estimate_step(*plan, Grade::Look);
      if (look.folds) continue;
      ++looks;
      const double real = simulated(document);
      CHECK(look.time.value() <= real * (1 + 1e-6));
    }
  }
  std::printf("%d looks at devices that differ; of %d plans the first groups are not the slowest\n",
              looks, apart);
  CHECK(apart > 5);
  CHECK(seen > 5);
  CHECK(looks > 20);
}

TEST_CASE("of plans that are simulated only if they lead, the best of all is found") {
  Random random(4, 1);
  std::size_t large = 0;
  for (int i = 0; i < cases(3); ++i) {
    Json one = space(random);
    double best = kInfinity;
    for (const JsonValue& document : all_plans(one)) {
      if (plan_of(document)) best = std::min(best, simulated(document));
    }
    one["search"] = {{"tensor", {1, 2, 3}},      {"pipeline", {1, 2, 3}},
                     {"expert", {1, 2, 3, 6}},   {"context", {1}},
                     {"zero_stage", {1}},        {"micro_batch_size", {1, 2}},
                     {"recompute", {"none"}},    {"schedule", {"1f1b"}},
                     {"overlap_weights", false}, {"expert_overlap", "none"}};
    const JsonValue document = parse_json(one.dump(), "space.json");
    SearchRequest request = request_of(document);
    request.only_best = true;
    request.most_flows = 1;  // so that whatever does not fold waits to lead
    const SearchResult found = search_plans(document, request, 2);
    REQUIRE(!found.plans.empty());
    CHECK(found.plans.front().estimate.step_time == doctest::Approx(best).epsilon(1e-9));
    large += found.counts.too_large + found.counts.judged;
  }
  CHECK(large > 0);
}

/// A pipeline of 2 on nodes of 4, whose replicas add up gradients by trees beside its messages.
JsonValue trees(int data) {
  Random random(5, 1);
  Json one = space(random);
  for (const char* key : {"experts", "experts_per_token", "expert_ffn_hidden_size"}) {
    one["model"].erase(key);
  }
  one["cluster"]["nodes"] = data / 2;
  one["parallel"] = {{"pipeline", 2}, {"data", data}, {"zero_stage", 0}};
  one["training"].update({{"global_batch_size", 4 * data}, {"micro_batch_size", 1}});
  return parse_json(one.dump(), "trees.json");
}

TEST_CASE("a plan is simulated nearly where simulate does so, and says so") {
  for (const int data : {16, 512}) {
    const JsonValue document = trees(data);
    const LaidOut laid_out = lay_out(load_point(std::make_shared<const JsonValue>(document)));
    const PlanEstimate look = estimate_by_look(laid_out.ordered());
    const PlanEstimate estimate = estimate_by_simulation(laid_out, look);
    CHECK(estimate.nearly == (data == 512));
    CHECK(whole_plan_of(document).uneven.empty() == (data == 16));
    CHECK(estimate.step_time == doctest::Approx(simulated(document)).epsilon(1e-9));
  }
}

}  // namespace
}  // namespace interlock::uneven_groups_test
