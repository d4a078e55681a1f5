// Steady state: the step after which everything repeats.
// SPDX-License-Identifier: Apache-2.0
//
// Each step gets a signature: its length, and a hash of the start of every op relative to its end.
// Sums of durations are exact, so equal signatures mean equal relative times. What happens in a
// step depends on the steps that are under way with it and no further back, so once that many
// signatures in a row equal those one cycle earlier, all later steps repeat.
//
// Example: a first step of 8 ms, then steps of 7.5 ms that are all alike. Of 8 steps that are
// wanted the window is {first_step 1, steps 8}: from 8 ms to 68 ms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// End and signature of every step of a run; a sink for its spans.
class StepLog {
 public:
  explicit StepLog(const Program& program);
  void add(const Span& span);
  int steps() const { return static_cast<int>(steps_.size()); }
  /// Returns the latest update of `step` on any rank; 0 for step -1.
  Seconds end(int step) const { return step < 0 ? Seconds(0) : steps_[step].end; }
  std::uint64_t signature(int step) const;
  /// Returns the number of steps that begin before `time`.
  int begun_before(Seconds time) const;
  /// Returns the most steps that begin before an earlier one has ended.
  int overlap() const;

 private:
  struct Step {
    Seconds begin = Seconds(-1), end;
    std::uint64_t weighted_starts = 0, weighted_squares = 0, weights = 0;  // modulo 2^64
  };
  const Program& program_;
  std::vector<Step> steps_;
};

/// Which steps of a run to measure.
struct StepWindow {
  int first_step = 0;  // as many steps are the fill
  int steps = 1;
  bool steady = true;  // they repeat
};

/// Returns the shortest fill and whole cycles nearest to `wanted` steps that the run shows to
/// repeat; or nothing if it does not show a repeat, or is too short to hold the window.
std::optional<StepWindow> find_window(const Program& program, const StepLog& log, int wanted);

/// Returns the window of a run that shows no repeat: of its steps before the first ranks run dry
/// the last quarter to half, `wanted` of them if it can be, so that what differs from step to step
/// is averaged out. Before it begins, steps are most like those before its end: what repeats but
/// for rounding is measured over whole cycles.
StepWindow find_unsteady_window(const Program& program, const StepLog& log, int wanted);

/// Returns true if every stream is a loop whose turns are the steps of the run.
bool loops_over_steps(const Program& program);
/// Makes `program` one of `steps` steps, with the same ticks. REQUIRES: loops_over_steps().
void set_steps(Program& program, int steps);

/// Steps at the end of a run that lack what later steps would do meanwhile: rivals, where ranks
/// choose their order or wires share links, and forwards, where stages run ahead across steps.
int drain_steps(const Program& program, const StepLog& log);

}  // namespace interlock
