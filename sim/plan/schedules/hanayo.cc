// Hanayo: micro-batches run through the ranks in waves.
// SPDX-License-Identifier: Apache-2.0
//
// One copy of the model is laid as a V of 2w chunks a rank, so that a micro-batch passes in w waves
// and what a rank waits for at the begin and the end is short. p micro-batches make a unit, as many
// as 1F1B's first rank holds. The order of a unit is that of a simulation with F = 1 and B = 2, in
// which a free rank takes a ready backward before a forward, then the older micro-batch. Units
// follow each other by the work of one, each pass as late as its unit lets it be, so that a unit
// fills some of the bubbles of the one before.
// Source of the waves: Liu et al., arXiv 2308.15762, who do not give an order for several units.
#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"
#include "sim/plan/list_order.h"
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/unit_order.h"

namespace interlock {

namespace {

constexpr int kForward = 1, kBackward = 2;
constexpr int kUnplaced = std::numeric_limits<int>::min();

/// The order of p micro-batches on each rank, backwards whole.
std::vector<std::vector<Pass>> unit_of(const ScheduleInputs& inputs, int ranks) {
  const auto order =
      list_order({.micro_batches = ranks,
                  .update_every = ranks,
                  .rank_of_stage = inputs.rank_of_stage,
                  .roles = inputs.roles,
                  .ops = unit_ops(inputs.roles, {.input = kBackward - 1, .weight = 1})},
                 {});
  CHECK(order, "without limits every micro-batch can finish");
  std::vector<std::vector<Pass>> unit(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Op& op : (*order)[rank]) {
      if (op.kind == OpKind::U) continue;
      unit[rank].push_back({0, op.kind == OpKind::F, op.stage, op.micro_batch});
    }
  }
  return unit;
}

/// Sets the times of `unit` to the latest ones that end it at 0.
void place_late(std::vector<std::vector<Pass>>& unit, int stages) {
  const int ranks = static_cast<int>(unit.size());
  std::vector<int> starts[2];  // of backwards and of forwards: (stages, p)
  for (auto& of : starts) of.assign(static_cast<std::size_t>(stages) * ranks, kUnplaced);
  std::vector<int> begun(ranks, 0);  // the earliest time placed on a rank
  std::vector<std::size_t> left(ranks);
  for (int rank = 0; rank < ranks; ++rank) left[rank] = unit[rank].size();
  const auto place = [&](Pass& pass, int end) {
    const auto comes_before = [&](bool forward, int stage) {
      if (0 <= stage && stage < stages) {
        end = std::min(end, starts[forward ? 1 : 0][stage * ranks + pass.micro_batch]);
      }
    };
    comes_before(pass.forward, pass.stage + (pass.forward ? 1 : -1));
    if (pass.forward) comes_before(false, pass.stage);
    if (end == kUnplaced) return false;
    pass.time = end - (pass.forward ? kForward : kBackward);
    starts[pass.forward ? 1 : 0][pass.stage * ranks + pass.micro_batch] = pass.time;
    return true;
  };
  for (bool placed = true; placed;) {
    placed = false;
    for (int rank = 0; rank < ranks; ++rank) {
      while (left[rank] > 0 && place(unit[rank][left[rank] - 1], begun[rank])) {
        begun[rank] = unit[rank][--left[rank]].time;
        placed = true;
      }
    }
  }
}

}  // namespace

Schedule make_hanayo(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const std::vector<std::vector<int>> stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  std::vector<std::vector<Pass>> unit = unit_of(inputs, ranks);
  place_late(unit, inputs.stages);
  int earliest = 0;
  for (const auto& passes : unit) earliest = std::min(earliest, passes.front().time);
  for (int rank = 0; rank < ranks; ++rank) {
    for (Pass& pass : unit[rank]) pass.time -= earliest;
    RunWriter order;
    append_units(order, inputs, unit[rank],
                 {.size = ranks, .interval = inputs.stages * (kForward + kBackward)});
    order.append_updates(inputs, stages[rank]);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

std::string hanayo_problem(const ScheduleShape& shape) {
  const int chunks = shape.stages / shape.ranks;
  if (chunks % 2 == 0) return "";
  return "goes down and up again in each wave; expected an even number of chunks, such as " +
         std::to_string(chunks + 1) + ", got " + std::to_string(chunks);
}

}  // namespace interlock
