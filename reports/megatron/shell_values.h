// Shell values: what arithmetic and comparisons of a launch script come to, without running it.
// SPDX-License-Identifier: Apache-2.0
//
// A word that still has a "$" or a "`" is not known, and neither is what depends on it.
//
// Example: with_arithmetic("--global-batch-size $((8 * 16))") is "--global-batch-size 128";
// shell_condition("[[ fp8 == fp8 ]] && [ 2 -gt 1 ]") is true, shell_condition("[ -f x ]") nothing.
#pragma once

#include <optional>
#include <string>

namespace interlock {

/// Replaces each $((EXPRESSION)) of whole numbers by its value. One that is not known stays,
/// without its spaces.
std::string with_arithmetic(const std::string& line);

/// Returns whether the tests of `text` hold, as they stand behind "if"; nothing if that is not
/// known. Quotes are gone: a side that is missing is empty.
std::optional<bool> shell_condition(const std::string& text);

}  // namespace interlock
