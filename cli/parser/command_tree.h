// CommandTree: commands and options as plain data, for the parser, completions and manual page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// An option `--engine VALUE` that is short for `--set simulate.engine=VALUE`.
struct ShortSetting {
  std::vector<std::string>* overrides;  // gets "simulate.engine=VALUE"
  std::string key;                      // "simulate.engine"
};

/// Describes an option, a flag, or a word that stands alone.
struct Option {
  /// The variable that takes a value; null for help and version, which the parser answers. A bool
  /// is a flag.
  using Target = std::variant<bool*, int*, double*, std::optional<double>*, std::string*,
                              std::vector<std::string>*, ShortSetting>;
  enum class Value { None, File, Folder, Choice, Setting, Other };

  /// Rules that the parser enforces, and that help tells.
  struct Rules {
    bool required = false, shows_default = false;
    int words = 0;                     // at most, of a list that stands alone; 0: any number
    std::optional<int> least, most;    // of a number; most needs least
    std::vector<std::string> choices;  // all that it may be
  };

  std::string spelling;  // "--json", "--quiet,-q", "--unicode,!--ascii" or "SCENARIO"
  Target to;
  std::string summary, type;  // "FILE.json", as help calls the value
  Rules rules;
  std::vector<std::string> names;  // of `spelling`
  bool positional = false, several = false;
  std::string otherwise;  // its default, if that is told

  // Filled by command_tree.
  Value value = Value::None;
  std::vector<std::string> choices;  // that it may be, or is likely to be
};

/// Describes a command, or the program. For example, the words `interlock rank FILE --top 3`:
///   Command& rank = program.add_command("rank", "print the best rows", [&] { ... });
///   rank.add_words("FILE", &file, "of a sweep", {.required = true});
///   rank.add("--top", &rows, "rows to print", "N", {.least = 1, .most = 100});
struct Command {
  std::string path;  // "validate run"; empty: the program
  std::string name, summary, footer;
  std::function<void()> action;  // none: one of the commands below must be named
  std::vector<Option> options;   // --help is the first
  std::list<Command> commands;   // references to them stay valid

  explicit Command(std::string what) : summary(std::move(what)) {
    add("--help,-h", {}, "Print this help message and exit");
  }
  void add(const std::string& spelling, const Option::Target& to, const std::string& what,
           const std::string& type = "TEXT", const Option::Rules& rules = {});
  /// Adds a word, or a list of words, that stands alone.
  void add_words(const std::string& called, const Option::Target& to, const std::string& what,
                 const Option::Rules& rules = {}) {
    add(called, to, what, "TEXT", rules);
  }
  Command& add_command(const std::string& called, const std::string& what,
                       const std::function<void()>& what_it_does = {});
};

/// Says what was typed.
struct ParsedWords {
  const Command* command = nullptr;  // the innermost that is named; the program if none is
  std::string answer;                // help or version, if that was asked for
};

/// Sets the targets of the options that `words` name, which is all that CLI11 is for.
/// Throws: Error that says what is wrong, and which help to read.
ParsedWords parse_words(const Command& root, const std::vector<std::string>& words);

/// Returns `root` with words that stand alone before options, and with the kinds and the likely
/// choices of values. Reads the names of models, machines and frameworks.
Command command_tree(Command root);
/// Returns every node of the tree that is a command, also those with commands below them.
std::vector<const Command*> all_commands(const Command& root);
/// Returns the names of the commands just below `command`.
std::vector<std::string> names_below(const Command& command);
/// Returns the command just below `command` that is called `name`, one of these names.
const Command& command_below(const Command& command, const std::string& name);
/// Returns what --set can take: "training.schedule=" and, where names are known,
/// "training.schedule=1f1b".
std::vector<std::string> setting_words();

/// Throws: Error if `word` is none of `names`, which are commands.
void check_name(const std::string& word, const std::vector<std::string>& names);
/// Returns what is wrong with the words `typed` for `command`, of which CLI11 says `said`, and
/// which help to read.
std::string slip_text(const Command& command, const std::vector<std::string>& typed,
                      const std::string& said);

/// Returns the tree for programs.
JsonValue commands_json(const Command& root);

// Scripts for shells, and the manual page in troff.
std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);
std::string manual_page(const Command& root, const std::string& version);

}  // namespace interlock
