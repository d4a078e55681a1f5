// Trials of flushed schedules that lay several equal stages on each rank.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/laid_trial.h"

#include <set>

#include "sim/plan/schedules/catalogue.h"

namespace interlock {

bool has_chunks(const std::string& schedule) {
  static const std::set<std::string> names = {"interleaved", "breadth-first", "interleaved-zb",
                                              "pipeoffload", "slimpipe",      "zb-v",
                                              "v-half",      "v-min"};
  return names.contains(schedule);
}

Trial laid_trial(const LaidCase& laid) {
  Trial trial;
  trial.stages = equal_stages(laid.ranks * laid.chunks, laid.times);
  for (int stage = 0; stage < laid.ranks * laid.chunks; ++stage) {
    trial.placement.push_back(rank_of(laid, stage));
  }
  trial.strategy = "\"global\"";
  trial.schedule = "{\"kind\": \"" + laid.schedule + "\"";
  if (has_chunks(laid.schedule)) trial.schedule += ", \"chunks\": " + std::to_string(laid.chunks);
  if (!laid.policy.empty()) trial.schedule += ", " + laid.policy;
  trial.schedule += "}";
  trial.micro_batches = laid.micro_batches;
  trial.steps = 2;
  return trial;
}

int rank_of(const LaidCase& laid, int stage) {
  const int place = stage % laid.ranks;
  const bool up = schedule_named(laid.schedule).layout == StageLayout::V && stage >= laid.ranks;
  return up ? laid.ranks - 1 - place : place;
}

}  // namespace interlock
