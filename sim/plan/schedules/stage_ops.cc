// The backward ops of a stage, and stages laid on ranks.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/stage_ops.h"

#include <algorithm>

namespace interlock {

void append_backward(std::vector<Op>& ops, const ScheduleInputs& inputs, int stage,
                     int micro_batch) {
  for (const Traversal& traversal : inputs.roles[stage].of(micro_batch).traversals) {
    const bool split = inputs.policy.split_backward && traversal.to_previous;
    const OpKind first = traversal.weights && !split ? OpKind::B : OpKind::I;
    ops.push_back({first, stage, micro_batch, traversal.loss});
    if (traversal.weights && split) {
      ops.push_back({OpKind::W, stage, micro_batch, traversal.loss});
    }
  }
}

Schedule one_sequence_a_stage(const ScheduleInputs& inputs,
                              Sequence (*of_stage)(const ScheduleInputs&, int stage)) {
  Schedule schedule = empty_schedule(inputs);
  for (int stage = 0; stage < inputs.stages; ++stage) {
    schedule.ranks[inputs.rank_of_stage[stage]].push_back(of_stage(inputs, stage));
  }
  return schedule;
}

Schedule empty_schedule(const ScheduleInputs& inputs) {
  Schedule schedule{.stages = inputs.stages,
                    .copies = inputs.copies,
                    .slices = inputs.slices,
                    .micro_batches = inputs.micro_batches,
                    .slice_counts = inputs.slice_counts,
                    .steps = inputs.steps,
                    .pattern = inputs.micro_batches,
                    .rank_of_stage = inputs.rank_of_stage};
  schedule.ranks.resize(rank_count(inputs));
  return schedule;
}

int rank_count(const ScheduleInputs& inputs) {
  return *std::max_element(inputs.rank_of_stage.begin(), inputs.rank_of_stage.end()) + 1;
}

Op global_op(const ScheduleInputs& inputs, OpKind kind, int stage, int micro_batch) {
  const bool backward = kind == OpKind::I || kind == OpKind::B || kind == OpKind::W;
  const int loss = backward ? inputs.roles[stage].of(micro_batch).traversals.back().loss : stage;
  return {kind, stage, micro_batch, loss};
}

std::vector<std::vector<int>> stages_of_ranks(const ScheduleInputs& inputs) {
  std::vector<std::vector<int>> stages(rank_count(inputs));
  for (int stage = 0; stage < inputs.stages; ++stage) {
    stages[inputs.rank_of_stage[stage]].push_back(stage);
  }
  return stages;
}

std::string mirrored_problem(const ScheduleShape& shape) {
  if (shape.stages != shape.ranks) {
    return "gives each rank a stage of either copy; expected 1 chunk, got " +
           std::to_string(shape.stages / shape.ranks);
  }
  if (shape.ranks % 2 == 0) return "";
  return "sends micro-batches in from both ends; expected an even number of ranks, such as " +
         std::to_string(shape.ranks + 1) + ", got " + std::to_string(shape.ranks);
}

std::string whole_units_problem(const ScheduleShape& shape) {
  const int p = shape.ranks, m = shape.micro_batches;
  if (m % p == 0) return "";
  const int more = (m / p + 1) * p;
  return "takes a micro-batch for each rank at a time; expected a multiple of " +
         std::to_string(p) + " micro-batches, such as " +
         (m > p ? std::to_string(more - p) + " or " : "") + std::to_string(more) + ", got " +
         std::to_string(m);
}

std::string one_v_problem(const ScheduleShape& shape) {
  if (shape.stages == 2 * shape.ranks) return "";
  return "goes down and up again once; expected 2 chunks, got " +
         std::to_string(shape.stages / shape.ranks);
}

int every_micro_batch(const ScheduleShape&) { return 1; }
int every_rank(const ScheduleShape& shape) { return shape.ranks; }

void RunWriter::append(std::span<const Op> body) {
  if (body.empty()) return;
  if (!runs_.empty() && continues(runs_.back(), body)) {
    Run& run = runs_.back();
    if (run.repeats == 1) run.stride = body.front().micro_batch - run.ops.front().micro_batch;
    ++run.repeats;
    return;
  }
  runs_.push_back({.ops = {body.begin(), body.end()}});
}

void RunWriter::append_loop(std::vector<Op> body, int repeats, int stride) {
  if (repeats > 0) runs_.push_back({std::move(body), repeats, stride});
}

void RunWriter::append_turns(int turns, int round, const AddTurn& add_turn) {
  // Turn by turn, unless whole rounds are the smaller loop.
  std::vector<Op> body;
  RunWriter single;
  const bool has_rounds = turns / round > 1;
  for (int turn = 0; turn < turns; ++turn) {
    body.clear();
    add_turn(body, turn);
    single.append(body);
    if (!has_rounds || static_cast<int>(single.runs_.size()) <= round) continue;
    return append_rounds(turns, round, add_turn);
  }
  for (Run& run : single.runs_) runs_.push_back(std::move(run));
}

void RunWriter::append_rounds(int turns, int round, const AddTurn& add_turn) {
  std::vector<Op> body;
  for (int first = 0; first < turns; first += round) {
    body.clear();
    for (int turn = first; turn < std::min(first + round, turns); ++turn) add_turn(body, turn);
    append(body);
  }
}

void RunWriter::append_updates(const ScheduleInputs& inputs, std::span<const int> stages) {
  std::vector<int> in_order(stages.begin(), stages.end());
  const int stages_of_copy = inputs.stages / inputs.copies;
  std::sort(in_order.begin(), in_order.end(),
            [=](int a, int b) { return a % stages_of_copy < b % stages_of_copy; });
  Run updates;
  for (const int stage : in_order) {
    updates.ops.push_back(global_op(inputs, OpKind::U, stage, inputs.micro_batches - 1));
  }
  runs_.push_back(std::move(updates));
}

/// Returns whether `body` is the next repeat of `run`.
bool RunWriter::continues(const Run& run, std::span<const Op> body) const {
  if (run.ops.size() != body.size()) return false;
  const int step = body.front().micro_batch - run.ops.front().micro_batch;
  if (step == 0 || step % unit_ != 0 || (run.repeats > 1 && step != run.stride * run.repeats))
    return false;
  return std::equal(body.begin(), body.end(), run.ops.begin(), [step](Op later, const Op& first) {
    later.micro_batch -= step;
    return later == first;
  });
}

}  // namespace interlock
