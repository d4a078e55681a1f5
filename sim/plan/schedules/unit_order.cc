// Units of micro-batches merged in order of time, as loops.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: time is cut into windows as long as the interval of units. What is done in a window
// repeats, a unit later, in every window whose units are all full.
#include "sim/plan/schedules/unit_order.h"

#include <algorithm>
#include <tuple>

namespace interlock {

namespace {

/// The ops of window `number`.
std::vector<Op> window(const ScheduleInputs& inputs, const std::vector<Pass>& unit,
                       const UnitGrid& grid, int number) {
  std::vector<Pass> passes;
  for (Pass pass : unit) {
    const int begun = number - pass.time / grid.interval;  // the unit that is at this pass
    pass.micro_batch += begun * grid.size;
    pass.time += begun * grid.interval;
    if (begun >= 0 && pass.micro_batch < inputs.micro_batches) passes.push_back(pass);
  }
  std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
    return std::tie(a.time, a.micro_batch) < std::tie(b.time, b.micro_batch);
  });
  std::vector<Op> ops;
  for (const Pass& pass : passes) {
    if (pass.forward) {
      ops.push_back(global_op(inputs, OpKind::F, pass.stage, pass.micro_batch));
    } else {
      append_backward(ops, inputs, pass.stage, pass.micro_batch);
    }
  }
  return ops;
}

}  // namespace

void append_units(RunWriter& order, const ScheduleInputs& inputs, const std::vector<Pass>& unit,
                  const UnitGrid& grid) {
  int last = 0;  // window in which the first unit ends
  for (const Pass& pass : unit) last = std::max(last, pass.time / grid.interval);
  const int full = inputs.micro_batches / grid.size;
  const int units = (inputs.micro_batches + grid.size - 1) / grid.size;
  for (int number = 0; number < units + last; ++number) {
    std::vector<Op> ops = window(inputs, unit, grid, number);
    if (number != last || full <= last) {
      order.append(ops);
      continue;
    }
    order.append_loop(std::move(ops), full - last, grid.size);
    number = full - 1;
  }
}

}  // namespace interlock
