// StudioPage: the page of interlock studio, one file with its editor, lists and schema inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "reports/charts/line_chart.h"
#include "scenarios/search/plan_search.h"

namespace interlock {

/// The engine of a page that needs no server.
struct OfflineEngine {
  std::string script, program;               // of Emscripten; WebAssembly
  std::map<std::string, std::string> files;  // that it reads, by their paths
};

/// The scenario that a page begins with.
struct StudioOpening {
  std::string file, text;
  std::optional<OfflineEngine> engine = std::nullopt;  // nothing: the page is served
};

/// Returns the page. What it asks goes through one interface, web/studio/engine.js.
std::string studio_page(const StudioOpening& opening);

/// Returns a panel of step time over memory of the fullest device. Plan i leads to section i; pale
/// is what a plan before it beats in all that counts. REQUIRES: plans were found.
LineChart search_front(const SearchResult& result);

}  // namespace interlock
