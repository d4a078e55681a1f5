// Completion for fish: a line for each command, option and name.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/command_tree.h"

namespace interlock {
namespace {

using Value = Option::Value;

std::string fish_quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "'";
}

/// When `node` is the command: its words are there, and none of those below it.
std::string condition(const Command& node) {
  if (node.path.empty()) return "__fish_use_subcommand";
  std::string text;
  for (std::size_t begin = 0; begin < node.path.size();) {
    const std::size_t end = std::min(node.path.find(' ', begin), node.path.size());
    text += (text.empty() ? "" : "; and ") +
            ("__fish_seen_subcommand_from " + node.path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (node.commands.empty()) return text;
  text += "; and not __fish_seen_subcommand_from";
  for (const Command& below : node.commands) text += " " + below.name;
  return text;
}

std::string value_words(const Option& option) {
  std::string choices;
  switch (option.value) {
    case Value::None:
      return "";
    case Value::File:
      return " -r -F";
    case Value::Folder:
      return " -x -a '(__fish_complete_directories)'";
    case Value::Setting:
      return " -x -a '(__interlock_settings)'";
    case Value::Choice:
      for (const std::string& choice : option.choices) choices += choice + " ";
      return " -x -a " + fish_quoted(choices);
    case Value::Other:
      return " -x";
  }
  return "";
}

std::string lines_of(const Command& node) {
  const std::string start = "complete -c interlock -n " + fish_quoted(condition(node));
  std::string text;
  for (const Command& below : node.commands) {
    text += start + " -f -a " + below.name + " -d " + fish_quoted(below.summary) + "\n";
  }
  for (const Option& option : node.options) {
    if (option.positional) {
      if (option.value == Value::File) text += start + " -F\n";
      if (option.value == Value::Choice) text += start + value_words(option) + "\n";
      continue;
    }
    text += start;
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += value_words(option) + " -d " + fish_quoted(option.summary) + "\n";
  }
  return text;
}

}  // namespace

std::string fish_completion(const Command& root) {
  std::string text =
      "# Completion of interlock for fish; written by \"interlock completion fish\".\n\n"
      "function __interlock_settings\n  printf '%s\\n'";
  for (const std::string& word : setting_words()) text += " " + fish_quoted(word);
  text += "\nend\n\ncomplete -c interlock -f\n" + lines_of(root);
  for (const Command* node : all_commands(root)) text += lines_of(*node);
  return text;
}

}  // namespace interlock
