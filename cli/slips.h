// Slips: names of commands and options that are none, told with the nearest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace interlock {

/// The place of `word` in `names`, which are commands. Throws: Error if it is none of them.
std::size_t check_name(const std::string& word, const std::vector<std::string>& names);

/// What is wrong with the first of `typed` that looks like an option and is none of `command`;
/// CLI11 may complain of a word behind it.
std::optional<std::string> unknown_option(const CLI::App& command,
                                          const std::vector<std::string>& typed);

}  // namespace interlock
