// Scenarios' "cluster": what may be written, and the messages where it is wrong.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/cluster_reader.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "base/file.h"

namespace interlock::cluster_reader_test {
namespace {

struct Reading {
  Cluster cluster;
  std::string mistakes;  // one a line
};

Reading read(const std::string& text, const std::string& file = "s.json") {
  const JsonValue document = parse_json(text, file);
  Diagnostics diagnostics;
  Reading reading{read_cluster({&document, "/cluster"}, diagnostics), ""};
  for (const std::string& message : diagnostics.messages()) {
    reading.mistakes += (reading.mistakes.empty() ? "" : "\n") + message;
  }
  return reading;
}

Cluster read_good(const std::string& text) {
  const Reading reading = read(text);
  CHECK_EQ(reading.mistakes, "");
  return reading.cluster;
}

std::string mistakes(const std::string& text) { return read(text).mistakes; }

const char* const kMachine = R"({"kind": "machine", "device": "a100-80g", "devices_per_node": 4,
  "port": {"latency": "3 us", "bandwidth": "300 GB/s"},
  "cards": {"per_node": 2, "latency": "10 us", "bandwidth": "200 Gb/s"}, )";

const char* const kUniform = R"({"kind": "uniform", "devices": 4, "memory": "80 GiB",
  "link": {"latency": "2 us", "bandwidth": "100 GB/s"})";

}  // namespace

TEST_CASE("a machine is named, with its nodes and the devices used of them") {
  CHECK_EQ(read_good(R"("dgx-h100")").devices, 8);
  CHECK_EQ(read_good(R"({"machine": "dgx-h100"})").devices, 8);
  CHECK_EQ(read_good(R"({"machine": "dgx-v100-32g"})").devices, 16);
  CHECK_EQ(read_good(R"({"machine": "dgx-h100", "nodes": 128})").devices, 1024);
  const Cluster cluster = read_good(R"({"machine": "dgx-h100", "nodes": 2, "devices": 11})");
  CHECK_EQ(cluster.devices, 11);
  CHECK_EQ(cluster.machines.front().devices_per_node, 8);
  CHECK_EQ(cluster.name, "dgx-h100");
}

TEST_CASE("a uniform cluster is a mesh of devices that only hold memory") {
  const Cluster cluster = read_good(kUniform + std::string("}"));
  CHECK(cluster.mesh);
  CHECK_EQ(cluster.devices, 4);
  CHECK_EQ(cluster.machines.front().device.memory, Bytes(80.0 * 1024 * 1024 * 1024));
  CHECK_EQ(cluster.machines.front().port_latency, Seconds(2e-6));
  CHECK_EQ(cluster.machines.front().port_bandwidth, BytesPerSecond(100e9));
  CHECK_FALSE(has_rates(cluster.machines.front().device));
}

TEST_CASE("a uniform cluster may name its device, and then its memory is optional") {
  const Cluster own = read_good(R"({"kind": "uniform", "devices": 2, "device": "h100",
    "link": {"bandwidth": "1 GB/s"}})");
  CHECK(supports(own.machines.front().device, Precision::Fp8));
  CHECK_GT(own.machines.front().device.memory, Bytes(80e9));
  CHECK_EQ(own.machines.front().port_latency, Seconds());
  const Cluster other = read_good(kUniform + std::string(R"(, "device": "h100"})"));
  CHECK_EQ(other.machines.front().device.memory, Bytes(80.0 * 1024 * 1024 * 1024));
}

TEST_CASE("a device may be written out") {
  const Cluster cluster = read_good(kUniform + std::string(R"(, "device": {"name": "toy",
    "memory": "1 GB", "memory_bandwidth": "1 TB/s", "launch_overhead": "1 us",
    "peak": {"fp16": "10 TFLOP/s"}, "efficiency": {"gemm": {"compute": 0.5}}}})"));
  CHECK_EQ(cluster.machines.front().device.name, "toy");
  const Work work{.op_class = OpClass::Gemm, .flops = Flops(5e6), .bytes = Bytes()};
  MESSAGE("1 us + 5e6 / (0.5 * 10e12) = 2 us");
  CHECK_EQ(time_of(work, cluster.machines.front().device, Precision::Fp16).value(),
           doctest::Approx(2e-6));
}

TEST_CASE("a machine may be written out") {
  const Cluster cluster = read_good(kMachine + std::string(R"("nodes": 3, "devices": 9})"));
  CHECK_EQ(cluster.devices, 9);
  CHECK_EQ(cluster.machines.front().cards_per_node, 2);
  MESSAGE("200 Gb/s = 25 GB/s");
  CHECK_EQ(cluster.machines.front().card_bandwidth, BytesPerSecond(25e9));
}

TEST_CASE("a machine file is found beside the scenario that names it") {
  const std::string path = "cluster_reader_test_machine.json";
  write_file(path, std::string(kMachine) + R"("name": "ours"})");
  const Reading reading = read(R"({"machine": "./)" + path + R"(", "nodes": 2})", "./s.json");
  CHECK_EQ(reading.mistakes, "");
  CHECK_EQ(reading.cluster.name, "ours");
  CHECK_EQ(reading.cluster.devices, 8);
  write_file(path, "{\n  \"device\": \"h100\",\n  \"port\": {\"bandwidth\": 3}\n}\n");
  CHECK_EQ(mistakes("\"" + path + "\""),
           path +
               ":3: /port/bandwidth: a plain number has no unit; expected a bandwidth such as "
               "\"450 GB/s\", got 3");
  std::remove(path.c_str());
}

TEST_CASE("more devices than the nodes have are refused") {
  CHECK_EQ(mistakes(R"({"machine": "dgx-h100", "devices": 9})"),
           "s.json:1: /cluster/devices: too many devices; expected 1 to the 8 devices of 1 node "
           "of \"dgx-h100\", got 9");
  CHECK_EQ(mistakes(R"({"machine": "dgx-h100", "nodes": 200000})"),
           "s.json:1: /cluster: too many devices; expected at most 1000000, got the 1600000 "
           "devices of 200000 nodes of \"dgx-h100\"");
  CHECK_EQ(mistakes(R"({"machine": "dgx-h100", "nodes": 0, "devices": 1.5})"),
           "s.json:1: /cluster/nodes: expected a whole number from 1 to 1000000, got 0\n"
           "s.json:1: /cluster/devices: expected a whole number from 1 to 1000000, got 1.5");
}

TEST_CASE("unknown names and keys are answered with the nearest known ones") {
  CHECK_EQ(mistakes(R"("dgx-a100-80")"),
           "s.json:1: /cluster: unknown name \"dgx-a100-80\"; did you mean \"dgx-a100-80g\"?");
  CHECK_EQ(mistakes(R"("dgx-a100")"),
           "s.json:1: /cluster: unknown name \"dgx-a100\"; did you mean \"dgx-a100-40g\" or "
           "\"dgx-a100-80g\"?");
  const std::string none = mistakes(R"("frontier")");
  CHECK(none.starts_with("s.json:1: /cluster: unknown name \"frontier\"; known: a3-highgpu-8g, "));
  for (const std::string& name : catalogue_names()) CHECK(none.find(name) != std::string::npos);
  CHECK_EQ(mistakes(R"({"machine": "dgx-h100", "node": 2})"),
           "s.json:1: /cluster/node: unknown key; did you mean \"nodes\"?");
  CHECK_EQ(mistakes(R"({"machin": "dgx-h100"})"),
           "s.json:1: /cluster: missing key \"machine\"; expected a machine's name, or the path "
           "of its file\n"
           "s.json:1: /cluster/machin: unknown key; did you mean \"machine\"?");
  CHECK_EQ(mistakes(R"({"kind": "ring"})"),
           "s.json:1: /cluster/kind: unknown name \"ring\"; known: uniform, machine");
  CHECK_EQ(mistakes("3"),
           "s.json:1: /cluster: wrong type; expected a name, the path of a file, or an object, "
           "got 3");
}

TEST_CASE("quantities must be positive, finite and sane") {
  const std::string head = R"({"kind": "uniform", "devices": 2, "memory": )";
  CHECK_EQ(mistakes(head + R"("0 B", "link": {"latency": "-1 us", "bandwidth": "0 GB/s"}})"),
           "s.json:1: /cluster/memory: out of range; expected 1 B to 1000 PB, got \"0 B\"\n"
           "s.json:1: /cluster/link/latency: must not be negative; expected a time such as "
           "\"3 us\", got \"-1 us\"\n"
           "s.json:1: /cluster/link/bandwidth: must be above zero; expected a bandwidth such as "
           "\"450 GB/s\", got \"0 GB/s\"");
  CHECK_EQ(mistakes(head + R"("1e30 GB", "link": {"latency": "1e9 s", "bandwidth": "3 us"}})"),
           "s.json:1: /cluster/memory: out of range; expected 1 B to 1000 PB, got \"1e30 GB\"\n"
           "s.json:1: /cluster/link/latency: out of range; expected 0 s to 1000 s, got \"1e9 s\"\n"
           "s.json:1: /cluster/link/bandwidth: wrong unit; expected a bandwidth such as "
           "\"450 GB/s\", got \"3 us\"");
}

TEST_CASE("the bounds that a refusal names are accepted") {
  const auto uniform = [](const std::string& memory, const std::string& latency,
                          const std::string& bandwidth) {
    return mistakes(R"({"kind": "uniform", "devices": 2, "memory": ")" + memory +
                    R"(", "link": {"latency": ")" + latency + R"(", "bandwidth": ")" + bandwidth +
                    "\"}}");
  };
  const std::string told = uniform("1e30 GB", "1e9 s", "1e-9 B/s");
  std::vector<std::string> least, most;  // of what is read one after the other
  for (std::size_t at = 0; (at = told.find("expected ", at)) != std::string::npos;) {
    at += 9;
    const std::size_t to = told.find(" to ", at), end = told.find(',', at);
    least.push_back(told.substr(at, to - at));
    most.push_back(told.substr(to + 4, end - to - 4));
  }
  REQUIRE(least.size() == 3);
  CAPTURE(told);
  CHECK(uniform(least[0], least[1], least[2]) == "");
  CHECK(uniform(most[0], most[1], most[2]) == "");
}

TEST_CASE("what is missing is named") {
  CHECK_EQ(mistakes(R"({"kind": "uniform"})"),
           "s.json:1: /cluster: missing key \"devices\"; expected a number of devices\n"
           "s.json:1: /cluster: missing key \"memory\"; expected a size such as \"80 GiB\"\n"
           "s.json:1: /cluster: missing key \"link\"; expected an object with \"latency\" and "
           "\"bandwidth\"");
  CHECK_EQ(mistakes(R"({"kind": "machine"})"),
           "s.json:1: /cluster: missing key \"device\"; expected a device's name, or an object\n"
           "s.json:1: /cluster: missing key \"port\"; expected an object with \"latency\" and "
           "\"bandwidth\"");
}

TEST_CASE("a device that says too little, or too much, is refused") {
  const auto with_device = [](const std::string& device) {
    return mistakes(kUniform + (", \"device\": " + device + "}"));
  };
  CHECK_EQ(with_device(R"({"peak": {}})"),
           "s.json:2: /cluster/device: missing key \"memory\"; expected a size such as "
           "\"80 GiB\"\n"
           "s.json:2: /cluster/device: missing key \"memory_bandwidth\"; expected a bandwidth such "
           "as \"300 GB/s\"\n"
           "s.json:2: /cluster/device/peak: no rate; expected at least one of fp32, tf32, fp16, "
           "bf16, fp8 or fp4");
  const std::string good = R"("memory": "1 GB", "memory_bandwidth": "1 TB/s", )";
  CHECK_EQ(with_device("{" + good + R"("peak": {"int8": "1 TFLOP/s"}})"),
           "s.json:2: /cluster/device/peak/int8: unknown key; known: fp32, tf32, fp16, "
           "bf16, fp8, fp4");
  CHECK_EQ(with_device("{" + good + R"("peak": {"fp32": "1 TFLOP/s"},
                                       "efficiency": {"gemm": {"compute": 1.5}}})"),
           "s.json:3: /cluster/device/efficiency/gemm/compute: expected a number from 0.001 to 1, "
           "got 1.5");
  CHECK_EQ(with_device("\"h300\""),
           "s.json:2: /cluster/device: unknown name \"h300\"; known: a100-40g, a100-80g, "
           "a100-pcie-80g, b200, b300, gaudi3, gb200, gb300, h100, h20, h200, "
           "... (did you mean \"b300\"?)");
}

TEST_CASE("a machine without network cards has one node") {
  CHECK_EQ(mistakes(R"({"kind": "machine", "device": "h100", "devices_per_node": 2, "nodes": 2,
                        "port": {"bandwidth": "1 GB/s"}})"),
           "s.json:1: /cluster/nodes: \"inline\" has no network cards; expected 1 node");
}

TEST_CASE("a machine file that is not there or not JSON is reported where it is named") {
  CHECK_EQ(mistakes(R"({"machine": "nowhere/m.json", "nodes": 2})"),
           "s.json:1: /cluster/machine: nowhere/m.json: cannot be read: no such file or directory");
  const std::string path = "cluster_reader_test_torn.json";
  write_file(path, "{\n  \"device\": ");
  const std::string told = mistakes("\"" + path + "\"");
  MESSAGE(told);
  CHECK(told.starts_with("s.json:1: /cluster: " + path + ":2: "));
  std::remove(path.c_str());
}

}  // namespace interlock::cluster_reader_test
