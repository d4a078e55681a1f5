// Collector: a sink that makes metrics of a known window, holding only what is live or stale.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <vector>

#include "sim/causes/idle_times.h"
#include "sim/measure/memory.h"
#include "sim/measure/metrics.h"
#include "sim/measure/steady.h"

namespace interlock {

class Collector {
 public:
  /// Measures steps [window.first_step, + window.steps), and how devices spend `times`.
  Collector(const Program& program, const StepWindow& window, const TimeWindow& times);

  void add(const Span& span);
  void add(const Transfer& transfer);
  void add(const CollectiveSpan& span);
  void add(const MemoryChange& change) { memory_.add(change); }
  /// Ends a window without an end where the run has ended. Comes before finish().
  void end_window(Seconds end) {
    times_.end = end;
    idle_.end_window(end);
  }
  /// REQUIRES: the whole trace was added. To be called once.
  Metrics finish(const MeasureInputs& inputs);

 private:
  struct RankState {
    double busy = 0, useful = 0;           // seconds inside the window
    std::array<double, kTimeUses> time{};  // likewise
    double replays = 0;
  };
  /// Micro-batches [first, end) of one window, forwarded after that number of updates.
  /// Example: {4, 6, 1}. If three updates are done when the fourth uses their gradients, both
  /// micro-batches have missed 3 - 1 = 2 updates.
  struct Forwards {
    int first = 0, end = 0, updates = 0;
  };
  struct StageState {
    int updates = 0;
    std::vector<Forwards> forwards;     // that no update has used yet
    int most_missed = 0;                // updates, of a measured micro-batch, as below
    std::int64_t used = 0, missed = 0;  // measured micro-batches, and the sum of their updates
  };
  bool measured(int micro_batch) const;
  double share_inside(Seconds start, Seconds end, int micro_batch) const;
  void add_idle(const IdleStretch& idle);
  void add_flows(int collective, double times);
  void count_staleness(const OpInfo& op, int micro_batch);
  std::vector<StageStaleness> stage_staleness() const;
  void fill_devices(Metrics& metrics, const MeasureInputs& inputs);
  void fill_shares(std::size_t r, DeviceMetrics& device) const;
  void fill_links(Metrics& metrics) const;

  const Program& program_;
  StepWindow window_;
  TimeWindow times_;
  IdleTimes idle_;
  MemoryTracker memory_;
  std::vector<RankState> ranks_;
  std::vector<StageState> stages_;
  std::vector<double> link_bytes_;
  std::map<int, int> stale_;  // measured micro-batches that missed updates: the most on any stage
  double executed_flops_ = 0, useful_flops_ = 0;
  double fill_latency_ = -1;
};

}  // namespace interlock
