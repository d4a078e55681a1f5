// Loads scenario files, and reports the mistakes of all of them together.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/inputs.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "cli/console/terminal.h"
#include "scenarios/jobs/jobs_question.h"

namespace interlock {

void tell_notes(const std::vector<Question>& scenarios) {
  std::set<std::string> told;
  for (const Question& scenario : scenarios) {
    if (scenario.trace()) continue;
    for (const std::string& note : scenario.training().graph.notes) {
      if (told.insert(note).second) tell("note: " + scenario.training().graph.name + ": " + note);
    }
  }
}

std::vector<Question> load_inputs(const CommandOptions& options, const FileLoaded& loaded) {
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1) {
    throw Error("\"-\" is given twice; expected standard input once");
  }
  std::vector<Question> scenarios;
  std::string mistakes;
  for (const std::string& input : options.inputs) {
    try {
      const JsonValue document = read_scenario_document(input, options.overrides);
      if (loaded && holds_jobs(document)) {
        loaded(input, load_jobs(document).size());
        continue;
      }
      std::vector<Question> found = load_questions(document);
      if (loaded) loaded(input, found.size());
      std::move(found.begin(), found.end(), std::back_inserter(scenarios));
    } catch (const Error& error) {
      mistakes += (mistakes.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!mistakes.empty()) throw Error(mistakes);
  if (!options.quiet) tell_notes(scenarios);
  return scenarios;
}

}  // namespace interlock
