// Efficiencies that devices borrow, devices on a base, machines with another card, and their names.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/borrowed_efficiency.h"

#include <doctest/doctest.h>

#include "hardware/devices/device_reader.h"
#include "hardware/networks/cluster_reader.h"
#include "hardware/networks/machine_names.h"

namespace interlock::borrowed_efficiency_test {
namespace {

Device device_of(const std::string& text) {
  const JsonValue value = parse_json(text, "d.json");
  Diagnostics diagnostics;
  Device device = read_device({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
  return device;
}

/// A device with `peak` TFLOP/s in bf16 and 1 TB/s, and `more`.
Device device_with(double peak, const std::string& more = "") {
  return device_of(R"({"memory": "1 GB", "memory_bandwidth": "1 TB/s", "peak": {"bf16": ")" +
                   std::to_string(peak) + R"( TFLOP/s"})" + more + "}");
}

Lender lender(const std::string& name, const std::string& architecture, double peak,
              double efficiency) {
  Device device = device_with(peak, R"(, "efficiency": "peak", "tile_ramp": 7)");
  device.name = name;
  device.architecture = architecture;
  for (Efficiency& one : device.efficiency) one.compute = efficiency;
  return {name, device};
}

Cluster cluster_of(const std::string& text) {
  const JsonValue value = parse_json(text, "c.json");
  Diagnostics diagnostics;
  Cluster cluster = read_cluster({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
  return cluster;
}

std::string mistake(const std::string& text) {
  try {
    cluster_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("the nearest lender: generation, architecture, vendor, compute and memory") {
  const std::vector<Lender> lenders = {
      lender("A1-x", "V One", 1000, 0.1), lender("B2-x", "V Two", 400, 0.2),
      lender("C3-x", "V Three", 100, 0.3), lender("U4-x", "U One", 5, 0.4)};
  const auto from = [&](const std::string& name, const std::string& architecture, double peak) {
    Device device = device_with(peak, R"(, "efficiency": "peak")");
    device.name = name;
    device.architecture = architecture;
    borrow_efficiency(device, lenders);
    CHECK(device.tiles.ramp == 7);
    REQUIRE(device.borrowed);
    return device.borrowed->from;
  };
  CHECK(from("A1-y", "V Three", 100) == "A1-x");
  CHECK(from("D4", "V Three", 1000) == "C3-x");
  MESSAGE("log 300/100 = 1.10, log 400/300 = 0.29");
  CHECK(from("D4", "", 300) == "B2-x");
  MESSAGE("log 180/100 = 0.59, log 400/180 = 0.80");
  CHECK(from("D4", "", 180) == "C3-x");
  MESSAGE("of another vendor, however close");
  CHECK(from("D4", "W One", 390) == "B2-x");
  CHECK(from("D4", "U Two", 390) == "U4-x");
}

TEST_CASE("of lenders of the same balance the one of the same size is nearest") {
  std::vector<Lender> lenders = {lender("Small1", "", 100, 0.1), lender("Large2", "", 900, 0.2)};
  lenders[0].device.memory_bandwidth = BytesPerSecond(0.1e12);
  lenders[1].device.memory_bandwidth = BytesPerSecond(1.1e12);
  Device device = device_with(1000, R"(, "efficiency": "peak")");
  MESSAGE("1000 FLOP a byte as Small1 has, log 10 in each; log 1000/900 = 0.11 and log 1.1 = 0.10");
  borrow_efficiency(device, lenders);
  REQUIRE(device.borrowed);
  CHECK(device.borrowed->from == "Large2");
  CHECK(device.borrowed->why == "1.11 times its peak, 0.909 times its memory bandwidth");
  MESSAGE("log 4 off in memory alone is further than log 3 off in compute alone");
  lenders = {lender("Compute1", "", 3000, 0.1), lender("Memory2", "", 1000, 0.2)};
  lenders[1].device.memory_bandwidth = BytesPerSecond(0.25e12);
  borrow_efficiency(device, lenders);
  CHECK(device.borrowed->from == "Compute1");
}

TEST_CASE("a tile ramp of one's own is kept, and without lenders nothing happens") {
  Device device = device_with(100, R"(, "efficiency": "peak", "tile_ramp": 3)");
  borrow_efficiency(device, {});
  CHECK(!device.borrowed);
  borrow_efficiency(device, {lender("A1-x", "V One", 1000, 0.1)});
  CHECK(device.tiles.ramp == 3);
  CHECK(device.efficiency[0].compute == 0.1);
}

TEST_CASE("a device that states no efficiency is slower than at its peak") {
  const Device bare = device_with(1000), peak = device_with(1000, R"(, "efficiency": "peak")");
  CHECK(bare.borrowed);
  CHECK(!peak.borrowed);
  CHECK(!device_with(1000, R"(, "efficiency": {})").borrowed);
  const Work gemm{.op_class = OpClass::Gemm, .flops = Flops(1e12), .bytes = Bytes(1)};
  CHECK(time_of(gemm, peak, Precision::Bf16).value() == doctest::Approx(1e-3));
  CHECK(time_of(gemm, bare, Precision::Bf16).value() > 1.05e-3);
}

TEST_CASE("devices of the catalogue that borrow do so within their family where it has a lender") {
  const auto from = [](const std::string& name) {
    return device_of("\"" + name + "\"").borrowed.value_or(BorrowedEfficiency{}).from;
  };
  CHECK(from("tpu-v5e") == "tpu-v3");
  CHECK(from("tpu-v5p") == "tpu-v6e");
  CHECK(from("h800") == "");
  CHECK(from("trainium2") != "");
  for (const Lender& one : lenders()) CHECK(!one.device.borrowed);
}

TEST_CASE("a device on a base has its members, but for those of its own") {
  const Device base = device_of("\"h100\"");
  const Device own = device_of(R"({"base": "h100", "name": "H100-96GB", "memory": "94 GiB",
                                   "peak": {"fp8": null, "bf16": "1 PFLOP/s"}})");
  CHECK(own.name == "H100-96GB");
  CHECK(own.memory == Bytes(94.0 * (1 << 30)));
  CHECK(own.memory_bandwidth == base.memory_bandwidth);
  CHECK(own.efficiency[0].compute == base.efficiency[0].compute);
  CHECK(!supports(own, Precision::Fp8));
  CHECK(supports(own, Precision::Tf32));
  CHECK(*own.peak[static_cast<std::size_t>(Precision::Bf16)] == FlopsPerSecond(1e15));
  CHECK(device_of(R"({"base": {"base": "a100-80g", "memory": "1 GB"}, "memory": "2 GB"})").memory ==
        Bytes(2e9));
  CHECK_THROWS_WITH_AS(device_of(R"({"base": "h101"})"), doctest::Contains("did you mean \"h100\""),
                       Error);
}

TEST_CASE("a link has what its data sheet says, and the share of it that messages reach") {
  const Cluster cluster = cluster_of(R"({"kind": "machine", "device": "h100",
      "devices_per_node": 2, "port": {"bandwidth": "400 GB/s", "efficiency": 0.5},
      "host": {"bandwidth": "60 GB/s", "efficiency": 0.25},
      "cards": {"per_node": 4, "bandwidth": "80 Gb/s", "efficiency": 0.75}})");
  CHECK(cluster.machines.front().port_bandwidth == BytesPerSecond(200e9));
  CHECK(cluster.machines.front().port_stated == BytesPerSecond(400e9));
  CHECK(cluster.machines.front().host.bandwidth == BytesPerSecond(15e9));
  MESSAGE("two cards act as one: 2 x 80 Gb/s, of which three quarters arrive");
  CHECK(cluster.machines.front().card_bandwidth == BytesPerSecond(15e9));
  CHECK(cluster.machines.front().card_stated == BytesPerSecond(20e9));
  CHECK(mistake(R"({"kind": "machine", "device": "h100",
                    "port": {"bandwidth": "1 GB/s", "efficiency": 1.1}})")
            .find("/port/efficiency: expected a number from 0.001 to 1") != std::string::npos);
}

TEST_CASE("A100 in a DGX and in EC2 reach the same of the same NVLinks") {
  const Cluster dgx = cluster_of("\"dgx-a100-40g\""), ec2 = cluster_of("\"p4d-24xlarge\"");
  CHECK(dgx.machines.front().port_bandwidth == ec2.machines.front().port_bandwidth);
  CHECK(dgx.machines.front().port_stated == ec2.machines.front().port_stated);
  CHECK(dgx.machines.front().card_bandwidth > ec2.machines.front().card_bandwidth);
}

TEST_CASE("a machine with another card keeps its links") {
  const Cluster plain = cluster_of(R"({"machine": "dgx-h100", "nodes": 2})");
  const Cluster other = cluster_of(R"({"machine": "dgx-h100", "nodes": 2, "device": "h20"})");
  CHECK(other.machines.front().device.name == "H20-SXM5-96GB");
  CHECK(other.machines.front().port_bandwidth == plain.machines.front().port_bandwidth);
  CHECK(other.devices == plain.devices);
  const Cluster larger =
      cluster_of(R"({"machine": "dgx-h100", "device": {"base": "h100", "memory": "94 GiB"}})");
  CHECK(larger.machines.front().device.memory > plain.machines.front().device.memory);
}

TEST_CASE("the name of a device in the place of a machine is answered with its machines") {
  CHECK(machines_meant("mi300x") == "did you mean \"mi300x-platform\"?");
  CHECK(machines_meant("8xH800") == "did you mean \"hgx-h800\"?");
  CHECK(machines_meant("h20x8") == "did you mean \"hgx-h20\"?");
  MESSAGE("16 of them are in a DGX-2 only");
  CHECK(machines_meant("16xv100") == "did you mean \"dgx-v100-32g\"?");
  CHECK(machines_meant("a100").find("\"dgx-a100-80g\"") != std::string::npos);
  CHECK(machines_meant("dgx-h10") == "");
  CHECK(machines_meant("x") == "");
  CHECK(mistake("\"8xh800\"") ==
        "c.json:1: unknown name \"8xh800\", which is a device, no "
        "machine; did you mean \"hgx-h800\"?");
  INFO("neither device nor machine: a beginning, a number, a device with more behind it");
  CHECK(mistake("\"p5\"") ==
        "c.json:1: unknown name \"p5\"; did you mean \"p5-48xlarge\", \"p5e-48xlarge\" or "
        "\"p5en-48xlarge\"?");
  CHECK(machines_like("4090") == "did you mean \"pcie-rtx-4090\"?");
  CHECK(machines_like("RTX 5090") == "did you mean \"pcie-rtx-5090\"?");
  CHECK(machines_like("H200-SXM").find("\"dgx-h200\"") != std::string::npos);
  CHECK(machines_like("H200-SXM").find("h100") == std::string::npos);
  CHECK(machines_like("A100-SXM4").find("\"dgx-a100-40g\"") != std::string::npos);
  CHECK(machines_like("cluster") == "");
  CHECK(mistake("\"h100.json\"").find("did you mean") == std::string::npos);
  CHECK(mistake("\"dgx-h10\"").find("did you mean \"dgx-h100\"?") != std::string::npos);
}

TEST_CASE("a Rubin has the attention of the device whose efficiencies it borrows") {
  const Device rubin = cluster_of("\"vr200-nvl72\"").machines.front().device;
  const Device lent = cluster_of("\"gb200-nvl72\"").machines.front().device;
  REQUIRE(rubin.borrowed);
  CHECK(rubin.borrowed->from == "gb200");
  const auto attention = static_cast<std::size_t>(OpClass::Attention);
  CHECK(rubin.efficiency[attention].compute == lent.efficiency[attention].compute);
  CHECK(rubin.attention.ramp == lent.attention.ramp);
  CHECK(rubin.attention.narrowest == lent.attention.narrowest);
}

}  // namespace
}  // namespace interlock::borrowed_efficiency_test
