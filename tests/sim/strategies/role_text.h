// Roles of stages in words, for tests that write them out.
// SPDX-License-Identifier: Apache-2.0
//
// Example: local training of two stages is "h(0w) (1w)", global training "(1w) (1w<)".
#pragma once

#include <string>
#include <vector>

#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// Returns one word a stage: h for a head, + for each addition, r for a repeated forward; then its
/// traversals by loss, w where they make weight gradients, < where the stage below needs them.
inline std::string text(const std::vector<StageRole>& roles) {
  std::string text;
  for (const StageRole& role : roles) {
    if (!text.empty()) text += ' ';
    text += std::string(role.head ? "h" : "") + (role.runs_next_part ? "r" : "") +
            std::string(role.summed_gradients, '+') + '(';
    for (const Traversal& t : role.traversals) {
      text += std::to_string(t.loss) + (t.weights ? "w" : "") + (t.to_previous ? "<" : "");
    }
    text += ')';
  }
  return text;
}

}  // namespace interlock
