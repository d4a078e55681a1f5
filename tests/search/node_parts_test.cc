// Jobs that take a part of each node: what init and plan write, what search sets, what they cost.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/starter/sizing.h"
#include "scenarios/starter/starter.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock::node_parts_test {
namespace {

Cluster cluster_of(const JsonValue& document) { return load_questions(document).front().cluster; }

TEST_CASE("init takes whole racks, 64 devices of each, or equal parts, and writes which") {
  struct Job {
    int devices, nodes, share;
  };
  for (const Job& job : {Job{40, 1, 72},
                         {64, 1, 72},
                         {72, 1, 72},
                         {144, 2, 72},
                         {128, 2, 64},
                         {1024, 16, 64},
                         {96, 2, 48},
                         {100, 2, 50},
                         {101, 2, 72}}) {
    CAPTURE(job.devices);
    const Starter starter =
        begin_starter({.model = "gpt2", .machine = "gb300-nvl72", .devices = job.devices});
    CHECK(starter.nodes == job.nodes);
    const std::string text = starter_text(starter, "");
    const bool part = job.share < 72;
    CHECK(starter.devices_per_node == (part ? job.share : 0));
    CHECK((text.find("// Note: " + std::to_string(job.share) +
                     " of the 72 devices of each node are used") != std::string::npos) == part);
    const JsonValue document = parse_json(text, "init");
    CHECK((document.find("cluster")->find("devices_per_node") != nullptr) == part);
    JsonValue sized = planless_document(starter, "init");
    apply_overrides(sized, {"parallel.data=" + std::to_string(job.devices),
                            "training.global_batch_size=" + std::to_string(job.devices)});
    const Cluster cluster = cluster_of(sized);
    CHECK(cluster.devices == job.devices);
    CHECK(cluster.machines.front().devices_per_node == job.share);
    CHECK(nodes(cluster) == job.nodes);
  }
  CHECK(begin_starter({.model = "gpt2", .machine = "dgx-h100", .devices = 12}).share.empty());
}

TEST_CASE("a row of plan says that it takes a part of each node, unless an override takes all") {
  SizingQuestion question = {.model = "gpt2",
                             .machines = {{"gb300-nvl72", "3 USD/h"}},
                             .devices = {72, 128},
                             .length = 1e9,
                             .batch = 131072,
                             .overrides = {"search.tensor=[1]", "search.pipeline=[1]"}};
  const Sizing parts = size_up(question, 2);
  CHECK(parts.rows[0].share == 0);
  CHECK(parts.rows[1].share == 64);
  CHECK(parts.rows[1].of_node == 72);
  // Devices that are not used are not paid.
  REQUIRE(parts.rows[1].cost);
  CHECK(parts.rows[1].cost->amount == doctest::Approx(3 * 128 * parts.rows[1].time.value() / 3600));
  question.overrides.emplace_back("cluster.devices_per_node=72");
  const Sizing all = size_up(question, 2);
  CHECK(all.rows[1].share == 0);
  REQUIRE(all.rows[1].plan);
  CHECK(cluster_of(all.rows[1].plan->document).machines.front().devices_per_node == 72);
}

TEST_CASE("search takes equal parts of nodes for numbers of devices that fill none") {
  const auto searched = [](const std::string& written) {
    JsonValue document = parse_json(R"({"model": "gpt2", "cluster": )" + written + R"(,
        "training": {"strategy": "global", "global_batch_size": 1152},
        "search": {"devices": [96, 128, 144], "tensor": [1], "pipeline": [1], "expert": [1],
                   "zero_stage": [1], "worth": 0, "recompute": ["none"], "data": [96, 128, 144],
                   "micro_batch_size": [1]}})",
                                    "s.json");
    std::map<int, int> shares;
    for (const FoundPlan& plan : search_plans(document, 2).plans) {
      const Cluster cluster = cluster_of(plan.document);
      CHECK(cluster.devices == plan.layout.devices);
      shares[cluster.devices] = cluster.machines.front().devices_per_node;
    }
    return shares;
  };
  using Shares = std::map<int, int>;
  CHECK(searched(R"({"machine": "gb300-nvl72", "nodes": 2})") ==
        Shares{{96, 48}, {128, 64}, {144, 72}});
  // Keeps parts as they are written.
  CHECK(searched(R"({"machine": "gb300-nvl72", "nodes": 2, "devices": 128})")[128] == 72);
  CHECK(searched(R"({"machine": "gb300-nvl72", "nodes": 3, "devices_per_node": 60})") ==
        Shares{{96, 60}, {128, 60}, {144, 60}});
}

TEST_CASE("a part of each node is paid by the device, and draws the power of whole nodes") {
  const auto economics = [](const std::string& part) {
    const JsonValue document = parse_json(R"({"model": "gpt2", "cluster": {)" + part +
                                              R"("machine": "gb300-nvl72", "nodes": 2,
        "devices": 128, "price": "3 USD/h", "power": {"busy": "1 kW", "idle": "200 W",
        "node": "7.2 kW"}},
        "parallel": {"data": 128}, "training": {"strategy": "global", "global_batch_size": 128}})",
                                          "s.json");
    return economics_of(run_scenario(load_questions(document).front(), false));
  };
  const Economics part = economics(R"("devices_per_node": 64, )"), all = economics("");
  const double step = part.cost->amount * 3600 / (3 * 128);  // by the price of 128 devices
  const double of_all = all.cost->amount * 3600 / (3 * 128);
  MESSAGE("two nodes of 7.2 kW; of a node of 72 that is not full its share: 128 / 72 nodes");
  CHECK(part.node_energy.value() == doctest::Approx(2 * 7200 * step));
  CHECK(all.node_energy.value() == doctest::Approx(128.0 / 72 * 7200 * of_all));
}

TEST_CASE("a key of the machine's file is set beside a part of its nodes, cards and all") {
  JsonValue document = parse_json(
      R"({"model": "gpt2", "cluster": {"machine": "gb300-nvl72", "devices_per_node": 64,
        "nodes": 2},
        "parallel": {"data": 128}, "training": {"strategy": "global", "global_batch_size": 128}})",
      "s.json");
  const Cluster named = cluster_of(document);
  apply_overrides(document, {"cluster.port.latency=3.4 us"});
  CHECK(document.find("cluster")->find("machine") == nullptr);
  const Cluster opened = cluster_of(document);
  CHECK(opened.devices == 128);
  CHECK(opened.machines.front().cards_per_node == named.machines.front().cards_per_node);
  CHECK(opened.machines.front().card_bandwidth == named.machines.front().card_bandwidth);
  // A number that is told stays.
  apply_overrides(document, {"cluster.cards.per_node=32"});
  CHECK(cluster_of(document).machines.front().cards_per_node == 32);
}

}  // namespace
}  // namespace interlock::node_parts_test
