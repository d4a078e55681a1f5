// Hanayo: micro-batches run through the ranks in waves, one forward and one backward in turn.
// SPDX-License-Identifier: Apache-2.0
//
// Rank r of p has 2w stages, laid as a V: each of w waves goes down through one and up through
// another. Time is cut into cells of a forward and a backward. A micro-batch moves on by one stage
// a cell and turns within the cell of its last forward; p of them follow each other by two cells.
// So those that go down and those that go up take turns on a rank, p fill 2w cells each, and the
// next p begin where they end: after the warm-up no cell is empty, and a rank holds 2pw forwards,
// its share of p micro-batches. A step is idle for 2 (p - 1) of the longer pass of a stage, 1/w of
// that of one wave. Pass k of a rank in a direction is of wave k / p % w, and of micro-batch
// k / (p w) * p + k % p.
// Source of the waves: Liu et al., arXiv 2308.15762; the cells, and with them the order of more
// than p micro-batches, are ours.
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

Sequence hanayo_sequence(const ScheduleInputs& inputs, const std::vector<int>& stages, int rank) {
  const int waves = static_cast<int>(stages.size()) / 2, ranks = inputs.stages / 2 / waves;
  const int round = ranks * waves, after = ranks - 1 - rank;
  const int count = (inputs.micro_batches + ranks - 1) / ranks * round;  // passes of a direction
  struct Pass {
    bool forward, up;
    int lag;  // turns
  };
  // A turn is two cells: of stages down, then of stages up.
  const Pass turn_of[] = {{true, false, 0},
                          {false, false, round + after},
                          {true, true, after},
                          {false, true, round - 1}};
  RunWriter order;
  order.append_turns(count + round + after, waves > 1 ? round : 1, [&](auto& body, int turn) {
    for (const Pass& pass : turn_of) {
      const int k = turn - pass.lag, micro_batch = k / round * ranks + k % ranks;
      if (k < 0 || k >= count || micro_batch >= inputs.micro_batches) continue;
      const int wave = pass.forward ? k / ranks % waves : waves - 1 - k / ranks % waves;
      const int stage = stages[2 * wave + (pass.up ? 1 : 0)];
      if (pass.forward) {
        body.push_back(global_op(inputs, OpKind::F, stage, micro_batch));
      } else {
        append_backward(body, inputs, stage, micro_batch);
      }
    }
  });
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, inputs.micro_batches};
}

Schedule make_hanayo(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    schedule.ranks[rank] = {hanayo_sequence(inputs, stages[rank], static_cast<int>(rank))};
  }
  return schedule;
}

std::string hanayo_problem(const ScheduleShape& shape) {
  const int chunks = shape.stages / shape.ranks;
  if (chunks % 2 == 0) return "";
  return "goes down and up again in each wave; expected an even number of chunks, such as " +
         std::to_string(chunks + 1) + ", got " + std::to_string(chunks);
}

}  // namespace

// Its cells leave 2(p - 1) of the longer pass of a stage, here a backward of half a device's share.
ScheduleEntry schedules::hanayo() {
  return {.name = "hanayo",
          .flushes = true,
          .layout = StageLayout::V,
          .chunks = 2,
          .summary = "1f1b over one copy, laid as a V of 2w chunks a rank: w waves, less idle",
          .source = "Liu et al., arXiv 2308.15762",
          .make = make_hanayo,
          .problem = hanayo_problem,
          .period = every_rank,
          .bubble = {"2(p - 1) / (3m + 2(p - 1))",
                     [](const PipelineShape& s) {
                       return formulas::share(2.0 * (s.devices - 1), 3.0 * s.micro_batches);
                     }},
          .stashed = formulas::kDevices};
}

}  // namespace interlock
