// Parts of nodes: how many devices of each node a job takes, and the cards that come along.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/node_share.h"

#include <doctest/doctest.h>

#include "base/random.h"
#include "hardware/networks/cluster_reader.h"
#include "tests/support/cases.h"

namespace interlock::node_share_test {
namespace {

struct Reading {
  Cluster cluster;
  std::string mistakes;
};

Reading read(const std::string& text) {
  const JsonValue document = parse_json(text, "s.json");
  Diagnostics diagnostics;
  Reading reading{read_cluster({&document, "/cluster"}, diagnostics), ""};
  for (const std::string& message : diagnostics.messages()) reading.mistakes += message;
  return reading;
}

Cluster read_good(const std::string& text) {
  Reading reading = read(text);
  CHECK_EQ(reading.mistakes, "");
  return reading.cluster;
}

TEST_CASE("a job takes 64 of the 72 devices of a rack, or equal parts, unless racks are whole") {
  struct Job {
    int devices, share;
  };
  for (const Job& job :
       {Job{1, 72}, {64, 72},  {71, 72},   {72, 72},   {144, 72},   {1440, 72}, {4608, 72},
        {128, 64},  {192, 64}, {1024, 64}, {1088, 64}, {16384, 64}, {80, 40},   {96, 48},
        {100, 50},  {120, 60}, {140, 70},  {1000, 50}, {73, 72},    {101, 72},  {146, 72}}) {
    CAPTURE(job.devices);
    CHECK_EQ(share_of_node(72, job.devices), job.share);
  }
  CHECK_EQ(share_of_node(8, 12), 8);
  CHECK_EQ(share_of_node(16, 40), 16);
  CHECK_EQ(share_of_node(1, 7), 1);
  CHECK_EQ(share_of_node(6, 8), 4);
  CHECK_EQ(share_of_node(6, 10), 5);
}

TEST_CASE("parts are equal, at least half a node, and none that fits is larger but by habit") {
  Random random(5, 0);
  for (int i = 0; i < cases(2000); ++i) {
    const int all = random.integer(1, 80), devices = random.integer(1, 600);
    CAPTURE(all);
    CAPTURE(devices);
    const int share = share_of_node(all, devices);
    const std::string words = node_share_words(all, devices);
    CHECK((share == all) == words.empty());
    if (share == all) continue;
    REQUIRE(devices > all);
    CHECK(devices % all != 0);
    CHECK(devices % share == 0);
    CHECK(2 * share >= all);
    CHECK(words.starts_with(std::to_string(share) + " of the " + std::to_string(all)));
    int power = 1;  // the habit: the largest power of two of a node
    while (2 * power <= all) power *= 2;
    for (int larger = share + 1; larger < all && share != power; ++larger) {
      CHECK(devices % larger != 0);
    }
  }
}

TEST_CASE("a part of each node brings its cards along, and is the machine that has no more") {
  const Cluster part =
      read_good(R"({"machine": "gb300-nvl72", "devices_per_node": 64, "nodes": 16})");
  const Cluster own = read_good(R"({"kind": "machine", "device": "gb300", "devices_per_node": 64,
      "port": {"latency": "3.4 us", "bandwidth": "900 GB/s", "efficiency": 0.8},
      "cards": {"per_node": 64, "latency": "9.6 us", "bandwidth": "800 Gb/s"}, "nodes": 16})");
  const Machine &a = part.machines.front(), &b = own.machines.front();
  CHECK_EQ(part.devices, 1024);
  CHECK_EQ(own.devices, 1024);
  CHECK_EQ(a.devices_per_node, 64);
  CHECK_EQ(a.cards_per_node, 64);
  CHECK_EQ(a.card_bandwidth, b.card_bandwidth);
  for (const int to : {1, 63, 64, 65, 1023}) {
    CHECK(route(part, 0, to).links == route(own, 0, to).links);
    CHECK(route(part, 0, to).latency == route(own, 0, to).latency);
  }
}

TEST_CASE("cards come along where devices have their own, and stay where devices share them") {
  const auto part = [](const std::string& machine, int devices) {
    return read_good("{\"machine\": \"" + machine +
                     "\", \"nodes\": 2, \"devices_per_node\": " + std::to_string(devices) + "}")
        .machines.front();
  };
  const auto whole = [](const std::string& machine) {
    return read_good("\"" + machine + "\"").machines.front();
  };
  MESSAGE("dgx-h100: a card for each of 8; p5-48xlarge: 4 for each; dgx-v100-32g: 8 for 16");
  CHECK_EQ(part("dgx-h100", 4).cards_per_node, 4);
  CHECK_EQ(part("dgx-h100", 4).card_bandwidth, whole("dgx-h100").card_bandwidth);
  CHECK_EQ(part("dgx-h100", 16).cards_per_node, 16);
  CHECK_EQ(part("p5-48xlarge", 4).cards_per_node, 4);
  CHECK_EQ(part("p5-48xlarge", 4).card_bandwidth, whole("p5-48xlarge").card_bandwidth);
  CHECK_EQ(part("dgx-v100-32g", 16).cards_per_node, whole("dgx-v100-32g").cards_per_node);
  CHECK_EQ(part("dgx-v100-32g", 8).cards_per_node, whole("dgx-v100-32g").cards_per_node);
  CHECK_EQ(part("dgx-h100", 4).host_memory, whole("dgx-h100").host_memory);
}

TEST_CASE("parts of nodes of no device, of too many, or beside kinds are refused") {
  CHECK_EQ(read(R"({"machine": "dgx-h100", "devices_per_node": 0})").mistakes,
           "s.json:1: /cluster/devices_per_node: expected a whole number from 1 to 1024, got 0");
  CHECK_EQ(read(R"({"machine": "dgx-h100", "devices_per_node": 4, "devices": 6})").mistakes,
           "s.json:1: /cluster/devices: too many devices; expected 1 to the 4 devices of 1 node of "
           "\"dgx-h100\", got 6");
  CHECK(read(R"({"machine": "dgx-h100", "devices_per_node": 4, "kinds": [{"device": "h100"}]})")
            .mistakes.find("/cluster/devices_per_node: given beside \"kinds\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::node_share_test
