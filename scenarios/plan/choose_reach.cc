// Searches how many stages each loss reaches: "n_wise": "auto".
// SPDX-License-Identifier: Apache-2.0
//
// A stage is trained by the furthest loss that reaches it, so lists of N that give each stage the
// same loss are one training; of these the least N are taken. Candidates are therefore the furthest
// losses of all stages: they never decrease, none lies below its stage, the last stage has its own.
// Each candidate is planned in full, with boundaries, ranks and order where these are open, and
// simulated. Of those that fit, the ones that are at most `slowdown` longer than the shortest are
// let through, and of these the one wins whose stages are furthest from their losses, on average.
//
// Few candidates are judged one and all, but for those whose bound shows that they are not let
// through; that is exact as far as the searches behind boundaries and orders are. Of many, only
// those are judged that lie on ways down in time from each N that is the same for all losses, and
// then on a way up in distance from the best of them.
//
// Example: 3 stages. The losses 0 1 2 are local training, 1 2 2 is pairwise, 2 2 2 global; between
// them lie 0 2 2 and 1 1 2, whose N are 1 1 2 and 1 2 1.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/plan/choices.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/plan/step_time.h"

namespace interlock {
namespace {

constexpr double kMostJudged = 1430;       // all of eight stages, where steps are short
constexpr double kFewestJudged = 132;      // all of six
constexpr std::size_t kMostSearched = 42;  // all of five, where each is a search of its own
constexpr double kOpsJudged = 2e6;         // a few seconds
constexpr double kShareOfDescent = 0.67;
constexpr int kBoundsOfVerdict = 8;
constexpr double kSameStepTime = 1 + 1e-9;  // beyond what rounding may add to a step

using Losses = std::vector<int>;  // the furthest loss of each stage

struct ReachVerdict {
  double lack = kInfinity;  // bytes, of all devices
  double time = kInfinity;  // of a step
  int distance = 0;         // stages from each stage to its loss, added up

  bool better_than(const ReachVerdict& other) const {
    return lack != other.lack ? lack < other.lack : time < other.time;
  }
};

int distance_of(const Losses& losses) {
  int sum = 0;
  for (std::size_t stage = 0; stage < losses.size(); ++stage) {
    sum += losses[stage] - static_cast<int>(stage);
  }
  return sum;
}

class ReachSearch {
 public:
  explicit ReachSearch(const Question& question)
      : question_(question),
        stages_(question.layout.stages),
        bounds_(*question.training().strategy.sought) {
    if (!question_.known_prices) question_.known_prices = std::make_shared<KnownPrices>();
    searches_ = leaves_cut(question) || question.training().schedule.is_sought();
    const Training& training = question.training();
    const double ops = 6.0 * stages_ * training.micro_batches * training.schedule.in_flight;
    const double most = std::clamp(kOpsJudged / ops, kFewestJudged, kMostJudged);
    most_ = searches_ ? kMostSearched : static_cast<std::size_t>(most);
  }

  /// Returns the plan of the best candidate.
  Plan run() {
    if (count_up_to(most_) <= most_) {
      judge_all();
    } else {
      descend();
      climb();
    }
    return make_plan(question_with(chosen()));
  }

 private:
  /// Returns the least loss that may train `stage`.
  int least_of(int stage) const {
    return std::min(stage + std::min(bounds_.least, stages_), stages_) - 1;
  }

  Losses uniform(int n) const {
    Losses losses(stages_);
    for (int stage = 0; stage < stages_; ++stage) {
      losses[stage] = std::max(least_of(stage), std::min(stage + n, stages_) - 1);
    }
    return losses;
  }

  bool spent(double share = 1) const {
    const double bounds = searches_ ? 0 : static_cast<double>(bounds_made_) / kBoundsOfVerdict;
    return std::max(static_cast<double>(verdicts_.size()), bounds) >= share * most_;
  }

  /// Appends all candidates that begin with `first`.
  void append_all(Losses first, std::vector<Losses>& all) const {
    const int stage = static_cast<int>(first.size());
    if (stage == stages_) return all.push_back(std::move(first));
    const int before = stage > 0 ? first.back() : 0;
    first.push_back(0);
    for (int loss = std::max(least_of(stage), before); loss < stages_; ++loss) {
      first.back() = loss;
      append_all(first, all);
    }
  }

  /// Returns the time of an eager step of a candidate, balanced; infinite where it lacks memory.
  /// Orders and cuts that are searched are seldom far from it.
  double eager_time(const Losses& losses) const {
    Question question = question_with(losses);
    PartitionRule& rule = question.layout.partition;
    if (rule.kind == PartitionRule::Kind::Auto) rule.kind = PartitionRule::Kind::Balanced;
    question.layout.lays_freely = false;
    SchedulePolicy& schedule = question.training().schedule;
    schedule.kind = &schedule_named("eager");
    schedule.split_backward = schedule.kind->split_backward;
    try {
      const Plan plan = make_plan(question);
      const StepEstimate step = estimate_step(plan, Grade::Look);
      return lack_of(step, plan.schedule.memory) > 0 ? kInfinity : step.time.value();
    } catch (const Error&) {
      return kInfinity;  // a verdict keeps the reason
    }
  }

  /// Returns a time that no step of a candidate is below; where its order or cut is open, one that
  /// it may be expected to have.
  double bound_of(const Losses& losses) {
    ++bounds_made_;
    if (searches_) return bounds_made_ <= kBoundsOfVerdict * most_ ? eager_time(losses) : kInfinity;
    try {
      const LaidOut laid_out = lay_out(question_with(losses));
      return estimate_step(laid_out.ordered(), Grade::PlanBound).time.value();
    } catch (const Error&) {
      return 0;  // a verdict keeps the reason
    }
  }

  /// Judges all candidates, those of least bounds first, until no other one may be let through.
  void judge_all() {
    std::vector<Losses> all;
    append_all({}, all);
    std::vector<std::pair<double, Losses>> bounded;
    bounded.reserve(all.size());
    for (Losses& losses : all) {
      const double bound = bound_of(losses);
      bounded.emplace_back(bound, std::move(losses));
    }
    std::sort(bounded.begin(), bounded.end());
    for (const auto& [bound, losses] : bounded) {
      if (!searches_ && bound > longest()) break;
      verdict(losses);
    }
  }

  /// Returns how many candidates there are, or more than `most`.
  std::size_t count_up_to(std::size_t most) const {
    std::vector<std::size_t> ways(stages_, 0);  // by the loss of the last stage so far
    ways[0] = 1;
    for (int stage = 0; stage < stages_; ++stage) {
      std::vector<std::size_t> next(stages_, 0);
      std::size_t below = 0;
      for (int loss = 0; loss < stages_; ++loss) {
        below = std::min(most + 1, below + ways[loss]);
        if (loss >= least_of(stage)) next[loss] = below;
      }
      ways = std::move(next);
    }
    return ways.back();
  }

  /// Returns the question with the least N under which `losses` train the stages.
  Question question_with(const Losses& losses) const {
    Question question = question_;
    Strategy& strategy = question.training().strategy;
    strategy.sought.reset();
    std::vector<int> n(stages_, bounds_.least);
    for (int stage = stages_ - 1; stage >= 0; --stage) n[losses[stage]] = losses[stage] - stage + 1;
    set_reach(strategy, n);
    CHECK(furthest_losses(strategy, stages_) == losses, "the least N say which loss trains what");
    return question;
  }

  const ReachVerdict& verdict(const Losses& losses) {
    const auto [entry, fresh] = verdicts_.try_emplace(losses);
    if (!fresh) return entry->second;
    ReachVerdict& verdict = entry->second;
    verdict.distance = distance_of(losses);
    try {
      const Plan plan = make_plan(question_with(losses));
      const StepEstimate step = estimate_step(plan, Grade::Simulation);
      verdict.time = step.time.value();
      verdict.lack = lack_of(step, plan.schedule.memory);
      if (verdict.lack == 0) shortest_ = std::min(shortest_, verdict.time);
      if (verdict.lack > 0) leanest_ = std::min(leanest_, step.memory);
    } catch (const Error& refusal) {
      refusal_ = refusal.what();
    }
    return verdict;
  }

  /// Returns the longest step that is let through, by what is judged so far.
  double longest() const { return shortest_ * (1 + bounds_.slowdown) * kSameStepTime; }

  static double lack_of(const StepEstimate& step, Bytes limit) {
    double lack = 0;
    for (const DeviceMetrics& device : step.metrics.devices) {
      const Bytes own = device.memory_capacity.value_or(Bytes(kInfinity));
      const Bytes most = limit > Bytes(0) ? limit : own;
      lack += std::max(0.0, (device.peak_memory - most).value());
    }
    return lack;
  }

  /// Returns `losses` with another loss for `stage`; stages below and above follow, so that losses
  /// never decrease.
  Losses with_loss(Losses losses, int stage, int loss) const {
    losses[stage] = loss;
    for (int below = 0; below < stage; ++below) losses[below] = std::min(losses[below], loss);
    for (int above = stage + 1; above < stages_; ++above) {
      losses[above] = std::max(losses[above], loss);
    }
    return losses;
  }

  /// Goes down in time from each N that is the same for all losses, the best first.
  void descend() {
    std::vector<Losses> starts = {uniform(stages_)};
    for (int n = bounds_.least; n < stages_ && starts.size() < most_ / 4; ++n) {
      starts.push_back(uniform(n));
    }
    std::stable_sort(starts.begin(), starts.end(), [&](const Losses& a, const Losses& b) {
      return verdict(a).better_than(verdict(b));
    });
    for (Losses& losses : starts) {
      while (const auto next = better_neighbour(losses)) losses = *next;
    }
  }

  /// Returns the candidates in which one stage has a loss 1, 2, 4, ... stages further or nearer
  /// than in `losses`, by their bounds; none whose step is sure to be above `longest`.
  std::vector<std::pair<double, Losses>> neighbours(const Losses& losses, double longest) {
    std::vector<std::pair<double, Losses>> all;
    for (int stage = 0; stage < stages_; ++stage) {
      for (int away = 1; away < stages_; away *= 2) {
        for (const int loss : {losses[stage] - away, losses[stage] + away}) {
          if (loss < least_of(stage) || loss >= stages_) continue;
          Losses next = with_loss(losses, stage, loss);
          const double bound = bound_of(next);
          if (searches_ || bound <= longest) all.emplace_back(bound, std::move(next));
        }
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::optional<Losses> better_neighbour(const Losses& losses) {
    if (spent(kShareOfDescent)) return std::nullopt;
    const ReachVerdict& own = verdict(losses);
    for (const auto& [bound, next] : neighbours(losses, own.lack > 0 ? kInfinity : own.time)) {
      if (spent(kShareOfDescent)) break;
      if (verdict(next).better_than(own)) return next;
    }
    return std::nullopt;
  }

  /// Goes up in distance from what would be chosen so far, while that lets steps through.
  void climb() {
    for (bool up = true; up;) {
      up = false;
      const Losses best = chosen();
      std::vector<std::pair<double, Losses>> further = neighbours(best, longest());
      if (searches_) {  // the furthest that are expected to be let through
        const auto rank = [&](const auto& one) {
          return std::pair(one.first > longest(), -distance_of(one.second));
        };
        std::ranges::stable_sort(further, {}, rank);
      }
      for (const auto& [bound, next] : further) {
        if (spent() || up) break;
        if (distance_of(next) <= distance_of(best)) continue;
        verdict(next);
        up = chosen() != best;
      }
    }
  }

  /// Returns the best of the candidates that are judged. Throws: Error if none fits.
  Losses chosen() const {
    if (shortest_ == kInfinity) refuse();
    const Losses* best = nullptr;
    const ReachVerdict* known = nullptr;
    for (const auto& [losses, verdict] : verdicts_) {
      if (verdict.lack > 0 || verdict.time > longest()) continue;
      const bool further = known == nullptr || verdict.distance > known->distance;
      const bool shorter =
          !further && verdict.distance == known->distance && verdict.time < known->time;
      if (!further && !shorter) continue;
      best = &losses;
      known = &verdict;
    }
    return *best;
  }

  [[noreturn]] void refuse() const {
    if (leanest_.value() == kInfinity) throw Error(refusal_);
    throw Error(question_.file + ": " + question_.name +
                ": /training/strategy/n_wise: no N for the losses was found whose step fits: the "
                "leanest one takes " +
                format(leanest_) +
                " of a device; expected more devices, smaller micro-batches, \"recompute\" or a "
                "smaller \"least_n\"");
  }

  Question question_;
  int stages_;
  SoughtReach bounds_;
  bool searches_ = false;
  std::size_t most_ = 0, bounds_made_ = 0;
  double shortest_ = kInfinity;  // of those that fit
  std::map<Losses, ReachVerdict> verdicts_;
  Bytes leanest_ = Bytes(kInfinity);  // of those that do not fit
  std::string refusal_;
};

}  // namespace

Plan choose_reach(const Question& question) { return ReachSearch(question).run(); }

}  // namespace interlock
