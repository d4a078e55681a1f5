// Reads words by the tree of commands; the one file that knows CLI11.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <limits>
#include <sstream>
#include <type_traits>

#include "base/error.h"
#include "cli/parser/command_tree.h"

namespace interlock {
namespace {

/// Refuses numbers in words of our own: those of CLI11 differ from version to version.
void add_range(CLI::Option& added, int least, int most) {
  const std::string from = std::to_string(least), to = std::to_string(most);
  const auto check = [=](const std::string& word) {
    int number = 0;
    const bool right = CLI::detail::lexical_cast(word, number) && number >= least && number <= most;
    return right ? "" : "Value " + word + " not in range " + from + " to " + to;
  };
  added.check(check, "INT in [" + from + " - " + to + "]");
}

void add_rules(CLI::Option& added, const Option& option) {
  const Option::Rules& rules = option.rules;
  added.required(rules.required);
  if (!option.positional) added.allow_extra_args(false);  // --set A B: B is a file
  if (rules.words > 0) added.expected(rules.required ? 1 : 0, rules.words);
  if (rules.shows_default) added.default_str(option.otherwise);
  if (!rules.choices.empty()) added.check(CLI::IsMember(rules.choices));
  if (rules.least) {
    add_range(added, *rules.least, rules.most.value_or(std::numeric_limits<int>::max()));
  }
}

void add_option(CLI::App& app, const Option& option) {
  const auto add = [&](const auto& to) -> CLI::Option* {
    using To = std::decay_t<decltype(to)>;
    if constexpr (std::is_same_v<To, bool*>) {
      return app.add_flag(option.spelling, *to, option.summary);
    } else if constexpr (std::is_same_v<To, ShortSetting>) {
      const auto set = [to](const std::string& value) {
        to.overrides->push_back(to.key + "=" + value);
      };
      return app.add_option_function<std::string>(option.spelling, set, option.summary)
          ->type_name(option.type);
    } else {
      return app.add_option(option.spelling, *to, option.summary)->type_name(option.type);
    }
  };
  if (option.names.front() == "--help") {
    app.set_help_flag(option.spelling, option.summary);
  } else if (option.names.front() == "--version") {
    app.set_version_flag(option.spelling, "interlock " INTERLOCK_VERSION, option.summary);
  } else {
    add_rules(*std::visit(add, option.to), option);
  }
}

void add_command(CLI::App& app, const Command& command) {
  for (const Option& option : command.options) add_option(app, option);
  for (const Command& below : command.commands) {
    CLI::App& added = *app.add_subcommand(below.name, below.summary);
    add_command(added, below);
    if (!below.commands.empty()) added.require_subcommand(1);
  }
  app.footer(command.footer);  // last, since subcommands inherit it
}

/// Returns the innermost command that was named before anything that is wrong.
const Command& named_command(const CLI::App& app, const Command& command) {
  const auto named = app.get_subcommands();
  if (named.empty()) return command;
  return named_command(*named.front(), command_below(command, named.front()->get_name()));
}

}  // namespace

ParsedWords parse_words(const Command& root, const std::vector<std::string>& words) {
  CLI::App app(root.summary, root.name);
  add_command(app, root);
  std::ostringstream answer;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 has it
  } catch (const CLI::ParseError& stop) {
    const Command& command = named_command(app, root);
    if (stop.get_exit_code() != 0) throw Error(slip_text(command, words, stop.what()));
    app.exit(stop, answer);  // help or version
  }
  return {&named_command(app, root), answer.str()};
}

}  // namespace interlock
