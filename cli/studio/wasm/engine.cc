// The engine of the offline page: opened with a scenario, then asked.
// SPDX-License-Identifier: Apache-2.0
#include <emscripten.h>

#include "cli/studio/studio_answers.h"

namespace interlock {
namespace {

OpenedScenario& opened() {
  static OpenedScenario scenario;
  return scenario;
}

}  // namespace
}  // namespace interlock

// Hands a line of an answer to the page.
EM_JS(void, interlock_say, (const char* line), { Module.said(UTF8ToString(line)); });

extern "C" {

/// Opens the scenario `text` of `file`; the files that it names are there already.
EMSCRIPTEN_KEEPALIVE void interlock_open(const char* file, const char* text) {
  interlock::opened() = interlock::opened_text(file, text);
}

/// Answers `question`, see answer_studio; each line goes to `Module.said`.
EMSCRIPTEN_KEEPALIVE void interlock_answer(const char* question) {
  interlock::answer_studio(interlock::opened(), question,
                           [](const std::string& line) { interlock_say(line.c_str()); });
}
}
