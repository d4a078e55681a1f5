// Every file of the hardware catalogue loads, and says where each of its numbers comes from.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/file.h"
#include "hardware/devices/device_reader.h"
#include "hardware/networks/cluster_reader.h"

namespace interlock::catalogue_test {
namespace {

JsonNode root_of(const JsonValue& value) { return {&value, ""}; }

JsonValue text_value(const std::string& text) {
  return {.kind = JsonValue::Kind::String, .text = text};
}

bool is_number(const JsonValue& value, const std::string& path) {
  const std::string key = path.substr(path.rfind('.') + 1);
  const bool word =
      key == "name" || key == "kind" || key == "device" || key == "of" || key == "architecture";
  return value.kind == JsonValue::Kind::Number || value.kind == JsonValue::Kind::Array ||
         (value.kind == JsonValue::Kind::String && !word);
}

/// Dotted paths of the numbers below `value`.
void collect_numbers(const JsonValue& value, const std::string& path,
                     std::vector<std::string>& found) {
  for (const auto& [key, member] : value.members) {
    const std::string below = path.empty() ? key : path + "." + key;
    if (below == "origin") continue;
    if (is_number(member, below)) found.push_back(below);
    collect_numbers(member, below, found);
  }
}

/// Returns whether `origin` explains `path` or an object around it.
bool explains(const JsonValue& origin, std::string path) {
  while (true) {
    const JsonValue* sentence = origin.find(path);
    if (sentence != nullptr) return sentence->text.size() > 10;
    const auto dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    path.resize(dot);
  }
}

void check_origins(const std::string& file) {
  CAPTURE(file);
  const JsonValue document = read_json_file(file);
  const JsonValue* origin = document.find("origin");
  REQUIRE(origin != nullptr);
  std::vector<std::string> numbers;
  collect_numbers(document, "", numbers);
  CHECK_GT(numbers.size(), document.find("base") == nullptr ? 4 : 0);
  for (const std::string& number : numbers) {
    CAPTURE(number);
    CHECK(explains(*origin, number));
  }
  for (const auto& member : origin->members) {
    const std::string& path = member.first;
    const JsonValue* value = &document;
    std::string rest = path;
    while (value != nullptr && !rest.empty()) {
      const auto dot = rest.find('.');
      value = value->find(rest.substr(0, dot));
      rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
    }
    CAPTURE(path);
    CHECK(value != nullptr);
  }
}

Cluster load(const std::string& name) {
  Diagnostics diagnostics;
  const JsonValue value = text_value(name);
  Cluster cluster = read_cluster(root_of(value), diagnostics);
  CAPTURE(name);
  diagnostics.throw_if_any();
  return cluster;
}

}  // namespace

TEST_CASE("the catalogue holds the machines that scenarios may name") {
  CHECK_EQ(catalogue_names(),
           std::vector<std::string>{
               "a3-highgpu-8g",   "a3-megagpu-8g",    "a3-ultragpu-8g",  "a4-highgpu-8g",
               "dgx-a100-40g",    "dgx-a100-80g",     "dgx-b200",        "dgx-b300",
               "dgx-h100",        "dgx-h200",         "dgx-v100-32g",    "gaudi3-oam",
               "gb200-nvl72",     "gb300-nvl72",      "hgx-a100-4gpu",   "hgx-h100-4gpu",
               "hgx-h20",         "hgx-h800",         "mi300x-platform", "mi325x-platform",
               "mi355x-platform", "nd-h100-v5",       "nd-h200-v5",      "p3-16xlarge",
               "p3dn-24xlarge",   "p4d-24xlarge",     "p5-48xlarge",     "p5e-48xlarge",
               "p5en-48xlarge",   "p6-b200-48xlarge", "pcie-a100-80g",   "pcie-l40s",
               "pcie-rtx-3090",   "pcie-rtx-4090",    "pcie-rtx-5090",   "tpu-v3-pod",
               "tpu-v5e-pod",     "tpu-v5p-pod",      "tpu-v6e-pod",     "tpu-v7-pod",
               "trn1-32xlarge",   "trn2-48xlarge",    "vr200-nvl72"});
  CHECK_EQ(
      device_names(),
      std::vector<std::string>{
          "a100-40g",  "a100-80g", "a100-pcie-80g", "b200",    "b300",     "gaudi3",   "gb200",
          "gb300",     "h100",     "h20",           "h200",    "h800",     "l40s",     "mi300x",
          "mi325x",    "mi355x",   "p100",          "p40",     "rtx-3090", "rtx-4090", "rtx-5090",
          "t4",        "tpu-v3",   "tpu-v5e",       "tpu-v5p", "tpu-v6e",  "tpu-v7",   "trainium",
          "trainium2", "v100-16g", "v100-32g",      "vr200"});
}

TEST_CASE("every machine loads complete, one node or one torus by default") {
  for (const std::string& name : catalogue_names()) {
    const Cluster cluster = load(name);
    CAPTURE(name);
    CHECK_EQ(cluster.name, name);
    CHECK_FALSE(cluster.mesh);
    CHECK(has_rates(cluster.machines.front().device));
    CHECK(supports(cluster.machines.front().device, Precision::Fp32));
    CHECK((supports(cluster.machines.front().device, Precision::Fp16) ||
           supports(cluster.machines.front().device, Precision::Bf16)));
    CHECK_GT(cluster.machines.front().device.memory, Bytes(15e9));
    MESSAGE("an offloaded tensor takes PCIe, slower than what joins devices, but for PCIe boxes");
    CHECK(has_host(cluster));
    if (!cluster.machines.front().pcie)
      CHECK_GT(cluster.machines.front().port_bandwidth, cluster.machines.front().host.bandwidth);
    if (std::holds_alternative<Torus>(cluster.network)) continue;
    CHECK_EQ(cluster.devices, cluster.machines.front().devices_per_node);
    CHECK_GE(cluster.machines.front().port_bandwidth * cluster.machines.front().devices_per_node,
             cluster.machines.front().card_bandwidth * cluster.machines.front().cards_per_node);
    CHECK_GT(cluster.machines.front().card_latency, cluster.machines.front().port_latency);
    CHECK_GE(cluster.machines.front().cards_per_node, 1);
  }
}

TEST_CASE("every device of the catalogue loads, whether a machine has it or not") {
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    Diagnostics diagnostics;
    const JsonValue value = text_value(name);
    const Device device = read_device(root_of(value), diagnostics);
    CHECK(diagnostics.empty());
    CHECK(has_rates(device));
  }
}

TEST_CASE("every number in the catalogue names its origin, and every origin its number") {
  for (const std::string& name : catalogue_names()) {
    check_origins(data_folder("hardware/catalogue") + "/" + name + ".json");
  }
  for (const std::string& name : device_names()) {
    check_origins(data_folder("hardware/catalogue/devices") + "/" + name + ".json");
  }
}

TEST_CASE("every price in the catalogue names a source with its day, and none is recalled") {
  int prices = 0;
  for (const std::string& name : catalogue_names()) {
    const JsonValue file = read_json_file(data_folder("hardware/catalogue") + "/" + name + ".json");
    if (file.find("price") == nullptr) continue;
    CAPTURE(name);
    ++prices;
    const std::string& source = file.find("origin")->find("price")->text;
    CHECK(source.find("recalled") == std::string::npos);
    CHECK(source.find("USD") != std::string::npos);
    bool dated = false;
    for (const char* year : {" 2025", " 2026"}) dated = dated || source.find(year) != source.npos;
    CHECK(dated);
  }
  CHECK(prices >= 8);
}

TEST_CASE("a DGX A100 carries the figures of its datasheet") {
  const Cluster cluster = load("dgx-a100-80g");
  CHECK_EQ(cluster.machines.front().devices_per_node, 8);
  CHECK_EQ(cluster.machines.front().device.peak[static_cast<std::size_t>(Precision::Bf16)],
           FlopsPerSecond(312e12));
  CHECK_EQ(cluster.machines.front().device.memory_bandwidth, BytesPerSecond(2039e9));
  MESSAGE("600 GB/s of NVLink counts both directions; collectives reach 231 of 300 GB/s each way");
  CHECK_EQ(cluster.machines.front().port_bandwidth, BytesPerSecond(231e9));
  MESSAGE("200 Gb/s = 25 GB/s a card");
  CHECK_EQ(cluster.machines.front().card_bandwidth, BytesPerSecond(25e9));
  CHECK_FALSE(supports(cluster.machines.front().device, Precision::Fp8));
}

TEST_CASE("a TPU v3 pod has the bisection that its documentation states") {
  const Cluster cluster = load("tpu-v3-pod");
  CHECK_EQ(cluster.devices, 1024);
  BytesPerSecond cut;
  for (int row = 0; row < 32; ++row) {
    // Over the middle of the ring, and over its end; up is from the left half to the right.
    for (const auto& [from, to] : {std::pair{15, 16}, std::pair{0, 31}}) {
      const Route way = route(cluster, 32 * row + from, 32 * row + to);
      REQUIRE_EQ(way.links.size(), 1);
      cut += way.bandwidth;
    }
  }
  MESSAGE("32 rings x 2 links: 6.4 TB/s (Cloud TPU documentation, TPU v3)");
  CHECK_EQ(cut.value(), doctest::Approx(6.4e12));
}

TEST_CASE("a p4d node sends 400 Gb/s, two devices a card") {
  const Cluster cluster = load("p4d-24xlarge");
  CHECK_EQ(
      (cluster.machines.front().card_bandwidth * cluster.machines.front().cards_per_node).value(),
      doctest::Approx(400e9 / 8));
  CHECK_EQ(card_of(cluster, 0), card_of(cluster, 1));
  CHECK_NE(card_of(cluster, 1), card_of(cluster, 2));
}

TEST_CASE("a large bf16 GEMM on an H200 takes about as long as measured") {
  const Cluster cluster = load("dgx-h200");
  const double n = 8192;
  const Work gemm{
      .op_class = OpClass::Gemm, .flops = Flops(2 * n * n * n), .bytes = Bytes(3 * 2 * n * n)};
  const Seconds time = time_of(gemm, cluster.machines.front().device, Precision::Bf16);
  const double rate = (gemm.flops / time).value() / 1e12;
  MESSAGE(
      "2 * 8192^3 / time = " << rate
                             << " TFLOP/s; measured 769 to 798 at this shape, about "
                                "720 at the shapes of language models, which the catalogue takes");
  CHECK_GT(rate, 700);
  CHECK_LT(rate, 798);
}

}  // namespace interlock::catalogue_test
