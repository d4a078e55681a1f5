// Chains whose ranks hold parts of the vocabulary, and a list of their events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/sim/support/test_chain.h"

namespace interlock::divided_vocabulary {

/// A chain with parts of the vocabulary; sizes in bytes, links of 1000 bytes a second.
struct Case {
  int ranks = 2, micro_batches = 4, barriers = 1;
  int slices = 0;                         // of a micro-batch, under "slimpipe"
  bool v = false;                         // "v-half", whose ranks have two stages each
  std::vector<double> forward, backward;  // of each stage
  std::vector<double> weight;             // likewise; in a V, where backwards are input halves
  double s = 1, t = 1, e = 0.5, g = 0.25, hidden = 100, statistics = 10, kept = 7, update = 0;
};

TestChain chain_of(const Case& c, double stash = 0);

struct Step {
  char kind = 'F';
  int micro_batch = 0;
  int stage = -1;  // in a V, but for parts of the vocabulary
  bool operator==(const Step&) const = default;
};

/// Returns the order of a rank in the schedule of `chain`, for one step, but for updates.
std::vector<Step> order_of(const TestChain& chain, int rank);
Case random_case(Random& random);
Case random_v_case(Random& random);
/// Returns which op of `chain`, made of `c`, does not end when the list of events says, in words;
/// empty if all do.
std::string fault_of_events(const Case& c, const TestChain& chain);

}  // namespace interlock::divided_vocabulary
