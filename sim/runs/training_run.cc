// The event loop of a training run: activities that end by themselves, or by an outage.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/training_run.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "sim/runs/replica_pool.h"
#include "sim/runs/run_clock.h"
#include "sim/runs/run_ledger.h"

namespace interlock {
namespace {

constexpr RunTicks kNever = std::numeric_limits<RunTicks>::max();
constexpr std::int64_t kMostEvents = 5'000'000;

/// Names what the run is doing. Drain: waiting for an earlier checkpoint to be safe.
enum class Activity { Steps, Write, Drain, Detect, Wait, Rebuild, Done };

/// Devices that are not there at first: the trace brings them up before it takes them down.
std::vector<int> absent_devices(const std::vector<DeviceEvent>& trace) {
  std::set<int> seen;
  std::vector<int> absent;
  for (const DeviceEvent& event : trace) {
    if (seen.insert(event.first).second && event.up) absent.push_back(event.first);
  }
  return absent;
}

int device_count(const RunPlan& plan) {
  int devices = plan.replicas * plan.devices_per_replica + plan.spares;
  for (const DeviceEvent& event : plan.failures.trace) {
    devices = std::max(devices, event.first + event.count);
  }
  return devices;
}

class TrainingRun {
 public:
  TrainingRun(const RunPlan& plan, std::uint64_t seed, std::vector<RunSpan>* history)
      : plan_(plan),
        clock_(make_run_clock(plan)),
        outages_(plan.failures, seed),
        absent_(absent_devices(plan.failures.trace)),
        pool_(plan.replicas, plan.devices_per_replica, device_count(plan), absent_),
        ledger_(plan, clock_, history) {}

  RunOutcome run() {
    start_first();
    while (activity_ != Activity::Done) {
      if (event_comes_first()) {
        handle(*outages_.next());
        outages_.pop();
      } else {
        now_ = end_;
        complete();
      }
    }
    return ledger_.outcome(now_);
  }

 private:
  bool elastic() const { return plan_.on_failure == OnFailure::DropReplica; }
  bool enough_devices() const { return pool_.possible() >= (elastic() ? 1 : plan_.replicas); }

  void begin(Activity activity, RunTicks length) {
    activity_ = activity;
    begin_ = now_;
    end_ = length == kNever ? kNever : now_ + length;
  }

  void start_first() {
    if (absent_.empty()) {
      begin(Activity::Rebuild, clock_.ticks(plan_.warm_up));
    } else {
      begin(Activity::Detect, 0);  // what comes at time 0 is there
    }
  }

  /// Returns true if an outage comes before the current activity ends. A run that waits for
  /// devices, or is about to count them, sees those of its last instant too.
  bool event_comes_first() {
    const bool last_instant = activity_ == Activity::Detect || activity_ == Activity::Wait;
    const auto& next = outages_.next();
    const RunTicks time = next ? clock_.ticks(next->time) : kNever;
    const bool first = last_instant ? time <= end_ : time < end_;
    if (activity_ == Activity::Wait && !outages_.brings_up()) refuse_to_wait();
    if (first && ++events_ > kMostEvents) {
      throw Error("the run has more than " + std::to_string(kMostEvents) +
                  " outages; expected longer lives of devices, or fewer steps");
    }
    const RunTicks until = first ? time : end_;
    if (until > clock_.horizon) refuse_to_go_on();
    return first;
  }

  [[noreturn]] void refuse_to_wait() const {
    const int needed = (elastic() ? 1 : plan_.replicas) * plan_.devices_per_replica;
    throw Error("after " + format(clock_.seconds(now_)) + ", at step " +
                std::to_string(ledger_.done()) + " of " + std::to_string(plan_.steps) + ", " +
                (elastic() ? "the last replica has failed: " : "") + "only " +
                std::to_string(pool_.up()) + " of the " + std::to_string(needed) +
                " devices that training needs are left, and no other comes back; expected more "
                "\"spares\", a time for \"replacement\"" +
                (elastic() || plan_.replicas == 1
                     ? " or an \"up\" in the trace"
                     : ", an \"up\" in the trace or \"on_failure\": \"drop_replica\""));
  }

  [[noreturn]] void refuse_to_go_on() const {
    throw Error("after " + format(clock_.seconds(clock_.horizon)) + ", " +
                std::to_string(ledger_.failures()) + " failures have let training get to step " +
                std::to_string(ledger_.done()) + " of " + std::to_string(plan_.steps) +
                " only; expected checkpoints, restarts and steps that are short beside the time "
                "between failures");
  }

  /// Ends what goes on at `now_`, finished or not, and books its time.
  void book() {
    switch (activity_) {
      case Activity::Steps:
        ledger_.train(begin_, now_, running_);
        break;
      case Activity::Write:
      case Activity::Drain:
        ledger_.book(RunSpan::Kind::Checkpoint, begin_, now_);
        break;
      case Activity::Detect:
      case Activity::Rebuild:
        ledger_.book(RunSpan::Kind::Restart, begin_, now_);
        break;
      case Activity::Wait:
        ledger_.book(RunSpan::Kind::Idle, begin_, now_);
        break;
      case Activity::Done:
        break;
    }
    begin_ = now_;
  }

  void complete() {
    const Activity ended = activity_;
    book();
    switch (ended) {
      case Activity::Detect:
        recover();
        return;
      case Activity::Rebuild:
        pool_.share_state();
        reloads_ = false;
        started_ = true;
        break;
      case Activity::Write:
        ledger_.write(now_);
        break;
      default:
        break;
    }
    work();
  }

  /// Starts what training does next if no device is down.
  void work() {
    ledger_.settle(now_);
    if (ledger_.finished()) {
      begin(Activity::Done, 0);
    } else if (can_grow() && ledger_.done() < plan_.steps) {
      recover();
    } else if (!ledger_.checkpoint_due()) {
      running_ = pool_.whole();
      begin(Activity::Steps, ledger_.length_of(ledger_.steps_until_checkpoint(), running_));
    } else if (ledger_.writing()) {
      begin(Activity::Drain, ledger_.safe_at() - now_);
    } else {
      const CheckpointPolicy& checkpoint = plan_.checkpoint;
      begin(Activity::Write,
            clock_.ticks(checkpoint.asynchronous ? checkpoint.stall : checkpoint.write));
    }
  }

  bool can_grow() const { return elastic() && pool_.possible() > pool_.whole(); }

  /// Forms replicas and lets them load or copy the state, or waits for devices.
  void recover() {
    if (!enough_devices()) {
      begin(Activity::Wait, kNever);
      return;
    }
    pool_.regroup();
    const Seconds regroup = started_ ? plan_.regroup : Seconds(0);
    begin(Activity::Rebuild, clock_.ticks((reloads_ ? plan_.reload : regroup) + plan_.warm_up));
  }

  void handle(const DeviceEvent& event) {
    const RunTicks time = clock_.ticks(event.time);
    if (pool_.apply(event)) {
      now_ = time;
      fail();
    } else if (event.up && activity_ == Activity::Wait && enough_devices()) {
      now_ = time;
      book();
      recover();
    } else if (event.up && activity_ == Activity::Steps && can_grow()) {
      end_ = std::min(end_, begin_ + ledger_.step_end_from(time - begin_, running_));
    }
  }

  void fail() {
    const bool waits = activity_ == Activity::Wait;
    ledger_.settle(now_);
    book();
    ledger_.fail();
    const bool keeps_state = plan_.on_failure != OnFailure::Restart && plan_.replicas_hold_state;
    if (!keeps_state || !pool_.any_holds_state()) {
      if (!reloads_) ledger_.roll_back();
      pool_.forget_state();
      reloads_ = true;
    }
    if (waits) {
      begin(Activity::Wait, kNever);
    } else {
      begin(Activity::Detect, clock_.ticks(plan_.detection));
    }
  }

  const RunPlan& plan_;
  RunClock clock_;
  OutageStream outages_;
  std::vector<int> absent_;
  ReplicaPool pool_;
  RunLedger ledger_;
  Activity activity_ = Activity::Steps;
  RunTicks begin_ = 0, end_ = 0, now_ = 0;
  int running_ = 0;       // replicas, in the steps under way
  bool reloads_ = false;  // the state is in the checkpoint only
  bool started_ = false;
  std::int64_t events_ = 0;
};

}  // namespace

MicroBatchRange micro_batches_of(const RunPlan& plan, int live, int replica) {
  const std::int64_t all = plan.replicas * plan.micro_batches;
  const std::int64_t each = all / live, more = all % live;  // the first `more` take one more
  return {replica * each + std::min<std::int64_t>(replica, more), each + (replica < more ? 1 : 0)};
}

Seconds step_time_of(const RunPlan& plan, int live) {
  const std::int64_t most = micro_batches_of(plan, live, 0).count;
  return plan.step_time + static_cast<double>(most - plan.micro_batches) * plan.micro_batch_time;
}

RunOutcome simulate_training_run(const RunPlan& plan, std::uint64_t seed,
                                 std::vector<RunSpan>* history) {
  CHECK(plan.steps > 0 && plan.step_time > Seconds(0), "a run has steps that take time");
  return TrainingRun(plan, seed, history).run();
}

}  // namespace interlock
