// AnswerReport: what interlock explain says, for people and for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "scenarios/explain/answers.h"

namespace interlock {

/// Returns words such as "compute of device 2", "link gpu3 up", "the bubble of the schedule":
/// devices by their numbers in the machine.
std::string words_of(const StepPiece& part, const Answers& answers);
/// Returns words such as "forward on device 2", "activations over gpu3 up".
std::string words_of(const PathShare& share, const Answers& answers);
/// Returns in a sentence what limits the step, or keeps it from running at all.
std::string limit_sentence(const Answers& answers);
/// Returns what could not be explained, and why; usually nothing.
std::vector<std::string> unexplained(const Answers& answers);

/// Returns `--set 'cluster.port.bandwidth=462 GB/s'`, as a shell takes it.
std::string set_options(const Change& change);

/// Writes where the time of a step goes, what limits it, and what every change gains. `all`: also
/// changes that gain nothing.
std::string answers_text(const Answers& answers, const TableStyle& style, bool all);
/// Returns the document "interlock-explanation/1", see docs/explain.md.
std::string answers_json(const Answers& answers);

}  // namespace interlock
