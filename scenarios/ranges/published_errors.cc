// Reads published errors, and takes quantiles of those that are like a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/ranges/published_errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "hardware/devices/borrowed_efficiency.h"
#include "scenarios/contract/contract.h"
#include "scenarios/ranges/peak_rates.h"

namespace interlock {
namespace {

constexpr const char* kMixed = "mixed";  // generation of devices of several machines
constexpr int kFewestRows = 10;          // for an 80 % range to mean anything
constexpr double kLeastRatio = 1e-3, kMostRatio = 1e3;

std::vector<std::string> read_names(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> names;
  const auto node = reader.require(key, "a list of names");
  if (!node) return names;
  for (std::size_t i = 0; i < node->value->items.size(); ++i) {
    names.push_back(read_text(node->item(i), reader.diagnostics()).value_or(""));
  }
  return names;
}

ErrorTable read_table(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ErrorTable table{.source = reader.text("source", ""),
                   .generation = reader.text("generation", ""),
                   .framework = reader.text("framework", ""),
                   .devices = reader.count("devices", 1),
                   .strategies = read_names(reader, "strategies"),
                   .schedules = read_names(reader, "schedules"),
                   .precisions = read_names(reader, "precisions"),
                   .ratios = {}};
  if (const auto ratios = reader.require("measured_over_predicted", "a list of numbers")) {
    for (std::size_t i = 0; i < ratios->value->items.size(); ++i) {
      const auto ratio = read_number(ratios->item(i), kLeastRatio, kMostRatio, diagnostics);
      table.ratios.push_back(ratio.value_or(1));
    }
  }
  reader.finish();
  return table;
}

std::vector<ErrorTable> read_tables(ObjectReader& reader, std::string_view key) {
  std::vector<ErrorTable> tables;
  const auto list = reader.require(key, "a list of tables");
  if (!list) return tables;
  for (std::size_t i = 0; i < list->value->items.size(); ++i) {
    tables.push_back(read_table(list->item(i), reader.diagnostics()));
  }
  return tables;
}

using Tables = std::vector<const ErrorTable*>;

Tables tables_of(const std::vector<ErrorTable>& tables, const std::string* generation,
                 const std::string* framework) {
  Tables found;
  for (const ErrorTable& table : tables) {
    if (generation != nullptr && table.generation != *generation) continue;
    if (framework != nullptr && table.framework != *framework) continue;
    if (!table.ratios.empty()) found.push_back(&table);
  }
  return found;
}

int rows_of(const Tables& tables) {
  std::size_t rows = 0;
  for (const ErrorTable* table : tables) rows += table->ratios.size();
  return static_cast<int>(rows);
}

double ratio_itself(double ratio) { return ratio; }
double absolute_error(double ratio) { return std::abs(1 / ratio - 1); }  // over what was measured

/// Returns the value of a ratio that a share `part` does not exceed, where each table weighs alike.
double quantile(const Tables& tables, double part, double (*value)(double) = ratio_itself) {
  std::vector<std::pair<double, double>> weighed;  // value, weight
  for (const ErrorTable* table : tables) {
    const double weight = 1.0 / static_cast<double>(table->ratios.size() * tables.size());
    for (const double ratio : table->ratios) weighed.emplace_back(value(ratio), weight);
  }
  std::sort(weighed.begin(), weighed.end());
  constexpr double kRounding = 1e-9;
  double below = 0;
  for (const auto& [one, weight] : weighed) {
    below += weight;
    if (below >= part - kRounding) return one;
  }
  return weighed.back().first;
}

/// Returns the number of pairs of ascending `values` that differ by `most` or less.
std::size_t pairs_within(const std::vector<double>& values, double most) {
  std::size_t pairs = 0, first = 0;
  for (std::size_t second = 0; second < values.size(); ++second) {
    while (values[second] - values[first] > most) ++first;
    pairs += second - first;
  }
  return pairs;
}

/// Returns the median error of the time of one run over that of another of its table; 0 if no table
/// has two. Each table has the same weight. Runs of a table have their machine and software, and so
/// a part of their errors, in common.
/// Example: measured over predicted 1.1, 1.1 and 1.21 are three pairs, two of them 10 % off: 0.1.
double error_between_runs(const Tables& tables) {
  std::vector<std::vector<double>> logarithms;  // ascending
  for (const ErrorTable* table : tables) {
    if (table->ratios.size() < 2) continue;
    std::vector<double>& of_table = logarithms.emplace_back();
    for (const double ratio : table->ratios) of_table.push_back(std::log(ratio));
    std::sort(of_table.begin(), of_table.end());
  }
  if (logarithms.empty()) return 0;
  const auto share_within = [&](double most) {
    double share = 0;
    for (const std::vector<double>& of_table : logarithms) {
      const auto rows = static_cast<double>(of_table.size());
      share += static_cast<double>(pairs_within(of_table, most)) / (rows * (rows - 1) / 2);
    }
    return share / static_cast<double>(logarithms.size());
  };
  constexpr int kHalvings = 50;
  double low = 0, high = std::log(kMostRatio / kLeastRatio);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (share_within(middle) >= 0.5 ? high : low) = middle;
  }
  return std::expm1(high);
}

RatioSpread spread_of(const Tables& tables) {
  constexpr double kOutside = (1 - kRangeLevel) / 2;
  return {quantile(tables, kOutside), quantile(tables, 0.5), quantile(tables, 1 - kOutside)};
}

std::string framework_words(const std::string& framework) {
  return framework.empty() ? "no framework" : framework;
}

/// The tables that stand for a run, what they have in common with it, and why not more.
struct Basis {
  Tables tables;
  std::string like;
  std::vector<std::string> reasons;
  bool of_others = false;
};

Basis basis_of(const std::vector<ErrorTable>& tables, const RunTraits& traits) {
  const std::string framework = framework_words(traits.framework);
  Basis basis{tables_of(tables, &traits.generation, &traits.framework),
              traits.generation + ", " + framework,
              {}};
  int rows = rows_of(basis.tables);
  if (rows >= kFewestRows) return basis;
  basis = {tables_of(tables, &traits.generation, nullptr),
           traits.generation,
           {"too few measured runs on " + traits.generation + " under " + framework + " (" +
            std::to_string(rows) + "): the range is that of all on " + traits.generation}};
  rows = rows_of(basis.tables);
  if (rows >= kFewestRows) return basis;
  return {tables_of(tables, nullptr, nullptr),
          "all devices",
          {"too few measured runs on " + traits.generation + " (" + std::to_string(rows) +
           "): the range is that of all devices"},
          true};
}

/// Returns true if a table has `name` among the names that `member` points to.
bool covers(const Tables& tables, std::vector<std::string> ErrorTable::*member,
            const std::string& name) {
  return std::any_of(tables.begin(), tables.end(), [&](const ErrorTable* table) {
    const std::vector<std::string>& names = table->*member;
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

void flag(const Tables& tables, const RunTraits& traits, std::vector<std::string>& reasons) {
  if (!covers(tables, &ErrorTable::strategies, traits.strategy)) {
    reasons.push_back("no measured run trained by " + traits.strategy + " losses");
  }
  if (!covers(tables, &ErrorTable::schedules, traits.schedule)) {
    reasons.push_back("no measured run had the schedule " + traits.schedule);
  }
  if (!covers(tables, &ErrorTable::precisions, traits.precision)) {
    reasons.push_back("no measured run computed in " + traits.precision);
  }
  int most = 0;
  for (const ErrorTable* table : tables) most = std::max(most, table->devices);
  if (traits.devices > most) {
    reasons.push_back("more devices (" + std::to_string(traits.devices) +
                      ") than any measured run (" + std::to_string(most) + ")");
  }
}

/// Returns the spread of `basis`, widened and about `step`.
Confidence range_of(Basis basis, double widening, const RunTraits& traits, Seconds step) {
  const int rows = rows_of(basis.tables);
  if (rows < kFewestRows) {
    return {.range = std::nullopt, .extrapolates = {"too few measured runs for a range"}};
  }
  flag(basis.tables, traits, basis.reasons);
  const RatioSpread spread = spread_of(basis.tables);
  const auto widened = [&](double ratio) {
    return step * (spread.middle * std::pow(ratio / spread.middle, widening));
  };
  const std::size_t tables = basis.tables.size();
  return {.range = TimeRange{.low = widened(spread.low),
                             .high = widened(spread.high),
                             .level = kRangeLevel,
                             .basis = "published runs (" + basis.like +
                                      "): " + std::to_string(rows) + " rows of " +
                                      std::to_string(tables) + (tables == 1 ? " table" : " tables"),
                             .typical = quantile(basis.tables, 0.5, absolute_error),
                             .between = error_between_runs(basis.tables),
                             .of_others = basis.of_others},
          .extrapolates = std::move(basis.reasons)};
}

/// Returns true if the device prices a part of `graph`; else a profile has measured all of it.
bool is_priced(const ModelGraph& graph) {
  return std::any_of(graph.modules.begin(), graph.modules.end(), [](const Module& module) {
    return std::any_of(module.forward.begin(), module.forward.end(),
                       [](const Work& work) { return work.op_class != OpClass::Measured; });
  });
}

}  // namespace

RunTraits traits_of(const Plan& plan) {
  const Question& question = plan.question;
  const bool mixed = is_mixed(question.cluster);
  const Training& training = question.training();
  return {.generation = mixed ? kMixed : generation_of(front_device(question.cluster).name),
          .framework = training.framework.name,
          .strategy = name_of(training.strategy),
          .schedule = plan.schedule.kind->name,
          .precision =
              contract_names("training", "precision")[static_cast<std::size_t>(training.precision)],
          .devices = question.layout.mesh.devices()};
}

PublishedErrors read_published_errors(const std::string& path) {
  const JsonValue document = read_json_file(path);
  Diagnostics diagnostics;
  ObjectReader reader({&document, ""}, diagnostics);
  reader.choice("format", {"interlock-errors/1"}, 0);
  reader.text("command", "");
  PublishedErrors errors;
  errors.widening = reader.number("widening", 1, 1, kMostWidening);
  errors.tables = read_tables(reader, "tables");
  errors.borrowed_widening = reader.number("borrowed_widening", 1, 1, kMostWidening);
  errors.borrowed = read_tables(reader, "borrowed");
  reader.finish();
  diagnostics.throw_if_any();
  return errors;
}

const PublishedErrors& published_errors() {
  static const PublishedErrors errors =
      read_published_errors(data_folder("scenarios/ranges") + "/published_errors.json");
  return errors;
}

std::optional<RatioSpread> spread_of(const std::vector<ErrorTable>& tables,
                                     const RunTraits& traits) {
  const Basis basis = basis_of(tables, traits);
  if (rows_of(basis.tables) < kFewestRows) return std::nullopt;
  return spread_of(basis.tables);
}

Confidence range_from(const PublishedErrors& errors, const RunTraits& traits, Seconds step) {
  return range_of(basis_of(errors.tables, traits), errors.widening, traits, step);
}

Confidence borrowed_range(const PublishedErrors& errors, const RunTraits& traits,
                          const Device& device, Seconds step) {
  Basis basis = {tables_of(errors.borrowed, nullptr, nullptr),
                 "with efficiencies of another architecture",
                 {borrowed_words(device)}};
  Confidence confidence = range_of(std::move(basis), errors.borrowed_widening, traits, step);
  confidence.borrowed = true;
  return confidence;
}

/// Returns the widest of the ranges that a step has if all devices are of one of the machines: no
/// published run tells how errors of several kinds go together.
Confidence mixed_range(const Plan& plan, Seconds step) {
  Confidence widest;
  std::string basis;
  std::set<std::string> told;
  for (const Machine& machine : plan.question.cluster.machines) {
    if (!told.insert(machine.device.name).second && machine.joins) continue;
    RunTraits traits = traits_of(plan);
    traits.generation = generation_of(machine.device.name);
    Confidence own = machine.device.borrowed
                         ? borrowed_range(published_errors(), traits, machine.device, step)
                         : range_from(published_errors(), traits, step);
    for (std::string& reason : own.extrapolates) {
      std::vector<std::string>& all = widest.extrapolates;
      if (std::find(all.begin(), all.end(), reason) == all.end()) all.push_back(std::move(reason));
    }
    if (!own.range) return {.extrapolates = std::move(widest.extrapolates)};
    if (!widest.range) widest.range = own.range;
    widest.range->low = std::min(widest.range->low, own.range->low);
    widest.range->high = std::max(widest.range->high, own.range->high);
    widest.range->typical = std::max(widest.range->typical, own.range->typical);
    widest.range->between = std::max(widest.range->between, own.range->between);
    widest.borrowed = widest.borrowed || own.borrowed;
    basis += (basis.empty() ? "" : "; ") + machine.device.name + ": " + own.range->basis;
  }
  widest.range->basis = std::move(basis);
  widest.extrapolates.push_back(
      "no measured run has devices of several kinds: the range is the widest of theirs");
  return widest;
}

Confidence published_range(const Plan& plan, Seconds step) {
  const Question& question = plan.question;
  const Device& device = front_device(question.cluster);
  if (question.trace() || device.calibrated || !is_priced(question.training().graph)) return {};
  if (const auto peak = peak_rates(plan)) return {.extrapolates = {*peak}, .at_peak = *peak};
  if (is_mixed(question.cluster)) return mixed_range(plan, step);
  if (device.borrowed) return borrowed_range(published_errors(), traits_of(plan), device, step);
  // A sweep asks thousands of times for runs that are alike; threads may do so at once.
  static std::mutex one_at_a_time;
  static std::map<RunTraits, Confidence> known;
  const RunTraits traits = traits_of(plan);
  const std::lock_guard lock(one_at_a_time);
  auto found = known.find(traits);
  if (found == known.end()) {
    found = known.emplace(traits, range_from(published_errors(), traits, Seconds(1))).first;
  }
  Confidence confidence = found->second;
  if (confidence.range) {
    confidence.range->low *= step.value();
    confidence.range->high *= step.value();
  }
  return confidence;
}

}  // namespace interlock
