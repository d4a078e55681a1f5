// Asks workers about plans.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_survey.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "scenarios/load/known_parts.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

/// The message of a process on a plan, byte by byte. A refusal follows the last.
struct ToldEstimate {
  bool refused = true;
  PlanEstimate estimate = {};
};
static_assert(std::is_trivially_copyable_v<ToldEstimate>, "goes through a pipe");

/// Findings on one candidate, on their way between processes.
struct ToldFindings {
  std::vector<ToldEstimate> estimates;
  std::string refusal;
};

/// Appends `findings`: the number of the estimates, these, and the length and bytes of the refusal.
void append(const ToldFindings& findings, std::string& bytes) {
  const std::array<std::size_t, 2> sizes = {findings.estimates.size(), findings.refusal.size()};
  bytes.append(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  bytes.append(reinterpret_cast<const char*>(findings.estimates.data()),
               sizes[0] * sizeof(ToldEstimate));
  bytes += findings.refusal;
}

/// Reads what append() wrote at the front of `bytes`, and takes it away.
Findings take_findings(std::string_view& bytes) {
  const auto take = [&](void* to, std::size_t size) {
    CHECK(bytes.size() >= size, "a worker tells all that it says it does");
    if (size > 0) std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  std::array<std::size_t, 2> sizes{};
  take(sizes.data(), sizeof sizes);
  Findings findings;
  for (std::size_t i = 0; i < sizes[0]; ++i) {
    ToldEstimate told;
    take(&told, sizeof told);
    findings.estimates.push_back(told.refused ? std::nullopt : std::optional(told.estimate));
  }
  findings.refusal.resize(sizes[1]);
  take(findings.refusal.data(), sizes[1]);
  return findings;
}

/// An order to a worker, byte by byte: bounds of `layouts` layouts from the candidate's on, or
/// better numbers of the candidate.
struct Errand {
  std::size_t layouts = 0;  // 0: the candidate
  Candidate candidate;
};
static_assert(std::is_trivially_copyable_v<Errand>, "goes through a pipe");

ToldEstimate told(PlanEstimate estimate, double usable_share) {
  estimate.usable_share = usable_share;
  return {.refused = false, .estimate = estimate};
}

/// Returns the catalogue's entry of the schedule of `order`; null if it has none of its own.
const ScheduleEntry* entry_of(const WorkOrder& order) {
  const auto& all = schedule_catalogue();
  const auto entry = std::ranges::find(all, kind_of(order.schedule), &ScheduleEntry::name);
  return entry == all.end() ? nullptr : &*entry;
}

/// Returns whether a rank may have several streams in `order`: of stages, in the usual order of a
/// strategy, in one that is sought, and in catalogued schedules that lay no stages themselves; or
/// of micro-batches in flight.
bool has_streams(const WorkOrder& order) {
  const bool object = order.schedule.kind == JsonValue::Kind::Object;
  if (object && order.schedule.find("in_flight") != nullptr) return true;
  const ScheduleEntry* const entry = entry_of(order);
  return order.chunks > 1 && (entry == nullptr || entry->layout == StageLayout::Any);
}

/// Returns the facts that hold for all of `orders`.
ScheduleFamily family_of(const std::vector<WorkOrder>& orders) {
  ScheduleFamily family = {.streams = std::ranges::any_of(orders, has_streams)};
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

/// Returns whether devices under ZeRO 2 add up whole gradients in every plan of `orders`, as they
/// do under ZeRO 1, since gradients of several micro-batches are reduced once.
bool adds_up_whole_gradients(const Question& question, const std::vector<WorkOrder>& orders) {
  const Training& training = question.training();
  const bool several = training.strategy.kind == StrategyKind::Global && training.micro_batches > 1;
  const bool once = question.layout.data_parallel.gradient_reduction == GradientReduction::Step;
  if (!several || !once) return false;
  return std::all_of(orders.begin(), orders.end(), [&](const WorkOrder& order) {
    const ScheduleEntry* const entry = entry_of(order);
    return entry != nullptr && entry->flushes;
  });
}

/// Does the errands of a worker, and keeps what it built and priced from one to the next.
class Surveyor {
 public:
  Surveyor(const PlanSpace& space, const std::vector<std::vector<WorkOrder>>& orders,
           const SearchRequest& request)
      : space_(space), orders_(orders), request_(request) {}

  std::string answer(const Errand& errand) {
    std::string bytes;
    const Candidate& candidate = errand.candidate;
    for (std::size_t i = 0; i < errand.layouts; ++i) {
      append(bound_of_layout(candidate.layout + i), bytes);
    }
    if (errand.layouts == 0) append(better(candidate), bytes);
    return bytes;
  }

 private:
  Question question_of(std::size_t layout, const WorkOrder& order) {
    const auto document =
        std::make_shared<const JsonValue>(space_.document_of(space_.layouts()[layout], order));
    Question question = load_point(document, parts_);
    question.known_prices = prices_on(*document);
    return question;
  }

  /// Returns what is known on the cluster of `document` in its precision: the machines of a mixed
  /// one are tried in several orders, and precisions may be searched.
  std::shared_ptr<KnownPrices> prices_on(const JsonValue& document) {
    const JsonValue& cluster = *document.find("cluster");
    const JsonValue* written = document.find("training")->find("precision");
    const std::string precision = written != nullptr ? written->text : "";
    const auto found = std::find_if(prices_.begin(), prices_.end(), [&](const Priced& known) {
      return known.precision == precision && known.cluster == cluster;
    });
    if (found != prices_.end()) return found->prices;
    prices_.push_back({cluster, precision, std::make_shared<KnownPrices>()});
    return prices_.back().prices;
  }

  LaidOut laid_out(std::size_t layout, const WorkOrder& order) {
    return lay_out(question_of(layout, order));
  }

  double usable_share_of(const Question& question) const {
    return usable_share(question, request_.limits.reserve);
  }

  /// Returns the bound of a layout by the first of its plans that the loader takes.
  ToldFindings bound_of_layout(std::size_t layout) {
    std::string refusal;
    for (const WorkOrder& order : orders_[layout]) {
      try {
        Plan plan = {.question = question_of(layout, order)};  // a bound needs no partition
        plan.micro_batches = plan.question.training().micro_batches;
        const double usable = usable_share_of(plan.question);
        // A program that plans are to be told may take one of two ways to say the same.
        const bool repeats = plan.question.layout.data_parallel.zero_stage == 2 &&
                             !request_.check_use && space_.with_less_zero(layout) &&
                             adds_up_whole_gradients(plan.question, orders_[layout]);
        const StepEstimate bound =
            repeats ? StepEstimate{} : bound_layout(plan.question, family_of(orders_[layout]));
        PlanEstimate estimate = estimate_by_bound(plan, bound);
        estimate.repeats = repeats;
        return {{told(estimate, usable)}, ""};
      } catch (const Error& error) {
        if (refusal.empty()) refusal = error.what();
        if (parts_.refused_model()) break;  // nor can it be built for the other orders
      }
    }
    return {{ToldEstimate{}}, refusal};
  }

  /// Returns the bound of `plan`; of its memory alone if that is too much.
  ToldEstimate told_bound(const Plan& plan) const {
    const double usable = usable_share_of(plan.question);
    const auto of = [&](const StepEstimate& bound) {
      return told(estimate_by_bound(plan, bound), usable);
    };
    return of(bound_plan(plan, [&](const StepEstimate& memory) {
      return limit_met(request_.limits, of(memory).estimate, Grade::PlanBound) == Loss::Memory;
    }));
  }

  ToldFindings bounds_of_plans(std::size_t layout) {
    ToldFindings found;
    struct Known {
      const WorkOrder& order;
      std::vector<int> boundaries;
      ToldEstimate told;
    };
    std::vector<Known> known;
    for (const WorkOrder& order : orders_[layout]) {
      found.estimates.emplace_back();
      try {
        const LaidOut laid = laid_out(layout, order);
        const Plan& plan = laid.ordered();
        const std::vector<int>& boundaries = plan.partition.boundaries;
        const auto same = std::find_if(known.begin(), known.end(), [&](const Known& other) {
          return other.order.chunks == order.chunks && other.boundaries == boundaries &&
                 other.order.schedule == order.schedule;
        });
        if (same != known.end()) {
          found.estimates.back() = same->told;
          found.estimates.back().estimate.repeats = true;
          continue;
        }
        found.estimates.back() = told_bound(plan);
        known.push_back({order, boundaries, found.estimates.back()});
      } catch (const Error& error) {
        if (found.refusal.empty()) found.refusal = error.what();
      }
    }
    return found;
  }

  std::string reason_of_no_use(const Plan& plan) const {
    try {
      if (request_.check_use) request_.check_use(plan);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  ToldFindings better(const Candidate& candidate) {
    if (candidate.borrowed) return bound_of_layout(candidate.layout);
    if (candidate.grade == Grade::LayoutBound) return bounds_of_plans(candidate.layout);
    const LaidOut laid = laid_out(candidate.layout, orders_[candidate.layout][candidate.order]);
    const bool bounded = candidate.grade == Grade::PlanBound;
    if (const std::string useless = bounded ? reason_of_no_use(laid.draft) : ""; !useless.empty()) {
      return {{ToldEstimate{}}, useless};
    }
    const bool leads = candidate.grade == Grade::Simulation;
    PlanEstimate estimate = bounded ? estimate_by_look(laid.ordered())
                                    : estimate_by_simulation(laid, candidate.estimate,
                                                             leads ? request_.most_flows_of_leader
                                                                   : request_.most_flows);
    estimate.unjudged = leads && estimate.too_large;
    return {{told(estimate, usable_share_of(laid.draft.question))}, ""};
  }

  const PlanSpace& space_;
  const std::vector<std::vector<WorkOrder>>& orders_;
  const SearchRequest& request_;
  KnownParts parts_;
  struct Priced {
    JsonValue cluster;
    std::string precision;
    std::shared_ptr<KnownPrices> prices;
  };
  std::vector<Priced> prices_;
};

std::vector<std::vector<WorkOrder>> orders_of(const PlanSpace& space) {
  std::vector<std::vector<WorkOrder>> orders;
  for (const PlanLayout& layout : space.layouts()) orders.push_back(space.orders(layout));
  return orders;
}

std::string bytes_of_errand(const Errand& errand) {
  return {reinterpret_cast<const char*>(&errand), sizeof errand};
}

}  // namespace

PlanSurvey::PlanSurvey(const PlanSpace& space, const SearchRequest& request, const Workers& workers)
    : space_(space),
      orders_(orders_of(space)),
      processes_(static_cast<std::size_t>(workers.count)),
      workers_(
          [this, &request] {
            return [surveyor = std::make_shared<Surveyor>(space_, orders_, request)](
                       const std::string& order) {
              Errand errand;
              CHECK(order.size() == sizeof errand, "an order is an errand");
              std::memcpy(&errand, order.data(), sizeof errand);
              return surveyor->answer(errand);
            };
          },
          workers) {}

std::vector<Findings> PlanSurvey::bound_layouts(const LayoutsBounded& told) {
  // Neighbours are built of the same parts.
  constexpr std::size_t kTogether = 32;
  const std::size_t all = orders_.size();
  std::vector<Findings> findings(all);
  std::size_t done = 0;
  const auto errand = [&](std::size_t i) {
    const std::size_t first = i * kTogether;
    return Errand{.layouts = std::min(kTogether, all - first), .candidate = {.layout = first}};
  };
  const auto take = [&](const JobResult& result) {
    refuse_unanswered(result);
    const Errand asked = errand(result.job);
    std::string_view bytes = result.bytes;
    for (std::size_t i = 0; i < asked.layouts; ++i, ++done) {
      Findings& found = findings[asked.candidate.layout + i];
      found = result.problem.empty() ? take_findings(bytes) : Findings{.failure = result.problem};
    }
    if (told) told(done);
  };
  workers_.answer({.count = (all + kTogether - 1) / kTogether,
                   .order = [&](std::size_t i) { return bytes_of_errand(errand(i)); },
                   .done = take});
  return findings;
}

namespace {

/// Returns in which turn each of `candidates` is answered: the dearest first, so that no worker is
/// left alone with one in the end; and neighbours, which share much, by the same one of `workers`.
std::vector<std::size_t> dealt(const std::vector<Candidate>& candidates, std::size_t workers) {
  std::vector<std::size_t> turns(candidates.size()), found;
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::stable_sort(turns.begin(), turns.end(), [&](std::size_t a, std::size_t b) {
    const Candidate &one = candidates[a], &other = candidates[b];
    return one.grade != other.grade ? one.grade > other.grade : one.layout < other.layout;
  });
  for (auto begin = turns.begin(); begin != turns.end();) {
    const Grade grade = candidates[*begin].grade;
    const auto end = std::find_if(
        begin, turns.end(), [&](std::size_t turn) { return candidates[turn].grade != grade; });
    const auto count = static_cast<std::size_t>(end - begin),
               each = (count + workers - 1) / workers;
    for (std::size_t i = 0; i < each; ++i) {
      for (std::size_t at = i; at < count; at += each) {
        found.push_back(begin[static_cast<std::ptrdiff_t>(at)]);
      }
    }
    begin = end;
  }
  return found;
}

}  // namespace

void PlanSurvey::know_better(const std::vector<Candidate>& candidates, const Heard& heard,
                             std::vector<Findings>& findings) {
  const std::vector<std::size_t> turns = dealt(candidates, processes_);
  workers_.answer(
      {.count = turns.size(),
       .order = [&](std::size_t i) { return bytes_of_errand({.candidate = candidates[turns[i]]}); },
       .done =
           [&](const JobResult& result) {
             refuse_unanswered(result);
             std::string_view bytes = result.bytes;
             Findings& found = findings[turns[result.job]];
             found = result.problem.empty() ? take_findings(bytes)
                                            : Findings{.failure = result.problem};
             found.known = true;
             heard();
           }});
}

}  // namespace interlock
