// Best-first search.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "scenarios/load/loader.h"
#include "scenarios/search/best_cut.h"
#include "scenarios/search/offload_search.h"
#include "scenarios/search/plan_survey.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

/// Effort taken from the queue at once, whatever the number of workers, as the plans that are
/// looked at depend on it. Simulations are dear, and those before them may make them needless.
constexpr int kRound = 64;
constexpr std::array kEffort = {1, 4, 8};  // to know better what is known by Grade
/// The next best plans after the best are found even if they are worth nothing.
constexpr std::size_t kRunnersUp = 5;
/// Plans that lead by a quick estimate, as they are too large to be simulated, and are simulated
/// all the same; and how many at once.
constexpr int kLeaders = 16, kLeadersAtOnce = 4;
constexpr double kFarTooShort = 1.02;
constexpr double kEffortOfOffload = 1 << 14;  // above what the search without took

double value_of(const PlanEstimate& estimate, Aim aim) {
  return estimate.values[static_cast<std::size_t>(aim)];
}

class PlanSearch {
 public:
  PlanSearch(const JsonValue& document, const SearchRequest& request, const Workers& workers,
             const SearchProgress& told)
      : PlanSearch(PlanSpace(document, request), request, workers, told) {}
  PlanSearch(PlanSpace space, const SearchRequest& request, const Workers& workers,
             const SearchProgress& told)
      : request_(request),
        space_(std::move(space)),
        survey_(space_, request_, workers),
        progress_(told) {}

  SearchResult run() {
    begin();
    if (least_.empty()) refuse_empty(result_.counts, space_.batch());
    try {
      while (step()) tell(result_.counts.layouts + done_);
      leave_unjudged();
    } catch (const StopSearch&) {
      if (result_.plans.empty()) keep_best_known();
      if (result_.plans.empty()) throw;
      result_.stopped = true;
      count_waiting();
    }
    result_.request = request_;
    result_.request.counted = nullptr;  // the caller's, and the caller may be gone
    return std::move(result_);
  }

  /// Searches with the `offloads` those layouts of `without` that had too little memory for some
  /// plan, may have enough where hosts hold what they may, and take less of the aim than
  /// `request.to_beat`, if that is known.
  PlanSearch(const PlanSearch& without, const std::vector<JsonValue>& offloads,
             const SearchRequest& request, const Workers& workers, const SearchProgress& told)
      : PlanSearch(without.space_.with_offload(without.tight_layouts(request), offloads), request,
                   workers, told) {
    for (const std::size_t layout : without.tight_layouts(request)) {
      least_.insert(least_.end(), offloads.size(), without.bounds_[layout].least);
    }
    effort_left_ = without.spent_ + kEffortOfOffload;
  }

  bool has_layouts() const { return !space_.layouts().empty(); }

 private:
  double key(const Candidate& candidate) const {
    return value_of(candidate.estimate, request_.aim);
  }

  /// Tells of `done` layouts and plans.
  void tell(std::size_t done) const {
    if (request_.counted) request_.counted(result_.counts);
    if (progress_) progress_(done, result_.counts.layouts + result_.counts.plans);
  }

  /// Orders the queue: of plans that are equal in the aim, less of everything else comes first.
  auto turn(const Candidate& candidate) const {
    return std::tuple(key(candidate), candidate.estimate.values, static_cast<int>(candidate.grade),
                      candidate.layout, candidate.order);
  }

  /// Plans that a candidate stands for.
  std::size_t plans(const Candidate& candidate) const {
    return candidate.grade == Grade::LayoutBound ? survey_.orders(candidate.layout).size() : 1;
  }

  std::vector<std::size_t> tight_layouts(const SearchRequest& request) const {
    std::vector<std::size_t> layouts;
    for (std::size_t i = 0; i < bounds_.size() && space_.can_offload(); ++i) {
      const bool slow = request.to_beat && bounds_[i].least >= *request.to_beat;
      if (bounds_[i].lacks_memory && bounds_[i].has_room && !slow) layouts.push_back(i);
    }
    return layouts;
  }

  /// Returns whether the plans of a layout may have room if hosts hold all that they may.
  bool has_room(const PlanEstimate& bound) const {
    if (!request_.limits.memory) return bound.kept_share <= bound.usable_share;
    return bound.kept_share * bound.memory_capacity <= request_.limits.memory->value();
  }

  void begin() {
    const std::size_t layouts = space_.layouts().size();
    SearchCounts& counts = result_.counts;
    counts.layouts = layouts;
    counts.left_out = space_.left_out();
    bounds_.resize(layouts);
    for (std::size_t i = 0; i < layouts; ++i) counts.plans += survey_.orders(i).size();
    for (std::size_t i = 0; i < least_.size(); ++i) {
      Candidate candidate = {.grade = Grade::LayoutBound, .layout = i, .borrowed = true};
      candidate.estimate.values[static_cast<std::size_t>(request_.aim)] = least_[i];
      put(candidate);
    }
    if (least_.empty()) bound_layouts();
  }

  void bound_layouts() {
    const std::size_t layouts = space_.layouts().size();
    spent_ += static_cast<double>(layouts);
    const std::vector<Findings> findings =
        survey_.bound_layouts([&](std::size_t bounded) { tell(bounded); });
    for (std::size_t i = 0; i < layouts; ++i) {
      const Candidate candidate = {.grade = Grade::LayoutBound, .layout = i};
      if (!findings[i].estimates.empty() && findings[i].estimates.front()) {
        const PlanEstimate& bound = *findings[i].estimates.front();
        bounds_[i] = {.least = value_of(bound, request_.aim), .has_room = has_room(bound)};
      }
      if (repeats(i, findings)) {
        count(candidate);
        lose(candidate, Loss::Identical);
      } else {
        take(candidate, findings[i], true);
      }
    }
  }

  /// Returns whether the plans of `layout` are those of a layout before it, and notes it there.
  bool repeats(std::size_t layout, const std::vector<Findings>& findings) {
    if (!findings[layout].failure.empty()) return false;
    const auto& own = findings[layout].estimates.front();
    if (!own || !own->repeats) return false;
    const auto before = space_.with_less_zero(layout);
    if (!before || !findings[*before].failure.empty()) return false;
    if (!findings[*before].estimates.front()) return false;
    repeated_[*before].push_back(layout);
    return true;
  }

  /// Puts what is known now of `candidate` into the queue. `first`: its layout's bound, else
  /// better.
  void take(const Candidate& candidate, const Findings& findings, bool first) {
    SearchCounts& counts = result_.counts;
    if (!findings.failure.empty()) {
      if (counts.failure.empty()) counts.failure = findings.failure;
      leave(counts.unfinished, plans(candidate));
    } else if (candidate.grade == Grade::PlanBound && !findings.estimates.front()) {
      if (counts.useless == 0) counts.useless_because = findings.refusal;
      leave(counts.useless, 1);
    } else {
      if (counts.refusal.empty()) counts.refusal = findings.refusal;
      take_estimates(candidate, findings, first);
    }
  }

  /// Adds plans that are `left` aside to their `count`.
  void leave(std::size_t& count, std::size_t left) {
    count += left;
    done_ += left;
  }

  void take_estimates(const Candidate& candidate, const Findings& findings, bool first) {
    for (std::size_t i = 0; i < findings.estimates.size(); ++i) {
      if (!findings.estimates[i]) {
        leave(result_.counts.refused, first ? plans(candidate) : 1);
        continue;
      }
      Candidate known = candidate;
      known.estimate = *findings.estimates[i];
      if (!first && known.grade != Grade::Simulation) {
        known.grade = static_cast<Grade>(static_cast<int>(candidate.grade) + 1);
      }
      if (known.grade == Grade::Simulation) note_error(candidate, known.estimate);
      if (known.grade == Grade::PlanBound) known.order = i;
      take_known(known);
    }
  }

  /// Puts `known` into the queue, unless another plan has the same numbers.
  void take_known(const Candidate& known) {
    count(known);
    const bool repeats = known.grade == Grade::PlanBound && known.estimate.repeats;
    if (repeats || (known.grade == Grade::Look && is_alike(known))) {
      lose(known, Loss::Identical);
    } else {
      put(known);
    }
  }

  /// Returns whether a plan of the same degrees gave the same numbers, bit by bit, when it was
  /// looked at; notes for that plan that `known` is the same by other settings.
  bool is_alike(const Candidate& known) {
    const PlanLayout& layout = space_.layouts()[known.layout];
    const PlanEstimate& e = known.estimate;
    const auto [first, fresh] =
        looks_.try_emplace({{layout.devices, layout.tensor, layout.pipeline, layout.data,
                             layout.context, layout.expert, layout.expert_tensor,
                             layout.micro_batch_size, static_cast<int>(known.order)},
                            {e.step_time, e.peak_memory, e.busy, e.working_links, e.values[0],
                             e.values[1], e.values[2], e.values[3]},
                            e.time},
                           Alike{known.layout, {}});
    if (!fresh) first->second.others.push_back(known.layout);
    return !fresh;
  }

  void count(const Candidate& known) {
    SearchCounts& counts = result_.counts;
    if (known.grade == Grade::LayoutBound) ++counts.bounded_layouts;
    if (known.grade == Grade::PlanBound) ++counts.bounded;
    if (known.grade == Grade::Look) ++counts.looked_at;
    if (known.grade != Grade::Simulation) return;
    const PlanEstimate& estimate = known.estimate;
    if (estimate.too_large && !estimate.unjudged) return;  // waits to lead
    ++(estimate.too_large ? counts.too_large : counts.judged);
    const int judged = estimate.judged_micro_batches;
    if (judged > 0 && judged < estimate.micro_batches) ++counts.shortened;
  }

  void put(const Candidate& known) {
    const auto loss = limit_met(request_.limits, known.estimate, known.grade);
    if (loss) return lose(known, *loss);
    if (request_.to_beat && key(known) >= *request_.to_beat) return lose(known, Loss::Dominated);
    queue_.push_back(known);
    std::push_heap(queue_.begin(), queue_.end(), later());
  }

  std::function<bool(const Candidate&, const Candidate&)> later() const {
    return [this](const Candidate& a, const Candidate& b) { return turn(a) > turn(b); };
  }

  Candidate pop() {
    std::pop_heap(queue_.begin(), queue_.end(), later());
    const Candidate first = queue_.back();
    queue_.pop_back();
    return first;
  }

  void lose(const Candidate& known, Loss loss) {
    result_.counts.lost[static_cast<std::size_t>(known.grade)][static_cast<std::size_t>(loss)] +=
        plans(known);
    done_ += plans(known);
    if (loss != Loss::Memory) return;
    bounds_[known.layout].lacks_memory = true;
    if (known.grade == Grade::LayoutBound) return;
    std::vector<FoundPlan>& closest = result_.closest;
    const auto memory = [](const PlanEstimate& estimate) {
      return estimate.values[static_cast<std::size_t>(Aim::Memory)];
    };
    if (!closest.empty() && memory(closest.front().estimate) <= memory(known.estimate)) return;
    closest = {found(known)};
  }

  FoundPlan found(const Candidate& known) {
    const PlanLayout& layout = space_.layouts()[known.layout];
    const WorkOrder& order = survey_.orders(known.layout)[known.order];
    FoundPlan plan = {.layout = layout,
                      .order = order,
                      .settings = space_.settings(layout, order),
                      .document = space_.document_of(layout, order),
                      .estimate = known.estimate};
    for (const auto& [look, alike] : looks_) {
      if (alike.first != known.layout || look.degrees.back() != static_cast<int>(known.order)) {
        continue;
      }
      for (const std::size_t other : alike.others) plan.alike.push_back(space_.layouts()[other]);
    }
    const auto repeated = repeated_.find(known.layout);
    if (repeated == repeated_.end()) return plan;
    for (const std::size_t other : repeated->second) plan.alike.push_back(space_.layouts()[other]);
    return plan;
  }

  /// Says that a plan that was found is no worse in anything, but for a difference below `worth`.
  bool dominated(const Candidate& known) const {
    if (request_.only_best) return !result_.plans.empty();
    return std::any_of(result_.plans.begin(), result_.plans.end(), [&](const FoundPlan& plan) {
      if (!plan.worth_having) return false;
      for (std::size_t i = 0; i < kAims; ++i) {
        const double most = known.estimate.values[i] * (1 + request_.worth);
        if (plan.estimate.values[i] > most) return false;
      }
      return true;
    });
  }

  /// Says that plans that are not worth having are found, too.
  bool wants_next_best() const { return !request_.only_best && result_.plans.size() <= kRunnersUp; }

  /// Takes the first of the queue as the next best plan.
  void finish(const Candidate& judged) {
    const bool worthless = dominated(judged);
    if (worthless && !wants_next_best()) return lose(judged, Loss::Dominated);
    ++done_;
    result_.plans.push_back(found(judged));
    result_.plans.back().worth_having = !worthless;
  }

  /// Notes if the quick estimate of `before` turned out far too short.
  void note_error(const Candidate& before, const PlanEstimate& simulated) {
    const double ratio = simulated.step_time / before.estimate.step_time;
    if (effort_left_ || before.estimate.folds || ratio < kFarTooShort) return;
    effort_left_ = request_.effort_beyond / space_.layouts()[before.layout].devices;
  }

  /// Says that `next` is looked at no more, though it may be better than all that are found.
  bool is_left(const Candidate& next) const {
    return next.grade < Grade::Look && effort_left_ && *effort_left_ <= 0;
  }

  /// Finishes the first of the plans that could not be simulated if there is no other.
  void leave_unjudged() {
    if (unjudged_.empty()) return;
    std::ranges::stable_sort(unjudged_, {}, [this](const Candidate& one) { return turn(one); });
    std::size_t first = 0;
    if (result_.plans.empty()) {
      finish(unjudged_.front());
      --result_.counts.large_better;  // the others may be
      first = 1;
    }
    for (std::size_t i = first; i < unjudged_.size(); ++i) lose(unjudged_[i], Loss::Dominated);
  }

  /// Takes the next candidates: estimates them better, or finishes those that were simulated.
  /// Returns whether any candidate waits.
  bool step() {
    std::vector<Candidate> round, judged;
    int effort = 0;
    double cost = 0;  // effort, with each plan whose bound is found
    while (!queue_.empty() && effort < kRound) {
      const Candidate next = pop();
      if (next.estimate.too_large && dominated(next)) {
        if (!next.estimate.unjudged) ++result_.counts.too_large;
        lose(next, Loss::Dominated);
      } else if (next.estimate.too_large) {
        if (next.estimate.unjudged || leaders_ == kLeaders) {
          if (!next.estimate.unjudged) ++result_.counts.too_large;
          if (result_.plans.empty()) ++result_.counts.large_better;
          unjudged_.push_back(next);
          continue;
        }
        ++leaders_;
        effort += kRound / kLeadersAtOnce;
        round.push_back(next);
      } else if (next.grade == Grade::Simulation) {
        if (round.empty()) {
          finish(next);
        } else {
          judged.push_back(next);
        }
      } else if (!wants_next_best() && dominated(next)) {
        lose(next, Loss::Dominated);
      } else if (is_left(next)) {
        leave(result_.counts.left, plans(next));
        if (result_.plans.empty()) result_.counts.left_better += plans(next);
      } else {
        const int each = kEffort[static_cast<std::size_t>(next.grade)];
        effort += each;
        cost += next.borrowed ? each : each * static_cast<double>(plans(next));
        round.push_back(next);
      }
    }
    for (const Candidate& back : judged) {
      queue_.push_back(back);
      std::push_heap(queue_.begin(), queue_.end(), later());
    }
    if (effort_left_) *effort_left_ -= least_.empty() ? effort : cost;
    spent_ += cost;
    if (round.empty()) return false;
    know_better(round);
    return true;
  }

  void take_better(Candidate candidate, const Findings& findings) {
    const bool first = std::exchange(candidate.borrowed, false);
    take(candidate, findings, first);
  }

  /// Takes better numbers of `round`. What is not known when the search is stopped waits again.
  void know_better(const std::vector<Candidate>& round) {
    std::vector<Findings> findings(round.size());
    const auto take_known_ones = [&] {
      for (std::size_t i = 0; i < round.size(); ++i) {
        if (findings[i].known) take_better(round[i], findings[i]);
      }
    };
    try {
      const auto heard = [&] {
        if (request_.counted) request_.counted(result_.counts);
      };
      survey_.know_better(round, heard, findings);
    } catch (const StopSearch&) {
      take_known_ones();
      for (std::size_t i = 0; i < round.size(); ++i) {
        if (!findings[i].known) queue_.push_back(round[i]);
      }
      throw;
    }
    take_known_ones();
  }

  /// Says how well `known` is known, for a search that is stopped: the best of it are its plans.
  static int worth_telling(const Candidate& known) {
    if (known.grade == Grade::Simulation) return known.estimate.too_large ? 2 : 3;
    return known.grade == Grade::Look ? 1 : 0;
  }

  /// Takes the best of what was simulated as the plans; if nothing was, the best of what was looked
  /// at, by the numbers of the looks.
  void keep_best_known() {
    constexpr std::size_t kMostLooks = 64;
    std::vector<Candidate> best = queue_;
    best.insert(best.end(), unjudged_.begin(), unjudged_.end());
    int most = 0;
    for (const Candidate& one : best) most = std::max(most, worth_telling(one));
    if (most == 0) return;
    std::erase_if(best, [&](const Candidate& one) { return worth_telling(one) < most; });
    const auto sort = [&] {
      std::ranges::stable_sort(best, {}, [this](const Candidate& one) { return turn(one); });
    };
    sort();
    const bool looks = most == 1;
    if (looks) {
      best.resize(std::min(best.size(), kMostLooks));
      for (Candidate& one : best) one.estimate = priced(one);
      std::erase_if(best, [&](const Candidate& one) {
        return limit_met(request_.limits, one.estimate, Grade::Simulation).has_value();
      });
      sort();
    }
    for (const Candidate& one : best) {
      const bool worthless = dominated(one);
      if (worthless && !wants_next_best()) continue;
      result_.plans.push_back(found(one));
      result_.plans.back().worth_having = !worthless;
      result_.plans.back().simulated = !looks;
    }
    if (!best.empty()) best_known_ = best.front();
  }

  /// Counts what waits when the search is stopped.
  void count_waiting() {
    SearchCounts& counts = result_.counts;
    for (const Candidate& one : queue_) {
      if (one.grade < Grade::Look) counts.waiting += plans(one);
      if (!best_known_ || key(one) >= key(*best_known_)) continue;
      const bool itself = one.layout == best_known_->layout && one.order == best_known_->order &&
                          one.grade == best_known_->grade;
      if (!itself) counts.waiting_better += plans(one);
    }
    result_.cut_off = best_known_ && (counts.waiting_better > 0 || !result_.plans[0].simulated);
  }

  /// Returns the look at `known` by its own numbers.
  PlanEstimate priced(const Candidate& known) const {
    const auto document = std::make_shared<const JsonValue>(space_.document_of(
        space_.layouts()[known.layout], survey_.orders(known.layout)[known.order]));
    return priced_look(lay_out(load_point(document)).ordered(), known.estimate);
  }

  SearchRequest request_;
  PlanSpace space_;
  PlanSurvey survey_;
  const SearchProgress& progress_;
  std::vector<Candidate> queue_;     // a heap
  std::vector<Candidate> unjudged_;  // led, and could not be simulated
  int leaders_ = 0;                  // that were simulated though they are large
  std::optional<double> effort_left_;
  double spent_ = 0;  // effort
  /// A plan as a look saw it: two plans of one are the same by other settings.
  struct SeenPlan {
    std::array<int, 9> degrees;     // and sizes, and the order of work
    std::array<double, 8> numbers;  // of the estimate
    std::array<double, kTimeUses> time;
    bool operator<(const SeenPlan& other) const {
      return std::tie(degrees, numbers, time) < std::tie(other.degrees, other.numbers, other.time);
    }
  };
  struct Alike {
    std::size_t first;                // layout that was looked at first
    std::vector<std::size_t> others;  // layouts
  };
  std::map<SeenPlan, Alike> looks_;
  std::optional<Candidate> best_known_;  // as a search is stopped that has proven none
  std::map<std::size_t, std::vector<std::size_t>>
      repeated_;  // layouts, by the one that they repeat
  /// Facts of a layout by which offload may be of use to it.
  struct OffloadBound {
    double least = 0;           // of the aim
    bool has_room = false;      // where hosts hold all that they may
    bool lacks_memory = false;  // some plan without offload
  };
  std::vector<OffloadBound> bounds_;  // by layout
  std::vector<double> least_;         // of the aim, by layout, where it is known from `without`
  SearchResult result_;
  std::size_t done_ = 0;
};

/// Searches the plans that lack memory without offload, as `without` found, for one that beats
/// those of `result`.
void search_roomier(const PlanSearch& without, SearchRequest request, const Workers& workers,
                    const SearchProgress& told, SearchResult& result) {
  if (!result.plans.empty()) {
    const double least = value_of(result.plans.front().estimate, request.aim);
    request.to_beat = least / (1 + request.worth);
    request.only_best = true;
  }
  const std::size_t before = result.counts.layouts + result.counts.plans;
  SearchProgress after;
  if (told) after = [&](std::size_t done, std::size_t of) { told(before + done, before + of); };
  PlanSearch search(without, usual_offloads(), request, workers, after);
  if (!search.has_layouts()) return;
  try {
    join_offload(search.run(), result);
  } catch (const StopSearch&) {
    if (result.plans.empty()) throw;
    result.stopped = result.cut_off = true;
  }
}

/// Bounds the plan that is closest, the one of `scenario`, in all if its memory alone was bounded.
void bound_closest(const Question& scenario, PlanEstimate& closest) {
  if (closest.step_time > 0) return;
  const LaidOut laid = lay_out(scenario);
  const double usable = closest.usable_share;
  closest = estimate_by_bound(laid.ordered(), bound_plan(laid.ordered()));
  closest.usable_share = usable;
}

}  // namespace

SearchRequest request_of(const JsonValue& document) {
  refuse_jobs(document);
  const JsonValue* search = document.find("search");
  if (search == nullptr) return {};
  Diagnostics diagnostics;
  SearchRequest request = read_search({search, "/search"}, diagnostics);
  diagnostics.throw_if_any();
  return request;
}

SearchResult search_plans(const JsonValue& document, const Workers& workers,
                          const SearchProgress& told) {
  return search_plans(document, request_of(document), workers, told);
}

SearchResult search_plans(const JsonValue& document, const SearchRequest& request,
                          const Workers& workers, const SearchProgress& told) {
  PlanSearch search(document, request, workers, told);
  SearchResult result = search.run();
  const bool least_memory = !result.plans.empty() && request.aim == Aim::Memory;
  if (!result.stopped && !least_memory) search_roomier(search, request, workers, told, result);
  refine_best(result, told);
  if (!result.plans.empty()) result.closest.clear();
  FoundPlan* const first = !result.plans.empty()     ? &result.plans.front()
                           : !result.closest.empty() ? &result.closest.front()
                                                     : nullptr;
  if (first != nullptr) {
    result.scenario = load_point(std::make_shared<const JsonValue>(first->document));
    if (result.plans.empty()) bound_closest(result.scenario, first->estimate);
    const PlanEstimate& known = first->estimate;
    result.memory_limit =
        request.limits.memory.value_or(Bytes(known.usable_share * known.memory_capacity));
    if (!result.plans.empty()) {
      result.confidence =
          confidence_in(lay_out(result.scenario).ordered(), Seconds(known.step_time));
    }
  }
  const JsonValue* name = document.find("name");
  result.name = name != nullptr ? name->text : default_name(document);
  return result;
}

}  // namespace interlock
