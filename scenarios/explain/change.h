// Change: a scenario one step better in one thing, as --set says it.
// SPDX-License-Identifier: Apache-2.0
//
// Changes are proposed generously: one that the loader refuses is left out without a word.
//
// Example: {Machine, "links between devices twice as fast", {"cluster.link.bandwidth=2 GB/s"}}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "scenarios/explain/step_limits.h"
#include "sim/plan/partition.h"

namespace interlock {

struct Change {
  enum class Kind {
    Machine,   // other hardware
    Plan,      // the same training, divided or ordered otherwise
    Training,  // another training: other gradients, other numbers
  };
  Kind kind = Kind::Plan;
  std::string words;                  // "half the latency of the network cards"
  std::vector<std::string> settings;  // "path=VALUE", in order
};

/// The scenario that changes start from.
struct Baseline {
  JsonValue document;  // as it was simulated, without a sweep
  JsonValue opened;    // the same with machine, device and framework open
  ScenarioResult result;
  StepLimits limits;
};

/// Returns changes of the machine: parts that are twice as fast, other devices of the catalogue.
std::vector<Change> machine_changes(const Baseline& baseline);
/// Returns changes of micro-batches, order, partition and recomputation, and of what waits
/// elsewhere.
std::vector<Change> plan_changes(const Baseline& baseline);
/// Degrees traded for each other, ZeRO, and communication beside computation.
std::vector<Change> layout_changes(const Baseline& baseline);
/// Leaves it to the loader to lay and cut stages that the scenario lays and cuts itself.
void lay_stages_anew(const Baseline& baseline, Change& change, bool cuts_itself = false);
/// Returns the setting that cuts the model as `partition` does.
std::string set_cut(const Partition& partition);
/// Returns all of them, each once. Those of the machine cut the model as the baseline does.
std::vector<Change> all_changes(const Baseline& baseline);

/// Returns the value at a dotted path; null if there is none.
const JsonValue* value_at(const JsonValue& document, std::string_view dotted_path);
/// Returns a quantity as people write it, times `factor`: "231 GB/s" becomes "462 GB/s". A list is
/// scaled item by item and comes as JSON. Empty for anything else, and for nothing times anything.
std::string scaled_text(const JsonValue* value, double factor);

}  // namespace interlock
