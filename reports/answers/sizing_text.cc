// A sizing as a table, and as a terminal shows it.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/text.h"
#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/terminal/layout.h"

namespace interlock {
namespace {

using Known = std::optional<double>;

constexpr double kTeraflops = 1e12;

class SizingTable {
 public:
  explicit SizingTable(const Sizing& sizing) : sizing_(sizing) {
    grid_.columns.push_back({"Machine", "", false});
    for (const SizedPlan& row : sizing.rows) grid_.rows.push_back({{name_of(sizing, row)}});
  }

  /// Adds a column of what `value` knows of rows that fit, in the scale that `scale_of` chooses;
  /// none if nothing is known.
  template <class Value, class ScaleOf>
  void add(const std::string& head, const Value& value, const ScaleOf& scale_of) {
    std::vector<Known> values;
    std::vector<double> known;
    for (const SizedPlan& row : sizing_.rows) {
      values.push_back(row.fits ? value(row) : Known());
      if (values.back()) known.push_back(*values.back());
    }
    if (known.empty()) return;
    const Scale scale = scale_of(known);
    grid_.columns.push_back({head, scale.unit});
    for (std::size_t i = 0; i < values.size(); ++i) {
      grid_.rows[i].push_back({values[i] ? scaled(*values[i], scale) : kUnknown});
    }
  }

  /// Marks energies of devices alone, if there is a column of energies.
  void mark_energies() {
    if (grid_.columns.back().head != "Energy") return;
    for (std::size_t i = 0; i < grid_.rows.size(); ++i) {
      const SizedPlan& row = sizing_.rows[i];
      if (row.energy && row.devices_alone) grid_.rows[i].back().text += "*";
    }
  }

  /// Adds the flops of a device, which the MFU tells as well: if there is room.
  void add_flops() {
    const std::size_t before = grid_.columns.size();
    add(
        "TFLOP/s/GPU",
        [](const SizedPlan& row) {
          const double flops = row.plan->estimate.flops_per_s;
          return flops > 0 ? Known(flops / kTeraflops) : std::nullopt;
        },
        [](const auto& values) { return scale_of_numbers(values, ""); });
    if (grid_.columns.size() > before) grid_.columns.back().if_room = true;
  }

  void add_choice() {
    grid_.columns.push_back({"Choice", "", false});
    for (std::size_t i = 0; i < sizing_.rows.size(); ++i) {
      const bool best = !sizing_.ranking.empty() && sizing_.ranking.front() == i;
      grid_.rows[i].push_back({best ? "best" : sizing_.rows[i].on_front ? "front" : ""});
    }
  }

  Grid take() { return std::move(grid_); }

 private:
  const Sizing& sizing_;
  Grid grid_;
};

Known if_positive(double value) { return value > 0 ? Known(value) : std::nullopt; }

/// Returns the currency of all rows that cost money; empty if there are several.
std::string currency_of(const Sizing& sizing) {
  std::string currency;
  for (const SizedPlan& row : sizing.rows) {
    if (!row.cost) continue;
    if (!currency.empty() && currency != row.cost->currency) return "";
    currency = row.cost->currency;
  }
  return currency;
}

Scale percents(const std::vector<double>&) { return {"%", 0.01, 1}; }

}  // namespace

Grid sizing_grid(const Sizing& sizing) {
  SizingTable table(sizing);
  using Row = const SizedPlan&;
  table.add(
      "Time", [](Row row) { return Known(row.time.value()); }, scale_of_seconds);
  if (const std::string currency = currency_of(sizing); !currency.empty()) {
    table.add(
        "Cost", [](Row row) { return row.cost ? Known(row.cost->amount) : std::nullopt; },
        [&](const auto& values) { return scale_of_amounts(values, currency); });
  }
  table.add(
      "GPU-hours", [](Row row) { return Known(row.device_hours); },
      [](const auto& values) { return scale_of_amounts(values, ""); });
  table.add(
      "Energy", [](Row row) { return row.energy ? Known(row.energy->value()) : std::nullopt; },
      scale_of_joules);
  table.mark_energies();
  table.add(
      "Failures", [](Row row) { return row.goodput ? Known(1 - *row.goodput) : std::nullopt; },
      percents);
  table.add(
      "Step", [](Row row) { return Known(row.plan->estimate.step_time); }, scale_of_seconds);
  const bool tokens = sizing.tokens_per_sample.has_value();
  table.add(
      tokens ? "Tokens/s/GPU" : "Samples/s/GPU",
      [&](Row row) {
        const PlanEstimate& estimate = row.plan->estimate;
        return Known(per_device(*row.plan, tokens ? estimate.tokens : estimate.samples));
      },
      [](const auto& values) { return scale_of_numbers(values, ""); });
  table.add_flops();
  table.add(
      "MFU", [](Row row) { return if_positive(row.plan->estimate.mfu); }, percents);
  table.add(
      "Memory", [](Row row) { return Known(row.plan->estimate.peak_memory); }, scale_of_bytes);
  table.add_choice();
  return table.take();
}

std::string sizing_text(const Sizing& sizing, const TableStyle& style) {
  std::string text = paragraph(training_words(sizing), Ink::Strong, style);
  for (const std::string& sentence : recommendation(sizing)) {
    text += paragraph(sentence, Ink::Plain, style);
  }
  text += "\n" + lay_out(sizing_grid(sizing), style);
  for (const std::string& note : sizing_notes(sizing)) text += paragraph(note, Ink::Faint, style);
  text += "\n" + paragraph("Plans", Ink::Strong, style);
  std::vector<Headline> plans;
  for (const SizedPlan& row : sizing.rows) {
    plans.push_back({name_of(sizing, row), "", row_words(row), !row.fits});
  }
  return text + headline_lines(plans, style);
}

}  // namespace interlock
