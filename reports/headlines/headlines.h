// Headlines: which numbers of a result people are shown, in what words and in what units.
// SPDX-License-Identifier: Apache-2.0
//
// The terminal table and the HTML page print the same headlines; only their looks differ.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "sim/measure/metric_table.h"

namespace interlock {

/// One headline number: "Step time", "12.3 ms", "mean of 8 steps".
struct Headline {
  std::string label, value, note;
  bool alarm = false;
};
std::vector<Headline> all_headlines(const ScenarioResult& result);

/// Returns "stash 12.5 GiB" with "weights 5.4 GiB, ..." for what a device holds at its peak,
/// without classes of less than a thousandth; nothing if it holds nothing.
std::vector<Headline> classes_headline(const std::array<Bytes, kMemoryClasses>& memory);

/// Returns what was simulated, in one line: model, machine, stages, strategy, schedule. Devices
/// have the numbers that they have in the machine, here as in all that follows.
std::string subtitle(const ScenarioResult& result);

/// Returns what the reader must know before trusting the headlines; usually nothing.
std::vector<std::string> warnings(const ScenarioResult& result);

struct Column {
  std::string head, unit;  // unit may be empty
  bool number = true;      // right-aligned
  bool if_room = false;    // left out of a terminal's table that would be split for it
};
struct Cell {
  std::string text;
  std::optional<double> bar = std::nullopt;  // a share in [0, 1] to be drawn beside the text
  bool alarm = false;
  std::string link = {};  // on a page: the address that the text leads to; empty: none
};
/// A table before it is laid out. Every row has as many cells as there are columns. Example: the
/// columns {{"Device", ""}, {"Busy", "%"}} and the row {{"0"}, {"54.5", bar 0.545}}.
struct Grid {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};
/// Returns `grid` without rows from its middle, so that at most `most` are left; rows in `keep`
/// stay.
Grid shorten(const Grid& grid, std::size_t most, const std::vector<int>& keep);
/// Returns "Shown: 24 of 512 rows; the result JSON has all."
std::string rows_left_out(const Grid& shown, const Grid& all);
/// Returns a row for each device: stages, busy, useful, peak memory and what it mostly holds.
Grid device_grid(const ScenarioResult& result);
/// Returns a row for each link: bytes per step and utilisation.
Grid link_grid(const ScenarioResult& result);
/// Returns what all `names` begin with, up to a " | "; empty if nothing. REQUIRES: there are names.
std::string common_name(const std::vector<std::string>& names);
std::string common_name(const std::vector<ScenarioResult>& results);
/// Returns `name` without the common name.
std::string own_name(const std::string& name, const std::string& common);
/// Returns a row for each scenario, without the common name; speed-up is over the first.
Grid comparison_grid(const std::vector<ScenarioResult>& results);
/// Returns what the columns of that table mean.
std::string comparison_note();

/// Returns the rate that all `results` know and that tells most: tokens, samples, micro-batches or
/// steps a second.
MetricRow common_rate(const std::vector<ScenarioResult>& results);

/// Returns stages in words: "0, 2, 4" or "0 to 7".
std::string list_stages(const std::vector<int>& stages);

}  // namespace interlock
