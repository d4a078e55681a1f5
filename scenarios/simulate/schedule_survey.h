// Schedule survey: every family of the catalogue on one equal pipeline, measured alike.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 8 devices, 32 micro-batches: the row of gpipe has a bubble of 7 / 39 = 17.9 % and a
// stash of 32, that of 1f1b the same bubble and a stash of 8.
#pragma once

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// p devices and M micro-batches. Forward, input half and weight half take a device equally long,
/// however many stages its share of the model is cut into; updates take no time.
struct SurveySize {
  int devices = 8;
  int micro_batches = 32;
  double transfer = 0;  // time of a message, in forwards of a device's share
};

struct SurveyOption;

/// One family, or one option of it, measured in its steady state.
struct SurveyRow {
  const ScheduleEntry* entry;
  const SurveyOption* option = nullptr;
  double bubble = 0;  // idle share of the devices
  /// Peak on any device; 1 is what its share of the model keeps of a micro-batch, or, where
  /// forwards are replayed, the input of a stage.
  double stash = 0;
  double traffic = 0;        // bytes on links in a step
  double weight_copies = 0;  // weights on all devices over weights of the model
};

/// An option of a schedule, measured like the families, with formulas of its own.
struct SurveyOption {
  const char* schedule;
  const char* words;   // behind its name: "vocab-1"
  const char* keys;    // of `training`, as scenarios write them
  const char* source;  // where it comes from
  bool layers;         // runs a transformer: profiles have no vocabulary, and no inputs of layers
  bool inputs;         // its stash is counted in inputs of layers, all that it keeps
  Formula bubble, stashed;
};
const std::vector<SurveyOption>& survey_options();
std::string survey_scenario(const SurveyOption& option, const SurveySize& size);

/// Returns the rows of options that take this size; an entry is that of the schedule. Traffic is in
/// the bytes of survey_schedules(), without that to hosts.
std::vector<SurveyRow> survey_options(const SurveySize& size);

/// Returns the scenario of one family as a user would write it.
std::string survey_scenario(const ScheduleEntry& entry, const SurveySize& size);

/// Returns a row for each family that has an order of its own and takes this size, in the
/// catalogue's order.
std::vector<SurveyRow> survey_schedules(const SurveySize& size);

}  // namespace interlock
