// Rows that models of every kind have in common; the rows of a kind stand beside its reader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/contract/section.h"

namespace interlock {

/// Most modules of one model: above any real one, below what would fill a machine by mistake.
inline constexpr int kMostModules = 100'000;
/// Most features of one layer: as far above any real one.
inline constexpr int kMostWidth = 1'000'000;

/// Returns the object of a model: the keys that every kind has, and `keys`.
ContractObject model_object(const std::string& kind, const std::string& meaning,
                            const std::vector<ContractKey>& keys);

}  // namespace interlock
