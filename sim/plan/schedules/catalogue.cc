// The catalogue of schedules: the entries that families define.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/catalogue.h"

#include "base/error.h"
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

const char* name_of(Trains trains) {
  if (trains == Trains::Any) return "all";
  if (trains == Trains::Global) return "global";
  return trains == Trains::Local ? "local" : "local, interlocking";
}

bool SchedulePolicy::is_sought() const { return kind->order == OrderSource::Search && !order; }

Schedule make_schedule(const ScheduleInputs& inputs) {
  Schedule schedule = inputs.policy.kind->make(inputs);
  if (inputs.policy.deferred_readout > 0) defer_readout(schedule, inputs.policy.deferred_readout);
  return schedule;
}

}  // namespace interlock
