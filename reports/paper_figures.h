// PaperFigures: still pictures of results, for papers and slides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/result_file.h"

namespace interlock {

/// The most results in one picture of timelines or devices.
inline constexpr std::size_t kMostPanels = 12;

/// What results can be drawn as, in the order of help texts.
const std::vector<std::string>& figure_names();

/// SVG of `figure`. Every number of a result that is drawn stands in the picture with all its
/// digits, beside the pointer. Throws: Error if the results have not what it needs.
/// REQUIRES: figure is one of the names above, but not "timeline", which needs a simulation.
std::string figure_svg(const std::string& figure, const ResultFiles& files);

/// The figures one by one. REQUIRES: results is not empty.
std::string utilisation_figure(const std::vector<ReadResult>& results);
std::string memory_figure(const std::vector<ReadResult>& results);
std::string breakdown_figure(const std::vector<ReadResult>& results);
std::string sweep_figure(const std::vector<ReadResult>& results);
std::string pareto_figure(const std::vector<ReadResult>& results);

/// The largest peak of any device, in bytes.
double fullest(const ReadResult& result);

}  // namespace interlock
