// Schedule formulas: what papers and derivations say of each schedule, to set beside measurements.
// SPDX-License-Identifier: Apache-2.0
//
// p devices, m micro-batches, F = I = W for a device's share of the model, no transfers, no update.
// The bubble is the idle share of a device in the steady state; where steps overlap because stages
// update on their own, that is also what one step leaves idle between a device's first and last op.
// The stash is that of the fullest device, in micro-batches of its share of the model. Nothing here
// knows sim/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace interlock {

struct PipelineShape {
  int devices = 1;        // p
  int micro_batches = 1;  // m
};

/// A formula in words, and its value. No value: none is known.
struct Formula {
  std::string_view text;
  double (*value)(const PipelineShape&) = nullptr;
};

struct ScheduleFormulas {
  std::string schedule;  // its name in the catalogue
  Formula bubble, stash;
};

/// For the defaults of each schedule: two stages a device where it lays several, no overlap gained.
const std::vector<ScheduleFormulas>& schedule_formulas();
/// Those of `schedule`; empty ones if there are none.
ScheduleFormulas formulas_of(const std::string& schedule);

}  // namespace interlock
