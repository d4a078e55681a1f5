// Slips: names of commands and options that are none, told with the nearest.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json/typed_words.h"
#include "base/text.h"
#include "cli/parser/command_tree.h"

namespace interlock {

void check_name(const std::string& word, const std::vector<std::string>& names) {
  if (std::count(names.begin(), names.end(), word) > 0) return;
  const std::optional<std::string> meant = nearest(word, names);
  throw Error("unknown command " + in_quotes(word) + "; " +
              (meant           ? "did you mean " + in_quotes(*meant) + "?"
               : names.empty() ? "no command is below this one"
                               : "expected " + join_choices(names)));
}

namespace {

/// Returns what `option` means here: "--devices" for "--gpus", a key to set for "--gbs", or the
/// nearest name.
std::optional<std::string> option_meant(const std::string& option,
                                        const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  for (std::string key : names) {
    std::replace(key.begin(), key.end(), '-', '_');
    keys.push_back(key.substr(2));
  }
  const std::optional<std::string> key = key_meant(option.substr(2), keys);
  if (!key) {
    const std::optional<std::string> near = nearest(option, names);
    return near ? std::optional(in_quotes(*near)) : std::nullopt;
  }
  const auto own = std::find(keys.begin(), keys.end(), *key);
  if (own != keys.end()) return in_quotes(names[static_cast<std::size_t>(own - keys.begin())]);
  const bool sets = std::count(names.begin(), names.end(), "--set") > 0;
  return sets ? std::optional(in_quotes("--set " + *key + "=VALUE")) : std::nullopt;
}

}  // namespace

std::string slip_text(const Command& command, const std::vector<std::string>& typed,
                      const std::string& said) {
  const std::string name = command.path + (command.path.empty() ? "" : " ");
  const std::string help = "\nsee interlock " + name + "--help";
  std::vector<std::string> names;
  for (const Option& option : command.options) {
    for (const std::string& one : option.names) {
      if (one.starts_with("--")) names.push_back(one);
    }
  }
  for (const std::string& word : typed) {  // CLI11 may complain of a word behind this option
    const std::string option = word.substr(0, word.find('='));
    if (!option.starts_with("--") || option == "--") continue;
    if (std::count(names.begin(), names.end(), option) > 0) continue;
    const std::optional<std::string> meant = option_meant(option, names);
    return "unknown option " + in_quotes(option) + (meant ? "; did you mean " + *meant + "?" : "") +
           help;
  }
  if (!said.starts_with("SCENARIO: At Most 1 required")) return said + help;
  const bool one = name == "simulate ";
  return name + (one ? "runs one file; for several there is interlock compare" : "takes one file") +
         help;
}

}  // namespace interlock
