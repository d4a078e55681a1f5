// PlanOptions: what interlock plan is asked, as texts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace interlock {

/// Options of plan. Empty texts and 0 stand for what was not said.
struct PlanOptions {
  std::string model;
  std::vector<std::string> machines;  // each a name, or names between commas
  std::string devices;                // "64,128" or "8..512x2"
  std::string tokens, samples;        // one of them: "15e12", "15T"
  std::string batch;                  // "4M"
  int sequence_length = 0;
  bool weak = false;
  std::string days;                 // "30", "4 weeks"
  std::string budget;               // "2e6 USD"
  std::vector<std::string> prices;  // "2.50 USD/h" of all machines, "dgx-h100=2.50 USD/h" of one
  std::string mtbf;                 // "6334 h"
  std::vector<std::string> overrides;
  std::string html, figure, json;
  int jobs = 0;  // processes; 0: as many as processors
  bool quiet = false;
};

}  // namespace interlock
