// Counts that a model description cannot do without.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json/json.h"

namespace interlock {

/// Most modules of one model: above any real one, below what would fill a machine by mistake.
inline constexpr int kMostModules = 100'000;
/// Most features of one layer: as far above any real one.
inline constexpr int kMostWidth = 1'000'000;

/// The count at `key`, in [1, most]; its absence is a mistake. Returns 1 after any mistake.
inline int required_count(ObjectReader& reader, std::string_view key, std::string_view expected,
                          int most) {
  const auto node = reader.require(key, expected);
  return node ? read_count(*node, 1, most, reader.diagnostics()).value_or(1) : 1;
}

}  // namespace interlock
