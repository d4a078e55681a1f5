// Unmodelled types: classes of a config.json whose models no scenario can say, and why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace interlock {

/// A class whose models cannot be written here, and what is missing for it.
struct UnmodelledType {
  std::string_view name, lacks;
};
/// Returns them, sorted by name.
std::span<const UnmodelledType> unmodelled_types();

}  // namespace interlock
