// Keys that few scenarios have, added to random ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace interlock {

/// Adds to `document`, one of random_scenario, what a framework adds between and beside kernels,
/// and some of: other layouts, formats, networks, hosts, offload, placements, slices and variation.
/// The loader refuses what does not fit together.
void add_extras(nlohmann::ordered_json& document, Random& random);

}  // namespace interlock
