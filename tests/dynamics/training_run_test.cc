// Training runs under traces worked by hand; the derivation stands before the figures.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/training_run.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace interlock::training_run_test {
namespace {

DeviceEvent down(double time, int device) { return {Seconds(time), device, 1, false}; }
DeviceEvent up(double time, int device) { return {Seconds(time), device, 1, true}; }

/// Ten steps of 10 s; two replicas of two devices, four micro-batches each that take 2 s; a
/// checkpoint of 3 s every four steps; detection 1 s, reload 5 s, regrouping 2 s.
RunPlan ten_steps() {
  RunPlan plan{.steps = 10,
               .step_time = Seconds(10),
               .replicas = 2,
               .devices_per_replica = 2,
               .micro_batches = 4,
               .micro_batch_time = Seconds(2),
               .detection = Seconds(1),
               .reload = Seconds(5),
               .regroup = Seconds(2)};
  plan.checkpoint = {.interval = 4, .write = Seconds(3)};
  return plan;
}

struct Times {
  double wall, useful, lost, checkpoint, restart, idle;
};

void check_times(const RunOutcome& outcome, const Times& times) {
  CHECK(outcome.wall.value() == times.wall);
  CHECK(outcome.useful.value() == times.useful);
  CHECK(outcome.lost.value() == times.lost);
  CHECK(outcome.checkpoint.value() == times.checkpoint);
  CHECK(outcome.restart.value() == times.restart);
  CHECK(outcome.idle.value() == times.idle);
}

TEST_CASE("without failures a run is its steps, its checkpoints and one warm-up") {
  RunPlan plan = ten_steps();
  plan.warm_up = Seconds(4);
  INFO("4 s + 4 x 10 + 3 + 4 x 10 + 3 + 2 x 10 + 3");
  const RunOutcome outcome = simulate_training_run(plan, 1);
  check_times(outcome, {113, 100, 0, 9, 4, 0});
  CHECK(outcome.goodput == doctest::Approx(100.0 / 113));
  CHECK(outcome.checkpoints == 3);
  CHECK(outcome.micro_batches == 80);
}

TEST_CASE("a restart goes back to the last checkpoint") {
  RunPlan plan = ten_steps();
  plan.spares = 1;
  plan.failures.trace = {down(68, 2)};
  INFO("steps 0-3 to 40, checkpoint to 43, steps 4, 5 to 63, 5 s of step 6; 25 s are lost.");
  INFO("1 s detection, 5 s reload: 74; steps 4-7 to 114, 117; steps 8, 9 to 137, 140");
  const RunOutcome outcome = simulate_training_run(plan, 1);
  check_times(outcome, {140, 100, 25, 9, 6, 0});
  CHECK(outcome.redone_steps == 2);
  CHECK(outcome.broken_steps == 1);
  INFO("2 steps of 8 micro-batches, and half a step");
  CHECK(outcome.redone_micro_batches == 20);
  CHECK(outcome.failures == 1);
  CHECK(outcome.rollbacks == 1);
}

TEST_CASE("a failure during a checkpoint loses it, one at its end does not") {
  RunPlan plan = ten_steps();
  plan.spares = 1;
  plan.failures.trace = {down(42, 2)};
  INFO("40 s of steps and 2 s of writing; 48: steps again, so 6 + 42 s more than 109");
  check_times(simulate_training_run(plan, 1), {157, 100, 40, 11, 6, 0});
  plan.failures.trace = {down(43, 2)};
  check_times(simulate_training_run(plan, 1), {115, 100, 0, 9, 6, 0});
}

TEST_CASE("a failure of a spare disturbs no replica, and one during a recovery begins it anew") {
  RunPlan plan = ten_steps();
  plan.spares = 3;
  plan.failures.trace = {down(5, 6), down(20, 0), down(23, 1)};
  INFO("20 s lost; 3 s of recovery, then 6 s: steps begin at 29");
  const RunOutcome outcome = simulate_training_run(plan, 1);
  check_times(outcome, {138, 100, 20, 9, 9, 0});
  CHECK(outcome.failures == 2);
}

TEST_CASE("restart and wait wait for devices that come back") {
  RunPlan plan = ten_steps();
  plan.failures.trace = {down(68, 2), up(100, 2)};
  INFO("detected at 69, idle to 100, reloaded at 105; steps 4-9 and two checkpoints: 66 s");
  check_times(simulate_training_run(plan, 1), {171, 100, 25, 9, 6, 31});
  plan.on_failure = OnFailure::Wait;
  INFO("wait: only 5 s of step 6 are lost; regrouped at 102; steps 6-9 and checkpoints: 46 s");
  const RunOutcome outcome = simulate_training_run(plan, 1);
  check_times(outcome, {148, 100, 5, 9, 3, 31});
  CHECK(outcome.rollbacks == 0);
}

TEST_CASE("a dropped replica's micro-batches go to the others until it is back") {
  RunPlan plan = ten_steps();
  plan.on_failure = OnFailure::DropReplica;
  plan.failures.trace = {down(68, 2), up(100, 2)};
  INFO("5 s of step 6 lost, 3 s until 71; one replica takes 8 micro-batches in 10 + 4 x 2 = 18 s:");
  INFO("step 6 to 89, step 7 to 107 (checkpoint due); the replica joins in 2 s: 109;");
  INFO("checkpoint to 112, steps 8, 9 to 132, checkpoint to 135");
  std::vector<RunSpan> history;
  const RunOutcome outcome = simulate_training_run(plan, 1, &history);
  check_times(outcome, {135, 116, 5, 9, 5, 0});
  CHECK(outcome.fewest_replicas == 1);
  CHECK(outcome.goodput == doctest::Approx(100.0 / 135));
  INFO("steps, checkpoint, steps, broken step, detection, regrouping, steps, regrouping,");
  INFO("checkpoint, steps, checkpoint");
  CHECK(history.size() == 11);
}

TEST_CASE("where no replica keeps the state, all go back to the checkpoint") {
  RunPlan plan = ten_steps();
  plan.on_failure = OnFailure::DropReplica;
  plan.failures.trace = {down(68, 2), down(80, 0), up(90, 2)};
  INFO("68: 5 s of step 6 lost, 3 s to 71; the second replica fails at 80: 9 s of step 6 lost,");
  INFO("steps 4 and 5 undone: 20 s. Devices 1 and 3 form a replica: 6 s to 86. Steps of 18 s:");
  INFO("step 4 to 104, where two replicas can be formed of 1, 2, 3? No: three devices. 5 to 122,");
  INFO("6 to 140, 7 to 158, checkpoint 161, 8 to 179, 9 to 197, checkpoint 200");
  const RunOutcome outcome = simulate_training_run(plan, 1);
  check_times(outcome, {200, 148, 34, 9, 9, 0});
  CHECK(outcome.rollbacks == 1);
  CHECK(outcome.redone_steps == 2);
  CHECK(outcome.broken_steps == 2);
}

TEST_CASE("replicas that hold the state only together go back to the checkpoint") {
  RunPlan plan = ten_steps();
  plan.on_failure = OnFailure::DropReplica;
  plan.replicas_hold_state = false;
  plan.failures.trace = {down(68, 2)};
  INFO("25 s lost, 6 s to 74; steps 4-7 of 18 s to 146, 149, steps 8, 9 to 185, 188");
  check_times(simulate_training_run(plan, 1), {188, 148, 25, 9, 6, 0});
}

TEST_CASE("an asynchronous checkpoint is safe when it is written") {
  RunPlan plan = ten_steps();
  plan.spares = 1;
  plan.checkpoint = {
      .interval = 4, .write = Seconds(25), .asynchronous = true, .stall = Seconds(1)};
  INFO("steps to 40, stall 41, safe at 66; steps 4-7 to 81, 82, safe 107; 8, 9 to 102, and the");
  INFO("last waits to 107 for the one before: 5 s, 1 s stall, 25 s until it is safe");
  check_times(simulate_training_run(plan, 1), {133, 100, 0, 33, 0, 0});
  plan.failures.trace = {down(65, 2)};
  INFO("65: all of 40 + 24 s is lost; 71 steps again");
  check_times(simulate_training_run(plan, 1), {204, 100, 64, 34, 6, 0});
  plan.failures.trace = {down(67, 2)};
  INFO("67: 26 s are lost; 73: steps 4-7 to 113, 114, safe 139; 8, 9 to 134; 139, 140, 165");
  check_times(simulate_training_run(plan, 1), {165, 100, 26, 33, 6, 0});
}

TEST_CASE("devices that are not there at first are waited for, or joined") {
  RunPlan plan = ten_steps();
  plan.failures.trace = {up(30, 3)};
  plan.warm_up = Seconds(4);
  INFO("30 s idle, 4 s warm-up, 109 s");
  check_times(simulate_training_run(plan, 1), {143, 100, 0, 9, 4, 30});
  plan.on_failure = OnFailure::DropReplica;
  INFO("4 s; steps of 18 s: 0 to 22, 1 to 40; joins in 2 + 4 s: 46; 2, 3 to 66; 69; 109; 112;");
  INFO("132; 135");
  check_times(simulate_training_run(plan, 1), {135, 116, 0, 9, 10, 0});
}

std::string refusal(const RunPlan& plan) {
  try {
    simulate_training_run(plan, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a run whose devices are gone for good is refused in a sentence") {
  RunPlan plan = ten_steps();
  plan.failures.trace = {down(68, 2)};
  CHECK(
      refusal(plan) ==
      "after 1.15 min, at step 4 of 10, only 3 of the 4 devices that training needs are left, "
      "and no other comes back; expected more \"spares\", a time for \"replacement\", an \"up\" in "
      "the trace or \"on_failure\": \"drop_replica\"");
  plan.on_failure = OnFailure::DropReplica;
  CHECK(refusal(plan) == "");
  plan.failures.trace = {down(68, 2), down(80, 1), down(300, 0)};
  CHECK(refusal(plan) == "");  // it has ended by then
  plan.failures.trace[2].time = Seconds(100);
  CHECK(refusal(plan).find("the last replica has failed: only 1 of the 2 devices") !=
        std::string::npos);
}

TEST_CASE("a run without headway is refused in a sentence") {
  RunPlan plan = ten_steps();
  plan.failures = {.kinds = {{Seconds(2), 4, 1}}, .replacement = Seconds(0)};
  const std::string said = refusal(plan);
  CAPTURE(said);
  CHECK(said.find("failures have let training get to step 0 of 10 only; expected checkpoints") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::training_run_test
