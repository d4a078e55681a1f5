// StudioAnswers: what the page of the studio asks, answered by the engines of the commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/studio/answering_processes.h"

namespace interlock {

/// The scenario that the studio was started with.
struct OpenedScenario {
  std::string file;             // as it was named; mistakes in the page's text are told by it
  std::string text;             // with the overrides of the command line
  std::set<std::string> files;  // that it names, by their canonical paths: no others are read
};

/// Opens a scenario whose text is `text`, as if it stood in `file`.
OpenedScenario opened_text(const std::string& file, const std::string& text);
/// Opens `path`, or a first scenario if it is empty. Throws: Error if it cannot be read.
OpenedScenario open_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// Answers `question`, an object in JSON, for example
///   {"ask": "simulate", "text": "{...}", "settings": ["training.micro_batches=8"]}
/// in lines of JSON: {"done": 3, "of": 12} while it works, then {"answer": {...}}, or {"mistakes":
/// "..."} of the user, or {"bug": "..."} of ours. "ask" is one of
///   edit      the scenario's text after the settings
///   simulate  and its headlines, tables and charts as markup and data
///   explain, search  what these commands write as JSON; of a search also a chart
///   plan      as interlock plan, by "options": {"machines", "devices", "tokens", "days"}
///   write     a file of the scenario: "what" is report, svg, trace or result
void answer_studio(const OpenedScenario& opened, const std::string& question, const LineSink& say);

}  // namespace interlock
