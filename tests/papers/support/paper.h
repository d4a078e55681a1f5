// Paper: the scenarios of a file under scenarios/papers, simulated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

class Paper {
 public:
  /// `overrides` as --set takes them. Of lists in `among`, results have one label
  /// of each.
  explicit Paper(const std::string& name, const std::vector<std::string>& overrides = {},
                 const std::vector<std::vector<std::string>>& among = {});

  /// The one result whose swept values include all `labels`, as results call them.
  const ScenarioResult& at(const std::vector<std::string>& labels) const;
  const std::vector<ScenarioResult>& results() const { return results_; }

  // The numbers of that result; seconds and bytes.
  double step(const std::vector<std::string>& labels) const;
  double memory(const std::vector<std::string>& labels) const;   // of the fullest device
  double stash(const std::vector<std::string>& labels) const;    // mean of the devices' peaks
  double traffic(const std::vector<std::string>& labels) const;  // of a step, on all links
  double samples(const std::vector<std::string>& labels) const;  // a second

 private:
  std::string name_;
  std::vector<ScenarioResult> results_;
};

/// Prints what a paper claims, what was found, and where both come from; and says so on failure.
void tell(const std::string& what, double published, double found);

}  // namespace interlock
