// Figures of accuracy against values worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/accuracy.h"

#include <doctest/doctest.h>

namespace interlock::accuracy_test {
namespace {

MeasuredRow measured_row(const std::string& id, double step_time, const std::string& series = "") {
  return {.id = id, .series = series, .measured = {{Measurand::StepTime, step_time}}};
}

RowPrediction predicted_row(double step_time) { return {.values = {.step_time = step_time}}; }

/// One file of one table.
Accuracy judged(std::vector<MeasuredRow> rows, std::vector<RowPrediction> predictions,
                const AccuracyTarget& target = {}) {
  MeasuredTable table{.name = "t", .targets = {{Measurand::StepTime, target}}};
  table.rows = std::move(rows);
  MeasurementFile file{.name = "f"};
  file.tables.push_back(std::move(table));
  return judge({file}, {{std::move(predictions)}});
}

TEST_CASE("Spearman's correlation is that of ranks, ties sharing theirs") {
  CHECK(*spearman({1, 2, 3}, {10, 20, 300}) == doctest::Approx(1));
  CHECK(*spearman({1, 2, 3}, {3, 2, 1}) == doctest::Approx(-1));
  // 1 - 6 (0 + 1 + 1 + 0) / (4 * 15) = 0.8
  CHECK(*spearman({1, 2, 3, 4}, {1, 3, 2, 4}) == doctest::Approx(0.8));
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5)
  CHECK(*spearman({1, 2, 2, 3}, {1, 2, 3, 4}) == doctest::Approx(0.9486833));
  CHECK_FALSE(spearman({1, 1}, {1, 2}).has_value());
}

TEST_CASE("errors are of rows that were predicted and not fitted") {
  MeasuredRow fitted = measured_row("c", 1);
  fitted.fitted = "launch overhead";
  const Accuracy accuracy =
      judged({measured_row("a", 1), measured_row("b", 2), fitted, measured_row("d", 4)},
             {predicted_row(1.1), predicted_row(1.4), predicted_row(3), {.problem = "no"}});
  REQUIRE(accuracy.lines.size() == 1);
  const AccuracySummary& summary = accuracy.lines[0].summary;
  CHECK(summary.rows == 4);
  CHECK(summary.fitted == 1);
  CHECK(summary.refused == 1);
  CHECK(summary.errors.count == 2);  // +10 %, -30 %
  CHECK(summary.errors.mape == doctest::Approx(0.2));
  CHECK(summary.errors.bias == doctest::Approx(-0.1));
  CHECK(summary.errors.median == doctest::Approx(0.2));
  CHECK(summary.errors.most == doctest::Approx(0.3));
  CHECK(summary.p90 == doctest::Approx(0.3));
  CHECK(summary.fitted_errors->mape == doctest::Approx(2));
  CHECK(accuracy.speed.errors.count == 2);
  CHECK(accuracy.memory.rows == 0);
}

TEST_CASE("rows that ran and lack room are counted, and those that ran out of memory and have it") {
  const auto prediction = [](bool fits, bool leaves_room) {
    RowPrediction row = predicted_row(1);
    row.values.fits = fits;
    row.values.leaves_room = leaves_room;
    row.values.knows_memory = true;
    return row;
  };
  const MeasuredRow failed = {.id = "e", .out_of_memory = true},
                    also = {.id = "f", .out_of_memory = true};
  const MeasuredRow part = {.id = "g", .measured = {{Measurand::Forward, 1}}};
  const FitSummary fit = judged({measured_row("a", 1), measured_row("b", 1), measured_row("c", 1),
                                 measured_row("d", 1), failed, also, part},
                                {prediction(true, true), prediction(true, false),
                                 prediction(false, false), predicted_row(1), prediction(true, true),
                                 prediction(false, false), prediction(false, false)})
                             .fit;
  CHECK(fit.ran == 3);  // the memory of the fourth's devices is not known
  CHECK(fit.ran_without_room == 2);
  CHECK(fit.over_capacity == 1);
  CHECK(fit.failed == 2);
  CHECK(fit.failed_with_room == 1);
}

TEST_CASE("rates that were fitted on a row leave its memory unseen") {
  MeasuredRow fitted = measured_row("a", 1);
  fitted.fitted = "launch overhead";
  fitted.measured[Measurand::PeakMemory] = 100;
  RowPrediction prediction = predicted_row(1.1);
  prediction.values.peak_memory = 90;
  const Accuracy accuracy = judged({fitted}, {prediction});
  CHECK(accuracy.speed.fitted == 1);
  CHECK(accuracy.speed.errors.count == 0);
  CHECK(accuracy.memory.fitted == 0);
  CHECK(accuracy.memory.errors.bias == doctest::Approx(-0.1));
}

TEST_CASE("orders are counted within a series, where measurements differ by over 3 %") {
  // s: 1 < 1.02 (too near) < 2, predicted 1, 3, 2: of two clear pairs one is right. u has one row.
  const Accuracy accuracy = judged(
      {measured_row("a", 1, "s"), measured_row("b", 1.02, "s"), measured_row("c", 2, "s"),
       measured_row("d", 9, "u"), measured_row("e", 5)},
      {predicted_row(1), predicted_row(3), predicted_row(2), predicted_row(1), predicted_row(1)});
  const OrderSummary& order = accuracy.lines[0].summary.order;
  CHECK(order.pairs == 2);
  CHECK(order.pairs_right == 1);
  CHECK(order.series == 1);
  CHECK(*order.least == doctest::Approx(0.5));  // 1 - 6 (0 + 1 + 1) / (3 * 8)
}

TEST_CASE("groups have lines of their own, and targets are the whole table's") {
  MeasuredRow a = measured_row("a", 1), b = measured_row("b", 1);
  a.group = "small";
  b.group = "large";
  const std::vector<RowPrediction> predictions = {predicted_row(1.05), predicted_row(1.25)};
  const Accuracy missed = judged({a, b}, predictions, {.mape = 0.1, .most = 0.3});
  REQUIRE(missed.lines.size() == 3);
  CHECK(missed.lines[0].summary.errors.mape == doctest::Approx(0.15));
  CHECK(missed.lines[1].group == "small");
  CHECK(missed.lines[1].summary.errors.mape == doctest::Approx(0.05));
  CHECK(missed.lines[2].summary.errors.mape == doctest::Approx(0.25));
  CHECK(missed.lines[0].missed == std::vector<std::string>{"mean over 10.0 %"});
  CHECK_FALSE(reaches_targets(missed));
  CHECK(reaches_targets(judged({a, b}, predictions, {.mape = 0.2, .most = 0.3})));
  CHECK_FALSE(reaches_targets(judged({a, b}, predictions, {.spearman = 0.5})));   // no series
  CHECK_FALSE(reaches_targets(judged({a}, {{.problem = "no"}}, {.mape = 0.2})));  // nothing counts
}

TEST_CASE("quantities follow from step time, and ratios from a base") {
  const MeasuredRow row{.flops_per_step = 8e12};
  const RowValues values{.step_time = 2,
                         .samples_per_s = 3,
                         .tokens_per_s = 30,
                         .devices = 4,
                         .peak_memory = 7,
                         .used_memory = 9,
                         .peak_stash = 6};
  const RowValues base{.step_time = 0.5, .samples_per_s = 2, .peak_stash = 8};
  const auto value = [&](Measurand what, const RowValues* other = nullptr) {
    return predicted_value(what, row, values, other).value_or(-1);
  };
  CHECK(value(Measurand::StepTime) == 2);
  CHECK(value(Measurand::SamplesPerS) == 3);
  CHECK(value(Measurand::TokensPerS) == 30);
  CHECK(value(Measurand::TflopsPerDevice) == 1);  // 8 / 2 / 4
  CHECK(value(Measurand::PeakMemory) == 7);
  CHECK(value(Measurand::UsedMemory) == 9);
  CHECK(value(Measurand::StateMemory) == -1);  // no row has it
  CHECK(value(Measurand::SpeedUp, &base) == 1.5);
  CHECK(value(Measurand::StepDifference, &base) == 1.5);
  CHECK(value(Measurand::StashRatio, &base) == 0.75);
  CHECK(value(Measurand::SpeedUp) == -1);
  CHECK(is_memory(Measurand::StashRatio));
  CHECK_FALSE(is_memory(Measurand::MeanWeight));
}

}  // namespace
}  // namespace interlock::accuracy_test
