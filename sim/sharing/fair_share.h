// FairShare: flows over links that share bandwidth max-min fairly, and when they end.
// SPDX-License-Identifier: Apache-2.0
//
// All flows grow alike until a link is full; those that cross it keep that rate, the others grow
// on. When flows begin or end, only those are solved again that they meet on some link, directly or
// through others. Rates, and what is left of a flow, are worked out in the order of operations in
// which SimGrid does it (lazy updates of its CM02 model), so that both round alike.
//
// Example: links of 1 and 2 bytes a second; flow 0 over the first, flow 1 over both.
//   FairShare flows({1, 2}, {{0}, {0, 1}});
//   flows.add(0, 1), flows.add(1, 3);  // 1 and 3 bytes
//   flows.next_end(0);                 // 2: both have half a byte a second
//   flows.take_ended(2);               // {0}
//   flows.next_end(2);                 // 4: the 2 bytes left of flow 1 have the first link alone
#pragma once

#include <cstdint>
#include <vector>

#include "sim/sharing/event_heap.h"

namespace interlock {

class FairShare {
 public:
  /// Takes the bandwidth of each link, and for each flow that there may be the links that it
  /// crosses, one at least. Of a link that it crosses k times it takes k times its rate. Any unit
  /// of amounts and times.
  FairShare(const std::vector<double>& bandwidths, const std::vector<std::vector<int>>& ways);

  /// Begins flow `flow`. REQUIRES: amount > 0; it is not under way.
  void add(int flow, double amount);

  /// Returns when the first flow ends if none begins or ends before; kInfinity if there is none.
  /// REQUIRES: `now` is when flows last began or ended, and never goes back.
  double next_end(double now);
  /// Ends the flows whose end is `now`, to kTogether; in the order of their numbers.
  std::vector<int> take_ended(double now);

  /// Returns the share of `flow`, as of the last next_end(); 0 if it is not under way.
  double rate(int flow) const { return flows_[flow].rate; }

  /// Flows whose ends are less than this apart end together: they differ by rounding.
  static constexpr double kTogether = 1e-12;

 private:
  struct Crossing {
    int link = 0, times = 1;
  };
  struct Flow {
    std::vector<Crossing> way;
    double left = 0, rate = 0, since = 0;  // `left` as of `since`, from when on it had `rate`
    double end = 0;
    std::uint32_t generation = 0;  // of its events
    bool under_way = false;
    bool listed = false;  // by its links: stays so after its end until these are solved
    bool fixed = false;   // its new rate is known
    bool met = false;     // is being solved again
  };
  struct Link {
    double bandwidth = 0;
    std::vector<int> flows;
    double left = 0;   // that flows of known rates do not take
    double level = 0;  // rate at which the others fill it
    int growing = 0;   // their crossings
    bool changed = false, met = false;
  };

  void remove(int flow);
  void touch(const Flow& flow);
  void solve(int link, double now);
  void collect(int link);
  void share(double now);
  void fix(int flow, double rate, double now);
  void note_first_ends();

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> changed_;                // links
  std::vector<int> met_flows_, met_links_;  // what is being solved again
  std::vector<int> open_, full_;            // links with flows that grow; those that just filled up
  EventHeap ends_;  // the first of each set of flows that meet; those of old generations are void
};

}  // namespace interlock
