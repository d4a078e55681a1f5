// Searches where a model is cut, which ranks run its stages, and in what order, all together.
// SPDX-License-Identifier: Apache-2.0
//
// A descent from several starts. The starts are the balanced and the even cut, stages laid as the
// scenario says, in loops, in a V and in blocks, under every schedule that lies so. A step down
// moves one module from a stage to another (those between hand one on), lays one stage on another
// rank or two on each other's, or takes another schedule. Neighbours are tried in the order of
// their bounds, and those whose bound decides are not looked at. From the best end the search is
// thrown some moves away and goes down again, a number of times. A choice that lacks memory is
// worse than any that fits, and the worse the more it lacks, so descents find room first. The idea
// of tuning cut, placement and schedule together: AdaPtis, arXiv 2509.23722.
#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"

namespace interlock {
namespace {

constexpr int kFewestLooks = 30;
constexpr double kOpsOfLooks = 4e6;  // a few seconds
constexpr std::size_t kDescents = 4, kJudgedCuts = 3;
constexpr int kMostMoves = 400, kBoundsOfLook = 8, kMostRanksTried = 16;
constexpr int kKicks = 12;  // in a row that lead to nothing better
constexpr double kSameTime = 1e-9;
constexpr int kRoundsOfOrders = 2;

/// A cut of the model, the rank of each stage, and a schedule by its number.
struct Choice {
  std::vector<int> cuts, ranks;
  std::size_t schedule = 0;
  auto operator<=>(const Choice&) const = default;
};

/// How good a choice is.
struct Verdict {
  double lack = 0;          // bytes, of all devices
  double time = kInfinity;  // of a step
  double uneven = 0;        // sum of squares of the times in which devices are busy
  bool exact = true;

  bool better_than(const Verdict& other) const {
    if (lack != other.lack) return lack < other.lack;
    if (time < other.time * (1 - kSameTime)) return true;
    return time <= other.time * (1 + kSameTime) && uneven < other.uneven * (1 - kSameTime);
  }
};

/// Moves a module out of stage `from` into stage `to`; the stages between hand one on.
std::vector<int> moved(std::vector<int> cuts, int from, int to) {
  for (int cut = std::min(from, to) + 1; cut <= std::max(from, to); ++cut) {
    cuts[cut] += from < to ? -1 : 1;
  }
  return cuts;
}

std::vector<int> pattern(int stages, int ranks, const std::function<int(int turn, int place)>& at) {
  std::vector<int> rank_of_stage;
  rank_of_stage.reserve(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    rank_of_stage.push_back(at(stage / ranks, stage % ranks));
  }
  return rank_of_stage;
}

class CutSearch {
 public:
  CutSearch(const Plan& plan, const CutEffort& effort)
      : plan_(plan),
        laid_(plan),
        effort_(effort),
        random_(static_cast<std::uint64_t>(plan.question.simulation.seed), 11) {
    Question& question = plan_.question;
    if (!question.known_prices) question.known_prices = std::make_shared<KnownPrices>();
    cuts_ = question.layout.partition.kind == PartitionRule::Kind::Auto;
    const ScheduleEntry& entry = *plan_.schedule.kind;
    sought_ = plan_.schedule.is_sought();
    lays_ = question.layout.lays_freely && plan_.copies == 1 && !plan_.schedule.order &&
            (sought_ || entry.layout == StageLayout::Any);
    limit_ = plan_.schedule.memory;
    const double ops = 6.0 * static_cast<double>(plan_.rank_of_stage.size()) * plan_.micro_batches;
    const int least = std::min(kFewestLooks, effort.looks);
    most_looks_ = std::clamp(static_cast<int>(kOpsOfLooks / ops), least, effort.looks);
    if (!sought_) schedules_ = {plan_.schedule};
  }

  /// Returns the plan of the best choice.
  Plan run() {
    const Choice own = {plan_.partition.boundaries, plan_.rank_of_stage, 0};
    std::vector<Choice> first = starts(own);
    const auto better = [this](const Choice& a, const Choice& b) {
      return verdict(a).better_than(verdict(b));
    };
    std::stable_sort(first.begin(), first.end(), better);
    first.resize(std::min(first.size(), kDescents));
    Choice best = first.front();
    for (const Choice& start : first) {
      const Choice end = descend(start);
      if (better(end, best)) best = end;
    }
    for (int kick = 0; kick < kKicks && !spent(); ++kick) {
      const Choice end = descend(kicked(best));
      if (!better(end, best)) continue;
      best = end;
      kick = -1;
    }
    return plan_of(verdict(best).exact || !effort_.simulates ? best : simulated_best(best, own));
  }

 private:
  bool spent() const { return looks_ >= most_looks_ || bounds_ >= kBoundsOfLook * most_looks_; }

  const Plan& plan_of(const Choice& choice) {
    plan_.partition.boundaries = choice.cuts;
    plan_.rank_of_stage = choice.ranks;
    plan_.schedule = schedules_[choice.schedule];
    return plan_;
  }

  Bytes capacity(std::optional<Bytes> of_device) const {
    if (limit_ > Bytes(0)) return limit_;
    const Bytes own = of_device.value_or(Bytes(0));
    const Bytes usable = own > Bytes(0) ? effort_.usable * own : Bytes(kInfinity);
    return std::min(usable, effort_.memory.value_or(usable));
  }

  Verdict verdict_of(const StepEstimate& step) const {
    Verdict verdict = {.time = step.time.value(), .exact = step.exact};
    for (const DeviceMetrics& device : step.metrics.devices) {
      const Bytes most = capacity(device.memory_capacity);
      verdict.lack += std::max(0.0, (device.peak_memory - most).value());
      const double busy = device.busy * verdict.time;
      verdict.uneven += busy * busy;
    }
    return verdict;
  }

  /// Estimates a choice quickly; one whose ranks would wait for each other takes for ever.
  const Verdict& verdict(const Choice& choice) {
    const auto [entry, fresh] = known_.try_emplace(choice);
    if (!fresh) return entry->second;
    ++looks_;
    if (effort_.looked) effort_.looked();
    try {
      entry->second = verdict_of(estimate_step(plan_of(choice), Grade::Look));
    } catch (const Error&) {
      entry->second = {.lack = kInfinity};
    }
    return entry->second;
  }

  /// Returns the time that is expected of a choice; infinite if it is no better than `known` then,
  /// or does not fit: looks are few, and go to what promises most.
  double promise(const Choice& choice, const Verdict& known) {
    ++bounds_;
    try {
      const StepEstimate bound = estimate_step(plan_of(choice), Grade::PlanBound);
      const bool fits = bound.fullest <= capacity(bound.memory_capacity);
      const bool slower = bound.expected.value() > known.time * (1 + kSameTime);
      return known.lack == 0 && (!fits || slower) ? kInfinity : bound.expected.value();
    } catch (const Error&) {
      return kInfinity;
    }
  }

  /// Returns the numbers of the schedules that may run stages on `ranks`.
  std::vector<std::size_t> schedules_on(const std::vector<int>& ranks) {
    if (!sought_) return {0};
    laid_.rank_of_stage = ranks;
    std::vector<std::size_t> numbers;
    for (const SchedulePolicy& policy : hand_made_schedules(laid_)) {
      const auto same = [&](const SchedulePolicy& known) {
        return known.kind == policy.kind && known.split_backward == policy.split_backward;
      };
      const auto found = std::find_if(schedules_.begin(), schedules_.end(), same);
      numbers.push_back(static_cast<std::size_t>(found - schedules_.begin()));
      if (found == schedules_.end()) schedules_.push_back(policy);
    }
    return numbers;
  }

  std::vector<std::vector<int>> placements(const std::vector<int>& own) const {
    std::vector<std::vector<int>> all = {own};
    if (!lays_) return all;
    const int stages = static_cast<int>(own.size()), ranks = plan_.question.layout.ranks();
    const auto add = [&](std::vector<int> one) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
    };
    add(pattern(stages, ranks, [](int, int place) { return place; }));
    add(pattern(stages, ranks, [ranks](int turn, int place) {
      return turn % 2 == 0 ? place : ranks - 1 - place;
    }));
    std::vector<int> blocks;
    blocks.reserve(static_cast<std::size_t>(stages));
    for (int stage = 0; stage < stages; ++stage) blocks.push_back(stage * ranks / stages);
    add(blocks);
    return all;
  }

  /// Returns the cuts to begin with: balanced for `ranks`, and even.
  std::vector<std::vector<int>> first_cuts(const Choice& own, const std::vector<int>& ranks) const {
    if (!cuts_) return {own.cuts};
    Question question = plan_.question;
    question.layout.placement = ranks;
    const int parts = static_cast<int>(own.cuts.size()) - 1;
    return {cut_model(question).partition.boundaries,
            uniform_partition(own.cuts.back(), parts).boundaries};
  }

  std::vector<Choice> starts(const Choice& own) {
    std::vector<Choice> all;
    for (const std::vector<int>& ranks : placements(own.ranks)) {
      for (const std::vector<int>& cuts : first_cuts(own, ranks)) {
        for (const std::size_t schedule : schedules_on(ranks)) {
          all.push_back({cuts, ranks, schedule});
        }
      }
    }
    CHECK(!all.empty(), "some schedule runs stages as the scenario lays them");
    return all;
  }

  /// Calls `visit` with all pairs of `count` things, or with as many that are drawn.
  void for_pairs(int count, const std::function<void(int, int)>& visit) {
    if (count * count > 2 * kMostMoves) {
      for (int i = 0; i < kMostMoves; ++i) {
        visit(random_.integer(0, count - 1), random_.integer(0, count - 1));
      }
      return;
    }
    for (int i = 0; i < count * count; ++i) visit(i / count, i % count);
  }

  void append_moves(const Choice& choice, std::vector<Choice>& all) {
    if (!cuts_) return;
    for_pairs(static_cast<int>(choice.cuts.size()) - 1, [&](int from, int to) {
      if (from == to || choice.cuts[from + 1] - choice.cuts[from] < 2) return;
      all.push_back(choice);
      all.back().cuts = moved(choice.cuts, from, to);
    });
  }

  void append_placements(const Choice& choice, std::vector<Choice>& all) {
    if (!lays_) return;
    const std::vector<int>& own = choice.ranks;
    const auto add = [&](const std::vector<int>& ranks) {
      for (const std::size_t schedule : schedules_on(ranks)) {
        if (schedule != choice.schedule) continue;
        all.push_back(choice);
        all.back().ranks = ranks;
      }
    };
    for (std::size_t stage = 0; stage < own.size(); ++stage) {
      if (std::count(own.begin(), own.end(), own[stage]) == 1) continue;
      const int rank = random_.integer(0, plan_.question.layout.ranks() - 1);
      const int first = plan_.question.layout.ranks() > kMostRanksTried ? rank : 0;
      const int end = std::min(first + kMostRanksTried, plan_.question.layout.ranks());
      for (int other = first; other < end; ++other) {
        std::vector<int> ranks = own;
        ranks[stage] = other;
        if (ranks != own) add(ranks);
      }
    }
    for_pairs(static_cast<int>(own.size()), [&](int stage, int other) {
      std::vector<int> ranks = own;
      std::swap(ranks[stage], ranks[other]);
      if (stage < other && ranks != own) add(ranks);
    });
  }

  /// Leaves `most` of `all`, drawn at random, where there are more.
  void draw(std::vector<Choice>& all, int most) {
    const int last = static_cast<int>(all.size()) - 1;
    if (last < most) return;
    for (int i = 0; i < most; ++i) std::swap(all[i], all[random_.integer(i, last)]);
    all.resize(most);
  }

  std::vector<Choice> neighbours(const Choice& choice) {
    std::vector<Choice> all;
    append_moves(choice, all);
    append_placements(choice, all);
    for (const std::size_t schedule : schedules_on(choice.ranks)) {
      if (schedule == choice.schedule) continue;
      all.push_back(choice);
      all.back().schedule = schedule;
    }
    draw(all, kMostMoves);
    return all;
  }

  /// Returns the end of the way down from `choice`: none of its neighbours is better.
  Choice descend(Choice choice) {
    for (bool down = true; down && !spent();) {
      down = false;
      const Verdict now = verdict(choice);
      std::vector<std::pair<double, Choice>> next;
      for (Choice& one : neighbours(choice)) {
        const double time = promise(one, now);
        if (time < kInfinity) next.emplace_back(time, std::move(one));
      }
      std::sort(next.begin(), next.end());
      for (std::size_t i = 0; i < next.size() && !down && !spent(); ++i) {
        down = verdict(next[i].second).better_than(now);
        if (down) choice = next[i].second;
      }
    }
    return choice;
  }

  Choice kicked(Choice choice) {
    constexpr int kFewestThrown = 2, kMostThrown = 4;
    for (int moves = random_.integer(kFewestThrown, kMostThrown); moves > 0; --moves) {
      const std::vector<Choice> next = neighbours(choice);
      if (next.empty()) break;
      choice = next[random_.integer(0, static_cast<int>(next.size()) - 1)];
    }
    return choice;
  }

  /// Returns the best by simulation of the best few by looks, and of what the search began with.
  Choice simulated_best(const Choice& best, const Choice& own) {
    std::vector<Choice> few;
    for (const auto& [choice, known] : known_) few.push_back(choice);
    const auto better = [this](const Choice& a, const Choice& b) {
      return known_.at(a).better_than(known_.at(b));
    };
    const auto middle =
        few.begin() + static_cast<std::ptrdiff_t>(std::min(kJudgedCuts, few.size()));
    std::partial_sort(few.begin(), middle, few.end(), better);
    few.erase(middle, few.end());
    if (!sought_) few.push_back(own);
    Choice first = best;
    Verdict least = {.lack = kInfinity};
    for (const Choice& choice : few) {
      Plan plan = plan_of(choice);
      fold(plan);
      const Verdict verdict = verdict_of(estimate_step(plan, Grade::Simulation));
      if (!verdict.better_than(least)) continue;
      least = verdict;
      first = choice;
    }
    return first;
  }

  Plan plan_;
  Plan laid_;  // as it was given, but for the ranks that schedules are asked about
  const CutEffort& effort_;
  Random random_;
  bool cuts_ = false, lays_ = false, sought_ = false;
  Bytes limit_;
  int looks_ = 0, bounds_ = 0, most_looks_ = 0;
  std::vector<SchedulePolicy> schedules_;
  std::map<Choice, Verdict> known_;
};

Seconds simulated_time(const Plan& plan) {
  Plan folded = plan;
  fold(folded);
  return estimate_step(folded, Grade::Simulation).time;
}

/// Has the question of `plan` say what was chosen.
void settle(Plan& plan) {
  PartitionRule& rule = plan.question.layout.partition;
  rule = {.kind = PartitionRule::Kind::Explicit};
  for (int part = 0; part < plan.partition.stages(); ++part) {
    rule.modules.push_back(plan.partition.boundaries[part + 1] - plan.partition.boundaries[part]);
  }
  if (plan.copies == 1) plan.question.layout.placement = plan.rank_of_stage;
  plan.question.layout.lays_freely = false;
}

}  // namespace

bool leaves_cut(const Question& question) {
  return question.layout.partition.kind == PartitionRule::Kind::Auto || question.layout.lays_freely;
}

Plan search_cut(const LaidOut& laid_out, const CutEffort& effort) {
  const Plan& plan = laid_out.draft;
  Plan found = CutSearch(plan, effort).run();
  if (plan.schedule.is_sought()) {
    found.schedule = plan.schedule;
    found.schedule = find_order({found});
    // The order was found for this cut; another cut may suit it better, and then another order.
    for (int round = 0; round < kRoundsOfOrders; ++round) {
      Plan next = CutSearch(found, effort).run();
      if (next.partition.boundaries == found.partition.boundaries) break;
      next.schedule = plan.schedule;
      next.schedule = find_order({next});
      if (simulated_time(next) >= simulated_time(found)) break;
      found = std::move(next);
    }
  }
  settle(found);
  return found;
}

}  // namespace interlock
