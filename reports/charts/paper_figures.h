// PaperFigures: still pictures of results, for papers and slides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/charts/bar_chart.h"
#include "reports/charts/line_chart.h"
#include "reports/result/result_file.h"

namespace interlock {

/// The most results in one picture of timelines or devices.
inline constexpr std::size_t kMostPanels = 12;

/// Names all figures, in the order of help texts.
const std::vector<std::string>& figure_names();

/// Returns the SVG of `figure`, after which a colon and measures may follow in sweeps. Every number
/// of a result that is drawn stands in the picture with all its digits, beside the pointer. Throws:
/// Error if the results have not what it needs. REQUIRES: figure is one of the names above, but not
/// "timeline", which needs a simulation, and no "table" or "page".
std::string figure_svg(const std::string& figure, const ResultFiles& files,
                       const PictureStyle& style = {});

/// Refuses files of curves alone, which no `figure` but tradeoff draws. Throws: Error.
void check_results(const std::string& figure, const ResultFiles& files);

/// Returns the chart of one figure. REQUIRES: results is not empty.
BarChart utilisation_figure(const std::vector<ReadResult>& results);
BarChart memory_figure(const std::vector<ReadResult>& results);
BarChart breakdown_figure(const std::vector<ReadResult>& results);
/// Returns the chart of a sweep. `measures`: names with commas between them; empty: busy, useful
/// and speed-up.
LineChart sweep_figure(const std::vector<ReadResult>& results, const std::string& measures = "");
LineChart pareto_figure(const std::vector<ReadResult>& results);

/// Returns the chart of the sweep figure. `measures`: names with commas between them. Nothing if
/// results differ in no number. REQUIRES: results is not empty.
std::optional<LineChart> sweep_chart(const std::vector<ReadResult>& results,
                                     const std::string& measures);
/// Returns the chart of throughput against the measure `less`, of which less is better. REQUIRES:
/// all results have it.
LineChart pareto_chart(const std::vector<ReadResult>& results, const std::string& less);

/// Returns a chart of the shares of a step that devices spend on each of time_parts(), a panel for
/// each result, with the parts that some device has. `panels` have values of all parts.
BarChart breakdown_chart(std::vector<BarPanel> panels);

enum class TableForm { Markdown, Latex };
/// Returns the results as a table in Markdown, or as a tabular. With several measures a row is a
/// result and a column a measure; one measure has a row for each combination of all swept paths but
/// the last, and its values across. Results that do not fit in memory are marked.
std::string table_figure(const std::vector<ReadResult>& results, const std::string& measures,
                         TableForm form = TableForm::Markdown);

std::vector<std::string> names_of(const std::vector<ReadResult>& results);

}  // namespace interlock
