// Measures of results, each in the unit that suits the largest of them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/measures.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "reports/result/all_metrics.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Value = std::optional<double>;

/// A measure: a metric of each result, or a rate that depends on the other results, too.
struct Entry {
  std::string key, words;
  MetricKind kind;
  const char* metric = nullptr;  // its key; null: a rate
  bool on_page = false, more_is_better = true;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> entries;
    for (const MetricRow& row : all_metrics()) {
      if (row.figure == nullptr) continue;
      entries.push_back({row.figure, row.words, row.kind, row.key, (row.traits & kOnPage) != 0,
                         row.better == Better::More});
      if (row.kind == MetricKind::Share) entries.back().words += " (%)";
      if (row.kind == MetricKind::Power) entries.back().words += " (W)";
      if (entries.size() > 1) continue;
      entries.push_back({"throughput", "throughput", MetricKind::Rate, nullptr, true});
      entries.push_back({"speed_up", "speed-up (×)", MetricKind::Rate});
      entries.push_back({"gain", "gain (×)", MetricKind::Rate});
      entries.push_back({"break_even", "break-even K (×)", MetricKind::Rate});
    }
    return entries;
  }();
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

/// Tells whether two results are of one file, and have the same swept values but for the last path.
bool differ_in_the_last(const ReadResult& a, const ReadResult& b) {
  if (a.file != b.file || a.swept.size() != b.swept.size()) return false;
  for (std::size_t i = 0; i + 1 < a.swept.size(); ++i) {
    if (a.swept[i].label != b.swept[i].label) return false;
  }
  return true;
}

/// Returns the rate of the first result that differs from `r` in the last path at most.
double first_rate(const std::vector<ReadResult>& results, std::size_t r,
                  const std::vector<double>& rates) {
  std::size_t first = 0;
  while (!differ_in_the_last(results[first], results[r])) ++first;
  return rates[first];
}

/// Returns the best rate of end-to-end training without stale weights that fits, among results that
/// differ from `r` in the last path at most; if none fits, the best of all; 0 if none trains so.
double best_pipeline(const std::vector<ReadResult>& results, std::size_t r,
                     const std::vector<double>& rates) {
  double best = 0, fitting = 0;
  for (std::size_t other = 0; other < results.size(); ++other) {
    const ReadResult& result = results[other];
    const bool fresh = result.value("most_staleness").value_or(0) == 0;
    const bool end_to_end = result.strategy.starts_with("global");  // messages may be cast
    if (!end_to_end || !fresh || !differ_in_the_last(result, results[r])) continue;
    best = std::max(best, rates[other]);
    if (result.fits) fitting = std::max(fitting, rates[other]);
  }
  return fitting > 0 ? fitting : best;
}

std::vector<Value> values_of(const Entry& entry, const std::vector<ReadResult>& results) {
  std::vector<Value> values;
  if (entry.metric) {
    for (const ReadResult& result : results) values.push_back(result.value(entry.metric));
    return values;
  }
  const std::vector<double> rates = rates_of(results).values;
  if (entry.key == "throughput") return {rates.begin(), rates.end()};
  for (std::size_t r = 0; r < results.size(); ++r) {
    const double base = entry.key == "break_even" ? best_pipeline(results, r, rates)
                        : entry.key == "gain"     ? first_rate(results, r, rates)
                                                  : rates[0];
    values.push_back(base > 0 ? Value(rates[r] / base) : Value());
  }
  return values;
}

/// Returns the name of the quality that the results measured, e.g. "WikiText perplexity"; else
/// "quality".
std::string quality_words(const std::vector<ReadResult>& results) {
  for (const ReadResult& result : results) {
    if (result.value("quality")) return result.quality_measure;
  }
  return "quality";
}

/// Returns the currency: "USD", or "USD, EUR" where results differ.
std::string currency_words(const std::vector<ReadResult>& results) {
  std::string words;
  for (const ReadResult& result : results) {
    if (result.currency.empty() || words.find(result.currency) != std::string::npos) continue;
    words += (words.empty() ? "" : ", ") + result.currency;
  }
  return words.empty() ? "no price" : words;
}

Scale scale_of(MetricKind kind, const std::vector<double>& values) {
  if (kind == MetricKind::Time) return scale_of_seconds(values);
  if (kind == MetricKind::Size) return scale_of_bytes(values);
  if (kind == MetricKind::Energy) return scale_of_joules(values);
  if (kind == MetricKind::Share) return {.unit = "", .size = 0.01, .decimals = 1};
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
  if (measured.key == "staleness") measured.decimals = 0;
  if (measured.key == "throughput") measured.label += " (" + rates_of(results).unit + ")";
  if (measured.key == "quality") measured.label = quality_words(results);
  if (measured.key.ends_with("cost")) measured.label += " (" + currency_words(results) + ")";
  if (!scale.unit.empty()) measured.label += " (" + scale.unit + ")";
  return measured;
}

}  // namespace

std::vector<PageMeasure> page_measures() {
  std::vector<PageMeasure> measures;
  for (const Entry& entry : entries()) {
    if (entry.on_page) measures.push_back({entry.key, entry.more_is_better});
  }
  return measures;
}

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
  const MetricRow rate = telling_rate([&](const MetricRow& row) {
    return std::all_of(results.begin(), results.end(),
                       [&](const ReadResult& result) { return result.value(row.key).has_value(); });
  });
  Rates rates{.unit = rate_unit(rate)};
  for (const ReadResult& result : results) rates.values.push_back(result.known(rate.key));
  return rates;
}

std::string shown(const Measured& measure, std::size_t result) {
  const Value& value = measure.values[result];
  return value ? fixed(*value / measure.unit, measure.decimals) : "–";
}

}  // namespace interlock
