// Searching for an order: candidates, list orders by rules near the best ones, and moves of ops.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/auto_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "sim/plan/orders/order_moves.h"

namespace interlock {

namespace {

constexpr int kRetries = 4;  // of a list order that its estimate of memory made too large
// Forwards ahead of backwards, for each stage that comes after: what families are made of. 1 is
// the warm-up of 1F1B, 2 that of its eager form; 0 stands for no limit but memory.
constexpr std::array kSlopes = {1.0, 0.0, 2.0, 0.875, 1.5, 1.25, 0.75};
constexpr std::array<std::pair<double, double>, 4> kPatience = {
    {{0.5, 0}, {0, 0.5}, {1, 0}, {0.5, 1}}};  // of filling ops, and of forwards
constexpr double kShareOfRules = 0.6;         // of the evaluations; moves have the rest

using Order = std::vector<std::vector<Op>>;

/// A schedule that was looked at.
struct Looked {
  SchedulePolicy policy;
  double step_time = kInfinity;  // if it fits
};

/// A list order: by which costs and rules.
struct Point {
  std::size_t list = 0;
  ListRules rules;
  Looked found;
};

class Search {
 public:
  Search(const SearchInputs& inputs, const ScheduleJudge& judge)
      : inputs_(inputs), judge_(judge), random_(inputs.seed, 0) {
    for (const ListInputs& list : inputs.lists) margins_.emplace_back(list.memory.size(), 0.0);
  }
  FoundSchedules run();

 private:
  bool spent(double share) const {
    return evaluations_ >= share * inputs_.evaluations ||
           best_.step_time <= inputs_.bound * (1 + 1e-12);
  }
  Looked look(const SchedulePolicy& policy, double at_most);
  Looked look(const SchedulePolicy& like, Order order, double at_most);
  void list(Point& point, double at_most);
  void list_grid();
  Point varied(const Point& point);
  void vary(std::vector<int>& limits, std::size_t count, int most);
  void vary_rules();
  void move_from(const Looked& start, double share);

  const SearchInputs& inputs_;
  const ScheduleJudge& judge_;
  Random random_;
  int evaluations_ = 0;
  double least_memory_ = kInfinity;
  std::vector<std::vector<double>> margins_;  // (lists, ranks) bytes kept free in list orders
  std::vector<double> excess_;                // (ranks) bytes, of the schedule looked at last
  Point point_;                               // the best
  Looked best_;
};

/// A schedule's step time, or none if it does not fit or takes longer than `at_most`.
Looked Search::look(const SchedulePolicy& policy, double at_most) {
  ++evaluations_;
  excess_.clear();
  const double time = judge_.step_time(policy);
  if (time == kInfinity || time > at_most) return {policy};
  excess_ = judge_.peaks(policy);
  const double peak = *std::max_element(excess_.begin(), excess_.end());
  least_memory_ = std::min(least_memory_, peak);
  bool fits = true;
  for (std::size_t rank = 0; rank < excess_.size(); ++rank) {
    excess_[rank] -= inputs_.capacity.at(rank);
    fits = fits && excess_[rank] <= 0;
  }
  if (!fits) return {policy};
  Looked looked = {policy, time};
  if (time < best_.step_time) best_ = looked;
  return looked;
}

Looked Search::look(const SchedulePolicy& like, Order order, double at_most) {
  SchedulePolicy policy = like;
  policy.order = std::make_shared<const Order>(std::move(order));
  return look(policy, at_most);
}

/// Lists the order of a point; where that turns out to take more memory than was estimated, again
/// with as much less to spend.
void Search::list(Point& point, double at_most) {
  ListInputs inputs = inputs_.lists[point.list];
  SchedulePolicy policy = inputs_.own;
  policy.split_backward = point.list == 0;
  std::vector<double>& margin = margins_[point.list];
  for (int retry = 0; retry < kRetries; ++retry) {
    for (std::size_t r = 0; r < margin.size(); ++r) {
      inputs.memory[r] = inputs_.lists[point.list].memory[r] - margin[r];
    }
    auto order = list_order(inputs, point.rules);
    if (!order) return;
    point.found = look(policy, *std::move(order), at_most);
    const auto over = [](double bytes) { return bytes > 0; };
    if (std::none_of(excess_.begin(), excess_.end(), over)) break;
    for (std::size_t r = 0; r < excess_.size(); ++r) margin[r] += std::max(0.0, excess_[r]);
  }
  if (point.found.step_time < point_.found.step_time) point_ = point;
}

/// Rules that are good without knowing any rank.
void Search::list_grid() {
  for (std::size_t i = 0; i < inputs_.lists.size(); ++i) {
    const int stages = static_cast<int>(inputs_.lists[i].ops.size());
    for (const double slope : kSlopes) {
      for (int choice = 0; choice < 8 && !spent(kShareOfRules); ++choice) {
        Point point{.list = i};
        const auto [patience, first_patience] = kPatience[choice / 2];
        point.rules = {.forward_first = choice % 2 == 1,
                       .patience = patience,
                       .first_patience = first_patience};
        for (int stage = 0; stage < stages && slope > 0; ++stage) {
          const double ahead = std::ceil(slope * (stages - stage));
          point.rules.ahead.push_back(static_cast<int>(ahead));
        }
        list(point, kInfinity);
      }
    }
  }
}

/// Changes some limits in a row: by one, or to a new slope.
void Search::vary(std::vector<int>& limits, std::size_t count, int most) {
  if (limits.empty()) limits.assign(count, most);
  const int end = static_cast<int>(count) - 1;
  const int first = random_.integer(0, end), last = random_.integer(first, end);
  const bool shift = random_.integer(0, 2) > 0;
  const int by = random_.integer(0, 1) == 0 ? 1 : -1;
  const int value = random_.integer(1, most), slope = random_.integer(-2, 2);
  for (int i = first; i <= last; ++i) {
    const int changed = shift ? limits[i] + by : value + slope * (i - first);
    limits[i] = std::clamp(changed, 1, most);
  }
}

/// A point near another: one rule changed.
Point Search::varied(const Point& point) {
  Point next = point;
  next.found = {};
  ListRules& rules = next.rules;
  const ListInputs& inputs = inputs_.lists[point.list];
  switch (random_.integer(0, 7)) {
    case 0:
      rules.forward_first = !rules.forward_first;
      break;
    case 1:
      rules.patience = random_.uniform();
      break;
    case 2:
      rules.first_patience = random_.uniform();
      break;
    case 3:
    case 4:
      vary(rules.held, inputs.memory.size(), inputs.micro_batches);
      break;
    default:
      vary(rules.ahead, inputs.ops.size(), inputs.micro_batches);
  }
  return next;
}

void Search::vary_rules() {
  Point current = point_;
  while (!spent(kShareOfRules) && current.found.step_time < kInfinity) {
    Point next = varied(current);
    list(next, current.found.step_time);
    if (next.found.step_time <= current.found.step_time) current = next;
  }
}

void Search::move_from(const Looked& start, double share) {
  Looked current = start;
  while (!spent(share) && current.step_time < kInfinity) {
    Order order = *current.policy.order;
    move_ops(order, inputs_.lists.empty() ? 0 : inputs_.lists.front().in_flight, random_);
    const Looked next = look(current.policy, std::move(order), current.step_time);
    if (next.step_time <= current.step_time) current = next;
  }
}

FoundSchedules Search::run() {
  std::vector<Looked> fitting;
  for (const SchedulePolicy& candidate : inputs_.candidates) {
    const Looked looked = look(candidate, kInfinity);
    if (looked.step_time < kInfinity) fitting.push_back(looked);
  }
  list_grid();
  vary_rules();
  Looked start;  // the best hand-made order
  for (const SchedulePolicy& policy : inputs_.starts) {
    const Looked looked = look(policy, start.step_time);
    if (looked.step_time < start.step_time) start = looked;
  }
  move_from(start, (1 + kShareOfRules) / 2);
  if (best_.policy.order) move_from(best_, 1);
  const auto faster = [](const Looked& a, const Looked& b) { return a.step_time < b.step_time; };
  std::stable_sort(fitting.begin(), fitting.end(), faster);
  FoundSchedules found{.least_memory = least_memory_};
  const bool own = best_.step_time < (fitting.empty() ? kInfinity : fitting.front().step_time);
  if (own) found.fitting.push_back(best_.policy);
  for (const Looked& looked : fitting) found.fitting.push_back(looked.policy);
  return found;
}

}  // namespace

FoundSchedules find_schedules(const SearchInputs& inputs, const ScheduleJudge& judge) {
  return Search(inputs, judge).run();
}

}  // namespace interlock
