// Plans: what is chosen for a question, and how long their steps take by every grade.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/measure_plan.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::plan_test {
namespace {

TEST_CASE("a plan has the choices that its question leaves open: the example of plan.h") {
  const Question question =
      loaded({"model.modules.0.repeat=24", "cluster.devices=32", "parallel.pipeline=4",
              "parallel.data=8", "training.schedule=1f1b", "training.micro_batches=8"});
  const Plan plan = make_plan(question);
  CHECK(question.layout.partition.kind == PartitionRule::Kind::Balanced);
  CHECK(plan.partition.boundaries == std::vector<int>{0, 6, 12, 18, 24});
  CHECK(plan.rank_of_stage == std::vector<int>{0, 1, 2, 3});
  CHECK(plan.schedule.kind->name == "1f1b");
  CHECK(plan.micro_batches == 8);
  CHECK_FALSE(plan.unfolded[static_cast<std::size_t>(Dimension::Data)]);
  CHECK(measure_plan(plan, Keep::Nothing).measurement.metrics.devices.size() == 4);
}

TEST_CASE("a question that leaves the order to a search still does so beside its plan") {
  const Question question = loaded({"training.schedule=auto", "training.micro_batches=4"});
  const Plan plan = make_plan(question);
  CHECK(plan.question.training().schedule.kind->name == "auto");
  CHECK_FALSE(plan.question.training().schedule.order);
  CHECK((plan.schedule.kind->name != "auto" || plan.schedule.order));
  CHECK(lay_out(question).draft.schedule.kind->name == "auto");
}

TEST_CASE("no grade says more time than the next, and a simulation says the closed form") {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const Question question =
        loaded({"training.schedule=" + std::string(schedule), "training.micro_batches=6"});
    const Plan plan = make_plan(question);
    Seconds below = bound_layout(question, {}).time;
    CHECK(below > Seconds(0));
    for (const Grade grade : {Grade::PlanBound, Grade::Look, Grade::Simulation}) {
      const Seconds time = estimate_step(plan, grade).time;
      INFO(schedule << ", grade " << static_cast<int>(grade) << ": " << time.value() << " s");
      CHECK(below.value() <= time.value() * (1 + 1e-12));
      below = time;
    }
    MESSAGE("F = 1 ms and B = 2 ms on 4 stages, 6 micro-batches: (6 + 4 - 1) 3 ms = 27 ms");
    CHECK(below.value() == doctest::Approx(27e-3).epsilon(1e-12));
  }
}

TEST_CASE("a plan with other micro-batches keeps its cuts") {
  const Plan plan =
      make_plan(loaded({"model.modules.0.repeat=9", "parallel.pipeline=3", "cluster.devices=3",
                        "training.schedule=gpipe", "training.micro_batches=6"}));
  const Plan fewer = with_micro_batches(plan, 2);
  CHECK(fewer.partition.boundaries == plan.partition.boundaries);
  // Three modules a stage: (2 + 3 - 1) 9 ms.
  CHECK(estimate_step(fewer, Grade::Simulation).time.value() ==
        doctest::Approx(36e-3).epsilon(1e-12));
}

TEST_CASE("an order is found where replicas are simulated one by one, too") {
  const auto step = [](const std::string& fold) {
    return run_scenario(loaded({"cluster.devices=8", "parallel.pipeline=4", "parallel.data=2",
                                "training.schedule=auto", "training.micro_batches=4",
                                R"(simulate={"fold": )" + fold + "}"}),
                        false)
        .measurement.metrics.step_time.value();
  };
  CHECK(step("\"none\"") == doctest::Approx(step("[\"data\"]")).epsilon(1e-9));
}

TEST_CASE("a hundred steps on links that rings share are measured, though no tick is theirs") {
  const auto measured = [](int steps) {
    return run_scenario(
               loaded({R"(model={"kind": "transformer", "layers": 8, "hidden_size": 256,
                          "attention_heads": 4, "sequence_length": 128, "vocab_size": 32768})",
                       "cluster=dgx-h100", R"(cluster={"machine": "dgx-h100", "nodes": 2})",
                       R"(parallel={"pipeline": 4, "data": 2, "tensor": 2})",
                       "training.strategy=global", "training.schedule=interleaved",
                       "training.global_batch_size=64", "training.micro_batch_size=2",
                       "training.framework=megatron-lm",
                       "training.steps=" + std::to_string(steps)}),
               false)
        .measurement.metrics;
  };
  CHECK(measured(97).step_time.value() ==
        doctest::Approx(measured(8).step_time.value()).epsilon(1e-6));
}

}  // namespace
}  // namespace interlock::plan_test
