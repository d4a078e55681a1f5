// Finds the nearest name.
// SPDX-License-Identifier: Apache-2.0
#include "cli/slips.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace interlock {

std::size_t check_name(const std::string& word, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::optional<std::string> meant = nearest(word, names);
  throw Error("unknown command " + in_quotes(word) + "; " +
              (meant           ? "did you mean " + in_quotes(*meant) + "?"
               : names.empty() ? "no command is below this one"
                               : "expected " + join_choices(names)));
}

std::optional<std::string> unknown_option(const CLI::App& command,
                                          const std::vector<std::string>& typed) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& word : typed) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || name == "--") continue;
    if (command.get_option_no_throw(name) != nullptr) continue;
    const std::optional<std::string> meant = nearest(name, names);
    return "unknown option " + in_quotes(name) +
           (meant ? "; did you mean " + in_quotes(*meant) + "?" : "");
  }
  return std::nullopt;
}

}  // namespace interlock
