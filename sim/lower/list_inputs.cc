// One micro-batch is lowered op by op; what surrounds each Compute is what the op takes and gives.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/list_inputs.h"

#include <numeric>

#include "base/error.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// Returns the ops of a stage for one micro-batch. A split backward is split on every stage, for
/// the sake of smaller ops.
std::vector<Op> stage_ops(const ScheduleInputs& shape, int stage) {
  const StageRole& role = shape.roles[stage];
  std::vector<Op> ops = {{OpKind::F, stage, 0, stage}};
  if (role.runs_next_part) ops.push_back({OpKind::R, stage, 0, stage});
  if (role.head) ops.push_back({OpKind::H, stage, 0, stage});
  append_backward(ops, shape, stage, 0);
  if (shape.policy.split_backward && ops.back().kind == OpKind::B) {
    ops.back().kind = OpKind::I;
    ops.push_back({OpKind::W, stage, 0, ops.back().loss});
  }
  ops.push_back({OpKind::U, stage, shape.policy.update_every - 1, stage});
  return ops;
}

/// Returns a schedule of one micro-batch in which every op is a run, so that its instructions are
/// found.
Schedule schedule_of_ops(const ScheduleInputs& shape) {
  Schedule schedule = empty_schedule(shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    Sequence sequence;
    for (const Op& op : stage_ops(shape, stage)) sequence.runs.push_back({.ops = {op}});
    schedule.ranks[shape.rank_of_stage[stage]].push_back(sequence);
  }
  return schedule;
}

ListOp list_op(const Program& program, const Segment& segment) {
  const auto begin = program.instructions.begin() + segment.first, end = begin + segment.count;
  auto last = begin;
  ListOp op{.time = 0};
  for (auto i = begin; i != end; ++i) {
    if (i->code != Opcode::Compute) continue;
    const OpInfo& info = program.ops[i->index];
    op.kind = info.kind;
    op.loss = info.loss;
    op.time += info.duration.value();
    last = i;
  }
  for (auto i = begin; i != end; ++i) {
    if (i->code == Opcode::Allocate) {
      op.take += program.buffers[i->index].bytes.value();
    } else if (i->code == Opcode::Free) {
      (i < last ? op.take : op.give) +=
          (i < last ? -1 : 1) * program.buffers[i->index].bytes.value();
    } else if (i->code == Opcode::Send && program.channels[i->index].wire >= 0) {
      const Channel& channel = program.channels[i->index];
      op.sent += held_by_receiver(channel).value();
      const bool stays = channel.from_resident || channel.read_by_head;  // until the head runs
      op.give += stays ? 0 : held_by_sender(channel).value();
      op.delay = (channel.occupancy + channel.latency).value();
    }
  }
  return op;
}

}  // namespace

ListInputs list_inputs(LowerInputs inputs, const ScheduleInputs& shape,
                       const std::vector<double>& capacity) {
  CHECK(shape.copies == 1 && shape.slices == 1, "one copy and whole sequences are listed");
  inputs.schedule = schedule_of_ops(shape);
  inputs.policy = shape.policy;
  const Program program = lower(inputs);
  const bool flushes = inputs.strategy.kind == StrategyKind::Global;
  ListInputs list{.micro_batches = shape.micro_batches,
                  .update_every = shape.policy.update_every,
                  .in_flight = flushes ? 0 : shape.policy.in_flight,
                  .rank_of_stage = shape.rank_of_stage,
                  .roles = shape.roles};
  list.ops.resize(shape.stages);
  for (const Rank& rank : program.ranks) {
    for (int number = 0; number < rank.streams; ++number) {
      const Stream& stream = program.streams[rank.first_stream + number];
      for (int s = stream.first; s < stream.first + stream.count; ++s) {
        list.ops[rank.stages[number]].push_back(list_op(program, program.segments[s]));
      }
    }
    const auto kept = always_held(rank);
    const Bytes held = std::accumulate(kept.begin(), kept.end(), Bytes(0));
    const double room = capacity.at(list.memory.size()) / program.memory_held;
    list.memory.push_back(room - held.value());
  }
  return list;
}

}  // namespace interlock
