// MetricRow: everything that is said of one number of a result, in one line of one table.
// SPDX-License-Identifier: Apache-2.0
//
// A new metric is a member of Metrics, a line here, and its formula in collect.cc. Result JSON, the
// databases of sweeps, figures, the page, `rank --by`, the growth over skipped periods and the
// means over seeds read the line. For example, the line
//   {"busy", "/utilisation/busy", "busy", "busy", Share, Better::More, Columns::Headline,
//    Growth::Share, kMeanOverSeeds | kAlways | kOnPage, &Metrics::busy, "share of the time ..."}
// writes {"utilisation": {"busy": 0.8}}, makes a column "busy" and the measure `--figure
// table:busy`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/measure/metrics.h"

namespace interlock {

/// The unit of a metric, SI: seconds, bytes, joules, watts; Share is between 0 and 1.
enum class MetricKind { Time, Size, Energy, Power, Share, Rate, Money, Count, Truth, Words };
enum class Better { More, Less, Neither };
/// The place of a metric's column in the databases of sweeps: Headline, among the first, which
/// people decide by; Identity, among what identifies a result; Simulation, among the last, on the
/// simulation itself; None, without a column.
enum class Columns { Headline, Identity, Simulation, None };
/// How a metric changes with each period of micro-batches that a step has more: not at all; by the
/// same amount; or as a share of the step, whose time grows by the same amount. Formulas follow
/// from what they are made of.
enum class Growth { None, Linear, Share, Formula };

/// Traits of a row.
inline constexpr unsigned kMeanOverSeeds = 1;  // with jitter; others are those of the first seed
inline constexpr unsigned kAlways = 2;         // every "interlock-result/1" has the key
inline constexpr unsigned kOnPage = 4;         // a choice in the page's view of a sweep

/// A member of Metrics, or what is computed from several; nothing for a metric that is made after
/// the measurement and lies in the result JSON only.
using MetricFormula = std::optional<double> (*)(const Metrics&);
using MetricField =
    std::variant<std::monostate, MetricFormula, Seconds Metrics::*, Bytes Metrics::*,
                 double Metrics::*, std::optional<double> Metrics::*, int Metrics::*,
                 std::int64_t Metrics::*, bool Metrics::*, std::string Metrics::*>;

struct MetricRow {
  const char* key;  // of a column, with its unit: "step_time_s"
  const char*
      pointer;         // into the result JSON: "/step_time_s"; null: it follows from an array there
  const char* figure;  // as `--figure` names it: "step_time"; null: no measure
  const char* words;   // in labels: "step time"; null: has none
  MetricKind kind;
  Better better;
  Columns columns;
  Growth growth = Growth::None;
  unsigned traits = 0;
  MetricField field = {};
  const char* meaning = "";  // one sentence, as docs/result.md has it
};

/// Returns the metrics of a simulated step, in the order of the result JSON.
const std::vector<MetricRow>& step_metrics();

/// Returns the row of step_metrics() with this key. REQUIRES: there is one.
const MetricRow& step_metric(std::string_view key);

/// Returns the first that is `known` of tokens, samples and micro-batches a second, else steps.
MetricRow telling_rate(const std::function<bool(const MetricRow&)>& known);
/// Returns the unit of a rate: "micro-batches/s" of "micro_batches_per_s".
std::string rate_unit(const MetricRow& rate);

/// Returns the metric as a number in SI, truths as 1 or 0; nothing for words and unknown numbers.
std::optional<double> number_of(const MetricRow& row, const Metrics& metrics);
/// Sets a member to a number in SI. REQUIRES: the row has a member, and it is no word.
void set_number(const MetricRow& row, double value, Metrics& metrics);

}  // namespace interlock
