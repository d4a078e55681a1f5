// Completion for bash, which hands a word over in pieces: "=" stands apart.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/command_tree.h"

namespace interlock {
namespace {

using Value = Option::Value;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Returns the words that may stand next: commands and options.
std::string words_of(const Command& node) {
  std::string text;
  for (const Command& below : node.commands) text += below.name + " ";
  for (const Option& option : node.options) {
    if (!option.positional) text += joined(option.names) + " ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::string reply(const Option& option) {
  switch (option.value) {
    case Value::Choice: {
      // A model or a machine may be a file, too.
      const bool file = option.type == "MODEL" || option.type == "MACHINE";
      return "_interlock_words '" + joined(option.choices) + "'" +
             (file ? "; _interlock_files" : "");
    }
    case Value::File:
      return "_interlock_files";
    case Value::Folder:
      return "COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames 2>/dev/null";
    case Value::Setting:
      return "_interlock_settings";
    default:
      return ":";  // a number or a text: nothing to offer
  }
}

/// Returns a line of `case` for each option that takes a value.
std::string value_cases(const Command& node) {
  std::string text;
  for (const Option& option : node.options) {
    if (option.positional || option.value == Value::None) continue;
    std::string pattern;
    for (const std::string& name : option.names) {
      pattern += (pattern.empty() ? "'" : " | '") + node.path + ":" + name + "'";
    }
    text += "    " + pattern + ") " + reply(option) + "; return ;;\n";
  }
  return text;
}

/// Returns the case of words that begin no option: files or names are offered for them.
std::string word_case(const Command& node) {
  for (const Option& option : node.options) {
    if (!option.positional || option.value == Value::Other) continue;
    return "    '" + node.path + "') " + reply(option) + " ;;\n";
  }
  return "";
}

constexpr const char* kBashHead =
    R"(# Completion of interlock for bash; written by "interlock completion bash".

_interlock_words() {
  COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}

_interlock_files() {
  COMPREPLY+=($(compgen -f -- "$cur"))
  compopt -o filenames 2>/dev/null
}

# "path=VALUE": bash hands over the path, "=" and the value as words of their own.
_interlock_settings() {
  local word
  compopt -o nospace 2>/dev/null
  for word in $_interlock_keys; do
    # Paths first, then the values of one.
    [[ $word == "$key$cur"* && (-n $key || $word == *=) ]] && COMPREPLY+=("${word#"$key"}")
  done
}

_interlock() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key= command= word i
  COMPREPLY=()
  # --option=VALUE and --set PATH=VALUE
  if [[ $cur == = ]]; then
    key=$prev= cur= prev=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $prev == = ]]; then
    key=${COMP_WORDS[COMP_CWORD-2]}= prev=${COMP_WORDS[COMP_CWORD-3]}
  fi
  if [[ $key == --*= ]]; then prev=${key%=} key=; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word="${command:+$command }${COMP_WORDS[i]}"
    case $word in
)";

}  // namespace

std::string bash_completion(const Command& root) {
  std::string paths, values, alone;
  std::string words = "    '') _interlock_words '" + words_of(root) + "' ;;\n";
  for (const Command* node : all_commands(root)) {
    paths += (paths.empty() ? "      " : " | ") + ("'" + node->path + "'");
    values += value_cases(*node);
    alone += word_case(*node);
    words += "    '" + node->path + "') _interlock_words '" + words_of(*node) + "' ;;\n";
  }
  std::string text = kBashHead;
  text += paths + ") command=$word ;;\n    esac\n  done\n";
  text += "  case $command:$prev in\n" + values + "  esac\n";
  text += "  if [[ $cur != -* ]]; then\n    case $command in\n" + alone + "    esac\n  fi\n";
  text += "  [[ -n $cur || ${#COMPREPLY[@]} -eq 0 ]] || return\n";
  text += "  case $command in\n" + words + "  esac\n}\n\n";
  text += "_interlock_keys='" + joined(setting_words()) + "'\n";
  return text + "complete -F _interlock interlock\n";
}

}  // namespace interlock
