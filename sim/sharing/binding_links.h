// Which links of a way can be what holds its flows back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Returns, by wire, its links without those that can never be the bottleneck of max-min fair
/// sharing, as whatever crosses them takes no smaller a part of another link. A link that a wire
/// crosses k times is there k times. Empty for wires that share nothing. Rates are the same without
/// the links left out, and of two wires that met on one of them both still meet on another.
std::vector<std::vector<int>> binding_links(const Program& program);

/// Returns true if some wire crosses a link more than once, for its equals that are not simulated:
/// routes of SimGrid do not.
bool crosses_again(const Program& program);

}  // namespace interlock
