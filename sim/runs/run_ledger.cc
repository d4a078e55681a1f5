// Books the steps, checkpoints and losses of a training run.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/run_ledger.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {

RunLedger::RunLedger(const RunPlan& plan, const RunClock& clock, std::vector<RunSpan>* history)
    : plan_(plan), clock_(clock), history_(history) {
  outcome_.steps = plan.steps;
  outcome_.micro_batches = plan.steps * plan.replicas * plan.micro_batches;
  outcome_.fewest_replicas = plan.replicas;
}

bool RunLedger::checkpoint_due() const {
  const std::int64_t interval = plan_.checkpoint.interval;
  return done_ == plan_.steps || (interval > 0 && done_ - taken_ >= interval);
}

std::int64_t RunLedger::steps_until_checkpoint() const {
  const std::int64_t interval = plan_.checkpoint.interval;
  const std::int64_t left = plan_.steps - done_;
  return interval > 0 ? std::min(left, taken_ + interval - done_) : left;
}

RunTicks RunLedger::length_of(std::int64_t steps, int replicas) const {
  const Seconds length = static_cast<double>(steps) * step_time_of(plan_, replicas);
  return std::max<RunTicks>(1, clock_.ticks(length));
}

std::int64_t RunLedger::whole_steps(RunTicks elapsed, int replicas) const {
  if (elapsed <= 0) return 0;
  const double guess = clock_.seconds(elapsed) / step_time_of(plan_, replicas);
  const std::int64_t left = plan_.steps - done_;
  auto steps = static_cast<std::int64_t>(std::min(guess, static_cast<double>(left)));
  while (steps > 0 && length_of(steps, replicas) > elapsed) --steps;
  while (steps < left && length_of(steps + 1, replicas) <= elapsed) ++steps;
  return steps;
}

RunTicks RunLedger::step_end_from(RunTicks elapsed, int replicas) const {
  if (elapsed <= 0) return 0;
  const std::int64_t whole = whole_steps(elapsed, replicas);
  const bool between = whole > 0 && length_of(whole, replicas) == elapsed;
  return between ? elapsed : length_of(whole + 1, replicas);
}

void RunLedger::train(RunTicks begin, RunTicks end, int replicas) {
  const std::int64_t steps = whole_steps(end - begin, replicas);
  const RunTicks length = steps > 0 ? length_of(steps, replicas) : 0;
  const RunTicks rest = end - begin - length;
  if (steps > 0) {
    note({RunSpan::Kind::Steps, clock_.seconds(begin), clock_.seconds(begin + length), done_, steps,
          replicas});
    outcome_.fewest_replicas = std::min(outcome_.fewest_replicas, replicas);
  }
  done_ += steps;
  unsaved_ += length;
  if (rest == 0) return;
  note({RunSpan::Kind::BrokenStep, clock_.seconds(begin + length), clock_.seconds(end), done_, 0,
        replicas});
  lost_ += rest;
  ++outcome_.broken_steps;
  const double share = clock_.seconds(rest) / step_time_of(plan_, replicas);
  const auto all = static_cast<double>(plan_.replicas * plan_.micro_batches);
  outcome_.redone_micro_batches +=
      static_cast<std::int64_t>(std::floor(std::min(share, 1.0) * all));
}

void RunLedger::book(RunSpan::Kind kind, RunTicks begin, RunTicks end) {
  if (begin == end) return;
  note({kind, clock_.seconds(begin), clock_.seconds(end), done_, 0, 0});
  RunTicks& account = kind == RunSpan::Kind::Checkpoint ? checkpoint_
                      : kind == RunSpan::Kind::Restart  ? restart_
                                                        : idle_;
  account += end - begin;
}

void RunLedger::save() {
  ++outcome_.checkpoints;
  durable_ = taken_;
  useful_ += unsaved_when_taken_;
  unsaved_ -= unsaved_when_taken_;
  writing_ = false;
}

void RunLedger::write(RunTicks now) {
  taken_ = done_;
  unsaved_when_taken_ = unsaved_;
  writing_ = true;
  safe_at_ = plan_.checkpoint.asynchronous ? now + clock_.ticks(plan_.checkpoint.write) : now;
  settle(now);
}

void RunLedger::settle(RunTicks now) {
  if (writing_ && safe_at_ <= now) save();
  if (plan_.checkpoint.interval == 0 && done_ == plan_.steps) {
    durable_ = done_;
    useful_ += unsaved_;
    unsaved_ = 0;
  }
}

void RunLedger::fail() {
  ++outcome_.failures;
  writing_ = false;
  taken_ = durable_;
}

void RunLedger::roll_back() {
  ++outcome_.rollbacks;
  outcome_.redone_steps += done_ - durable_;
  outcome_.redone_micro_batches += (done_ - durable_) * plan_.replicas * plan_.micro_batches;
  lost_ += unsaved_;
  unsaved_ = 0;
  done_ = taken_ = durable_;
}

RunOutcome RunLedger::outcome(RunTicks end) const {
  CHECK(useful_ + lost_ + checkpoint_ + restart_ + idle_ == end && unsaved_ == 0,
        "all of the run's time is booked once");
  RunOutcome outcome = outcome_;
  outcome.wall = clock_.seconds(end);
  outcome.useful = clock_.seconds(useful_);
  outcome.lost = clock_.seconds(lost_);
  outcome.checkpoint = clock_.seconds(checkpoint_);
  outcome.restart = clock_.seconds(restart_);
  outcome.idle = clock_.seconds(idle_);
  const double all_useful = static_cast<double>(plan_.steps) * plan_.step_time / outcome.wall;
  outcome.goodput = std::min(1.0, all_useful);  // ticks are rounded
  return outcome;
}

void RunLedger::note(const RunSpan& span) {
  if (history_ != nullptr) history_->push_back(span);
}

}  // namespace interlock
