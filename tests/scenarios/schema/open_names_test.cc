// Keys inside a machine, a device or a framework that a scenario only names.
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "scenarios/contract/set_key.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::open_names_test {
namespace {

constexpr const char* kNamed = R"({
  "model": "gpt2", "cluster": {"machine": "dgx-a100-80g", "nodes": 2},
  "parallel": {"pipeline": 8, "data": 2},
  "training": {"strategy": "global", "global_batch_size": 32, "framework": "nemo", "steps": 1}
})";

JsonValue with(const std::string& path, const std::string& value, const char* text = kNamed) {
  JsonValue document = parse_json(text, "test.json");
  set_key(document, path, parse_override(value, "--set " + path), "--set " + path);
  return document;
}

Question one(const JsonValue& document) { return load_questions(document).front(); }

TEST_CASE("a machine that is opened is the same machine but for the key") {
  const Question named = one(parse_json(kNamed, "test.json"));
  const Question opened = one(with("cluster.port.bandwidth", "600 GB/s"));
  CHECK(named.cluster.machines.front().port_bandwidth == BytesPerSecond(231e9));
  MESSAGE("0.77 of 300 and of 600 GB/s");
  CHECK(opened.cluster.machines.front().port_bandwidth == BytesPerSecond(462e9));
  CHECK(opened.cluster.machines.front().port_latency ==
        named.cluster.machines.front().port_latency);
  CHECK(opened.cluster.machines.front().card_bandwidth ==
        named.cluster.machines.front().card_bandwidth);
  CHECK(opened.cluster.devices == 16);
  CHECK(opened.cluster.name == "dgx-a100-80g");
  CHECK(opened.cluster.machines.front().device.name == named.cluster.machines.front().device.name);
  CHECK(opened.cluster.machines.front().host_memory == named.cluster.machines.front().host_memory);
}

TEST_CASE("what is set to what it was anyway changes nothing of a run") {
  const Seconds step =
      run_scenario(one(parse_json(kNamed, "test.json")), false).measurement.metrics.step_time;
  for (const auto& [key, value] : {std::pair{"cluster.port.bandwidth", "300 GB/s"},
                                   {"cluster.devices_per_node", "8"},
                                   {"cluster.device.memory", "79.15 GiB"},
                                   {"cluster.device.peak.bf16", "312 TFLOP/s"},
                                   {"training.framework.loss_traffic", "2"}}) {
    const std::string path = key;
    CAPTURE(path);
    const Question scenario = one(with(path, value));
    CHECK(run_scenario(scenario, false).measurement.metrics.step_time == step);
  }
}

TEST_CASE("a bare name opens too, and a device in it") {
  const char* bare = R"({"model": "gpt2", "cluster": "dgx-h100",
    "training": {"strategy": "global", "global_batch_size": 32}})";
  const Question scenario = one(with("cluster.device.launch_overhead", "7 us", bare));
  CHECK(scenario.cluster.machines.front().device.launch_overhead == Seconds(7e-6));
  CHECK(scenario.cluster.devices == 8);
  CHECK(one(with("cluster.device", "b200", bare)).cluster.machines.front().device.name ==
        one(with("cluster", "dgx-b200", bare)).cluster.machines.front().device.name);
}

TEST_CASE("a key inside the network of a machine opens it, a whole network does not") {
  const char* pod = R"({"model": "gpt2", "cluster": "tpu-v3-pod",
    "training": {"strategy": "global", "global_batch_size": 32}})";
  JsonValue document = with("cluster.network.link.bandwidth", "200 GB/s", pod);
  CHECK(document.find("cluster")->find("machine") == nullptr);
  CHECK(document.find("cluster")->find("network")->find("dimensions") != nullptr);
  document = with("cluster.network", R"({"kind": "switch"})", kNamed);
  CHECK(document.find("cluster")->find("machine") != nullptr);
}

TEST_CASE("a misspelt key opens nothing, and a name that is none is blamed") {
  CHECK(mistakes_of(with("cluster.devcies", "4")).find("did you mean \"devices\"?") !=
        std::string::npos);
  std::string said;
  try {
    with("cluster.port.bandwidth", "1 GB/s", R"({"cluster": "dgx-a10"})");
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said.find("--set cluster.port.bandwidth: ") == 0);
  CHECK(said.find("dgx-a10") != std::string::npos);
}

}  // namespace
}  // namespace interlock::open_names_test
