// RunLedger: which steps of a run are done and safe, and where its time went.
// SPDX-License-Identifier: Apache-2.0
//
// Steps that are done but in no checkpoint yet are unsaved: a rollback undoes them, and their time
// is lost; a checkpoint that is safe makes it useful.
//
// Example: steps of 1 s, a checkpoint after four. Steps 0 to 3 are done and written: done() is 4,
// and 4 s are useful. Step 4 is done, then 0.7 s of step 5: done() is 5, 0.7 s are lost. fail() and
// roll_back() make done() 4 again, and 1.7 s are lost.
#pragma once

#include <vector>

#include "sim/runs/run_clock.h"
#include "sim/runs/training_run.h"

namespace interlock {

class RunLedger {
 public:
  RunLedger(const RunPlan& plan, const RunClock& clock, std::vector<RunSpan>* history);

  std::int64_t done() const { return done_; }
  std::int64_t failures() const { return outcome_.failures; }
  bool finished() const { return durable_ == plan_.steps; }
  bool checkpoint_due() const;
  std::int64_t steps_until_checkpoint() const;
  /// Returns the ticks of `steps` steps with `replicas` replicas; at least 1, so that time goes on.
  RunTicks length_of(std::int64_t steps, int replicas) const;
  /// Returns the ticks from the start of a stretch of training to the end of the step that is under
  /// way after `elapsed` of them.
  RunTicks step_end_from(RunTicks elapsed, int replicas) const;

  /// Books training with `replicas` replicas from `begin` to `end`, which may lie amid a step.
  void train(RunTicks begin, RunTicks end, int replicas);
  /// Books time that is neither training nor lost.
  void book(RunSpan::Kind kind, RunTicks begin, RunTicks end);

  /// Notes that training stood for a checkpoint of all steps done; it is safe, or being written.
  void write(RunTicks now);
  bool writing() const { return writing_; }
  RunTicks safe_at() const { return safe_at_; }
  /// Makes a write safe that has ended by `now`.
  void settle(RunTicks now);

  void fail();       // a write under way ends
  void roll_back();  // to the last safe checkpoint

  RunOutcome outcome(RunTicks end) const;

 private:
  std::int64_t whole_steps(RunTicks elapsed, int replicas) const;
  void save();
  void note(const RunSpan& span);

  const RunPlan& plan_;
  const RunClock& clock_;
  std::vector<RunSpan>* history_;
  RunOutcome outcome_;                               // its counts; times follow from ticks
  std::int64_t done_ = 0, durable_ = 0, taken_ = 0;  // steps: all, safe, in the last checkpoint
  RunTicks unsaved_ = 0, unsaved_when_taken_ = 0;
  bool writing_ = false;
  RunTicks safe_at_ = 0;
  RunTicks useful_ = 0, lost_ = 0, checkpoint_ = 0, restart_ = 0, idle_ = 0;
};

}  // namespace interlock
