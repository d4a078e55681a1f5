// Gradients that cross boundaries now and then, and messages in formats of their own.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/schedules/check_boundaries.h"

#include <string>

#include "base/text.h"

namespace interlock {

namespace {

/// Returns why gradients cannot cross boundaries for some micro-batches only; empty if they can.
std::string every_problem(const Training& training) {
  const Strategy& strategy = training.strategy;
  const std::string& schedule = training.schedule.kind->name;
  if (schedule != "eager") {
    return "is for stages that take each micro-batch as it comes; expected the schedule "
           "\"eager\", got " +
           in_quotes(schedule);
  }
  if (strategy.sought) {
    return "does not go with an N that is yet to be chosen; expected \"n_wise\" other than "
           "\"auto\"";
  }
  if (training.micro_batches % strategy.gradient_every == 0) return "";
  return "expected a divisor of the " + std::to_string(training.micro_batches) +
         " micro-batches of a step, got " + std::to_string(strategy.gradient_every);
}

/// Returns why messages cannot be cast; empty if they can.
std::string cast_problem(const Question& question, const JsonNode& document) {
  const ScheduleEntry& schedule = *question.training().schedule.kind;
  if (schedule.sends_lists) {
    return "is of single tensors; expected the schedule \"eager\", or \"training\", got " +
           in_quotes(schedule.name);
  }
  if (updates_one_copy(schedule.layout)) {
    return "is of messages from stage to stage; " + in_quotes(schedule.name) +
           " has others; expected \"training\"";
  }
  if (schedule.stash == StashMode::Rebuilt) {
    return "is of outputs that are rebuilt from, and come back with their gradients, under " +
           in_quotes(schedule.name) + "; expected \"training\"";
  }
  if (!question.layout.rank_layouts.empty()) {
    return "does not go with messages that are laid out anew between ranks; expected "
           "\"training\", or no parallel.stage_layouts";
  }
  if (document.value->find("swarm")) {
    return "is for ranks; expected \"compression\" in \"swarm\"";
  }
  return "";
}

}  // namespace

void check_boundaries(const Question& question, const TrainingKeys& keys, const JsonNode& document,
                      Diagnostics& diagnostics) {
  const Strategy& strategy = question.training().strategy;
  const JsonNode& node = keys.strategy.node;
  const auto check = [&](const char* key, bool asked, const std::string& problem) {
    if (asked && !problem.empty()) {
      report(diagnostics, node.child(key), problem);
    }
  };
  if (strategy.gradient_every > 1 && keys.batch_valid) {
    check("gradient_every", true, every_problem(question.training()));
  }
  const std::string problem = cast_problem(question, document);
  check("activation_format", strategy.activation_format != SentFormat::Computed, problem);
  check("gradient_format", strategy.gradient_format != SentFormat::Computed, problem);
}

}  // namespace interlock
