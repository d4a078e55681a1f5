// TeraPipe: GPipe whose unit of work is a slice of the tokens of each sequence.
// SPDX-License-Identifier: Apache-2.0
//
// A slice attends to the slices before it, so a stage takes the slices of a micro-batch in the
// order of the sequence; what it keeps of earlier ones, it has. Gradients of keys and values come
// from later slices: backwards go through the slices in reverse. Micro-batches of several sizes
// have slices of their own each; a step is then written out whole. Source: arXiv 2102.07988,
// section 3.
#include "base/error.h"
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

Sequence terapipe_sequence(const ScheduleInputs& inputs, int stage) {
  const int slices = inputs.slices, total = inputs.micro_batches;
  Run forwards{.repeats = total / slices, .stride = slices};
  Run backwards = forwards;
  const std::vector<int> counts =
      inputs.slice_counts.empty() ? std::vector{slices} : inputs.slice_counts;
  int end = 0;
  for (const int count : counts) {
    const int begin = end;
    end += count;
    for (int slice = begin; slice < end; ++slice) {
      forwards.ops.push_back({OpKind::F, stage, slice, stage});
      append_backward(backwards.ops, inputs, stage, begin + end - 1 - slice);
    }
  }
  CHECK(end == slices, "all slices belong to a micro-batch");
  Run update{.ops = {{OpKind::U, stage, total - 1, stage}}};
  return {{forwards, backwards, update}, inputs.steps, total};
}

Schedule make_terapipe(const ScheduleInputs& inputs) {
  return one_sequence_a_stage(inputs, terapipe_sequence);
}

}  // namespace

ScheduleEntry schedules::terapipe() {
  return {.name = "terapipe",
          .flushes = true,
          .slices = true,
          .summary = "gpipe by slices of the tokens of a sequence, not by whole micro-batches",
          .source = "TeraPipe, arXiv 2102.07988",
          .make = make_terapipe,
          .bubble = {"(p - 1) / (4m + p - 1), of 4 slices",
                     [](const PipelineShape& s) {
                       return formulas::share(s.devices - 1, 4.0 * s.micro_batches);
                     }},
          .stashed = formulas::kAll};
}

}  // namespace interlock
