// Messages between stages as a framework sends them, against times counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/plan/small_run.h"

namespace interlock::framework_messages_test {

TEST_CASE("copies of messages stand between kernels, at both ends and in both directions") {
  // Two ranks, one micro-batch: F0 F1 B1 B0, each with one copy of 2 x 128 x 256 16-bit numbers.
  Overrides two = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})", "parallel.pipeline=2",
                   "training.micro_batches=1"};
  const auto step = [&](const std::string& framework) {
    Overrides all = two;
    all.push_back("training.framework=" + framework);
    return step_of(run(small_run(all)));
  };
  const double copy = 2 * 128 * 256 * 2 / 1e6;
  CHECK(step(R"({"message_copies": "1 MB/s"})") - step("{}") ==
        doctest::Approx(4 * copy).epsilon(1e-9));
  MESSAGE("local training: outputs only");
  two.push_back("training.strategy=local");
  CHECK(step(R"({"message_copies": "1 MB/s"})") - step("{}") ==
        doctest::Approx(2 * copy).epsilon(1e-9));
}

TEST_CASE("divided messages: each tensor device sends its part, and they gather what arrived") {
  // Two nodes of two tensor devices, each with a card of 1 MB/s; nothing else takes its time.
  Overrides two = {R"(cluster={"kind": "machine", "device": "a100-80g", "devices_per_node": 2,
                       "port": {"latency": "0 s", "bandwidth": "1 TB/s"}, "nodes": 2,
                       "cards": {"per_node": 2, "latency": "0 s", "bandwidth": "1 MB/s"}})",
                   "parallel.pipeline=2", "parallel.tensor=2", "training.micro_batches=1"};
  const auto step = [&](const std::string& framework) {
    Overrides all = two;
    all.push_back("training.framework=" + framework);
    return step_of(run(small_run(all)));
  };
  const double message = 2 * 128 * 256 * 2;  // bytes: 2 samples of 128 tokens, 256 wide, 16 bits
  const double gather = message / 2 / 1e12;
  CHECK(step("{}") - step(R"({"divides_messages": true})") ==
        doctest::Approx(2 * (message / 2 / 1e6 - gather)).epsilon(1e-9));
  MESSAGE("both ends hold the whole output, however it is sent");
  for (const char* const strategy : {"global", "local"}) {
    CAPTURE(strategy);
    const auto held = [&](const std::string& framework) {
      Overrides all = two;
      all.insert(all.end(),
                 {"training.framework=" + framework, std::string("training.strategy=") + strategy});
      std::vector<double> most;
      for (const DeviceMetrics& device : run(small_run(all)).measurement.metrics.devices) {
        most.push_back(device.peak_memory.value());
      }
      return most;
    };
    CHECK(held(R"({"divides_messages": true})") == held("{}"));
  }
  MESSAGE("parts of the sequence are divided already");
  two.push_back("parallel.sequence_parallel=true");
  CHECK(step("{}") == step(R"({"divides_messages": true})"));
}

TEST_CASE("a device stands until what it sends has left") {
  const auto step = [](const std::string& framework, const std::string& engine) {
    return step_of(run({R"(model={"kind": "profile", "modules": [
                            {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms",
                             "backward_weight": "1 ms", "output": "1 MB"}]})",
                        R"(cluster={"kind": "uniform", "devices": 2, "memory": "1 GB",
                                    "link": {"bandwidth": "1 GB/s"}})",
                        "parallel.pipeline=2", "training.strategy=global",
                        "training.schedule=gpipe", "training.micro_batches=4", "training.steps=1",
                        "training.framework=" + framework, "simulate.engine=" + engine}));
  };
  for (const std::string engine : {"native", "simgrid"}) {
    // Messages arrive at 2, 3, 4, 5 ms; backwards of the second device end at 8, 10, 12, 14 ms,
    // the last gradient arrives at 15 ms and takes 2 ms more.
    CHECK(step("{}", engine) == doctest::Approx(17e-3));
    // A forward and its message, 2 ms, four times, and the last forward: 9 ms. A backward and its
    // message take 3 ms: the last gradient is there at 9 + 4 x 3 = 21 ms.
    CHECK(step(R"({"waits_for_sends": true})", engine) == doctest::Approx(23e-3));
  }
}

TEST_CASE("a device that stands until its message has left waits for all of it on a shared card") {
  // Two pipelines over the one card of each node: two messages of 1 MB at once take 2 ms.
  const auto run_of = [](const std::string& fold) {
    return run({R"(model={"kind": "profile", "modules": [
                     {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms",
                      "backward_weight": "1 ms", "output": "1 MB"}]})",
                R"(cluster={"kind": "machine", "device": "a100-80g", "devices_per_node": 2,
                    "nodes": 2, "port": {"latency": "0 s", "bandwidth": "1 TB/s"},
                    "cards": {"per_node": 1, "latency": "0 s", "bandwidth": "1 GB/s"}})",
                "parallel.pipeline=2", "parallel.data=2", "training.strategy=global",
                "training.schedule=gpipe", "training.micro_batches=2", "training.steps=1",
                R"(training.framework={"waits_for_sends": true})", "simulate.fold=" + fold});
  };
  const ScenarioResult whole = run_of("none"), folded = run_of("auto");
  REQUIRE(whole.measurement.metrics.devices.size() == 4);
  REQUIRE(folded.measurement.metrics.devices.size() == 2);
  // The first device: F 0 to 1, stands to 3, F to 4, idle to 11, B in 2 ms each, of gradients that
  // are on their way from 9 to 11 and from 13 to 15. Of a wait for two messages the last counts.
  for (const ScenarioResult* result : {&whole, &folded}) {
    CHECK(step_of(*result) == doctest::Approx(17e-3));
    const auto& first = result->measurement.metrics.devices.front();
    CHECK(first.time[static_cast<int>(TimeUse::Exposed)] == doctest::Approx(6. / 17));
  }
}

TEST_CASE("a receiver announces its rendezvous across waits for weights that nothing gathers yet") {
  const auto step = [](const std::string& engine) {
    return step_of(
        run({R"(model={"kind": "profile", "modules": [
            {"forward": "4 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
             "head": "1 ms", "output": "5 MB", "parameters": "48 MB"},
            {"forward": "1 ms", "backward_input": "2 ms", "backward_weight": "1 ms",
             "head": "1 ms", "parameters": "20 MB"}]})",
             R"(cluster={"kind": "uniform", "devices": 4, "memory": "80 GB",
                                    "link": {"bandwidth": "0.5 GB/s"}})",
             R"(parallel={"pipeline": 2, "data": 2, "zero_stage": 1,
                                     "overlap_weights": true, "bucket": "8 MB"})",
             "training.strategy=local",
             R"(training.schedule={"kind": "eager", "in_flight": 1,
                                              "queue": "rendezvous"})",
             "training.micro_batches=3", "training.steps=1", "simulate.engine=" + engine}));
  };
  CHECK(step("native") == doctest::Approx(step("simgrid")).epsilon(1e-9));
}

}  // namespace interlock::framework_messages_test
