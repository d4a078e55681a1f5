// Which links of a way can be what holds its flows back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// By wire: its links without those that can never be the bottleneck of max-min fair sharing, as
/// all that crosses them also crosses another link that is no faster. Empty for wires that share
/// nothing. Rates are the same without the links left out, and of two wires that met on one of them
/// both still meet on another.
std::vector<std::vector<int>> binding_links(const Program& program);

}  // namespace interlock
