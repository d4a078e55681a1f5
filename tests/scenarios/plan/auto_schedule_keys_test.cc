// "auto": its keys, what it refuses, and what is left of the scenario once an order is found.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/lower/list_inputs.h"
#include "tests/scenarios/documents.h"

namespace interlock::auto_schedule_keys_test {
namespace {

const Overrides kAuto = {"training.micro_batches=4"};

Overrides searching(const std::string& schedule) {
  Overrides overrides = kAuto;
  overrides.push_back("training.schedule=" + schedule);
  return overrides;
}

TEST_CASE("auto takes a memory and a number of evaluations") {
  const Question scenario =
      loaded(searching(R"({"kind": "auto", "memory": "60 GiB", "evaluations": 20})"));
  const Training& training = scenario.training();
  CHECK(training.schedule.kind->name == "auto");
  CHECK(training.schedule.memory == Bytes(60.0 * 1024 * 1024 * 1024));
  CHECK(training.schedule.evaluations == 20);
  CHECK_FALSE(training.schedule.order);
}

TEST_CASE("no other schedule has them") {
  CHECK(mistakes(searching(R"({"kind": "1f1b", "memory": "60 GiB"})")) ==
        "set: /training/schedule/memory: \"1f1b\" searches for nothing; expected it with "
        "\"auto\"");
}

TEST_CASE("auto chooses how backwards are split") {
  CHECK(mistakes(searching(R"({"kind": "auto", "backward": "split"})")) ==
        "set: /training/schedule/backward: \"auto\" tries fused and split backwards; "
        "expected no \"backward\"");
}

TEST_CASE("global training by auto updates once a step and has no limit in flight") {
  CHECK(mistakes(searching(R"({"kind": "auto", "update_every": 2})")) ==
        "set: /training/schedule/update_every: \"auto\" updates once for each step; "
        "expected its 4 micro-batches, got 2");
  CHECK(mistakes(searching(R"({"kind": "auto", "in_flight": 2})")) ==
        "set: /training/schedule/in_flight: only \"eager\" and \"auto\" have a limit to set; "
        "expected 1 with \"auto\", got 2");
}

TEST_CASE("a plan has a schedule that is found no second time") {
  const Plan plan = make_plan(loaded(searching("\"auto\"")));
  CHECK((plan.schedule.kind->name != "auto" || plan.schedule.order));
  const Plan again = complete({plan});
  CHECK(again.schedule.kind == plan.schedule.kind);
  CHECK(again.schedule.order == plan.schedule.order);
}

TEST_CASE("an order is found where replicas share cards and kernels slow down beside messages") {
  const std::string text =
      R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 256, "vocab_size": 512,
          "sequence_length": 128, "attention_heads": 8}, "parallel": {"data": 4},
          "cluster": {"kind": "machine", "device": "h200", "devices_per_node": 2, "nodes": 4,
                      "port": {"bandwidth": "200 GB/s"}, "cards": {"bandwidth": "25 GB/s"}},
          "training": {"strategy": "global", "schedule": "auto", "global_batch_size": 32},
          "simulate": {"memory_contention": true}})";
  const Question question = load_questions(parse_json(text, "shared.json")).front();
  CHECK(run_scenario(question, false).measurement.metrics.step_time > Seconds(0));
}

TEST_CASE("a scenario that names its schedule is planned with it") {
  const Question question = loaded(searching("\"gpipe\""));
  CHECK(make_plan(question).schedule.kind->name == "gpipe");
}

TEST_CASE("where not even the leanest order fits a device, no larger limit is proposed") {
  std::string said;
  try {
    run_scenario(loaded({"training.schedule=auto", "training.micro_batches=2",
                         "model.modules.0.stash=90 GiB"}),
                 false);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said ==
        "test.json: test: /training/schedule: no order of work was found that fits into 80.0 GiB a "
        "device: the leanest one takes 90.0 GiB; expected more devices, smaller micro-batches or "
        "\"recompute\"");
}

TEST_CASE("a search for an order knows what the allocator holds beyond what it hands out") {
  const auto found = [](double limit, const std::string& reserve) {
    return run_scenario(loaded({R"(training.schedule={"kind": "auto", "memory": ")" +
                                    std::to_string(limit) + " MB\"}",
                                "training.micro_batches=8", "model.modules.0.stash=100 MB",
                                "training.framework={\"reserve\": " + reserve + "}"}),
                        false);
  };
  INFO("three stashes of 100 MB: a quarter more of all takes a quarter more of the limit");
  const ScenarioResult plain = found(300, "0"), held = found(375, "0.25");
  CHECK(held.measurement.metrics.step_time == plain.measurement.metrics.step_time);
  CHECK(held.measurement.metrics.step_time < found(300, "0.25").measurement.metrics.step_time);
  std::string said;
  try {
    found(100, "0.25");
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK_MESSAGE(said.find("expected \"memory\" of at least 119 MiB") != std::string::npos, said);
}

TEST_CASE("an order has the room that libraries leave") {
  const Plan plan =
      make_plan(loaded({"training.micro_batches=4", "training.schedule=gpipe",
                        R"(training.framework={"reserve": 0.25, "library_memory": "100 MB"})"}));
  const LowerInputs inputs = lower_inputs(plan);
  const ScheduleInputs shape = {.stages = static_cast<int>(plan.rank_of_stage.size()),
                                .micro_batches = plan.micro_batches,
                                .rank_of_stage = plan.rank_of_stage,
                                .roles = inputs.roles,
                                .policy = plan.schedule};
  const std::vector<double> capacity(plan.rank_of_stage.size(), 1e9);
  const ListInputs list = list_inputs(inputs, shape, capacity);
  REQUIRE(list.memory.size() == capacity.size());
  INFO("a profile without weights: nothing else stays");
  for (const double room : list.memory) CHECK(room == doctest::Approx(1e9 / 1.25 - 100e6));
}

TEST_CASE("an order of more ops than a search could move in reasonable time is not looked for") {
  CHECK(mistakes({"training.schedule=auto", "training.micro_batches=80000"}) == "");
  CHECK(mistakes({"training.schedule=auto", "training.micro_batches=100000"}) ==
        "test.json:1: \"auto\" would look for the order of about 1.20 M ops (stages x "
        "micro-batches); expected at most 1.00 M, or the name of a schedule");
}

}  // namespace
}  // namespace interlock::auto_schedule_keys_test
