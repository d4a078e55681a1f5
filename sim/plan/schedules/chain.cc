// Chains: a stage takes one micro-batch through all its ops before the next.
// SPDX-License-Identifier: Apache-2.0
//
// Naive model parallelism, local and interlocking training are one family: forward, head, every
// gradient that passes (nearest loss first), update. What differs is the role of each stage. With
// several micro-batches in flight a stage has as many chains, each taking its share of the
// micro-batches in turn.
#include <numeric>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

void append_chain(std::vector<Op>& ops, const ScheduleInputs& inputs, int stage, int micro_batch) {
  const StageRole& role = inputs.roles[stage];
  ops.push_back({OpKind::F, stage, micro_batch, stage});
  if (role.runs_next_part) ops.push_back({OpKind::R, stage, micro_batch, stage});
  if (role.head) ops.push_back({OpKind::H, stage, micro_batch, stage});
  append_backward(ops, inputs, stage, micro_batch);
  if ((micro_batch + 1) % inputs.policy.update_every == 0) {
    ops.push_back({OpKind::U, stage, micro_batch, stage});
  }
}

/// The chain that takes micro-batches first, first + in_flight, ... of the whole run. Its body is
/// as long as the pattern of updates (and of whatever else asks for `unroll`) needs.
Sequence stage_sequence(const ScheduleInputs& inputs, int stage, int first) {
  const int total = inputs.steps * inputs.micro_batches;
  const int step = inputs.policy.in_flight;
  const int body = std::lcm(std::lcm(inputs.policy.update_every, step), inputs.unroll);
  auto append_range = [&](Run& run, int begin, int end) {
    for (int b = begin + first; b < end; b += step) append_chain(run.ops, inputs, stage, b);
  };
  Run whole{.repeats = total / body, .stride = body};
  append_range(whole, 0, body);
  Run rest;
  append_range(rest, total - total % body, total);
  return {{whole, rest}};
}

}  // namespace

Schedule make_chain(const ScheduleInputs& inputs) {
  Schedule schedule = one_sequence_a_stage(
      inputs, [](const ScheduleInputs& in, int stage) { return stage_sequence(in, stage, 0); });
  for (int first = 1; first < inputs.policy.in_flight; ++first) {
    for (int stage = 0; stage < inputs.stages; ++stage) {
      schedule.ranks[inputs.rank_of_stage[stage]].push_back(stage_sequence(inputs, stage, first));
    }
  }
  return schedule;
}

}  // namespace interlock
