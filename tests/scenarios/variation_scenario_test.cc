// "variation": what it is refused with, what it folds, and what it means for links and partitions.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::variation_scenario_test {
namespace {

TEST_CASE("all mistakes of a variation are told") {
  CHECK(mistakes({R"(variation={
            "stragglers": [{"slowdown": 2}, {"rank": 1, "slowdown": 0},
                           {"device": 1, "rank": 1, "slowdown": 2},
                           {"rank": 0, "slowdown": 2, "from_step": 5, "to_step": 4}],
            "jitter": {"spread": 0.5, "distribution": "normal"},
            "link_jitter": {"per": "op"}, "speeds": [0],
            "slow_links": [{"from": 1, "to": 1, "slowdown": 2}, {"from": 0, "slowdown": 2}]})"}) ==
        "set: /variation/stragglers/0: expected who is slow: a pipeline \"rank\" with all its "
        "devices, or one \"device\" of the machine\n"
        "set: /variation/stragglers/1/slowdown: expected a number from 1 to 1000, got 0\n"
        "set: /variation/stragglers/2: expected who is slow: a pipeline \"rank\" with all its "
        "devices, or one \"device\" of the machine\n"
        "set: /variation/stragglers/3/to_step: ends before step 5, at which it begins; expected "
        "\"to_step\" not below \"from_step\"\n"
        "set: /variation/jitter/spread: times of a normal distribution spread by at most 0.250 "
        "times their mean; expected a number from 0 to that, got 0.500\n"
        "set: /variation/link_jitter/per: unknown name \"op\"; known: message, step, link\n"
        "set: /variation/link_jitter: missing key \"spread\"; expected standard deviation over "
        "mean, e.g. 0.05\n"
        "set: /variation/slow_links/0: a device needs no link to itself; expected two devices\n"
        "set: /variation/slow_links/1: missing key \"to\"; expected the number of a device\n"
        "set: /variation/speeds/0: expected a number from 0.001 to 1000, got 0");
}

TEST_CASE("a variation must fit the layout and the steps that are measured") {
  CHECK(mistakes({R"(variation={
            "stragglers": [{"rank": 4, "slowdown": 2}, {"device": 9, "slowdown": 2},
                           {"rank": 0, "slowdown": 2, "from_step": 9, "to_step": 10}],
            "slow_links": [{"from": 0, "to": 4, "slowdown": 2}], "speeds": [1, 2]})"}) ==
        "set: /variation/stragglers/0/rank: there is no rank 4; expected 0 to 3\n"
        "set: /variation/stragglers/1/device: there is no device 9; expected 0 to 3\n"
        "set: /variation/stragglers/2/from_step: step 9 is not measured; expected 1 to the 8 of "
        "training.steps\n"
        "set: /variation/stragglers/2/to_step: step 10 is not measured; expected 1 to the 8 of "
        "training.steps\n"
        "set: /variation/slow_links/0/to: there is no device 4; expected 0 to 3\n"
        "set: /variation/speeds: has the speeds of 2 ranks; expected one for each of the 4 "
        "pipeline ranks");
  CHECK(mistakes({R"(variation={"seeds": 5})"}) ==
        "set: /variation/seeds: nothing varies at random, so all seeds are alike; expected "
        "\"jitter\", \"link_jitter\" or \"documents\" beside it");
  CHECK(mistakes({R"(variation={"stragglers": {"rank": 1}})"}) ==
        "set: /variation/stragglers: expected a list, e.g. [{\"rank\": 2, \"slowdown\": 1.5}]");
}

/// Two replicas of two stages, device by device: data 0 has devices 0 and 2, data 1 has 1 and 3.
const Overrides kReplicas = {
    "model.modules.0.parameters=1 MB", "parallel={\"pipeline\": 2, \"data\": 2}",
    "training.global_batch_size=8", "training.micro_batches=4", "training.schedule=1f1b"};

Overrides replicas_with(const std::string& variation) {
  Overrides overrides = kReplicas;
  overrides.push_back("variation=" + variation);
  return overrides;
}

int simulated(const Overrides& overrides) {
  const ScenarioResult result = run_scenario(loaded(overrides), false);
  return static_cast<int>(result.measurement.metrics.devices.size());
}

TEST_CASE("one slow device unfolds its replica, a slow rank does not, jitter unfolds everything") {
  CHECK(simulated(kReplicas) == 2);
  CHECK(simulated(replicas_with(R"({"stragglers": [{"rank": 1, "slowdown": 2}]})")) == 2);
  CHECK(simulated(replicas_with(R"({"speeds": [1, 2]})")) == 2);
  CHECK(simulated(replicas_with(R"({"stragglers": [{"device": 1, "slowdown": 2}]})")) == 4);
  CHECK(simulated(replicas_with(
            R"({"stragglers": [{"device": 1, "slowdown": 2, "from_step": 3}]})")) == 4);
  CHECK(simulated(replicas_with(R"({"jitter": {"spread": 0.1}, "seeds": 2})")) == 4);
  CHECK(simulated(replicas_with(R"({"slow_links": [{"from": 0, "to": 2, "slowdown": 2}]})")) == 4);
  // 0 -> 2 leaves by the slow port of 0, 1 -> 3 arrives by that of 3: equal alone, not together.
  Overrides ports = replicas_with(R"({"slow_links": [{"from": 0, "to": 3, "slowdown": 2}]})");
  ports.emplace_back(R"(cluster={"kind": "machine", "device": "a100-80g", "devices_per_node": 4,
      "nodes": 1, "port": {"latency": "0 s", "bandwidth": "1 GB/s"},
      "cards": {"per_node": 1, "latency": "0 s", "bandwidth": "1 GB/s"}})");
  CHECK(simulated(ports) == 4);
}

std::string folding_mistake(const std::string& variation) {
  Overrides overrides = replicas_with(variation);
  overrides.push_back("simulate.fold=[\"data\"]");
  try {
    run_scenario(loaded(overrides), false);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a fold that devices break which differ is refused") {
  const std::string head =
      "test.json: test: /simulate/fold: ranks that stand for others would not do what those do: ";
  const std::string tail = "; expected \"auto\", which simulates them all where it must";
  CHECK(folding_mistake(R"({"stragglers": [{"rank": 1, "slowdown": 2}]})").empty());
  CHECK(folding_mistake(R"({"stragglers": [{"device": 3, "slowdown": 2}]})") ==
        head + "device 3 does not compute as fast as device 2" + tail);
  CHECK(folding_mistake(R"({"jitter": {"spread": 0.1}})") ==
        head + "jitter makes equal devices differ" + tail);
}

TEST_CASE("replicas that add up their gradients all go at the pace of the slow one") {
  const auto step = [](const std::string& variation) {
    return run_scenario(loaded(replicas_with(variation)), false).measurement.metrics.step_time;
  };
  const Seconds whole_rank = step(R"({"stragglers": [{"rank": 1, "slowdown": 2}]})");
  CHECK(step(R"({"stragglers": [{"device": 2, "slowdown": 2}]})") == whole_rank);
  CHECK(step(R"({"stragglers": [{"device": 3, "slowdown": 2}]})") == whole_rank);
  // Two devices of one rank are two stragglers; all of them are the rank.
  CHECK(step(R"({"stragglers": [{"device": 2, "slowdown": 2}, {"device": 3, "slowdown": 2}]})") ==
        whole_rank);
}

TEST_CASE("a slow link is as many times slower, for every message on it") {
  const Question scenario = loaded({R"(variation={"slow_links": [
      {"from": 0, "to": 1, "slowdown": 4}, {"from": 2, "to": 3, "slowdown": 2}]})"});
  const BytesPerSecond whole = route(scenario.cluster, 1, 0).bandwidth;
  CHECK(route(scenario.cluster, 0, 1).bandwidth == whole / 4);
  CHECK(route(scenario.cluster, 2, 3).bandwidth == whole / 2);
  CHECK(route(scenario.cluster, 1, 2).bandwidth == whole);
  const Route way = route(scenario.cluster, 0, 1);
  CHECK(link(scenario.cluster, way.links[0]).bandwidth == whole / 4);
}

TEST_CASE("of a way between nodes the network cards are slow, not the links inside") {
  const Question scenario = loaded(
      {"cluster=null", R"(cluster={"machine": "dgx-a100-80g", "nodes": 2})", "parallel.pipeline=4",
       R"(variation={"slow_links": [{"from": 0, "to": 8, "slowdown": 10}]})"});
  const Cluster whole = [&] {
    Cluster cluster = scenario.cluster;
    cluster.slow_links.clear();
    return cluster;
  }();
  CHECK(route(scenario.cluster, 0, 8).bandwidth == route(whole, 0, 8).bandwidth / 10);
  CHECK(route(scenario.cluster, 0, 1).bandwidth == route(whole, 0, 1).bandwidth);
  CHECK(route(scenario.cluster, 8, 0).bandwidth == route(whole, 8, 0).bandwidth);
}

TEST_CASE("a balanced partition gives slow ranks less; stragglers take it by surprise") {
  const Overrides eight = {R"(model={"kind": "profile", "modules": [{"repeat": 9,
      "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]})",
                           "parallel.pipeline=3"};
  const auto cuts = [&](const std::string& variation) {
    Overrides overrides = eight;
    overrides.push_back("variation=" + variation);
    return lay_out(loaded(overrides)).draft.partition.boundaries;
  };
  CHECK(cuts("{}") == std::vector<int>{0, 3, 6, 9});
  // Speeds 1, 1/4 and 1: 4 + 1 + 4 modules take 4 units of time each.
  CHECK(cuts(R"({"speeds": [1, 0.25, 1]})") == std::vector<int>{0, 4, 5, 9});
  CHECK(cuts(R"({"stragglers": [{"rank": 1, "slowdown": 4}]})") == std::vector<int>{0, 3, 6, 9});
}

TEST_CASE("a rank of twice the speed takes half the time, and counts as two in MFU") {
  const auto metrics = [](const Overrides& overrides) {
    return run_scenario(loaded(overrides), false).measurement.metrics;
  };
  const Metrics alone = metrics({"parallel.pipeline=1", "cluster.devices=1"});
  const Metrics fast =
      metrics({"parallel.pipeline=1", "cluster.devices=1", "variation={\"speeds\": [2]}"});
  CHECK(fast.step_time * 2 == alone.step_time);
  const Overrides transformer = {"model=gpt2", "training.global_batch_size=4", "cluster=null",
                                 "parallel.pipeline=1",
                                 R"(cluster={"machine": "dgx-a100-80g", "devices": 1})"};
  const Metrics slow = metrics(transformer);
  Overrides doubled = transformer;
  doubled.emplace_back("variation={\"speeds\": [2]}");
  const Metrics quick = metrics(doubled);
  REQUIRE(slow.mfu);
  CHECK(*quick.mfu == doctest::Approx(*slow.mfu).epsilon(1e-6));
}

TEST_CASE("results say what varies only where something does") {
  CHECK_FALSE(run_scenario(loaded({R"(variation={"speeds": [1, 1, 1, 0.5]})"}), false).varied);
  const ScenarioResult transient = run_scenario(
      loaded({R"(variation={"stragglers": [{"rank": 0, "slowdown": 2, "to_step": 1}]})"}), false);
  REQUIRE(transient.varied);
  CHECK(transient.varied->seeds == 1);
  const ScenarioResult jittered =
      run_scenario(loaded({R"(variation={"jitter": {"spread": 0.1}, "seeds": 7})"}), false);
  REQUIRE(jittered.varied);
  CHECK(jittered.varied->seeds == 7);
  CHECK(jittered.varied->step_time.p5 < jittered.varied->step_time.p95);
  CHECK(jittered.measurement.metrics.steady);
}

TEST_CASE("a lone step ends when its weights are there, with jitter and without, and says why") {
  const auto measured = [](const std::string& more, const std::string& variation) {
    const std::string text =
        R"({"model": {"kind": "transformer", "layers": 6, "hidden_size": 512, "vocab_size": 8192,
            "sequence_length": 512, "attention_heads": 8, "tied_embeddings": false},
            "cluster": {"machine": "dgx-h100", "devices": 4},
            "training": {"strategy": "global", "steps": 1, "optimizer": "adam",
                         "micro_batch_size": 1, "global_batch_size": 8, )" +
        more + "}, \"variation\": " + variation + "}";
    return run_scenario(load_questions(parse_json(text, "lone.json")).front(), false)
        .measurement.metrics;
  };
  for (const std::string more :
       {R"("schedule": "zb-h1"}, "parallel": {"data": 4, "zero_stage": 1)",
        R"("schedule": "1f1b"}, "parallel": {"pipeline": 2, "data": 2, "zero_stage": 2)",
        R"("schedule": "1f1b", "offload": {"optimizer": 1}}, "parallel": {"data": 4)"}) {
    CAPTURE(more);
    const Metrics plain = measured(more, "{}");
    const Metrics jittered = measured(more, R"({"jitter": {"spread": 1e-9}, "seeds": 2})");
    const Metrics slow =
        measured(more, R"({"stragglers": [{"rank": 0, "slowdown": 1.000001, "to_step": 1}]})");
    const double step = plain.step_time.value();
    CHECK(jittered.step_time.value() == doctest::Approx(step).epsilon(1e-6));
    CHECK(slow.step_time.value() == doctest::Approx(step).epsilon(1e-5));
    REQUIRE(plain.explanation);
    const PathUse& path = plain.explanation->path;
    const double ops = std::accumulate(path.ops.begin(), path.ops.end(), 0.0);
    CHECK(ops + path.messages + path.collectives == doctest::Approx(step).epsilon(1e-9));
    CHECK(path.unknown == 0);
  }
}

}  // namespace
}  // namespace interlock::variation_scenario_test
