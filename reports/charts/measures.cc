// Measures of results, each in the unit that suits the largest of them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/measures.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "base/text.h"
#include "reports/charts/paper_figures.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Value = std::optional<double>;
enum class MeasureKind { Time, Size, Energy, Share, Number };

struct Entry {
  const char *key, *words;
  MeasureKind kind;
  std::function<Value(const ReadResult&)> of;  // none where it depends on other results
};

double largest(const ReadResult& result, double ReadDevice::*of) {
  double most = 0;
  for (const ReadDevice& device : result.simulated) most = std::max(most, device.*of);
  return most;
}

const std::vector<Entry>& entries() {
  using R = const ReadResult&;
  static const std::vector<Entry> all = {
      {"step_time", "step time", MeasureKind::Time, [](R r) { return Value(r.step_time); }},
      {"throughput", "throughput", MeasureKind::Number, {}},
      {"speed_up", "speed-up (×)", MeasureKind::Number, {}},
      {"gain", "gain (×)", MeasureKind::Number, {}},
      {"busy", "busy (%)", MeasureKind::Share, [](R r) { return Value(r.busy); }},
      {"useful", "useful (%)", MeasureKind::Share, [](R r) { return Value(r.useful); }},
      {"mfu", "MFU (%)", MeasureKind::Share, [](R r) { return r.mfu; }},
      {"exposed", "exposed communication", MeasureKind::Time, [](R r) { return Value(r.exposed); }},
      {"memory", "memory", MeasureKind::Size, [](R r) { return Value(fullest(r)); }},
      {"stash", "stash", MeasureKind::Size,
       [](R r) { return largest(r, &ReadDevice::peak_stash); }},
      {"traffic", "traffic", MeasureKind::Size, [](R r) { return Value(r.traffic); }},
      {"run_time", "run time", MeasureKind::Time, [](R r) { return r.run_time; }},
      {"least_time", "step time at least", MeasureKind::Time, [](R r) { return r.range_low; }},
      {"most_time", "step time at most", MeasureKind::Time, [](R r) { return r.range_high; }},
      {"energy", "energy of a step", MeasureKind::Energy, [](R r) { return r.energy; }},
      {"power", "power (W)", MeasureKind::Number, [](R r) { return r.power; }},
      {"cost", "cost of a step", MeasureKind::Number, [](R r) { return r.cost; }},
      {"goal_time", "time to the goal", MeasureKind::Time, [](R r) { return r.goal_time; }},
      {"goal_energy", "energy to the goal", MeasureKind::Energy, [](R r) { return r.goal_energy; }},
      {"goal_cost", "cost of the goal", MeasureKind::Number, [](R r) { return r.goal_cost; }},
      {"at_work", "peers at work", MeasureKind::Number, [](R r) { return r.peers_at_work; }},
      {"share_of_best", "of the best rate (%)", MeasureKind::Share,
       [](R r) { return r.share_of_best; }},
      {"quality", "quality", MeasureKind::Number, [](R r) { return r.quality; }}};
  return all;
}

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (name == entry.key) return entry;
  }
  const std::vector<std::string> known = measure_names();
  const std::optional<std::string> meant = nearest(name, known);
  throw Error("--figure: unknown measure " + in_quotes(name) + "; " +
              (meant ? "did you mean " + in_quotes(*meant) + "?"
                     : "expected one of " + join_choices(known)));
}

/// The first result of the same file whose swept values are those of `r`, but for the last path.
std::size_t base_of(const std::vector<ReadResult>& results, std::size_t r) {
  const std::vector<SweptValue>& own = results[r].swept;
  for (std::size_t other = 0; other < r; ++other) {
    const std::vector<SweptValue>& swept = results[other].swept;
    if (results[other].file != results[r].file || swept.size() != own.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i + 1 < own.size(); ++i) same = same && swept[i].label == own[i].label;
    if (same) return other;
  }
  return r;
}

std::vector<Value> values_of(const Entry& entry, const std::vector<ReadResult>& results) {
  std::vector<Value> values;
  const std::string key = entry.key;
  const Rates rates = rates_of(results);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (entry.of) {
      values.push_back(entry.of(results[r]));
    } else if (key == "throughput") {
      values.emplace_back(rates.values[r]);
    } else {
      const double base = rates.values[key == "gain" ? base_of(results, r) : 0];
      values.push_back(base > 0 ? Value(rates.values[r] / base) : Value());
    }
  }
  return values;
}

/// What one name stands for everywhere, if results say what it is: "WikiText perplexity".
std::string quality_words(const std::vector<ReadResult>& results) {
  for (const ReadResult& result : results) {
    if (result.quality) return result.quality_measure;
  }
  return "quality";
}

/// "USD", or "USD, EUR" where results differ.
std::string currency_words(const std::vector<ReadResult>& results) {
  std::string words;
  for (const ReadResult& result : results) {
    if (result.currency.empty() || words.find(result.currency) != std::string::npos) continue;
    words += (words.empty() ? "" : ", ") + result.currency;
  }
  return words.empty() ? "no price" : words;
}

Scale scale_of(MeasureKind kind, const std::vector<double>& values) {
  if (kind == MeasureKind::Time) return scale_of_seconds(values);
  if (kind == MeasureKind::Size) return scale_of_bytes(values);
  if (kind == MeasureKind::Energy) return scale_of_joules(values);
  if (kind == MeasureKind::Share) return {.unit = "", .size = 0.01, .decimals = 1};
  return scale_of_numbers(values, "");
}

Measured measure(const Entry& entry, const std::vector<ReadResult>& results) {
  Measured measured{.key = entry.key, .label = entry.words, .values = values_of(entry, results)};
  std::vector<double> known;
  for (const Value& value : measured.values) {
    if (value) known.push_back(*value);
  }
  if (known.empty()) known.push_back(0);
  const Scale scale = scale_of(entry.kind, known);
  measured.unit = scale.size;
  const bool ratio = measured.label.find("×") != std::string::npos;
  measured.decimals = ratio || measured.key == "quality" ? 2 : scale.decimals;
  if (measured.key == "throughput") measured.label += " (" + rates_of(results).unit + ")";
  if (measured.key == "quality") measured.label = quality_words(results);
  if (measured.key.ends_with("cost")) measured.label += " (" + currency_words(results) + ")";
  if (!scale.unit.empty()) measured.label += " (" + scale.unit + ")";
  return measured;
}

}  // namespace

std::vector<std::string> measure_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.key);
  return names;
}

std::vector<Measured> measured(const std::string& list, const std::vector<ReadResult>& results) {
  std::vector<Measured> all;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    all.push_back(measure(entry_of(name), results));
  }
  if (all.empty()) all.push_back(measure(entry_of(""), results));
  return all;
}

Rates rates_of(const std::vector<ReadResult>& results) {
  const auto all = [&](const std::optional<double> ReadResult::*rate) {
    return std::all_of(results.begin(), results.end(),
                       [&](const ReadResult& result) { return (result.*rate).has_value(); });
  };
  Rates rates;
  if (all(&ReadResult::samples_per_s)) rates.unit = "samples/s";
  if (all(&ReadResult::tokens_per_s)) rates.unit = "tokens/s";
  for (const ReadResult& result : results) {
    if (rates.unit == "tokens/s") {
      rates.values.push_back(*result.tokens_per_s);
    } else if (rates.unit == "samples/s") {
      rates.values.push_back(*result.samples_per_s);
    } else {
      rates.values.push_back(result.step_time > 0 ? 1 / result.step_time : 0);
    }
  }
  return rates;
}

std::string shown(const Measured& measure, std::size_t result) {
  const Value& value = measure.values[result];
  return value ? fixed(*value / measure.unit, measure.decimals) : "–";
}

}  // namespace interlock
