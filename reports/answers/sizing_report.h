// SizingReport: what interlock plan found, for people and for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/report.h"
#include "reports/words/scale.h"
#include "scenarios/starter/sizing.h"

namespace interlock {

/// Returns the name of a machine of the question; of a file, without folder and ending if no other
/// machine has the same.
std::string machine_name(const Sizing& sizing, std::size_t machine);
/// Returns machine and devices: "dgx-h100 x 64".
std::string name_of(const Sizing& sizing, const SizedPlan& row);
/// Returns what is trained: "llama-3-8b, 1 T tokens, 4.19 M tokens (512 sequences) a step".
std::string training_words(const Sizing& sizing);
/// Returns "2.1 M USD", or "840 k GPU-hours" where a price is unknown.
std::string cost_words(const Sizing& sizing, const SizedPlan& row);
/// Returns the unit that fits what all rows cost: {"M USD", 1e6}, {"k GPU-hours", 1e3}.
/// REQUIRES: a row fits.
Scale scale_of_costs(const Sizing& sizing);
/// Returns the scale of `values` in thousands, or more, where they are large.
Scale scale_of_amounts(const std::vector<double>& values, const std::string& unit);
/// Returns the plan of `row` in words; or why there is none.
std::string row_words(const SizedPlan& row);

/// Returns which row is recommended, why, and what the next best takes: a sentence each.
std::vector<std::string> recommendation(const Sizing& sizing);
/// Returns what must be known to read the rows: one sentence each.
std::vector<std::string> sizing_notes(const Sizing& sizing);
/// Returns a row for each machine and size.
Grid sizing_grid(const Sizing& sizing);

std::string sizing_text(const Sizing& sizing, const TableStyle& style);
/// Returns the document "interlock-plan/1", see docs/plan.md.
std::string sizing_json(const Sizing& sizing);

}  // namespace interlock
