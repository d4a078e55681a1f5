// CommandTree: the commands and options as plain data, for completions and the manual page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace CLI {
class App;
}

namespace interlock {

/// An option, a flag, or a word that stands alone.
struct OptionNode {
  enum class Value { None, File, Folder, Choice, Setting, Other };
  std::vector<std::string> names;  // "--json", "-q"; of a word alone: "SCENARIO"
  bool positional = false, several = false, required = false;
  Value value = Value::None;
  std::string type;                  // "FILE.json", as help calls the value
  std::vector<std::string> choices;  // that it may be, or is likely to be
  std::string summary, otherwise;    // its default, if that is told
};

struct CommandNode {
  std::string path;  // "validate run"; empty: the program
  std::string name, summary;
  std::vector<OptionNode> options;  // words that stand alone first
  std::vector<CommandNode> commands;
};

/// The tree below `app`.
CommandNode command_tree(const CLI::App& app);
/// Every node of the tree that is a command, those with commands below them included.
std::vector<const CommandNode*> all_commands(const CommandNode& root);
/// What --set can take: "training.schedule=" and, where names are known, "training.schedule=1f1b".
std::vector<std::string> setting_words();

/// The tree for programs.
JsonValue commands_json(const CommandNode& root);

// Scripts for shells, and the manual page in troff.
std::string bash_completion(const CommandNode& root);
std::string zsh_completion(const CommandNode& root);
std::string fish_completion(const CommandNode& root);
std::string manual_page(const CommandNode& root, const std::string& version,
                        const std::string& footer);

}  // namespace interlock
