// PageOrder: the lanes of the HTML page, and where on them everything of a log is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reports/words/excerpt.h"
#include "sim/causes/causes.h"

namespace interlock {

/// What a lane shows: indices in a list of the log, by start.
struct PageLane {
  int of = 0;  // the rank, wire, or lane of collectives
  std::vector<std::int32_t> entries;
};

struct PagePlace {
  std::int32_t lane = -1, entry = -1;  // -1: not on the page
};

/// Lanes are numbered: first devices, all of them; then wires and lanes of collectives, those that
/// show something.
struct PageOrder {
  std::vector<PageLane> devices, wires, groups;
  std::vector<PagePlace> spans, transfers, collectives;  // by index in the log

  PagePlace place(const TraceNode& node) const;
};

PageOrder order_for_page(const Measurement& measurement, const Excerpt& excerpt);

/// Nodes that entries of one lane name, as columns that compress well. An entry on the lane itself
/// is written as the distance back to it; on others as the distance from the one named last there.
class PlaceColumns {
 public:
  /// REQUIRES: `own` is the lane of all who name.
  PlaceColumns(std::int32_t own, std::size_t lanes) : own_(own), last_(lanes, 0) {}
  /// What entry number `entry` of the lane names.
  void add(std::int32_t entry, const PagePlace& named);

  std::vector<std::int32_t> lanes, steps;

 private:
  std::int32_t own_;
  std::vector<std::int32_t> last_;
};

}  // namespace interlock
