// IdleTimes: when each device of a window idles, so that ops and idle time fill the window.
// SPDX-License-Identifier: Apache-2.0
//
// A window is measured in one of two ways. By the clock: the part of each op and wait that lies in
// [begin, end) counts. By steps, where these repeat: each device does in the window what belongs to
// its steps, though early stages do some of it before the window begins. Such a device goes round a
// circle as long as the window: the op that comes before its first one is the last one, a turn
// earlier. Example: two steps of 5 s from 20 s to 30 s, for which a device that is ahead runs ops
// of 2 s at 17 s and at 22 s. It idles from 14 s (the end of the second op, 24 s, less a turn of 10
// s) to 17 s, and from 19 s to 22 s. With both ops that makes 10 s.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// Bounds the part of a run that is measured.
struct TimeWindow {
  Seconds begin, end;
  int first_step = 0, steps = 0;  // by these steps, which repeat; 0 steps: by the clock
  bool by_clock() const { return steps == 0; }
  double length() const { return (end - begin).value(); }
  /// Returns the share of a span that counts.
  double share(const Program& program, const Span& span) const;
};

/// Returns the time that an op waits for exchanges inside it: the time in its cost or, if it was
/// measured shorter, its length.
Seconds waiting_inside(const OpInfo& op, const Span& span);

/// The seconds in which a device waits, up to the start of an op or the end of the window.
struct IdleStretch {
  static constexpr std::int64_t kNoOp = -1;
  int rank = 0;
  std::int64_t number = kNoOp;  // of the op that comes after, as add() was told
  double begin = 0, end = 0;
  double exposed = 0;  // the last part, in which a message or a collective is on its way
};

class IdleTimes {
 public:
  IdleTimes(const Program& program, const TimeWindow& window);
  /// Returns the idle stretch before `span`, which is number `number`; nothing if there is none, or
  /// if it is known at the end only. REQUIRES: spans of a rank come in order of start.
  std::optional<IdleStretch> add(const Span& span, std::int64_t number);
  /// Ends a window without an end where the run has ended. Comes before finish().
  void end_window(Seconds end) { window_.end = end; }
  /// Returns the stretches that add() did not. To be called once, after all spans.
  std::vector<IdleStretch> finish() const;
  /// Returns whether the stretches and the ops fill the window. Of very long runs measured by
  /// steps, the stretches are those before the ops as they were run, at the first steps of the
  /// window perhaps not yet as in the steady state.
  bool exact() const { return exact_; }
  /// Returns the seconds of [from, to) that count.
  double inside(double from, double to) const;
  /// Returns the seconds of `idle` that count; exposed() returns how many of them are exposed.
  double length(const IdleStretch& idle) const { return inside(idle.begin, idle.end); }
  double exposed(const IdleStretch& idle) const {
    return inside(idle.end - idle.exposed, idle.end);
  }

 private:
  /// An op of the window; `idle` ends with its start.
  struct Op {
    IdleStretch idle;
    double end = 0;
    double place = 0, turns = 0, length = 0;  // ticks: of its start on the circle; its own length
  };
  struct RankState {
    double free = 0;      // the end of the last op
    std::vector<Op> ops;  // of the window, by steps, if exact
  };
  void go_round(std::vector<Op> ops, std::vector<IdleStretch>& result) const;

  const Program& program_;
  TimeWindow window_;
  bool exact_;
  std::vector<RankState> ranks_;
};

}  // namespace interlock
