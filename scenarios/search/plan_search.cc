// Best-first search.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_search.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <queue>
#include <tuple>
#include <type_traits>

#include "base/error.h"
#include "scenarios/loader.h"
#include "scenarios/sweep_plan.h"
#include "scenarios/worker_pool.h"

namespace interlock {
namespace {

/// What is taken from the queue at once, whatever the number of processes: what is looked at
/// depends on it. Judgements are dear, and those before them may make them needless.
constexpr int kRound = 16;
constexpr std::array kEffort = {1, 4, 8};  // to know better what is known by Grade
/// The next best plans after the best are found even if they are worth nothing.
constexpr std::size_t kRunnersUp = 8;

/// Something that waits to be known better.
struct Candidate {
  Grade grade = Grade::LayoutBound;
  std::size_t layout = 0, order = 0;
  PlanEstimate estimate;
};

/// What a process tells of a plan, or of a layout.
struct Told {
  enum class Kind { Known, Refused };
  Kind kind = Kind::Refused;
  PlanEstimate estimate;
};
static_assert(std::is_trivially_copyable_v<Told>, "goes through a pipe");

std::string bytes_of(const std::vector<Told>& told, const std::string& refusal) {
  std::string bytes(told.size() * sizeof(Told), '\0');
  if (!told.empty()) std::memcpy(bytes.data(), told.data(), bytes.size());
  return bytes + refusal;
}

class PlanSearch {
 public:
  PlanSearch(const JsonValue& document, int processes, const SearchProgress& told)
      : request_(request_of(document)),
        space_(document, request_),
        processes_(processes),
        progress_(told) {}

  SearchResult run() {
    begin();
    while (step()) {
      if (progress_) progress_(done_, result_.counts.plans);
    }
    result_.request = request_;
    return std::move(result_);
  }

 private:
  static SearchRequest request_of(const JsonValue& document) {
    const JsonValue* search = document.find("search");
    if (search == nullptr) return {};
    Diagnostics diagnostics;
    SearchRequest request = read_search({search, "/search"}, diagnostics);
    diagnostics.throw_if_any();
    return request;
  }

  double key(const Candidate& candidate) const {
    return candidate.estimate.figures[static_cast<std::size_t>(request_.aim)];
  }

  /// Of what is equal in what counts, the less of everything else comes first.
  auto turn(const Candidate& candidate) const {
    return std::tuple(key(candidate), candidate.estimate.figures, static_cast<int>(candidate.grade),
                      candidate.layout, candidate.order);
  }

  const std::vector<WorkOrder>& orders(std::size_t layout) {
    if (orders_[layout].empty()) orders_[layout] = space_.orders(space_.layouts()[layout]);
    return orders_[layout];
  }

  /// Plans that a candidate stands for.
  std::size_t plans(const Candidate& candidate) {
    return candidate.grade == Grade::LayoutBound ? orders(candidate.layout).size() : 1;
  }

  Scenario scenario_of(std::size_t layout, const WorkOrder& order) const {
    return load_point(
        std::make_shared<const JsonValue>(space_.document_of(space_.layouts()[layout], order)));
  }

  // What processes do. Each returns what it has to tell.

  std::string bound_of_layout(std::size_t layout) {
    std::string refusal;
    ScheduleFamily family;
    const std::vector<WorkOrder>& all = orders(layout);
    for (const WorkOrder& order : all) {
      try {
        const Scenario scenario = scenario_of(layout, order);
        for (const ScheduleEntry& entry : schedule_catalogue()) {
          const bool used = std::any_of(all.begin(), all.end(), [&](const WorkOrder& one) {
            return names(one.schedule, entry.name);
          });
          if (!used) continue;
          if (entry.overlaps) family.overlap = 1;
          family.keeps_stash = family.keeps_stash && entry.stash == StashMode::Kept;
        }
        Told told{Told::Kind::Known, {}};
        told.estimate.figures = figures_of(scenario, bound_layout(scenario, family));
        told.estimate.memory_capacity = scenario.cluster.device.memory.value();
        return bytes_of({told}, "");
      } catch (const Error& error) {
        if (refusal.empty()) refusal = error.what();
      }
    }
    return bytes_of({Told{}}, refusal);
  }

  static bool names(const JsonValue& schedule, const std::string& name) {
    if (schedule.kind == JsonValue::Kind::String) return schedule.text == name;
    const JsonValue* kind =
        schedule.kind == JsonValue::Kind::Object ? schedule.find("kind") : nullptr;
    return kind != nullptr && kind->text == name;
  }

  std::string bounds_of_plans(std::size_t layout) {
    std::string refusal;
    std::vector<Told> told;
    for (const WorkOrder& order : orders(layout)) {
      try {
        const Scenario scenario = scenario_of(layout, order);
        told.push_back({Told::Kind::Known, {}});
        told.back().estimate.figures = figures_of(scenario, bound_plan(scenario));
        told.back().estimate.memory_capacity = scenario.cluster.device.memory.value();
      } catch (const Error& error) {
        told.push_back({});
        if (refusal.empty()) refusal = error.what();
      }
    }
    return bytes_of(told, refusal);
  }

  std::string know_better(const Candidate& candidate) {
    if (candidate.grade == Grade::LayoutBound) return bounds_of_plans(candidate.layout);
    const Scenario scenario =
        scenario_of(candidate.layout, orders(candidate.layout)[candidate.order]);
    const PlanEstimate estimate = candidate.grade == Grade::PlanBound
                                      ? look_at(scenario)
                                      : judge(scenario, candidate.estimate);
    return bytes_of({{Told::Kind::Known, estimate}}, "");
  }

  /// Runs `work` for 0 ... `count` - 1, each in a process; what they tell, by number.
  std::vector<JobResult> run_all(std::size_t count,
                                 const std::function<std::string(std::size_t)>& work) const {
    std::vector<JobResult> results(count);
    std::size_t next = 0;
    run_jobs({.next = [&]() -> std::optional<std::size_t> {
                return next < count ? std::optional(next++) : std::nullopt;
              },
              .work = work,
              .done = [&](const JobResult& result) { results[result.job] = result; },
              .stop = {}},
             processes_);
    return results;
  }

  void begin() {
    const std::size_t layouts = space_.layouts().size();
    SearchCounts& counts = result_.counts;
    counts.layouts = layouts;
    orders_.resize(layouts);
    for (std::size_t i = 0; i < layouts; ++i) counts.plans += orders(i).size();
    const auto results = run_all(layouts, [&](std::size_t job) { return bound_of_layout(job); });
    for (std::size_t i = 0; i < layouts; ++i) {
      take({.grade = Grade::LayoutBound, .layout = i}, results[i], true);
    }
    if (counts.plans == 0 || counts.refused == counts.plans) {
      throw Error("no plan of the " + std::to_string(counts.plans) +
                  " that were tried is possible" +
                  (counts.refusal.empty() ? "; expected values of \"search\" that fit each other: "
                                            "tensor x pipeline x data = devices"
                                          : "; the first: " + counts.refusal));
    }
  }

  /// Puts what is known now of `candidate` into the queue. `first`: its layout's bound, else
  /// better.
  void take(const Candidate& candidate, const JobResult& result, bool first) {
    SearchCounts& counts = result_.counts;
    if (!result.problem.empty()) {
      counts.unfinished += plans(candidate);
      done_ += plans(candidate);
      if (counts.failure.empty()) counts.failure = result.problem;
      return;
    }
    const bool expands = candidate.grade == Grade::LayoutBound && !first;
    const std::size_t entries = expands ? orders(candidate.layout).size() : 1;
    const std::string refusal = result.bytes.substr(entries * sizeof(Told));
    if (counts.refusal.empty()) counts.refusal = refusal;
    for (std::size_t i = 0; i < entries; ++i) {
      Told told;
      std::memcpy(&told, result.bytes.data() + i * sizeof(Told), sizeof told);
      if (told.kind == Told::Kind::Refused) {
        const std::size_t refused = first ? plans(candidate) : 1;
        counts.refused += refused;
        done_ += refused;
        continue;
      }
      Candidate known = candidate;
      known.estimate = told.estimate;
      if (!first) known.grade = static_cast<Grade>(static_cast<int>(candidate.grade) + 1);
      if (expands) known.order = i;
      count(known);
      put(std::move(known));
    }
  }

  void count(const Candidate& known) {
    SearchCounts& counts = result_.counts;
    if (known.grade == Grade::LayoutBound) ++counts.bounded_layouts;
    if (known.grade == Grade::PlanBound) ++counts.bounded;
    if (known.grade == Grade::Look) ++counts.looked_at;
    if (known.grade != Grade::Judgement) return;
    ++counts.judged;
    const PlanEstimate& estimate = known.estimate;
    const int judged = estimate.judged_micro_batches;
    if (judged > 0 && judged < estimate.micro_batches) ++counts.shortened;
  }

  void put(Candidate&& known) {
    if (const auto loss = beyond_limits(known)) return lose(known, *loss);
    queue_.push_back(std::move(known));
    std::push_heap(queue_.begin(), queue_.end(), later());
  }

  std::function<bool(const Candidate&, const Candidate&)> later() const {
    return [this](const Candidate& a, const Candidate& b) { return turn(a) > turn(b); };
  }

  Candidate pop() {
    std::pop_heap(queue_.begin(), queue_.end(), later());
    Candidate first = std::move(queue_.back());
    queue_.pop_back();
    return first;
  }

  std::optional<Loss> beyond_limits(const Candidate& known) const {
    const PlanLimits& limits = request_.limits;
    const PlanEstimate& estimate = known.estimate;
    const auto at = [&](Aim aim) { return estimate.figures[static_cast<std::size_t>(aim)]; };
    const double memory = limits.memory ? limits.memory->value() : estimate.memory_capacity;
    if (memory > 0 && at(Aim::Memory) > memory) return Loss::Memory;
    if (limits.time && at(Aim::Time) > limits.time->value()) return Loss::Time;
    if (limits.cost && at(Aim::Cost) > *limits.cost) return Loss::Cost;
    if (known.grade != Grade::Judgement) return std::nullopt;
    if (limits.power && estimate.power > limits.power->value()) return Loss::Power;
    if (!estimate.fits && at(Aim::Memory) <= estimate.memory_capacity) return Loss::HostMemory;
    return std::nullopt;
  }

  void lose(const Candidate& known, Loss loss) {
    result_.counts.lost[static_cast<std::size_t>(known.grade)][static_cast<std::size_t>(loss)] +=
        plans(known);
    done_ += plans(known);
    if (loss != Loss::Memory || known.grade == Grade::LayoutBound) return;
    std::vector<FoundPlan>& closest = result_.closest;
    const auto memory = [](const PlanEstimate& estimate) {
      return estimate.figures[static_cast<std::size_t>(Aim::Memory)];
    };
    if (!closest.empty() && memory(closest.front().estimate) <= memory(known.estimate)) return;
    closest = {found(known)};
  }

  FoundPlan found(const Candidate& known) {
    const PlanLayout& layout = space_.layouts()[known.layout];
    const WorkOrder& order = orders(known.layout)[known.order];
    return {.layout = layout,
            .order = order,
            .settings = space_.settings(layout, order),
            .document = space_.document_of(layout, order),
            .estimate = known.estimate};
  }

  /// Whether a plan that was found is no worse in anything, but for what is not worth much.
  bool dominated(const Candidate& known) const {
    return std::any_of(result_.plans.begin(), result_.plans.end(), [&](const FoundPlan& plan) {
      if (!plan.worth_having) return false;
      for (std::size_t i = 0; i < kAims; ++i) {
        const double most = known.estimate.figures[i] * (1 + request_.worth);
        if (plan.estimate.figures[i] > most) return false;
      }
      return true;
    });
  }

  /// Takes the first of the queue as the next best plan.
  void finish(const Candidate& judged) {
    const bool worthless = dominated(judged);
    if (worthless && result_.plans.size() > kRunnersUp) return lose(judged, Loss::Dominated);
    ++done_;
    result_.plans.push_back(found(judged));
    result_.plans.back().worth_having = !worthless;
  }

  /// Finishes what is judged, and knows better what comes next. Returns whether anything waits.
  bool step() {
    std::vector<Candidate> round, judged;
    int effort = 0;
    while (!queue_.empty() && effort < kRound) {
      Candidate next = pop();
      if (next.grade == Grade::Judgement) {
        if (round.empty()) {
          finish(next);
        } else {
          judged.push_back(std::move(next));
        }
      } else if (result_.plans.size() > kRunnersUp && dominated(next)) {
        lose(next, Loss::Dominated);
      } else {
        effort += kEffort[static_cast<std::size_t>(next.grade)];
        round.push_back(std::move(next));
      }
    }
    for (Candidate& back : judged) {
      queue_.push_back(std::move(back));
      std::push_heap(queue_.begin(), queue_.end(), later());
    }
    if (round.empty()) return false;
    const auto results =
        run_all(round.size(), [&](std::size_t job) { return know_better(round[job]); });
    for (std::size_t i = 0; i < round.size(); ++i) take(round[i], results[i], false);
    return true;
  }

  SearchRequest request_;
  PlanSpace space_;
  int processes_;
  const SearchProgress& progress_;
  std::vector<std::vector<WorkOrder>> orders_;  // by layout
  std::vector<Candidate> queue_;                // a heap
  SearchResult result_;
  std::size_t done_ = 0;
};

}  // namespace

SearchResult search_plans(const JsonValue& document, int processes, const SearchProgress& told) {
  PlanSearch search(document, processes, told);
  SearchResult result = search.run();
  if (!result.plans.empty()) result.closest.clear();
  const FoundPlan* first = !result.plans.empty()     ? &result.plans.front()
                           : !result.closest.empty() ? &result.closest.front()
                                                     : nullptr;
  if (first != nullptr) {
    result.scenario = load_point(std::make_shared<const JsonValue>(first->document));
  }
  const JsonValue* name = document.find("name");
  result.name = name != nullptr ? name->text : default_name(document);
  return result;
}

}  // namespace interlock
