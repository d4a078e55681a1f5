// The catalogue of schedules.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/catalogue.h"

#include "base/error.h"
#include "sim/plan/schedules/families.h"

namespace interlock {

const std::vector<ScheduleEntry>& schedule_catalogue() {
  static const std::vector<ScheduleEntry> entries = {
      {.kind = ScheduleKind::Naive,
       .name = "naive",
       .summary = "one micro-batch at a time, one stage busy at a time",
       .source = "model parallelism",
       .make = make_chain},
      {.kind = ScheduleKind::NaiveSplit,
       .name = "naive-split",
       .split_backward = true,
       .summary = "naive, but input gradients are sent before weight gradients are made",
       .source = "2BP, arXiv 2405.18047",
       .make = make_chain},
      {.kind = ScheduleKind::GPipe,
       .name = "gpipe",
       .flushes = true,
       .summary = "all forwards of a step, then all backwards, then a flush",
       .source = "GPipe, arXiv 1811.06965",
       .make = make_gpipe},
      {.kind = ScheduleKind::OneFOneB,
       .name = "1f1b",
       .flushes = true,
       .summary = "one forward, one backward in turn, with a flush",
       .source = "PipeDream-flush, arXiv 2006.09503; Megatron-LM, arXiv 2104.04473",
       .make = make_one_f_one_b},
      {.kind = ScheduleKind::EagerOneFOneB,
       .name = "eager-1f1b",
       .flushes = true,
       .summary = "1f1b with twice as many forwards ahead, so that transfers hide behind compute",
       .source = "Zhuang et al., arXiv 2211.05322",
       .make = make_eager_one_f_one_b},
      {.kind = ScheduleKind::Interleaved,
       .name = "interleaved",
       .flushes = true,
       .layout = StageLayout::Loop,
       .chunks = 2,
       .summary = "1f1b over several stages a rank, laid in loops: less idle, more messages",
       .source = "Megatron-LM, arXiv 2104.04473",
       .make = make_interleaved,
       .problem = whole_rounds_problem},
      {.kind = ScheduleKind::BreadthFirst,
       .name = "breadth-first",
       .flushes = true,
       .layout = StageLayout::Loop,
       .chunks = 2,
       .summary = "stages laid in loops, each of which runs all of a step before the next",
       .source = "Lamy-Poirier, arXiv 2211.05953",
       .make = make_breadth_first},
      {.kind = ScheduleKind::ZbH1,
       .name = "zb-h1",
       .split_backward = true,
       .flushes = true,
       .summary = "1f1b whose weight gradients fill the bubbles, in the same memory",
       .source = "Zero Bubble, arXiv 2401.10241",
       .make = make_zb_h1},
      {.kind = ScheduleKind::ZbH2,
       .name = "zb-h2",
       .split_backward = true,
       .flushes = true,
       .summary = "zb-h1 with twice the memory and, where F = I = W, no bubble",
       .source = "Zero Bubble, arXiv 2401.10241",
       .make = make_zb_h2},
      {.kind = ScheduleKind::InterleavedZb,
       .name = "interleaved-zb",
       .split_backward = true,
       .flushes = true,
       .layout = StageLayout::Loop,
       .chunks = 2,
       .summary = "interleaved, with weight gradients held back as in zb-h1",
       .source = "PyTorch's ScheduleInterleavedZeroBubble, after arXiv 2401.10241",
       .make = make_interleaved_zero_bubble,
       .problem = whole_rounds_problem},
      {.kind = ScheduleKind::ZbV,
       .name = "zb-v",
       .split_backward = true,
       .flushes = true,
       .layout = StageLayout::V,
       .chunks = 2,
       .summary = "two stages a rank, down and up again: no bubble in the memory of 1f1b",
       .source = "Qi et al., arXiv 2405.15362",
       .make = make_zb_v},
      {.kind = ScheduleKind::Eager,
       .name = "eager",
       .global = false,
       .split_backward = true,
       .summary = "every gradient is sent the moment it exists; each stage updates on its own",
       .source = "Interlocking Backpropagation, JMLR 23(171), 2022, with eager sends",
       .make = make_chain},
      {.kind = ScheduleKind::List,
       .name = "list",
       .global = false,
       .summary = "gradients travel as one list a stage, as in the authors' N-wise class",
       .source = "Interlocking Backpropagation, JMLR 23(171), 2022",
       .make = make_chain},
  };
  return entries;
}

const ScheduleEntry& schedule_entry(ScheduleKind kind) {
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.kind == kind) return entry;
  }
  CHECK(false, "a schedule kind without a catalogue entry");
}

Schedule make_schedule(const ScheduleInputs& inputs) {
  return schedule_entry(inputs.policy.kind).make(inputs);
}

}  // namespace interlock
