// Typed words: what people type for keys, names and units, and what it is here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace interlock {

/// Returns the key that `typed` stands for: "tensor" for "tp" where that is among `known`, and its
/// dotted path ("parallel.tensor") elsewhere. Nothing: it is no word of the table.
std::optional<std::string> key_meant(std::string_view typed, const std::vector<std::string>& known);

/// Returns the name among `known` that `typed` stands for: "bf16" for "bfloat16".
std::optional<std::string> name_meant(std::string_view typed,
                                      const std::vector<std::string>& known);

/// Returns the quantity with its unit as it is written here: "100 Gb/s" for "100Gbps", "3 us" for
/// "3 usec". Nothing: there is no such unit.
std::optional<std::string> quantity_meant(std::string_view typed);

}  // namespace interlock
