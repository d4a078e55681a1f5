// PaperFigures: still pictures of results, for papers and slides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/result/result_file.h"

namespace interlock {

/// The most results in one picture of timelines or devices.
inline constexpr std::size_t kMostPanels = 12;

/// What results can be drawn as, in the order of help texts.
const std::vector<std::string>& figure_names();

/// SVG of `figure`, after which a colon and measures may follow in sweeps. Every number of a result
/// that is drawn stands in the picture with all its digits, beside the pointer. Throws: Error if
/// the results have not what it needs. REQUIRES: figure is one of the names above, but not
/// "timeline", which needs a simulation.
std::string figure_svg(const std::string& figure, const ResultFiles& files);

/// The figures one by one. REQUIRES: results is not empty.
std::string utilisation_figure(const std::vector<ReadResult>& results);
std::string memory_figure(const std::vector<ReadResult>& results);
std::string breakdown_figure(const std::vector<ReadResult>& results);
/// `measures`: names with commas between them; empty: busy, useful and speed-up.
std::string sweep_figure(const std::vector<ReadResult>& results, const std::string& measures = "");
std::string pareto_figure(const std::vector<ReadResult>& results);

/// Results as a table in Markdown. With several measures a row is a result and a column a measure;
/// one measure has a row for each combination of all swept paths but the last, and its values
/// across.
std::string table_figure(const std::vector<ReadResult>& results, const std::string& measures);

}  // namespace interlock
