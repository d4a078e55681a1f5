// Collectives of one communicator that have different parts of a link, one after the other.
// SPDX-License-Identifier: Apache-2.0
//
// Example: one message of a ring is simulated, and each link has one such message; of an all-to-all
// one is simulated of two on each link. The ring has all of the link, the all-to-all half of it:
// its wire crosses the link twice. The two need a wire each, even where their ways are the same.
#pragma once

#include <map>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Messages that are on a link at once.
struct MessageCounts {
  int simulated = 0, all = 0;
};
/// By link of the program.
using LinkMessages = std::map<int, MessageCounts>;

/// Lets the flows of each collective cross the links of `messages`, by collective, as often as its
/// part needs. Returns the share of each link, of which the parts are whole fractions. Wires are
/// added where collectives cross links of one differently.
std::map<int, double> weigh_turns(Program& program, const std::vector<LinkMessages>& messages);

}  // namespace interlock
