// Errors, ranks and orders of predictions.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr double kClearGap = 0.03;
constexpr double kTera = 1e12;
constexpr std::size_t kLeastRanked = 3;

/// Ranks of values, 1 the least.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin + end) + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

using Values = std::vector<const JudgedValue*>;

const MeasuredRow& row_of(const Accuracy& accuracy, const JudgedValue& value) {
  return accuracy.files[value.file].tables[value.table].rows[value.row];
}

OrderSummary order_of(const Accuracy& accuracy, const Values& values) {
  // Equal names in two tables are two series.
  std::map<std::tuple<std::size_t, std::size_t, std::string>, Values> series;
  for (const JudgedValue* value : values) {
    const std::string& name = row_of(accuracy, *value).series;
    if (value->counts && !name.empty()) {
      series[{value->file, value->table, name}].push_back(value);
    }
  }
  OrderSummary summary;
  double sum = 0;
  for (const auto& [name, members] : series) {
    std::vector<double> predicted, measured;
    for (const JudgedValue* value : members) {
      predicted.push_back(*value->predicted);
      measured.push_back(value->measured);
    }
    const RankAgreement agreement = rank_agreement(measured, predicted, kClearGap);
    summary.pairs += agreement.clear_pairs;
    summary.pairs_right += agreement.clear_pairs_right;
    const std::optional<double> rho = spearman(predicted, measured);
    if (members.size() < kLeastRanked || !rho) continue;
    ++summary.series;
    sum += *rho;
    summary.least = std::min(summary.least.value_or(1), *rho);
  }
  if (summary.series > 0) summary.mean = sum / summary.series;
  return summary;
}

AccuracySummary summary_of(const Accuracy& accuracy, const Values& values) {
  AccuracySummary summary;
  std::vector<double> errors, sizes, fitted;
  for (const JudgedValue* value : values) {
    ++summary.rows;
    if (!value->predicted) {
      ++summary.refused;
    } else if (!value->counts) {
      ++summary.fitted;
      fitted.push_back(value->error());
    } else {
      errors.push_back(value->error());
      sizes.push_back(std::abs(value->error()));
    }
  }
  summary.errors = error_summary(errors);
  if (!sizes.empty()) summary.p90 = quantile_of(sizes, 0.9);
  if (!fitted.empty()) summary.fitted_errors = error_summary(fitted);
  summary.order = order_of(accuracy, values);
  return summary;
}

/// Returns the parts of `target` that the summary misses. Without rows that count nothing is
/// reached.
std::vector<std::string> missed_by(const AccuracySummary& summary, const AccuracyTarget& target) {
  std::vector<std::string> missed;
  const auto compare = [&](const char* name, std::optional<double> bound, double value, int sign) {
    if (bound && !(sign * value <= sign * *bound)) {
      missed.push_back(std::string(name) + (sign > 0 ? " over " : " under ") +
                       fixed(100 * *bound, 1) + " %");
    }
  };
  const OrderSummary& order = summary.order;
  const double none = summary.errors.count > 0 ? 0 : INFINITY;
  compare("mean", target.mape, summary.errors.mape + none, 1);
  compare("largest", target.most, summary.errors.most + none, 1);
  compare("Spearman", target.spearman, order.least.value_or(-1), -1);
  compare("orders", target.orders,
          order.pairs > 0 ? static_cast<double>(order.pairs_right) / order.pairs : -1, -1);
  return missed;
}

/// The lines of one table by one quantity: the whole, then its groups if there are several.
void add_lines(Accuracy& accuracy, std::size_t file, std::size_t table, Measurand what) {
  Values all;
  std::map<std::string, Values> groups;
  std::vector<std::string> names;  // in the order of rows
  for (const JudgedValue& value : accuracy.values) {
    if (value.file != file || value.table != table || value.what != what) continue;
    all.push_back(&value);
    const std::string& group = row_of(accuracy, value).group;
    if (groups[group].empty()) names.push_back(group);
    groups[group].push_back(&value);
  }
  AccuracyLine line{.file = file, .table = table, .what = what};
  line.summary = summary_of(accuracy, all);
  const auto& targets = accuracy.files[file].tables[table].targets;
  if (const auto found = targets.find(what); found != targets.end()) {
    line.target = found->second;
    line.missed = missed_by(line.summary, line.target);
  }
  accuracy.lines.push_back(line);
  if (names.size() < 2) return;
  for (const std::string& name : names) {
    AccuracyLine part{.file = file, .table = table, .group = name, .what = what};
    part.summary = summary_of(accuracy, groups[name]);
    accuracy.lines.push_back(part);
  }
}

void judge_row(Accuracy& accuracy, std::size_t file, std::size_t table, std::size_t i) {
  const MeasuredTable& rows = accuracy.files[file].tables[table];
  const std::vector<RowPrediction>& predictions = accuracy.predictions[file][table];
  const MeasuredRow& row = rows.rows[i];
  const RowPrediction* base = nullptr;
  for (std::size_t other = 0; other < rows.rows.size(); ++other) {
    if (!row.base.empty() && rows.rows[other].id == row.base) base = &predictions[other];
  }
  for (const auto& [what, measured] : row.measured) {
    JudgedValue value{file, table, i, what, measured};
    value.problem = predictions[i].problem;
    if (value.problem.empty() && base != nullptr) value.problem = base->problem;
    if (value.problem.empty()) {
      value.predicted = predicted_value(what, row, predictions[i].values,
                                        base == nullptr ? nullptr : &base->values);
    }
    if (!value.predicted && value.problem.empty()) {
      value.problem = "the scenario does not say its " + measurand_names()[static_cast<int>(what)];
    }
    value.counts = value.predicted && fitted_on(row, what).empty();
    accuracy.values.push_back(std::move(value));
  }
}

void add_totals(Accuracy& accuracy) {
  Values speed, memory;
  for (const JudgedValue& value : accuracy.values) {
    (is_memory(value.what) ? memory : speed).push_back(&value);
  }
  accuracy.speed = summary_of(accuracy, speed);
  accuracy.memory = summary_of(accuracy, memory);
}

/// Returns whether `row` was a training, not a part of one or a formula's numbers.
bool ran(const MeasuredRow& row) {
  return std::any_of(row.measured.begin(), row.measured.end(), [](const auto& value) {
    return value.first <= Measurand::SpeedUp || value.first == Measurand::PeakMemory ||
           value.first == Measurand::UsedMemory;
  });
}

void count_fit(const MeasuredRow& row, const RowPrediction& prediction, FitSummary& fit) {
  const RowValues& values = prediction.values;
  if (!prediction.problem.empty() || !values.knows_memory) return;
  if (row.out_of_memory) {
    ++fit.failed;
    fit.failed_with_room += values.leaves_room ? 1 : 0;
  } else if (ran(row)) {
    ++fit.ran;
    fit.ran_without_room += values.leaves_room ? 0 : 1;
    fit.over_capacity += values.fits ? 0 : 1;
  }
}

std::optional<double> above_zero(double value) {
  return value > 0 && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Returns samples a second, or steps a second if the samples of a step are unknown.
double pace(const RowValues& row) {
  return row.samples_per_s > 0 ? row.samples_per_s : 1 / row.step_time;
}

std::optional<double> compared_value(Measurand what, const RowValues& row, const RowValues& base) {
  if (what == Measurand::SpeedUp) return above_zero(pace(row) / pace(base));
  if (what == Measurand::StashRatio) return above_zero(row.peak_stash / base.peak_stash);
  return above_zero(row.step_time - base.step_time);
}

}  // namespace

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size(), "as many of both");
  const std::vector<double> ra = ranks_of(a), rb = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double cross = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    cross += (ra[i] - mean) * (rb[i] - mean);
    square_a += (ra[i] - mean) * (ra[i] - mean);
    square_b += (rb[i] - mean) * (rb[i] - mean);
  }
  if (square_a == 0 || square_b == 0) return std::nullopt;
  return cross / std::sqrt(square_a * square_b);
}

std::optional<double> predicted_value(Measurand what, const MeasuredRow& row,
                                      const RowValues& values, const RowValues* base) {
  if (needs_base(what)) {
    return base == nullptr ? std::nullopt : compared_value(what, values, *base);
  }
  switch (what) {
    case Measurand::StepTime:
      return above_zero(values.step_time);
    case Measurand::SamplesPerS:
      return above_zero(values.samples_per_s);
    case Measurand::TokensPerS:
      return above_zero(values.tokens_per_s);
    case Measurand::TflopsPerDevice:
      return above_zero(row.flops_per_step / values.step_time / values.devices / kTera);
    case Measurand::Forward:
      return above_zero(values.forward);
    case Measurand::Backward:
      return above_zero(values.backward);
    case Measurand::MeanForward:
      return above_zero(values.mean_forward);
    case Measurand::MeanInput:
      return above_zero(values.mean_input);
    case Measurand::MeanWeight:
      return above_zero(values.mean_weight);
    case Measurand::PeakMemory:
      return above_zero(values.peak_memory);
    case Measurand::UsedMemory:
      return above_zero(values.used_memory);
    case Measurand::PeakStash:
      return above_zero(values.peak_stash);
    case Measurand::StateMemory:
      return above_zero(values.state_memory);
    case Measurand::LastPeak:
      return above_zero(values.last_peak);
    case Measurand::LastHeld:
      return above_zero(values.last_held);
    default:
      return std::nullopt;  // is compared with a base, above
  }
}

Accuracy judge(std::vector<MeasurementFile> files,
               std::vector<std::vector<std::vector<RowPrediction>>> predictions) {
  Accuracy accuracy{.files = std::move(files), .predictions = std::move(predictions)};
  for (std::size_t file = 0; file < accuracy.files.size(); ++file) {
    for (std::size_t table = 0; table < accuracy.files[file].tables.size(); ++table) {
      const std::size_t rows = accuracy.files[file].tables[table].rows.size();
      for (std::size_t i = 0; i < rows; ++i) {
        judge_row(accuracy, file, table, i);
        const MeasuredTable& measured = accuracy.files[file].tables[table];
        if (!measured.memory_stated) continue;
        count_fit(measured.rows[i], accuracy.predictions[file][table][i], accuracy.fit);
      }
    }
  }
  std::set<std::tuple<std::size_t, std::size_t, Measurand>> lines;
  for (const JudgedValue& value : accuracy.values) {
    lines.insert({value.file, value.table, value.what});
  }
  for (const auto& [file, table, what] : lines) add_lines(accuracy, file, table, what);
  add_totals(accuracy);
  return accuracy;
}

Accuracy judge(std::vector<MeasurementFile> files, const RowJobs& jobs, Efficiencies efficiencies) {
  std::vector<const MeasuredRow*> rows;
  for (const MeasurementFile& file : files) {
    for (const MeasuredTable& table : file.tables) {
      for (const MeasuredRow& row : table.rows) rows.push_back(&row);
    }
  }
  const std::vector<RowPrediction> all = predict_rows(rows, jobs, efficiencies);
  std::vector<std::vector<std::vector<RowPrediction>>> predictions;
  auto next = all.begin();
  for (const MeasurementFile& file : files) {
    auto& of_file = predictions.emplace_back();
    for (const MeasuredTable& table : file.tables) {
      const auto end = next + static_cast<std::ptrdiff_t>(table.rows.size());
      of_file.emplace_back(next, end);
      next = end;
    }
  }
  return judge(std::move(files), std::move(predictions));
}

bool reaches_targets(const Accuracy& accuracy) {
  return std::all_of(accuracy.lines.begin(), accuracy.lines.end(),
                     [](const AccuracyLine& line) { return line.missed.empty(); });
}

}  // namespace interlock
