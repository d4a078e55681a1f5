// Accuracy for people and programs: tables, Markdown, JSON and a page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reports/headlines/headlines.h"
#include "reports/report.h"
#include "validate/published/accuracy.h"

namespace interlock {

/// Returns a line for each table and quantity, and for each group of a table that has several.
Grid accuracy_grid(const Accuracy& accuracy);
/// Returns the totals that stand below it.
std::string accuracy_totals(const Accuracy& accuracy);
/// Returns what the columns mean.
std::string accuracy_note();
/// Returns the `most` values of each table and quantity that are furthest off, the furthest first.
Grid worst_grid(const Accuracy& accuracy, std::size_t most);
/// Rows that nothing is predicted for, and why.
Grid refused_grid(const Accuracy& accuracy);
/// Returns `grid` as a table of Markdown.
std::string markdown_table(const Grid& grid);
/// Returns every value.
Grid value_grid(const Accuracy& accuracy);

/// Returns the table for a terminal; `all_rows` adds every value.
std::string accuracy_table(const Accuracy& accuracy, const TableStyle& style, bool all_rows);
/// Returns the page; `command` and `date` say where it comes from.
std::string accuracy_markdown(const Accuracy& accuracy, const std::string& command,
                              const std::string& date);
/// Returns the document "interlock-accuracy/1", see docs/validation.md.
std::string accuracy_json(const Accuracy& accuracy);
/// Returns a page with a plot of predicted against measured values.
std::string accuracy_html(const Accuracy& accuracy);

}  // namespace interlock
