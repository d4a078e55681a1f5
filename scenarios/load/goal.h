// TrainingLength and Goal: how long a scenario trains, as its "run" and its "goal" say it.
// SPDX-License-Identifier: Apache-2.0
//
// Samples with further steps are K(B) = c1 / B + c2, the steps to a goal under a global batch of B
// (arXiv 2003.11316): c1 samples where more samples a step help in proportion, and c2 steps that no
// batch saves. Strategies may differ in both, so a goal may name lengths of their own.
//
// Example: 1,000 samples and 5 further steps, at 64 samples a step, are 16 + 5 = 21 steps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace interlock {

class Section;
struct Question;

struct TrainingLength {
  enum class Unit { Steps, Samples, Tokens };
  Unit unit = Unit::Steps;
  double amount = 1;
  int further_steps = 0;  // besides, however many samples a step has
};

/// "goal". The length is that of the scenario's strategy once check_goal() has chosen it.
struct Goal {
  TrainingLength length;
  std::vector<std::pair<std::string, TrainingLength>> strategies;  // by name
};

/// The content of a step; each number is empty where it is unknown.
struct StepContent {
  std::optional<double> samples, tokens;
};

/// Returns the number of whole steps of `length`, at least one. REQUIRES: `step` has what it
/// counts.
double steps_of(const TrainingLength& length, const StepContent& step);

/// Reads "steps", "samples", "tokens" and "further_steps" of an object that has them.
TrainingLength read_length(Section& section);
/// Finds what a step of `question` lacks for `length`, written at `node`.
void check_length(const Question& question, const TrainingLength& length, const JsonNode& node,
                  Diagnostics& diagnostics);

Goal read_goal(const JsonNode& node, Diagnostics& diagnostics);
/// Chooses the length of the strategy of `question`, which is complete and has a goal.
void check_goal(Question& question, const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
