// Searching for an order: candidates, list orders by random rules, and moves of single ops.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/auto_schedule.h"

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "sim/plan/order_moves.h"

namespace interlock {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kRetries = 4;  // of a list order that its estimate of memory made too large

class Search {
 public:
  Search(const SearchInputs& inputs, const ScheduleJudge& judge)
      : inputs_(inputs), judge_(judge), random_(inputs.seed, 0), margins_(inputs.lists.size()) {
    for (std::size_t i = 0; i < margins_.size(); ++i) {
      margins_[i].assign(inputs.lists[i].memory.size(), 0);
    }
  }
  FoundSchedule run();

 private:
  struct Point {
    std::size_t list = 0;
    ListRules rules;
    double step_time = kNever;
  };

  bool spent(double share) const {
    return best_.evaluations >= share * inputs_.evaluations ||
           best_.step_time <= inputs_.bound * (1 + 1e-12);
  }
  std::vector<double> excess(const SchedulePolicy& policy);
  double consider(const SchedulePolicy& policy, double at_most);
  void try_point(Point& point, double at_most);
  void try_grid();
  Point varied(const Point& point);
  void vary_rules();
  void move_ops();

  const SearchInputs& inputs_;
  const ScheduleJudge& judge_;
  Random random_;
  std::vector<std::vector<double>> margins_;  // (lists, ranks) bytes kept free in list orders
  std::vector<double> last_excess_;           // (ranks) of the order considered last
  Point best_point_;
  FoundSchedule best_{.step_time = kNever, .excess = kNever};
};

FoundSchedule Search::run() {
  for (const SchedulePolicy& candidate : inputs_.candidates) consider(candidate, kNever);
  try_grid();
  vary_rules();
  move_ops();
  return best_;
}

/// The step time of a schedule that fits; infinite if it does not, or takes longer than `at_most`.
double Search::consider(const SchedulePolicy& policy, double at_most) {
  ++best_.evaluations;
  last_excess_.clear();
  const double time = judge_.step_time(policy);
  if (time == kNever || (best_.excess <= 0 && time > at_most)) return kNever;
  last_excess_ = judge_.peaks(policy);
  double most = -kNever;
  for (double& bytes : last_excess_) most = std::max(most, bytes -= inputs_.capacity);
  const bool better = most <= 0 ? best_.excess > 0 || time < best_.step_time : most < best_.excess;
  if (better) {
    best_.policy = policy;
    best_.step_time = time;
    best_.excess = most;
  }
  return most <= 0 ? time : kNever;
}

/// Lists the order of a point; where that turns out to take more memory than was estimated, again
/// with as much less to spend.
void Search::try_point(Point& point, double at_most) {
  ListInputs list = inputs_.lists[point.list];
  std::vector<double>& margin = margins_[point.list];
  for (int retry = 0; retry < kRetries; ++retry) {
    for (std::size_t r = 0; r < margin.size(); ++r) {
      list.memory[r] = inputs_.lists[point.list].memory[r] - margin[r];
    }
    const auto order = list_order(list, point.rules);
    if (!order) return;
    SchedulePolicy policy = inputs_.own;
    policy.split_backward = point.list == 0;
    policy.order = std::make_shared<const std::vector<std::vector<Op>>>(*order);
    point.step_time = consider(policy, at_most);
    bool over = false;
    for (std::size_t r = 0; r < last_excess_.size(); ++r) {
      if (last_excess_[r] <= 0) continue;
      margin[r] += last_excess_[r];
      over = true;
    }
    if (!over) return;
  }
}

/// Rules that have proved good, and nothing special about any rank.
void Search::try_grid() {
  for (std::size_t list = 0; list < inputs_.lists.size(); ++list) {
    for (int choice = 0; choice < 18; ++choice) {
      Point point{.list = list};
      point.rules = {.forward_first = choice % 2 == 1,
                     .patience = choice / 2 % 3 * 0.5,
                     .first_patience = choice / 6 * 0.5};
      try_point(point, kNever);
      if (point.step_time < best_point_.step_time) best_point_ = point;
      if (spent(0.5)) return;
    }
  }
}

/// A point near another: one rule changed, for some ranks in a row where it has one for each.
Search::Point Search::varied(const Point& point) {
  Point next = point;
  const ListInputs& list = inputs_.lists[point.list];
  const int stages = static_cast<int>(list.ops.size());
  const int ranks = static_cast<int>(list.memory.size());
  const int most = list.micro_batches;
  auto vary = [&](std::vector<int>& limits, int count) {
    if (limits.empty()) limits.assign(count, most);
    const int first = random_.integer(0, count - 1), last = random_.integer(first, count - 1);
    const bool shift = random_.integer(0, 1) == 0;
    const int by = random_.integer(0, 1) == 0 ? 1 : -1, value = random_.integer(1, most);
    const int slope = random_.integer(-2, 2);
    for (int i = first; i <= last; ++i) {
      const int changed = shift ? limits[i] + by : value + slope * (i - first);
      limits[i] = std::clamp(changed, 1, most);
    }
  };
  switch (random_.integer(0, 5)) {
    case 0:
      next.rules.forward_first = !next.rules.forward_first;
      break;
    case 1:
      (random_.integer(0, 1) == 0 ? next.rules.patience : next.rules.first_patience) =
          random_.uniform();
      break;
    case 2:
    case 3:
      vary(next.rules.ahead, stages);
      break;
    default:
      vary(next.rules.held, ranks);
  }
  return next;
}

void Search::vary_rules() {
  Point current = best_point_;
  while (!spent(0.5) && current.step_time < kNever) {
    Point next = varied(current);
    try_point(next, current.step_time);
    if (next.step_time <= current.step_time) current = next;
  }
}

void Search::move_ops() {
  if (!best_.policy.order || best_.excess > 0) return;
  SchedulePolicy current = best_.policy;
  double step_time = best_.step_time;
  while (!spent(1)) {
    auto order = *current.order;
    move_op(order, random_);
    SchedulePolicy next = current;
    next.order = std::make_shared<const std::vector<std::vector<Op>>>(std::move(order));
    const double time = consider(next, step_time);
    if (time > step_time) continue;
    current = next;
    step_time = time;
  }
}

}  // namespace

FoundSchedule find_schedule(const SearchInputs& inputs, const ScheduleJudge& judge) {
  return Search(inputs, judge).run();
}

}  // namespace interlock
