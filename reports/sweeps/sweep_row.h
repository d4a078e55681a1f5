// SweepRow: what one scenario of a sweep gave, as the columns of a table.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a sweep over "training.schedule" and "seed" has the columns "training.schedule" and
// "scenario.seed" behind "name", then "error", "step_time_s" and the other numbers of results.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/sweeps/database.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {

/// The source of a sweep's scenarios, as it was typed.
struct SweepSource {
  std::string file;
  std::vector<std::string> overrides;  // those that are not swept
};

struct SweepRow {
  std::size_t id = 0;           // from 1, the scenario's place in the sweep
  std::vector<SqlValue> cells;  // by sweep_columns()
  std::string details;          // the result as JSON, without its scenario; empty: it has none
};

/// Returns the columns of a sweep over `paths`, without "id". A path has its name; one without a
/// dot is "scenario.PATH". Those of results are numbers of docs/result.md.
std::vector<std::string> sweep_columns(const std::vector<std::string>& paths);
/// Returns the column that a path has.
std::string column_of(const std::string& path);
/// Returns the place of column `name`, which must be there.
std::size_t place_of(const std::vector<std::string>& columns, const std::string& name);

/// Runs scenario `id` of `plan`. What goes wrong with it is in the row, which may be all there is.
SweepRow run_sweep_row(const SweepPlan& plan, std::size_t id, const SweepSource& source);
/// Returns a row of a scenario that could not even say what went wrong.
SweepRow failed_row(const SweepPlan& plan, std::size_t id, const SweepSource& source,
                    const std::string& problem);

/// Returns a row as bytes, for the way between processes.
std::string packed(const SweepRow& row);
SweepRow unpacked(std::string_view bytes);

}  // namespace interlock
