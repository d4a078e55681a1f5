// The catalogue of schedules.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/catalogue.h"

#include "base/error.h"
#include "sim/plan/schedules/families.h"

namespace interlock {

const std::vector<ScheduleEntry>& schedule_catalogue() {
  static const std::vector<ScheduleEntry> entries = {
      {ScheduleKind::Naive, "naive", true, false,
       "one micro-batch at a time, one stage busy at a time", "model parallelism", make_chain},
      {ScheduleKind::NaiveSplit, "naive-split", true, true,
       "naive, but input gradients are sent before weight gradients are made",
       "2BP, arXiv 2405.18047", make_chain},
      {ScheduleKind::GPipe, "gpipe", true, false,
       "all forwards of a step, then all backwards, then a flush", "GPipe, arXiv 1811.06965",
       make_gpipe},
      {ScheduleKind::OneFOneB, "1f1b", true, false,
       "one forward, one backward in turn, with a flush",
       "PipeDream-flush, arXiv 2006.09503; Megatron-LM, arXiv 2104.04473", make_one_f_one_b},
      {ScheduleKind::Eager, "eager", false, true,
       "every gradient is sent the moment it exists; each stage updates on its own",
       "Interlocking Backpropagation, JMLR 23(171), 2022, with eager sends", make_chain},
      {ScheduleKind::List, "list", false, false,
       "gradients travel as one list a stage, as in the authors' N-wise class",
       "Interlocking Backpropagation, JMLR 23(171), 2022", make_chain},
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
