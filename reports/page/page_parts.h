// PageParts: what the writers of the page's data share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "reports/page/page_columns.h"
#include "reports/page/page_order.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

struct PageParts {
  const ScenarioResult& result;
  const Excerpt& excerpt;
  PageOrder order;
  std::optional<Causes> causes;   // of the whole log, where it is the whole run
  std::vector<int> devices = {};  // their numbers, by rank
  PageColumns columns = {};

  const Program& program() const { return result.measurement.program; }
  const TraceLog& log() const { return result.measurement.log; }
  std::size_t lanes() const {
    return order.devices.size() + order.wires.size() + order.groups.size();
  }
};

/// Times as distances, each from where the reader is by then; so that nothing adds up.
class GapColumn {
 public:
  explicit GapColumn(Seconds begin) : now_(begin.value()) {}
  void add(Seconds time) {
    const double gap = time.value() - now_;
    constexpr double kRounding = 1e-12;
    const bool none = std::abs(gap) <= kRounding * std::abs(time.value());
    gaps.push_back(none ? 0 : static_cast<float>(gap));
    now_ += gaps.back();
  }
  /// The reader goes on by the length of what begins there.
  void pass(double seconds) { now_ += seconds; }

  std::vector<float> gaps;

 private:
  double now_;
};

/// For people to read, not to add up.
inline float told(Seconds time) { return time > Seconds(0) ? coarse(time.value()) : 0; }

/// What each device did, and what it held: an object for each.
nlohmann::ordered_json ranks_json(PageParts& parts);

/// Messages of each wire, in the order of its lanes, and collectives of each lane.
nlohmann::ordered_json wires_json(PageParts& parts);
nlohmann::ordered_json groups_json(PageParts& parts);

}  // namespace interlock
