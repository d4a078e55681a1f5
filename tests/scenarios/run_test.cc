// "run": what it is refused with, and the plan that a scenario makes of it.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::run_test {
namespace {

/// A step of four modules on four devices, one micro-batch: 12 ms.
RunResult run_of(const Overrides& overrides) {
  const ScenarioResult result = run_scenario(loaded(overrides), false);
  REQUIRE(result.run);
  return *result.run;
}

TEST_CASE("all mistakes of a run are told") {
  CHECK(mistakes({R"(run={"checkpoint": {"interval": true, "stall": "1 s"},
                          "failures": {"device_mtbf": "0 s", "shape": 2, "replacement": "soon"},
                          "on_failure": "panic", "spares": -1})"}) ==
        "set: /run: expected how long to train as one of \"steps\", \"samples\" and \"tokens\"\n"
        "set: /run/checkpoint/interval: expected \"optimal\", \"young\", \"daly\", a time such as "
        "\"30 min\" or a number of steps, got true\n"
        "set: /run/checkpoint: says not how long a write takes; expected a time \"write\", or the "
        "\"bandwidth\" of a device to its storage\n"
        "set: /run/checkpoint/stall: a blocking checkpoint stalls for the whole write; expected "
        "\"asynchronous\": true beside it\n"
        "set: /run/failures/device_mtbf: must be above zero; expected a time such as \"3 h\", got "
        "\"0 s\"\n"
        "set: /run/failures/shape: exponential lives have no shape; expected \"distribution\": "
        "\"weibull\" beside it\n"
        "set: /run/failures/replacement: unknown name \"soon\"; known: never\n"
        "set: /run/on_failure: unknown name \"panic\"; known: restart, drop_replica, wait\n"
        "set: /run/spares: expected a whole number from 0 to 1000000, got -1");
  CHECK(mistakes({R"(run={"steps": 5, "tokens": 5})"}) ==
        "set: /run: expected how long to train as one of \"steps\", \"samples\" and \"tokens\"");
  CHECK(mistakes({R"(run={"steps": 5, "checkpoint": {"write": "1 s", "bytes": "1 GB"}})"})
            .starts_with("set: /run/checkpoint/write: given beside \"bytes\" or \"bandwidth\""));
  CHECK(mistakes({R"(run={"steps": 5, "failures": {"distribution": "weibull"}})"}) ==
        "set: /run/failures/distribution: missing key \"shape\"; expected a number such as 0.7");
}

TEST_CASE("a best interval needs failures that lead back to a checkpoint") {
  CHECK(mistakes({R"(run={"steps": 5, "checkpoint": {"write": "1 s"}})"}) ==
        "set: /run/checkpoint: nothing fails, so there is no best interval; expected an "
        "\"interval\" such as \"30 min\", or \"failures\"");
  CHECK(mistakes({R"(run={"steps": 5, "checkpoint": {"write": "1 s"}, "on_failure": "wait",
                          "failures": {"device_mtbf": "1 d"}})"}) ==
        "set: /run/checkpoint: no formula has an interval for failures that replicas survive; "
        "expected an \"interval\" such as \"30 min\", or \"on_failure\": \"restart\"");
}

TEST_CASE("tokens and samples must be known") {
  CHECK(mistakes({R"(run={"samples": 5})"}) ==
        "set: /run/samples: nothing says how many samples a micro-batch holds; expected \"steps\", "
        "or training.global_batch_size");
  CHECK(mistakes({R"(run={"tokens": 5})", "training.global_batch_size=4"}) ==
        "set: /run/tokens: the model has no tokens; expected \"samples\" or \"steps\"");
  // 1001 samples at 4 a step.
  CHECK(run_of({R"(run={"samples": 1001})", "training.global_batch_size=4"}).plan.steps == 251);
}

TEST_CASE("a run without failures is its steps, and the fill of the first") {
  const RunResult run = run_of({R"(run={"steps": 1000})"});
  CHECK(run.plan.replicas == 1);
  CHECK(run.plan.devices_per_replica == 4);
  CHECK(run.plan.step_time.value() == doctest::Approx(12e-3));
  CHECK(run.statistics.seeds == 1);
  INFO("1000 x 12 ms; a flushed step has nothing left over from before");
  CHECK(run.statistics.wall.mean == doctest::Approx(12));
  CHECK(run.statistics.goodput.mean == doctest::Approx(1));
}

TEST_CASE("steps to a goal are samples over the batch, and those that it takes besides") {
  // K(B) = c1 / B + c2: 1000 samples of 8 a step are 125 steps, and 30 besides.
  const auto steps = [](const std::string& run) {
    const Question scenario = loaded({"training.global_batch_size=8", "run=" + run});
    return run_scenario(scenario, false).run->plan.steps;
  };
  CHECK(steps(R"({"samples": 1000})") == 125);
  CHECK(steps(R"({"samples": 1000, "further_steps": 30})") == 155);
  CHECK(mistakes({R"(run={"steps": 9, "further_steps": 1})"}).find("steps beside steps") !=
        std::string::npos);
}

TEST_CASE("intervals are whole steps, at least one") {
  const auto interval = [](const std::string& written) {
    return run_of({R"(run={"steps": 1000, "failures": {"device_mtbf": "40 min"},
                           "checkpoint": {"write": "1 s", "interval": )" +
                   written + "}}"})
        .plan.checkpoint.interval;
  };
  CHECK(interval("7") == 7);
  CHECK(interval("\"1.2 s\"") == 100);
  CHECK(interval("\"1 us\"") == 1);
  INFO("four devices: a failure every 600 s; sqrt(2 x 1 x 600) = 34.64 s, 2886.8 steps");
  CHECK(interval("\"young\"") == 2887);
  INFO("x = sqrt(1 / 1200) = 0.028868; 34.641 (1 + x / 3 + x^2 / 9) - 1 = 33.978 s");
  CHECK(interval("\"daly\"") == 2831);
  CHECK(interval("\"optimal\"") == 2831);
}

TEST_CASE("what a checkpoint holds is weights and optimiser states, unless it is said") {
  const std::string run =
      R"(run={"steps": 10, "checkpoint": {"interval": 5, "bandwidth": "1 GB/s")";
  const Overrides weights = {"model.modules.0.parameters=2 GB", "training.optimizer=adam"};
  Overrides overrides = weights;
  overrides.push_back(run + "}}");
  // bf16 weights of 2 GB are 10^9 parameters; Adam keeps 12 bytes of each.
  CHECK(run_of(overrides).plan.checkpoint.write.value() == doctest::Approx(14));
  overrides.back() = run + R"(, "bytes": "3 GB"}})";
  CHECK(run_of(overrides).plan.checkpoint.write.value() == doctest::Approx(3));
  CHECK(run_of(overrides).plan.reload.value() == doctest::Approx(3));
}

TEST_CASE("links and nodes fail beside devices") {
  const RunResult run = run_of({R"(run={"steps": 10, "failures":
      {"device_mtbf": "10 h", "link_mtbf": "20 h", "node_mtbf": "40 h", "replacement": "never"},
      "spares": 2})"});
  const FailureModel& failures = run.plan.failures;
  REQUIRE(failures.kinds.size() == 3);
  for (const FailingParts& kind : failures.kinds) {
    CHECK(kind.parts * kind.devices_per_part >= 6);
  }
  CHECK(!failures.replacement);
}

TEST_CASE("a trace is read from where the scenario is, and must fit its devices") {
  const std::string path = std::filesystem::temp_directory_path() / "interlock_outages_test.csv";
  write_file(path, "time_s,device,event\n1,9,down\n");
  const std::string said =
      mistakes({R"(run={"steps": 5, "failures": {"trace": ")" + path + R"("}})"});
  CHECK(said ==
        "set: /run/failures/trace: device 9 goes down before it was ever up; expected devices "
        "below the 4 of the run and its spares, or an \"up\" before");
  write_file(path, "time_s,device,event\n0.030,2,down\n");
  const Overrides overrides = {R"(run={"steps": 5, "failures": {"trace": ")" + path + R"("}})"};
  try {
    run_of(overrides);
    FAIL("a run without its devices ends");
  } catch (const Error& error) {
    CHECK(
        std::string(error.what())
            .find("after 30.0 ms, at step 0 of 5, only 3 of the 4 devices that training needs are "
                  "left, and no other comes back; expected more \"spares\"") != std::string::npos);
  }
  std::filesystem::remove(path);
  CHECK(mistakes(overrides).find("interlock_outages_test.csv") != std::string::npos);
}

TEST_CASE("a dropped replica's micro-batches take what more of them take") {
  // Two replicas of two stages, F = 1 ms, B = 2 ms, four micro-batches each: (4 + 1) x 3 x 2
  // modules = 30 ms; each further one 6 ms. With one replica, eight: 54 ms.
  const RunResult run = run_of({"parallel={\"pipeline\": 2, \"data\": 2}", "training.schedule=1f1b",
                                "training.global_batch_size=8", "training.micro_batch_size=1",
                                R"(run={"steps": 5, "on_failure": "drop_replica"})"});
  CHECK(run.plan.replicas == 2);
  CHECK(run.plan.devices_per_replica == 2);
  CHECK(run.plan.micro_batches == 4);
  CHECK(run.plan.replicas_hold_state);
  CHECK(step_time_of(run.plan, 2).value() == doctest::Approx(30e-3));
  CHECK(step_time_of(run.plan, 1).value() == doctest::Approx(54e-3));
}

TEST_CASE("ZeRO's replicas hold the state only together") {
  const auto held = [](const std::string& parallel) {
    return run_of({"parallel=" + parallel, "training.global_batch_size=8", R"(run={"steps": 5})"})
        .plan.replicas_hold_state;
  };
  CHECK(held(R"({"pipeline": 2, "data": 2})"));
  CHECK(!held(R"({"pipeline": 2, "data": 2, "zero_stage": 1})"));
}

}  // namespace
}  // namespace interlock::run_test
