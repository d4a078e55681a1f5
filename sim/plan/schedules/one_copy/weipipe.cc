// WeiPipe-Interleave: weights go round a ring of ranks past micro-batches that stay where they are.
// SPDX-License-Identifier: Apache-2.0
//
// The model is cut into p chunks, one a rank, which updates it and keeps its states. Each rank runs
// whole micro-batches: rank r has micro-batches r, r + p, r + 2p, ... of a step, and needs the
// weights of one chunk after the other, downwards for a forward and upwards for a backward. Beside
// the backward of a micro-batch it runs the forward of its next one. In the schedule that is a copy
// of the model on each rank; only the owner of a chunk updates it. Which weights pass when, and
// their gradients, is written down in sim/lower/ops/ring_lowering.cc.
//
// Example: 3 ranks, 6 micro-batches; digits are chunks, then micro-batches (interlock schedule).
//   rank 0: 0F0 1F0 2F0  2B0 0F3 1B0 1F3 0B0 2F3  2B3 1B3 0B3  0U
//   rank 1: 0F1 1F1 2F1  2B1 0F4 1B1 1F4 0B1 2F4  2B4 1B4 0B4  2U
// Neighbours are at most one turn apart, see there, and the last rank is next to the first one: it
// begins its first forward, in turn p - 1, when that one is in turn p - 2, whose turns are forwards
// from 0 on. So it is (p - 2) F late, and at the end of a step the first rank waits (p - 2) B for
// the last one: a bubble of (p - 2) (F + B), F and B for a device's share of the model. With a
// single micro-batch a rank the one's forwards are beside the other's backwards: F + B + (p - 3)
// max(F, B) of it are left for p > 2.
//
// Source: Lin et al., WeiPipe, PPoPP 2025, and the authors'
// weipipe.py (Gvilenius/weipipe), whose gradients and weights meet for p = 2 only: there backward
// weights are taken from the turn, and sent in the direction, that suits two ranks.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

constexpr int kMostRanks = 128;  // their square is the number of stages

/// Writes the order of a rank. The rounds next to the ends of a step are no part of the loop, as
/// other weights pass beside them.
Sequence weipipe_sequence(const ScheduleInputs& inputs, const std::vector<int>& chunks, int rank) {
  const int ranks = static_cast<int>(chunks.size()), rounds = inputs.micro_batches / ranks;
  const auto micro_batch = [&](int round) { return round * ranks + rank; };
  Run first, last;
  for (const int chunk : chunks) {
    first.ops.push_back(global_op(inputs, OpKind::F, chunk, micro_batch(0)));
  }
  std::vector<Run> runs = {first};
  const auto add_rounds = [&](int round, int repeats) {
    Run run{.repeats = repeats, .stride = ranks};
    for (int i = 0; i < ranks; ++i) {
      append_backward(run.ops, inputs, chunks[ranks - 1 - i], micro_batch(round));
      run.ops.push_back(global_op(inputs, OpKind::F, chunks[i], micro_batch(round + 1)));
    }
    if (repeats > 0) runs.push_back(run);
  };
  add_rounds(0, std::min(rounds - 1, 1));
  add_rounds(1, rounds - 3);
  add_rounds(rounds - 2, rounds > 2 ? 1 : 0);
  for (int i = ranks; i-- > 0;)
    append_backward(last.ops, inputs, chunks[i], micro_batch(rounds - 1));
  runs.push_back(last);
  const int owned = chunks[chunk_of_rank(rank, ranks)];
  runs.push_back({.ops = {global_op(inputs, OpKind::U, owned, inputs.micro_batches - 1)}});
  return {runs, inputs.steps, inputs.micro_batches};
}

Schedule make_weipipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    schedule.ranks[rank] = {weipipe_sequence(inputs, stages[rank], static_cast<int>(rank))};
  }
  return schedule;
}

std::string weipipe_problem(const ScheduleShape& shape) {
  if (shape.stages != shape.ranks) {
    return "has as many chunks of the model as ranks; expected " + std::to_string(shape.ranks) +
           " stages, got " + std::to_string(shape.stages);
  }
  if (shape.ranks > kMostRanks) {
    return "runs every chunk on every rank; expected at most " + std::to_string(kMostRanks) +
           " ranks, got " + std::to_string(shape.ranks);
  }
  return whole_units_problem(shape);
}

constexpr double bubble_of(const PipelineShape& shape) {
  const int apart = shape.devices - 2;
  if (apart <= 0) return 0;
  const double idle = shape.micro_batches > shape.devices ? apart : 1 + (apart - 1) * 2.0 / 3;
  return formulas::share(idle, shape.micro_batches);
}

}  // namespace

ScheduleEntry schedules::weipipe() {
  return {.name = "weipipe",
          .flushes = true,
          .layout = StageLayout::Ring,
          .summary = "weights go round a ring of ranks, past activations that stay where they are",
          .source = "Lin et al., WeiPipe, PPoPP 2025",
          .make = make_weipipe,
          .problem = weipipe_problem,
          .period = every_rank,
          .bubble = {"(p - 2) / (m + p - 2), m > p", bubble_of},
          .stashed = formulas::kDevices};
}

}  // namespace interlock
