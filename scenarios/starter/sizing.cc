// Searches the best plan for every machine and size, and prices the training.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: look at model and machines alone, so that slips in names are told before any search;
// choose the batch; then for each row search the document that `init` would write. A "run" of the
// overrides does not take part in the search: the plan that is found is run for as long.
#include "scenarios/starter/sizing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "hardware/networks/cluster_reader.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/search/offload_search.h"
#include "scenarios/search/space_checks.h"
#include "scenarios/search/space_cuts.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/starter/starter.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

constexpr double kUsualBatch = 1 << 22;  // tokens: that of Llama 2 (arXiv 2307.09288, section 2.2)
constexpr const char* kInterrupted = "not searched: interrupted";

/// Sets what is the same for all sizes, and lets the overrides win.
void set_training(const SizingQuestion& question, JsonValue& document) {
  const JsonMember length = {question.in_samples ? "samples" : "tokens",
                             json_number(question.length)};
  set_json(document, "goal", json_object({length}), "goal");
  if (!question.device_mtbf.empty()) {
    // Times of checkpoints and restarts are those of scenarios/examples/failures.json: assumptions.
    set_json(document, "run",
             json_object(
                 {{"checkpoint", json_object({{"write", json_text("1 min")}})},
                  {"failures",
                   json_object({{"device_mtbf",
                                 parse_override("\"" + question.device_mtbf + "\"", "--mtbf")}})},
                  {"detection", json_text("2 min")},
                  {"reload", json_text("8 min")}}),
             "run");
  }
  apply_overrides(document, question.overrides);
  JsonValue* run = document.find("run");
  if (run == nullptr || run->kind != JsonValue::Kind::Object) return;
  for (const char* key : {"steps", "tokens", "samples"}) {
    if (run->find(key) == nullptr) continue;
    throw Error("--set run." + std::string(key) + ": expected --tokens or --samples in its place");
  }
  run->members.push_back(length);
}

Starter starter_of(const SizingQuestion& question, const SizedMachine& machine, int devices,
                   int batch) {
  return begin_starter({.model = question.model,
                        .machine = machine.name,
                        .devices = devices,
                        .sequence_length = question.sequence_length,
                        .global_batch_size = batch});
}

JsonValue document_of(const SizingQuestion& question, const SizedMachine& machine,
                      const Starter& starter) {
  JsonValue document = planless_document(starter, "interlock plan");
  if (!machine.price.empty()) {
    set_key(document, "cluster.price", parse_override(machine.price, "--price " + machine.name),
            "--price");
  }
  set_training(question, document);
  return document;
}

/// Returns whether `document` takes that number of devices of each node, as no override says
/// another.
bool uses(const JsonValue& document, int devices_per_node) {
  const JsonValue* each = document.find("cluster")->find("devices_per_node");
  return each != nullptr && each->number == devices_per_node;
}

Cluster cluster_of(const JsonValue& document) {
  Diagnostics diagnostics;
  Cluster cluster = read_cluster(JsonNode{&document, ""}.child("cluster"), diagnostics);
  diagnostics.throw_if_any();
  return cluster;
}

void check_conditions(const JsonValue& document) {
  if (document.find("run") == nullptr) return;
  Diagnostics diagnostics;
  read_run(JsonNode{&document, ""}.child("run"), diagnostics);
  diagnostics.throw_if_any();
}

void check_budget(const Money& budget, const SizedMachine& machine, const Cluster& cluster) {
  const std::optional<HourlyPrice>& price = cluster.machines.front().price;
  if (!price) {
    throw Error("--budget: the price of " + machine.name + " is unknown; expected --price '" +
                machine.name + "=2.50 USD/h'");
  }
  if (price->currency == budget.currency) return;
  throw Error("--budget: is in " + budget.currency + ", and " + machine.name + " is paid in " +
              price->currency + "; expected one currency, e.g. --price '" + machine.name +
              "=2.50 " + budget.currency + "/h'");
}

/// Throws: Error if there is nothing to compare.
void check_sizes(const SizingQuestion& question) {
  if (question.machines.empty()) {
    throw Error("--machines names none; expected e.g. dgx-h100,dgx-b200");
  }
  if (question.devices.empty()) throw Error("--devices names none; expected e.g. 64,128,256");
}

/// Refuses overrides of what the question says.
void check_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::string path = text.substr(0, text.find('='));
    const auto refuse = [&](const char* instead) {
      throw Error("--set " + path + ": expected " + instead + " in its place");
    };
    if (path == "model") refuse("--model");
    if (path == "cluster") refuse("--machines");
    for (const auto& [key, instead] : {std::pair{"model.sequence_length", "--sequence-length"},
                                       {"cluster.machine", "--machines"},
                                       {"cluster.machines", "--machines"},
                                       {"cluster.devices", "--devices"},
                                       {"cluster.nodes", "--devices"},
                                       {"goal", "--tokens or --samples"},
                                       {"training.global_batch_size", "--batch"},
                                       {"sweep", "--devices"}}) {
      if (path == key || path.starts_with(std::string(key) + ".")) refuse(instead);
    }
    if (path.size() < text.size()) {
      const JsonValue value = parse_override(text.substr(path.size() + 1), "--set " + path);
      const bool object = value.kind == JsonValue::Kind::Object;
      if (path == "training" && object && value.find("global_batch_size")) refuse("--batch");
    }
  }
  refuse_chosen(overrides);
}

/// Checks the smallest scenario of each machine. Returns the last one, by which the model is known.
Starter check_names(const SizingQuestion& question) {
  Starter starter;
  std::string mistakes;
  for (const SizedMachine& machine : question.machines) {
    try {
      starter = starter_of(question, machine, 1, 0);
      const JsonValue document = document_of(question, machine, starter);
      check_conditions(document);
      refuse_unknown(document);
      const Cluster cluster = cluster_of(document);
      refuse_reserve(request_of(document), cluster, "interlock plan");
      if (question.aims.budget) check_budget(*question.aims.budget, machine, cluster);
    } catch (const Error& error) {
      if (mistakes.find(error.what()) == std::string::npos) {
        mistakes += (mistakes.empty() ? "" : "\n") + std::string(error.what());
      }
    }
  }
  if (!mistakes.empty()) throw Error(mistakes);
  if (starter.tokens_per_sample || question.in_samples) return starter;
  throw Error("--tokens: " + question.model + " has no tokens; expected --samples N");
}

/// Returns the samples of a step, at the fewest devices if the batch grows with them.
int batch_of(const SizingQuestion& question, std::optional<double> tokens_per_sample) {
  const double each = question.in_samples ? 1 : *tokens_per_sample;
  if (!question.batch) {
    if (tokens_per_sample) return std::max(1, static_cast<int>(kUsualBatch / *tokens_per_sample));
    const int most = *std::max_element(question.devices.begin(), question.devices.end());
    return begin_starter({.model = question.model,
                          .machine = question.machines.front().name,
                          .devices = question.weak ? question.devices.front() : most})
        .plan.global_batch_size;
  }
  constexpr double kMost = std::numeric_limits<int>::max();
  const double samples = *question.batch / each;
  const double nearest = std::clamp(std::round(samples), 1.0, kMost);
  if (samples == nearest) return static_cast<int>(samples);
  std::string told = "--batch: " + format_number(*question.batch) + " samples; expected ";
  if (!question.in_samples) {
    told = "--batch: " + format_number(*question.batch) + " tokens are " + format_number(samples) +
           " sequences of " + std::to_string(std::llround(each)) + "; expected ";
  }
  const std::string multiple = question.in_samples ? "a whole number, e.g. " : "a multiple, e.g. ";
  throw Error(told + (samples > kMost ? "at most " : multiple) +
              std::to_string(std::llround(nearest * each)));
}

/// Returns the limits, but those of devices' memory, that plans were lost to; empty: none.
std::string limits_met(const SearchCounts& counts) {
  std::string names;
  for (const auto& [loss, name] :
       {std::pair(Loss::Time, "search.limits.time"), std::pair(Loss::Cost, "search.limits.cost"),
        std::pair(Loss::Power, "search.limits.power"),
        std::pair(Loss::HostMemory, "the memory of the hosts")}) {
    if (lost(counts, loss) > 0) names += (names.empty() ? "" : " and ") + std::string(name);
  }
  return names;
}

/// Says that no division of `devices` is possible.
std::string words_of(const NoPlanPossible& none, int devices) {
  // "file:4: /model/attention_heads: attention_heads 32 cannot be ...; expected ...", one of
  // several
  std::string why = none.first.substr(0, none.first.find('\n'));
  why = why.substr(0, why.find("; expected"));
  if (const std::size_t path = why.find(": /"); path != why.npos) {
    why = why.substr(std::min(why.size(), why.find(": ", path + 2) + 2));
  }
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(devices)));
  std::string words = "no way to divide the work among " + std::to_string(devices) +
                      (devices == 1 ? " device" : " devices") + " is possible (" +
                      std::to_string(none.tried) + " plans were tried";
  if (!why.empty()) words += "; the first: " + why;
  words += ")";
  if (power == devices) return words;
  return words + "; expected another number of devices, such as " + std::to_string(power) + " or " +
         std::to_string(2 * std::int64_t{power});
}

/// Says why there is no plan.
std::string words_of_none(const SearchCounts& counts) {
  const bool left = unproven(counts) > counts.unfinished;
  const std::string limits = limits_met(counts);
  const std::string none = left ? "no plan that was looked at " : "no plan ";
  const std::string others = left ? "; others cost too much to look at" : "";
  if (!limits.empty()) return none + "is within " + limits + others;
  return none + "can be simulated" + others + (counts.failure.empty() ? "" : ": " + counts.failure);
}

}  // namespace

double cost_of(const Sizing& sizing, const SizedPlan& row) {
  return sizing.by_money ? row.cost->amount : row.device_hours;
}

std::optional<SizePrice> most_of(const Sizing& sizing, const SizedPlan& row) {
  if (!row.fits || !row.confidence.range) return std::nullopt;
  const double most = row.confidence.range->high.value() / row.plan->estimate.step_time;
  return SizePrice{row.time * most, cost_of(sizing, row) * most};
}

std::optional<bool> wholly_within(const Sizing& sizing, const SizedPlan& row) {
  const SizingAims& aims = sizing.question.aims;
  const std::optional<SizePrice> most = most_of(sizing, row);
  if (!most || (!aims.time && !aims.budget)) return std::nullopt;
  return is_within(*most, aims);
}

std::optional<std::size_t> first_wholly_within(const Sizing& sizing) {
  const auto found = std::ranges::find_if(sizing.ranking, [&](std::size_t i) {
    return wholly_within(sizing, sizing.rows[i]).value_or(false);
  });
  return found == sizing.ranking.end() ? std::nullopt : std::optional(*found);
}

namespace {

/// Returns whether predictions do not tell that `next` comes behind `first`.
std::optional<NearTie> tie_of(const Sizing& sizing, const SizedPlan& first, const SizedPlan& next) {
  if (!first.confidence.range || !next.confidence.range) return std::nullopt;
  const auto price = [&](const SizedPlan& row) {
    return SizePrice{row.time, cost_of(sizing, row)};
  };
  // The errors of sizes of one machine have a part in common.
  const bool between = first.machine == next.machine;
  double TimeRange::*const error = between ? &TimeRange::between : &TimeRange::typical;
  const auto typical = [&](const SizedPlan& row) { return (*row.confidence.range).*error; };
  const NearTie tie = {.share = share_to_lead(price(first), price(next), sizing.question.aims),
                       .typical = std::max(typical(first), typical(next)),
                       .between = between};
  return tie.share <= tie.typical ? std::optional(tie) : std::nullopt;
}

}  // namespace

std::optional<NearTie> near_tie(const Sizing& sizing) {
  if (sizing.ranking.size() < 2 || sizing.safer) return std::nullopt;
  return tie_of(sizing, sizing.rows[sizing.ranking[0]], sizing.rows[sizing.ranking[1]]);
}

namespace {

class SizeSurvey {
 public:
  SizeSurvey(const SizingQuestion& question, const Workers& workers, const SizingListener& listener)
      : workers_(workers), listener_(listener) {
    check_sizes(question);
    check_overrides(question.overrides);
    result_.question = question;
    const Starter starter = check_names(question);
    result_.tokens_per_sample = starter.tokens_per_sample;
    result_.notes = starter.notes;
    batch_ = batch_of(question, result_.tokens_per_sample);
  }

  Sizing run() {
    const SizingQuestion& question = result_.question;
    rows_ = question.machines.size() * question.devices.size();
    for (std::size_t machine = 0; machine < question.machines.size(); ++machine) {
      for (const int devices : question.devices) add_row(machine, devices);
    }
    refuse_nothing();
    choose();
    return std::move(result_);
  }

 private:
  std::string name_of_row(const SizedPlan& row) const {
    return result_.question.machines[row.machine].name + " x " + std::to_string(row.devices);
  }

  void add_row(std::size_t machine, int devices) {
    SizedPlan row{.machine = machine, .devices = devices};
    try {
      if (result_.stopped) throw StopSearch{};
      row.global_batch_size = batch_for_row(devices);
      const SizedMachine& sized = result_.question.machines[machine];
      const Starter starter = starter_of(result_.question, sized, devices, row.global_batch_size);
      JsonValue document = document_of(result_.question, sized, starter);
      if (uses(document, starter.devices_per_node)) {
        row.share = starter.devices_per_node;
        row.of_node = starter.of_node;
      }
      row.borrowed = front_device(cluster_of(document)).borrowed;
      fill(row, std::move(document));
    } catch (const SpaceTooLarge& error) {
      row.searched = false;
      row.problem = "not searched: " + std::string(error.what());
    } catch (const NoPlanPossible& none) {
      row.problem = words_of(none, devices);
    } catch (const Error& error) {
      row.plan.reset();
      row.fits = false;
      row.problem = error.what();
    } catch (const StopSearch&) {
      result_.stopped = true;
      row.searched = false;
      row.problem = kInterrupted;
    }
    result_.rows.push_back(std::move(row));
  }

  int batch_for_row(int devices) const {
    if (!result_.question.weak) return batch_;
    const int least = result_.question.devices.front();
    const double batch = static_cast<double>(batch_) * devices / least;
    if (batch == std::floor(batch) && batch <= std::numeric_limits<int>::max()) {
      return static_cast<int>(batch);
    }
    throw Error("a batch of " + std::to_string(batch_) + " samples on " + std::to_string(least) +
                " devices makes " + format_number(batch) + " on " + std::to_string(devices) +
                "; expected a whole number");
  }

  SearchResult search(const JsonValue& document, const SearchRequest& request) const {
    SizingProgress progress = {.row = result_.rows.size(), .rows = rows_};
    return search_plans(document, request, workers_, [&](std::size_t done, std::size_t of) {
      progress.done = done;
      progress.of = of;
      if (listener_.told) listener_.told(progress);
      if (listener_.stop && listener_.stop()) throw StopSearch{};
    });
  }

  /// Searches the plan of `row`, whose scenario is `document`.
  void fill(SizedPlan& row, JsonValue document) {
    const std::optional<JsonValue> run = take_run(document);
    SearchRequest request = request_of(document);
    request.only_best = true;
    result_.limits = request.limits;
    SearchResult found = search(document, request);
    if (found.cut_off) throw StopSearch{};  // the best by then is no size's answer
    row.memory_limit = found.memory_limit;
    row.left_out = found.counts.left_out;
    row.proven = unproven(found.counts) == 0;
    row.fits = !found.plans.empty();
    if (!row.fits && (lost(found.counts, Loss::Memory) > 0 || !row.proven)) {
      const bool all_looked_at = row.proven;
      request.aim = Aim::Memory;
      const JsonValue* training = document.find("training");
      if (training->find("offload") == nullptr) {  // the leanest has all with hosts, if there are
        request.options.try_emplace(kOffload, std::vector{JsonValue{}, usual_offloads().back()});
      }
      request.limits.memory = Bytes(std::numeric_limits<double>::infinity());
      found = search(document, request);
      if (found.cut_off) throw StopSearch{};
      row.proven = unproven(found.counts) == 0;
      if (!found.plans.empty() && !all_looked_at) {
        // A plan may fit that the first search had no effort left for.
        const PlanEstimate& leanest = found.plans.front().estimate;
        row.fits = !limit_met(result_.limits, leanest, Grade::Simulation);
        row.proven = row.proven && !row.fits;  // the leanest need not be the fastest
      }
    }
    if (found.plans.empty()) throw Error(words_of_none(found.counts));
    row.plan = std::move(found.plans.front());
    if (row.memory_limit <= Bytes(0)) {
      const PlanEstimate& known = row.plan->estimate;
      row.memory_limit =
          result_.limits.memory.value_or(Bytes(known.usable_share * known.memory_capacity));
    }
    if (!row.fits) return;
    row.confidence = std::move(found.confidence);
    price(row, found.scenario, run);
  }

  static std::optional<JsonValue> take_run(JsonValue& document) {
    const JsonValue* written = document.find("run");
    if (written == nullptr) return std::nullopt;
    JsonValue run = *written;
    set_json(document, "run", {}, "plan");
    return run;
  }

  /// Fills in what the training of `row` takes, of which each step is as the search found it.
  static void price(SizedPlan& row, const Question& scenario, const std::optional<JsonValue>& run) {
    const PlanEstimate& estimate = row.plan->estimate;
    row.devices_alone = std::ranges::any_of(
        scenario.cluster.machines, [](const Machine& one) { return !one.power.node.has_value(); });
    const auto at = [&](Aim aim) { return estimate.values[static_cast<std::size_t>(aim)]; };
    if (!run) {
      row.time = Seconds(at(Aim::Time));
      row.device_hours = device_hours(row.devices, row.time);
      if (at(Aim::Energy) > 0) row.energy = Joules(at(Aim::Energy));
      const auto hour = device_hour(scenario);
      if (hour) row.cost = {at(Aim::Cost), hour->currency};
    } else {
      const ScenarioResult result = run_of(*row.plan, *run);
      const TrainingCosts costs = *economics_of(result).training;
      row.time = costs.time;
      row.goodput = costs.goodput;
      row.energy = costs.energy;
      row.cost = costs.cost;
      row.device_hours = costs.device_hours;
    }
  }

  /// Runs `plan` as `run` says. Memory and devices are those of a quick look at the plan.
  static ScenarioResult run_of(const FoundPlan& plan, const JsonValue& run) {
    JsonValue document = plan.document;
    document.members.push_back({"run", run});
    ScenarioResult result{
        .plan =
            lay_out(load_point(std::make_shared<const JsonValue>(std::move(document)))).ordered()};
    Metrics& metrics = result.measurement.metrics;
    metrics = estimate_step(result.plan, Grade::Look).metrics;
    metrics.step_time = Seconds(plan.estimate.step_time);
    metrics.busy = plan.estimate.busy;
    metrics.links = {{.name = "", .utilisation = plan.estimate.working_links}};
    metrics.fill_steps = 0;
    metrics.window_begin = Seconds(0);
    result.run = run_steps(result.plan, metrics);
    return result;
  }

  /// Throws: Error if not one row could be searched.
  void refuse_nothing() const {
    std::string problems;
    for (const SizedPlan& row : result_.rows) {
      if (row.plan || result_.stopped) return;
      if (problems.find(row.problem) != std::string::npos) continue;
      problems += (problems.empty() ? "" : "\n") + name_of_row(row) + ": " + row.problem;
    }
    throw Error(problems);
  }

  /// Marks the front, and ranks the rows that fit.
  void choose() {
    std::vector<std::size_t> fitting;
    const std::optional<Money>* first = nullptr;
    result_.by_money = true;
    for (std::size_t i = 0; i < result_.rows.size(); ++i) {
      const SizedPlan& row = result_.rows[i];
      if (!row.fits) continue;
      fitting.push_back(i);
      if (first == nullptr) first = &row.cost;
      result_.by_money =
          result_.by_money && *first && row.cost && (*first)->currency == row.cost->currency;
    }
    std::vector<SizePrice> sizes;
    sizes.reserve(fitting.size());
    for (const std::size_t i : fitting) {
      sizes.push_back({result_.rows[i].time, cost_of(result_, result_.rows[i])});
    }
    const std::vector<bool> front = pareto_front(sizes);
    for (std::size_t i = 0; i < fitting.size(); ++i) result_.rows[fitting[i]].on_front = front[i];
    for (const std::size_t place : recommended_order(sizes, result_.question.aims)) {
      result_.ranking.push_back(fitting[place]);
    }
    prefer_safe();
    if (!result_.ranking.empty()) result_.rows[result_.ranking.front()].on_front = true;
  }

  /// Puts the first size whose whole range is within what was asked for before all others, if the
  /// first is within by its prediction alone, and the two are a near tie.
  void prefer_safe() {
    if (result_.ranking.empty()) return;
    const SizedPlan& first = result_.rows[result_.ranking.front()];
    const bool within = is_within({first.time, cost_of(result_, first)}, result_.question.aims);
    if (!within || wholly_within(result_, first).value_or(true)) return;
    const std::optional<std::size_t> safe = first_wholly_within(result_);
    if (!safe || !tie_of(result_, first, result_.rows[*safe])) return;
    std::erase(result_.ranking, *safe);
    result_.ranking.insert(result_.ranking.begin(), *safe);
    result_.safer = true;
  }

  Workers workers_;
  const SizingListener& listener_;
  int batch_ = 1;  // samples, at the fewest devices
  std::size_t rows_ = 0;
  Sizing result_;
};

}  // namespace

std::vector<int> ascending(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Sizing size_up(const SizingQuestion& question, const Workers& workers,
               const SizingListener& listener) {
  return SizeSurvey(question, workers, listener).run();
}

}  // namespace interlock
