// Completion for zsh: a function for each command, by _arguments.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/command_tree.h"

namespace interlock {
namespace {

using Value = Option::Value;

/// `text` inside single quotes, where _arguments reads brackets and colons.
std::string zsh_quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      safe += std::string("\\") + c;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string function_name(const Command& node) {
  std::string name = "_interlock";
  for (const char c : node.path.empty() ? std::string() : "_" + node.path) {
    name += c == ' ' || c == '-' ? '_' : c;
  }
  return name;
}

std::string action(const Option& option) {
  const std::string message =
      ":" + zsh_quoted(option.positional ? option.names.front() : option.type);
  std::string choices;
  switch (option.value) {
    case Value::None:
      return "";
    case Value::File:
      return message + ":_files";
    case Value::Folder:
      return message + ":_files -/";
    case Value::Setting:
      return message + ":_interlock_settings";
    case Value::Choice:
      for (const std::string& choice : option.choices) {
        choices += (choices.empty() ? "" : " ") + choice;
      }
      return message + ":(" + choices + ")";
    case Value::Other:
      return message + ": ";
  }
  return "";
}

std::string arguments(const Command& node) {
  std::string text;
  for (const Option& option : node.options) {
    if (option.positional) {
      text += std::string(" \\\n    '") + (option.several ? "*" : "") +
              (option.rules.required ? ":" : "::") + action(option).substr(1) + "'";
      continue;
    }
    for (const std::string& name : option.names) {
      text += std::string(" \\\n    '") + (option.value == Value::Setting ? "*" : "") + name + "[" +
              zsh_quoted(option.summary) + "]" + action(option) + "'";
    }
  }
  return text;
}

std::string function_of(const Command& node) {
  std::string text = function_name(node) + "() {\n";
  if (node.commands.empty()) return text + "  _arguments" + arguments(node) + "\n}\n\n";
  text += "  local line state\n  _arguments -C" + arguments(node) +
          " \\\n    '1:command:->commands' \\\n    '*::argument:->arguments'\n  case $state in\n"
          "  commands)\n    local -a commands=(\n";
  for (const Command& below : node.commands) {
    text += "      '" + below.name + ":" + zsh_quoted(below.summary) + "'\n";
  }
  text += "    )\n    _describe command commands ;;\n  arguments)\n    case $line[1] in\n";
  for (const Command& below : node.commands) {
    text += "    " + below.name + ") " + function_name(below) + " ;;\n";
  }
  return text + "    esac ;;\n  esac\n}\n\n";
}

}  // namespace

std::string zsh_completion(const Command& root) {
  std::string text =
      "#compdef interlock\n# Completion of interlock for zsh; written by \"interlock completion "
      "zsh\".\n\n_interlock_settings() {\n  local -a keys=(\n";
  for (const std::string& word : setting_words()) text += "    '" + word + "'\n";
  text += "  )\n  compadd -S '' -a keys\n}\n\n";
  for (const Command* node : all_commands(root)) text += function_of(*node);
  text += function_of(root);
  return text +
         "if [[ $funcstack[1] == _interlock ]]; then\n  _interlock \"$@\"\nelse\n"
         "  compdef _interlock interlock\nfi\n";
}

}  // namespace interlock
