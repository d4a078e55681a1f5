// Contention: transfers on wires that share links, alone on them or flows of a solver.
// SPDX-License-Identifier: Apache-2.0
//
// A transfer that is alone on all its links ends at a date known at once, to the tick. When a
// second one touches one of its links, what is left of the first and the whole second become flows
// of a solver, which belongs to the engine: SimGrid's, or FairShare. Latency stays with the loop.
//
// Example: wires 0 and 1 share a link of 1 GB/s. Wire 0 sends 2 MB at 0 ms, alone: it would end at
// 2 ms. Wire 1 sends 1 MB at 1 ms: the 1 MB that is left on wire 0 and the 1 MB on wire 1 become
// flows with half of the link each, which both end at 3 ms.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/engines/event_loop.h"

namespace interlock {

class Contention {
 public:
  /// Takes the shared transfers of `loop`, which runs `program`; both outlive it.
  Contention(const Program& program, EventLoop& loop);

  /// Begins a flow of `bytes` over the way of a wire. To be set before the loop starts.
  std::function<void(int wire, double bytes)> launch;
  /// Ends flows, by their wires in rising order, at `clock`, and does what that makes possible.
  void end_flows(const std::vector<int>& wires, Seconds clock);

  /// Returns the links of each shared wire that can hold it back: those that the solver needs.
  const std::vector<std::vector<int>>& ways() const { return ways_; }

 private:
  struct WireState {
    double started = 0, occupancy = 0, bytes = 0;
    std::uint32_t generation = 0;  // of its timer
  };
  struct LinkState {
    int alone = -1;  // the wire that is alone on it
    int flows = 0;
  };

  void start(int wire, Bytes bytes, double occupancy);
  void forget_ended(int link);
  void promote(int wire);
  void start_flow(int wire, double bytes);
  void alone_ended(int wire, std::uint32_t generation);

  const Program& program_;
  EventLoop& loop_;
  std::vector<std::vector<int>> ways_;
  std::vector<WireState> wires_;
  std::vector<LinkState> links_;
};

/// Runs `loop` from its start to its end, with contention by FairShare.
void run_with_contention(const Program& program, EventLoop& loop);

}  // namespace interlock
