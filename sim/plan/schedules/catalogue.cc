// The catalogue of schedules: the entries that families define.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/catalogue.h"

#include "base/error.h"
#include "base/text.h"
#include "sim/plan/schedules/families.h"

namespace interlock {

const std::vector<ScheduleEntry>& schedule_catalogue() {
#define INTERLOCK_ENTRY(name) schedules::name(),
  static const std::vector<ScheduleEntry> entries = {INTERLOCK_SCHEDULES(INTERLOCK_ENTRY)};
#undef INTERLOCK_ENTRY
  return entries;
}

const ScheduleEntry* find_schedule(std::string_view name) {
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const ScheduleEntry& schedule_named(std::string_view name) {
  const ScheduleEntry* const entry = find_schedule(name);
  CHECK(entry != nullptr, "a schedule of that name");
  return *entry;
}

bool SchedulePolicy::is_sought() const { return kind->order == OrderSource::Search && !order; }

std::string deferral_problem(const SchedulePolicy& policy) {
  const ScheduleEntry& entry = *policy.kind;
  const std::string name = in_quotes(entry.name) + " ";
  const char* const others = "; expected it with e.g. \"1f1b\" or \"interleaved\"";
  if (entry.order != OrderSource::Function) {
    return name + "says itself when weight gradients are made" + others;
  }
  if (entry.split_backward || entry.overlaps) {
    return name + "puts off weight gradients of all layers" + others;
  }
  if (policy.split_backward) {
    return "a split backward puts off weight gradients of all layers; expected \"backward\" "
           "\"fused\" beside it";
  }
  if (has_copies(entry.layout)) {
    return name + "has a readout on several ranks, each for some micro-batches" + others;
  }
  if (entry.one_at_a_time) {
    return name + "takes one micro-batch at a time, so that all ranks but one stand anyway" +
           others;
  }
  if (!entry.flushes) {
    return name + "has no end of a step at which other ranks stand" + others;
  }
  if (entry.slices) return name + "cuts sequences, and gradients with them" + others;
  if (policy.bulk_synchronous) return "a phase has one op of each rank; expected \"futures\"";
  return "";
}

std::string vocabulary_problem(const SchedulePolicy& policy) {
  const ScheduleEntry& entry = *policy.kind;
  const bool of_v = entry.name == "v-half";
  if (entry.name != "1f1b" && !of_v && !entry.even_slices) {
    return "\"" + entry.name +
           "\" has no order that runs parts of the vocabulary; expected \"1f1b\", \"v-half\" or "
           "\"slimpipe\"";
  }
  if (entry.even_slices && policy.vocabulary == VocabularySplit::OneBarrier) {
    return "\"" + entry.name +
           "\" makes gradients of logits when a slice goes back, long after its logits; expected "
           "\"vocab-1\"";
  }
  if (policy.split_backward && !of_v) {
    return "its order is that of whole backwards; expected \"backward\" \"fused\" beside it";
  }
  if (policy.deferred_readout > 0) {
    return "the readout lies on all ranks; expected no \"deferred_readout\" beside it";
  }
  if (policy.bulk_synchronous) return "a phase has one op of each rank; expected \"futures\"";
  return "";
}

std::string message_problem(const SchedulePolicy& policy) {
  const ScheduleEntry& entry = *policy.kind;
  const std::string name = "\"" + entry.name + "\" ";
  const char* const others = "; expected it with e.g. \"1f1b\" or \"interleaved\"";
  if (entry.order == OrderSource::Search) {
    return name +
           "looks for an order whose messages are free; expected \"free\", or the order that "
           "it finds in a file";
  }
  if (!entry.flushes) return name + "does not update once a step, after all messages" + others;
  if (entry.slices) return name + "has messages of slices" + others;
  if (policy.vocabulary != VocabularySplit::Whole) {
    return "sums of a divided vocabulary stand in no line; expected \"vocabulary\" \"whole\" "
           "beside it";
  }
  if (entry.layout == StageLayout::Ring) return name + "has turns in which weights pass" + others;
  if (entry.layout == StageLayout::Helix) return name + "sends to all ranks at a time" + others;
  if (policy.queue.kind != QueuePolicy::Kind::Unlimited) {
    return "messages wait for both of their ranks, in no queue; expected \"queue\" \"unlimited\" "
           "beside it";
  }
  if (policy.copies_on_compute_stream) {
    return "lines of messages stand beside compute; expected \"copies\" \"overlapped\" beside it";
  }
  if (policy.bulk_synchronous) {
    return "a phase has no messages in turn; expected \"execution\" \"futures\" beside it";
  }
  return "";
}

std::string late_problem(const SchedulePolicy& policy) {
  const std::string& name = policy.kind->name;
  if (!policy.messages.late || name == "1f1b" || name == "gpipe") return "";
  return in_quotes(name) +
         " has early receives only; expected \"early\", or \"late\" with \"1f1b\", as in "
         "Megatron-LM, or \"gpipe\"";
}

Schedule make_schedule(const ScheduleInputs& inputs) {
  Schedule schedule = inputs.policy.kind->make(inputs);
  if (inputs.policy.deferred_readout > 0) defer_readout(schedule, inputs.policy.deferred_readout);
  return schedule;
}

}  // namespace interlock
