// Asynchronous pipelines: no flush; stages run ahead through the whole run and update in turn.
// SPDX-License-Identifier: Apache-2.0
//
// Stage s of p runs p - 1 - s forwards ahead, then takes one forward, one backward and, where a
// window of micro-batches is complete, one update in turn, and runs dry only at the end of the run.
// So p - s micro-batches are under way at stage s, and an update uses gradients of forwards that
// came p - 1 - s micro-batches earlier. What differs between the works is what a backward finds of
// its forward (StashMode) and with which weights it runs (versions).
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

int forwards_ahead(const ScheduleInputs& inputs, int stage) { return inputs.stages - 1 - stage; }

/// Returns turn `b` of a stage: the forward that is ahead, while the run has it, the backward, and
/// the update that is due after it.
std::vector<Op> turn(const ScheduleInputs& inputs, int stage, int b) {
  std::vector<Op> ops;
  const int next = b + forwards_ahead(inputs, stage);
  if (next < inputs.steps * inputs.micro_batches) ops.push_back({OpKind::F, stage, next, stage});
  append_backward(ops, inputs, stage, b);
  if ((b + 1) % inputs.policy.update_every == 0) ops.push_back({OpKind::U, stage, b, stage});
  return ops;
}

Sequence asynchronous_sequence(const ScheduleInputs& inputs, int stage) {
  const int total = inputs.steps * inputs.micro_batches, every = inputs.policy.update_every;
  const int ahead = std::min(forwards_ahead(inputs, stage), total);
  const int windows = (total - ahead) / every;  // whole ones whose turns all have a forward
  RunWriter window, rest;
  if (windows > 0) {
    for (int b = 0; b < every; ++b) window.append(turn(inputs, stage, b));
  }
  for (int b = windows * every; b < total; ++b) rest.append(turn(inputs, stage, b));
  Sequence sequence{.repeats = windows, .stride = every, .lead = 1};
  sequence.runs = {{.ops = {{OpKind::F, stage, 0, stage}}, .repeats = ahead}};
  for (Run& run : window.take()) sequence.runs.push_back(std::move(run));
  for (Run& run : rest.take()) {
    sequence.runs.push_back(std::move(run));
    ++sequence.tail;
  }
  return sequence;
}

Schedule make_asynchronous(const ScheduleInputs& inputs) {
  Schedule schedule = one_sequence_a_stage(inputs, asynchronous_sequence);
  schedule.ahead = inputs.stages - 1;
  return schedule;
}

/// Makes the order of weight stashing: a backward runs with the weights of its forward, so each
/// update that comes between the two leaves a version to keep.
Schedule make_pipedream(const ScheduleInputs& inputs) {
  Schedule schedule = make_asynchronous(inputs);
  const int every = inputs.policy.update_every;
  for (int stage = 0; stage < inputs.stages; ++stage) {
    schedule.weight_versions.push_back((forwards_ahead(inputs, stage) + every - 1) / every);
  }
  return schedule;
}

/// Makes the order of double buffering: on every stage the forwards of window t use the weights
/// after window t - 2, which are the newest that the first stage has when the window begins.
Schedule make_pipedream_2bw(const ScheduleInputs& inputs) {
  Schedule schedule = make_asynchronous(inputs);
  if (inputs.stages == 1) return schedule;  // nothing is under way across an update
  schedule.weight_versions.assign(inputs.stages, 1);
  schedule.version_lag = 1;
  return schedule;
}

std::string pipedream_2bw_problem(const ScheduleShape& shape) {
  if (shape.update_every >= shape.stages) return "";
  return "has two versions of the weights, so what is under way must fit between two updates; "
         "expected at least " +
         std::to_string(shape.stages) + " micro-batches between updates, one for each stage, got " +
         std::to_string(shape.update_every);
}

}  // namespace

ScheduleEntry schedules::pipedream() {
  return {.name = "pipedream",
          .updates_each = true,
          .summary = "1F1B without a flush; a backward has the weights of its forward (stashed)",
          .source = "PipeDream, SOSP 2019, arXiv 1806.03377",
          .make = make_pipedream,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kDevices};
}

ScheduleEntry schedules::pipedream_2bw() {
  return {.name = "pipedream-2bw",
          .summary = "1F1B without a flush; two versions of the weights, gradients one update late",
          .source = "PipeDream-2BW, arXiv 2006.09503",
          .make = make_pipedream_2bw,
          .problem = pipedream_2bw_problem,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kDevices};
}

ScheduleEntry schedules::pipelined_backprop() {
  return {.name = "pipelined-backprop",
          .updates_each = true,
          .summary = "1F1B without a flush; a backward has the newest weights, none are stashed",
          .source = "Kosson et al., Pipelined Backpropagation at Scale, arXiv 2003.11666",
          .make = make_asynchronous,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kDevices};
}

ScheduleEntry schedules::delayed_gradients() {
  return {
      .name = "ddg",
      .updates_each = true,
      .summary = "stages go back on delayed gradients of old activations, with the newest weights",
      .source = "Huo et al., DDG, arXiv 1804.10574",
      .make = make_asynchronous,
      .bubble = formulas::kNoBubble,
      .stashed = formulas::kDevices};
}

ScheduleEntry schedules::features_replay() {
  return {.name = "features-replay",
          .updates_each = true,
          .stash = StashMode::Replayed,
          .summary = "ddg that keeps only the inputs of stages and runs their forwards again",
          .source = "Huo et al., Features Replay, arXiv 1807.04511",
          .make = make_asynchronous,
          .bubble = formulas::kNoBubble,
          .stashed = {"p - 1", [](const PipelineShape& s) { return s.devices - 1.0; }}};
}

ScheduleEntry schedules::petra() {
  return {
      .name = "petra",
      .updates_each = true,
      .stash = StashMode::Rebuilt,
      .summary = "reversible stages: only the last keeps an input, outputs return with gradients",
      .source = "PETRA, arXiv 2406.02052",
      .make = make_asynchronous,
      .bubble = formulas::kNoBubble,
      .stashed = formulas::kOne};
}

}  // namespace interlock
