// Asks workers about plans.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_survey.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

/// The message of a process on a plan, byte by byte. A refusal follows the last.
struct ToldEstimate {
  bool refused = true;
  PlanEstimate estimate = {};
};
static_assert(std::is_trivially_copyable_v<ToldEstimate>, "goes through a pipe");

/// Returns the number of the estimates, and the estimates, as the bytes that a process sends.
std::string bytes_of(const std::vector<ToldEstimate>& told, const std::string& refusal) {
  const std::size_t count = told.size();
  std::string bytes(sizeof count + count * sizeof(ToldEstimate), '\0');
  std::memcpy(bytes.data(), &count, sizeof count);
  if (count > 0)
    std::memcpy(bytes.data() + sizeof count, told.data(), count * sizeof(ToldEstimate));
  return bytes + refusal;
}

Findings findings_of(const JobResult& result) {
  Findings findings;
  findings.failure = result.problem;
  if (!result.problem.empty()) return findings;
  std::size_t count = 0;
  CHECK(result.bytes.size() >= sizeof count, "a process says how much it tells");
  std::memcpy(&count, result.bytes.data(), sizeof count);
  CHECK(result.bytes.size() >= sizeof count + count * sizeof(ToldEstimate), "and tells all of it");
  for (std::size_t i = 0; i < count; ++i) {
    ToldEstimate told;
    std::memcpy(&told, result.bytes.data() + sizeof count + i * sizeof told, sizeof told);
    findings.estimates.push_back(told.refused ? std::nullopt : std::optional(told.estimate));
  }
  findings.refusal = result.bytes.substr(sizeof count + count * sizeof(ToldEstimate));
  return findings;
}

ToldEstimate told(PlanEstimate estimate, double usable_share) {
  estimate.usable_share = usable_share;
  return {.refused = false, .estimate = estimate};
}

/// Returns the facts that hold for all of `orders`.
ScheduleFamily family_of(const std::vector<WorkOrder>& orders) {
  ScheduleFamily family;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    const bool used = std::any_of(orders.begin(), orders.end(), [&](const WorkOrder& order) {
      return kind_of(order.schedule) == entry.name;
    });
    if (!used) continue;
    if (entry.overlaps) family.overlap = 1;
    family.keeps_stash = family.keeps_stash && entry.stash == StashMode::Kept;
  }
  return family;
}

}  // namespace

PlanSurvey::PlanSurvey(const PlanSpace& space, const PlanLimits& limits, const Workers& workers)
    : space_(space), limits_(limits), workers_(workers) {
  for (const PlanLayout& layout : space.layouts()) orders_.push_back(space.orders(layout));
}

Question PlanSurvey::question_of(std::size_t layout, const WorkOrder& order) const {
  Question question = load_point(
      std::make_shared<const JsonValue>(space_.document_of(space_.layouts()[layout], order)));
  question.known_exchanges = known_exchanges_;
  return question;
}

LaidOut PlanSurvey::laid_out(std::size_t layout, const WorkOrder& order) const {
  return lay_out(question_of(layout, order));
}

double PlanSurvey::usable_share_of(const Question& question) const {
  return usable_share(question, limits_.reserve);
}

/// Returns the bound of a layout by the first of its plans that the loader takes.
std::string PlanSurvey::bound_of_layout(std::size_t layout) const {
  std::string refusal;
  for (const WorkOrder& order : orders_[layout]) {
    try {
      Plan plan = {.question = question_of(layout, order)};  // a bound needs no partition
      plan.micro_batches = plan.question.micro_batches;
      const Bytes capacity = plan.question.cluster.machines.front().device.memory;
      const double usable = usable_share_of(plan.question);
      const Bytes most =
          limits_.memory.value_or(capacity > Bytes(0) ? usable * capacity : Bytes(kInfinity));
      const StepEstimate bound = bound_layout(plan.question, family_of(orders_[layout]), most);
      return bytes_of({told(estimate_by_bound(plan, bound), usable)}, "");
    } catch (const Error& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  return bytes_of({{}}, refusal);
}

std::string PlanSurvey::bounds_of_plans(std::size_t layout) const {
  std::string refusal;
  std::vector<ToldEstimate> bounds(orders_[layout].size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    try {
      const LaidOut laid = laid_out(layout, orders_[layout][i]);
      const Plan& plan = laid.ordered();
      bounds[i] = told(estimate_by_bound(plan, estimate_step(plan, Grade::PlanBound)),
                       usable_share_of(plan.question));
    } catch (const Error& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  return bytes_of(bounds, refusal);
}

std::string PlanSurvey::better(const Candidate& candidate) const {
  if (candidate.grade == Grade::LayoutBound) return bounds_of_plans(candidate.layout);
  const LaidOut laid = laid_out(candidate.layout, orders_[candidate.layout][candidate.order]);
  const PlanEstimate estimate = candidate.grade == Grade::PlanBound
                                    ? estimate_by_look(laid.ordered())
                                    : estimate_by_simulation(laid, candidate.estimate);
  return bytes_of({told(estimate, usable_share_of(laid.draft.question))}, "");
}

std::vector<Findings> PlanSurvey::ask(std::size_t count,
                                      const std::function<std::string(std::size_t)>& work) const {
  std::vector<Findings> findings(count);
  std::size_t next = 0;
  run_jobs({.next = [&]() -> std::optional<std::size_t> {
              return next < count ? std::optional(next++) : std::nullopt;
            },
            .work = work,
            .done = [&](const JobResult& result) { findings[result.job] = findings_of(result); },
            .stop = {}},
           workers_);
  return findings;
}

std::vector<Findings> PlanSurvey::bound_layouts() const {
  return ask(orders_.size(), [this](std::size_t layout) { return bound_of_layout(layout); });
}

std::vector<Findings> PlanSurvey::know_better(const std::vector<Candidate>& candidates) const {
  // The dearest first, so that no process is left alone with one in the end.
  std::vector<std::size_t> turns(candidates.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::stable_sort(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) {
    return candidates[a].grade > candidates[b].grade;
  });
  std::vector<Findings> told =
      ask(turns.size(), [&](std::size_t i) { return better(candidates[turns[i]]); });
  std::vector<Findings> findings(told.size());
  for (std::size_t i = 0; i < told.size(); ++i) findings[turns[i]] = std::move(told[i]);
  return findings;
}

}  // namespace interlock
