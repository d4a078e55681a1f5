// Gaps between the ops of a device, in a window or around a circle.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/idle_times.h"

#include <algorithm>
#include <cmath>

#include "sim/program/ticks.h"

namespace interlock {

namespace {
constexpr std::int64_t kMostTasksKept = 200'000;
}

double TimeWindow::share(const Program& program, const Span& span) const {
  const double duration = (span.end - span.start).value();
  if (by_clock() && duration > 0) {
    const Seconds inside = std::min(span.end, end) - std::max(span.start, begin);
    return std::max(0.0, inside.value() / duration);
  }
  if (by_clock()) return begin <= span.start && span.start < end ? 1 : 0;
  const int step = span.micro_batch / program.micro_batches - first_step;
  return 0 <= step && step < steps ? 1 : 0;
}

Seconds waiting_inside(const OpInfo& op, const Span& span) {
  return std::min(op.communication, span.end - span.start);
}

IdleTimes::IdleTimes(const Program& program, const TimeWindow& window)
    : program_(program),
      window_(window),
      exact_(window.by_clock() || count_tasks(program) <= kMostTasksKept),
      ranks_(program.ranks.size()) {}

std::optional<IdleStretch> IdleTimes::add(const Span& span, std::int64_t number) {
  RankState& rank = ranks_[span.rank];
  const double start = span.start.value(), end = span.end.value();
  // Measured spans of several streams may overlap.
  const double exposed = std::clamp(span.exposed.value(), 0.0, std::max(0.0, start - rank.free));
  const IdleStretch idle = {span.rank, number, rank.free, start, exposed};
  rank.free = std::max(rank.free, end);
  if (!window_.by_clock()) {
    if (window_.share(program_, span) == 0) return std::nullopt;
    if (exact_) {
      rank.ops.push_back({idle, end});
      return std::nullopt;
    }
  }
  return idle.end > idle.begin ? std::optional(idle) : std::nullopt;
}

/// Adds the stretch before each of `ops`, which are all of a rank: up to it from the op before it
/// on the circle, whichever turn that was run in. Counts in ticks, so that equal instants are
/// equal.
void IdleTimes::go_round(std::vector<Op> ops, std::vector<IdleStretch>& result) const {
  const auto ticks = [this](double seconds) { return in_ticks(program_, Seconds(seconds)); };
  const double first = ticks(ops.front().idle.end);
  const double turn = ticks(window_.end.value()) - ticks(window_.begin.value());
  double latest = 0;
  for (Op& op : ops) {
    const double since = ticks(op.idle.end) - first;
    op.turns = turn > 0 ? std::floor(since / turn) : 0;
    op.place = since - turn * op.turns;
    op.length = ticks(op.end) - ticks(op.idle.end);
    latest = std::max(latest, op.place + op.length);
  }
  // Puts an op that ends an earlier turn before one that begins a turn at the same instant.
  std::stable_sort(ops.begin(), ops.end(), [](const Op& a, const Op& b) {
    return a.place < b.place || (a.place == b.place && a.turns > b.turns);
  });
  double free = latest - turn;
  for (Op& op : ops) {
    const double length = in_seconds(program_, std::max(0.0, op.place - free)).value();
    free = std::max(free, op.place + op.length);
    op.idle.begin = op.idle.end - length;
    op.idle.exposed = std::min(op.idle.exposed, length);
    result.push_back(op.idle);
  }
}

std::vector<IdleStretch> IdleTimes::finish() const {
  std::vector<IdleStretch> rest;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RankState& rank = ranks_[r];
    IdleStretch last{.rank = static_cast<int>(r),
                     .begin = window_.by_clock() ? rank.free : window_.begin.value(),
                     .end = window_.end.value()};
    if (!rank.ops.empty()) {
      go_round(rank.ops, rest);
    } else if (exact_ && last.end > last.begin) {
      rest.push_back(last);
    }
  }
  return rest;
}

double IdleTimes::inside(double from, double to) const {
  if (!window_.by_clock()) return to - from;
  return std::max(0.0, std::min(to, window_.end.value()) - std::max(from, window_.begin.value()));
}

}  // namespace interlock
