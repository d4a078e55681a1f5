// "swarm": what it is refused with, and the swarm that a scenario makes of its stages.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::swarm_scenario_test {
namespace {

SwarmResult swarm_in(const Overrides& overrides) {
  const ScenarioResult result = run_scenario(loaded(overrides), false);
  REQUIRE(result.swarm);
  return *result.swarm;
}

TEST_CASE("all mistakes of a swarm are told") {
  CHECK(mistakes({R"(swarm={"peers": 0, "speed": [1, 0], "down": "0 B/s", "latency": [],
                            "routing": "fast", "rebalance_every": "0 s", "in_flight": 0,
                            "failures": {"shape": 2}, "warm_up": "1 h", "peer": 3})"}) ==
        "set: /swarm/peers: expected a whole number from 1 to 100000, got 0\n"
        "set: /swarm/speed/1: expected a number from 0.001 to 1000, got 0\n"
        "set: /swarm: missing key \"up\"; expected a bandwidth such as \"200 Mb/s\"\n"
        "set: /swarm/down: must be above zero; expected a bandwidth such as \"450 GB/s\", got "
        "\"0 B/s\"\n"
        "set: /swarm/latency: an empty list; expected a value for each peer in turn\n"
        "set: /swarm/routing: unknown name \"fast\"; known: weighted, random, round_robin\n"
        "set: /swarm/in_flight: expected a whole number from 1 to 1000000, got 0\n"
        "set: /swarm/failures/shape: exponential lives have no shape; expected \"distribution\": "
        "\"weibull\" beside it\n"
        "set: /swarm/rebalance_every: must be above zero; expected a time such as \"3 h\", got "
        "\"0 s\"\n"
        "set: /swarm/warm_up: nothing is left to measure; expected less than the duration of "
        "1.00 h\n"
        "set: /swarm/peer: unknown key; did you mean \"peers\"?");
}

TEST_CASE("a swarm must fit the rest of its scenario") {
  CHECK(mistakes({R"(swarm={"peers": [1, 2], "up": "1 Gb/s"})"}) ==
        "set: /swarm/peers: expected a number of peers for each of the 4 stages, got 2 numbers");
  CHECK(mistakes({R"(swarm={"peers": 99999, "up": "1 Gb/s"})"}) ==
        "set: /swarm/peers: 400 k peers in all; expected at most 100 k");
  CHECK(mistakes({R"(swarm={"peers": 1, "up": "1 Gb/s"})", "training.strategy=local"}) ==
        "set: /swarm: peers of a swarm send gradients through all stages; expected \"strategy\": "
        "\"global\"");
  CHECK(mistakes({R"(swarm={"peers": 1, "up": "1 Gb/s"})", "cluster.devices=8", "parallel.data=2",
                  "training.global_batch_size=2"}) ==
        "set: /swarm: a peer of a swarm is one device, and peers of a stage are its data "
        "parallelism; expected \"parallel\" with nothing but \"pipeline\" and \"stages\"");
}

/// Returns the message with which a run of kFourModules with `overrides` is refused.
std::string refusal(const Overrides& overrides) {
  try {
    run_scenario(loaded(overrides), false);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a swarm that cannot go on, or would be absurdly long, is refused") {
  CHECK(refusal({R"(swarm={"peers": [1, 0, 1, 1], "up": "1 Gb/s"})"})
            .ends_with("stage 1 of the swarm has no peer, no peer joins later, and "
                       "none moves there without rebalancing; expected more peers, or failures "
                       "with a \"replacement\""));
  CHECK(refusal({R"(swarm={"peers": 1000, "up": "1 Gb/s", "duration": "100 d"})"})
            .find("ops in 100 d under 5 seeds; expected at most 300 M") != std::string::npos);
}

TEST_CASE("a swarm takes its stages' costs, messages and states from the scenario") {
  const SwarmResult swarm =
      swarm_in({R"(model={"kind": "profile", "modules": [
          {"forward": "1 ms", "backward_input": "2 ms", "backward_weight": "3 ms",
           "update": "4 ms", "output": "8192 B", "parameters": "100 B"},
          {"forward": "10 ms", "backward_input": "20 ms", "backward_weight": "30 ms"}]})",
                "cluster.devices=2", "training.precision=fp16", "training.optimizer=adam",
                "training.micro_batches=6",
                R"(swarm={"peers": [1, 3], "up": ["1 MB/s", "2 MB/s"], "speed": [1, 2, 4],
                 "latency": "5 ms", "compression": "int8", "duration": "10 s", "seeds": 2})"});
  const SwarmInputs& inputs = swarm.inputs;
  REQUIRE(inputs.stages.size() == 2);
  CHECK(inputs.stages[0].forward == Seconds(1e-3));
  CHECK(inputs.stages[0].backward == Seconds(5e-3));
  CHECK(inputs.stages[0].update == Seconds(4e-3));
  CHECK(inputs.stages[0].input == Bytes(0));
  INFO("8192 B in fp16 are 4096 elements: 4096 bytes and one scale of 4");
  CHECK(inputs.stages[1].input == Bytes(4100));
  CHECK(inputs.stages[1].gradient_message == Bytes(4100));
  INFO("100 B of fp16 weights: 50 parameters with gradients of 2 B, states of 12 B");
  CHECK(inputs.stages[0].gradients == Bytes(100));
  CHECK(inputs.stages[0].state == Bytes(100 + 600));
  CHECK(inputs.micro_batches == 6);
  REQUIRE(inputs.peers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(inputs.peers[i].stage == (i == 0 ? 0 : 1));
    CHECK(inputs.peers[i].speed == std::vector<double>{1, 2, 4, 1}[i]);
    CHECK(inputs.peers[i].up == BytesPerSecond(i % 2 == 0 ? 1e6 : 2e6));
    CHECK(inputs.peers[i].down == inputs.peers[i].up);
  }
  CHECK(swarm.statistics.seeds == 2);
  // Stage 0 takes 1 + 1 + 5 ms, so it holds the rate at 1 / 7 ms; stage 1 could do 7 / 60 ms.
  CHECK(swarm.statistics.micro_batches_per_s.mean <= 7 / 60e-3);
  CHECK(swarm.statistics.micro_batches_per_s.mean > 0.5 * 7 / 60e-3);
}

TEST_CASE("a trace of outages brings peers that come later") {
  const std::string trace = (std::filesystem::temp_directory_path() / "swarm_trace.csv").string();
  write_file(trace, "time_s,device,event\n5,3,up\n8,0,down\n");
  const std::string swarm = R"(swarm={"peers": [2, 1, 1, 1], "up": "1 Gb/s", "duration": "20 s",
                                      "seeds": 1, "failures": {"trace": ")" +
                            trace + "\"}}";
  const SwarmResult result = swarm_in({swarm});
  // Peers 0 and 1 serve the first stage, 3 the third: that one is empty until peer 3 joins it.
  CHECK(result.statistics.joins.mean == 1);
  CHECK(result.statistics.failures.mean == 1);
  CHECK(result.statistics.without_a_peer_s.mean == doctest::Approx(3).epsilon(1e-3));
  write_file(trace, "time_s,device,event\n5,5,down\n");
  CHECK(mistakes({swarm}) ==
        "set: /swarm/failures/trace: there is no peer 5; expected devices below the 5 peers of "
        "the swarm, those that join later included");
}

}  // namespace
}  // namespace interlock::swarm_scenario_test
