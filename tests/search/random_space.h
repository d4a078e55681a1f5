// Small random spaces of plans: a tiny model on a few devices, and what plans of it are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/random.h"

namespace interlock {

/// A scenario with a "search", drawn from `seed`: a transformer of 4 to 8 layers on 2 to 8 devices
/// whose nodes, links, memory and prices differ; some with shared cards, some without.
/// `lists`: the search names the values that it chooses from.
std::string random_space(int seed, bool lists);

/// A plan of such a space, drawn at random; `random_plan` sets what PlanSpace would set, and may
/// make what no loader takes.
JsonValue random_plan(const std::string& space, Random& random);

/// Every plan that the lists of the space stand for, written out by loops of its own.
std::vector<JsonValue> all_plans(const std::string& space);

}  // namespace interlock
