// Messages that share a port: max-min fair shares, worked by hand and printed.
// SPDX-License-Identifier: Apache-2.0
//
// Each device has one port up and one port down into a switch, 1 MB per ms each way. Stage 1 of
// three hands its activation to stage 2 and its gradient to stage 0: both leave by its port up.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/validate/support/trial.h"

namespace interlock::contention_test {
namespace {

constexpr double kMs = 1e-3, kMegabyte = 1e6;

Trial port_trial(int devices, double latency_ms) {
  Trial trial;
  trial.cluster = "{\"kind\": \"machine\", \"device\": \"a100-80g\", \"devices_per_node\": " +
                  std::to_string(devices) + ", \"port\": {\"latency\": \"" +
                  std::to_string(latency_ms) + " ms\", \"bandwidth\": \"1 GB/s\"}}";
  trial.engine = "simgrid";
  trial.steps = 1;
  return trial;
}

TrialStage stage(double forward_ms, double backward_input_ms, double backward_weight_ms,
                 double head_ms, double megabytes) {
  return {.times = {Seconds(forward_ms * kMs), Seconds(backward_input_ms * kMs),
                    Seconds(backward_weight_ms * kMs), Seconds(head_ms * kMs)},
          .output = Bytes(megabytes * kMegabyte)};
}

/// The transfer of the first batch from one stage to another, in ms.
Transfer transfer_of(const Traced& traced, int from, int to) {
  for (const Transfer& transfer : traced.log.transfers) {
    const Channel& channel = traced.program.channels[transfer.channel];
    if (channel.from_stage == from && channel.to_stage == to) return transfer;
  }
  FAIL("no message from stage " << from << " to stage " << to);
  return {};
}

void check_times(const Transfer& transfer, double start_ms, double end_ms, double arrival_ms) {
  INFO("expected start " << start_ms << ", end " << end_ms << ", arrival " << arrival_ms
                         << " ms; simulated " << transfer.start.value() / kMs << ", "
                         << transfer.end.value() / kMs << ", " << transfer.arrival.value() / kMs);
  CHECK(std::abs(transfer.start.value() / kMs - start_ms) <= 1e-9);
  CHECK(std::abs(transfer.end.value() / kMs - end_ms) <= 1e-9 * end_ms);
  CHECK(std::abs(transfer.arrival.value() / kMs - arrival_ms) <= 1e-9 * arrival_ms);
}

TEST_CASE("two messages that leave one port at once take twice as long") {
  MESSAGE(
      "pairwise, three stages. Stage 0: F 0..1 ms, 4 MB to stage 1 at 1..5.\n"
      "Stage 1: F 5..6, sends 4 MB up; its head and input gradient take no time, so at 6 it also\n"
      "sends 4 MB down. Both share its port up, 1 MB/ms: half each, 8 ms instead of 4.\n"
      "Expectations: both start at 6, end at 14.");
  Trial trial = port_trial(3, 0);
  trial.stages = {stage(1, 1, 1, 0, 4), stage(1, 0, 1, 0, 4), stage(1, 1, 1, 0, 0)};
  trial.strategy = "\"pairwise\"";
  const Traced traced = trace(trial);
  check_times(transfer_of(traced, 0, 1), 1, 5, 5);
  check_times(transfer_of(traced, 1, 2), 6, 14, 14);
  check_times(transfer_of(traced, 1, 0), 6, 14, 14);
}

TEST_CASE("when one of two messages ends the other takes the whole port") {
  MESSAGE(
      "As before, but stage 1 sends 8 MB up (its own output) and 2 MB down (stage 0's).\n"
      "Stage 0: F 0..1, 2 MB at 1..3. Stage 1: F 3..4, both leave at 4, 0.5 MB/ms each.\n"
      "The 2 MB end at 4 + 2 / 0.5 = 8; by then 2 of the 8 MB are up, the other 6 take 6 ms more.\n"
      "Expectations: down 4..8, up 4..14; with 0.25 ms of latency, arrivals 0.25 later.");
  Trial trial = port_trial(3, 0.25);
  trial.stages = {stage(1, 1, 1, 0, 2), stage(1, 0, 1, 0, 8), stage(1, 1, 1, 0, 0)};
  trial.strategy = "\"pairwise\"";
  const Traced traced = trace(trial);
  const double late = 0.25;  // of stage 1, which waits for the first message
  check_times(transfer_of(traced, 0, 1), 1, 3, 3 + late);
  check_times(transfer_of(traced, 1, 0), 4 + late, 8 + late, 8 + 2 * late);
  check_times(transfer_of(traced, 1, 2), 4 + late, 14 + late, 14 + 2 * late);
}

TEST_CASE("a message that joins later slows the first only from then on") {
  MESSAGE(
      "The head of stage 1 takes 3 ms, so its gradient follows its activation by 3 ms.\n"
      "Stage 0: F 0..1, 4 MB at 1..5. Stage 1: F 5..6, up from 6: by 9, 3 of 6 MB are up.\n"
      "From 9 both take 0.5 MB/ms: the 3 MB left end at 15, when 3 of the 4 MB down are through;\n"
      "the last 1 MB has the port alone and ends at 16.\n"
      "Expectations: up 6..15, down 9..16.");
  Trial trial = port_trial(3, 0);
  trial.stages = {stage(1, 1, 1, 0, 4), stage(1, 0, 1, 3, 6), stage(1, 1, 1, 0, 0)};
  trial.strategy = "\"pairwise\"";
  const Traced traced = trace(trial);
  check_times(transfer_of(traced, 1, 2), 6, 15, 15);
  check_times(transfer_of(traced, 1, 0), 9, 16, 16);
}

TEST_CASE("opposite directions of one port do not disturb each other") {
  MESSAGE(
      "Naive global training on two stages: activations up and gradients down never meet, so the\n"
      "period is the closed form, 2(f + B) + 2c = 2 * 3 + 2 * 4 = 14 ms.");
  Trial trial = port_trial(2, 0);
  trial.stages = {stage(1, 1, 1, 0, 4), stage(1, 1, 1, 0, 4)};
  trial.strategy = "\"global\"";
  trial.schedule = "\"naive\"";
  trial.steps = 4;
  CHECK(close(step_time(trial), 14 * kMs));
}

TEST_CASE("messages of one pair of devices queue, they do not share") {
  MESSAGE(
      "GPipe, two stages, three micro-batches, f = 1 ms, 4 MB: forwards end at 1, 2, 3; the wire\n"
      "carries the tensors one after another, 1..5, 5..9, 9..13.");
  Trial trial = port_trial(2, 0);
  trial.stages = {stage(1, 1, 1, 0, 4), stage(1, 1, 1, 0, 0)};
  trial.strategy = "\"global\"";
  trial.schedule = "\"gpipe\"";
  trial.micro_batches = 3;
  const Traced traced = trace(trial);
  int seen = 0;
  for (const Transfer& transfer : traced.log.transfers) {
    if (traced.program.channels[transfer.channel].from_stage != 0) continue;
    check_times(transfer, 1 + 4 * seen, 5 + 4 * seen, 5 + 4 * seen);
    ++seen;
  }
  CHECK(seen == 3);
}

}  // namespace
}  // namespace interlock::contention_test
