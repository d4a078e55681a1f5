// The tree of commands: built, and told to programs.
// SPDX-License-Identifier: Apache-2.0
#include "cli/parser/command_tree.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "hardware/networks/cluster_reader.h"
#include "models/layers/model_graph.h"
#include "models/model_file.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/read_framework.h"

namespace interlock {
namespace {

using Value = Option::Value;

/// Names that a type of value stands for; other things that it takes, such as files, are not
/// listed.
std::vector<std::string> names_of_type(const std::string& type) {
  if (type == "MODEL") return zoo_names();
  if (type == "MACHINE") return catalogue_names();
  if (type == "FRAMEWORK") return framework_names();
  if (type == "ENGINE") return contract_names("simulate", "engine");
  return {};
}

bool names_file(const std::string& name) {
  for (const char* word : {"FILE", "SCENARIO", "RESULTS", "TRACES", "DATABASE"}) {
    if (name.starts_with(word)) return true;
  }
  return false;
}

Value value_of(const Option& option) {
  if (std::holds_alternative<bool*>(option.to)) return Value::None;
  const std::string& type = option.positional ? option.names.front() : option.type;
  if (!option.choices.empty()) return Value::Choice;
  if (names_file(type)) return Value::File;
  if (type == "FOLDER") return Value::Folder;
  return type == "PATH=VALUE" ? Value::Setting : Value::Other;
}

std::vector<std::string> names_of(const std::string& spelling) {
  std::vector<std::string> names;
  std::istringstream words(spelling);
  for (std::string name; std::getline(words, name, ',');) {
    names.push_back(name.substr(name.starts_with('!') ? 1 : 0));
  }
  return names;
}

std::string text_of(const Option::Target& target) {
  std::ostringstream text;
  if (const auto* number = std::get_if<int*>(&target)) text << **number;
  if (const auto* number = std::get_if<double*>(&target)) text << **number;
  if (const auto* words = std::get_if<std::string*>(&target)) text << **words;
  return text.str();
}

}  // namespace

void Command::add(const std::string& spelling, const Option::Target& to, const std::string& what,
                  const std::string& type, const Option::Rules& rules) {
  const bool flag = std::holds_alternative<bool*>(to);
  const bool list = std::holds_alternative<std::vector<std::string>*>(to);
  options.push_back({.spelling = spelling,
                     .to = to,
                     .summary = what,
                     .type = flag ? "" : type,
                     .rules = rules,
                     .names = names_of(spelling),
                     .positional = !spelling.starts_with('-'),
                     .several = list && rules.words != 1,
                     .otherwise = rules.shows_default ? text_of(to) : ""});
}

Command& Command::add_command(const std::string& called, const std::string& what,
                              const std::function<void()>& what_it_does) {
  Command& below = commands.emplace_back(what);
  below.path = path + (path.empty() ? "" : " ") + called;
  below.name = called;
  below.action = what_it_does;
  return below;
}

Command command_tree(Command root) {
  std::stable_partition(root.options.begin(), root.options.end(),
                        [](const Option& option) { return option.positional; });
  for (Option& option : root.options) {
    option.choices = option.rules.choices;
    if (option.choices.empty()) option.choices = names_of_type(option.type);
    option.value = value_of(option);
  }
  for (Command& below : root.commands) below = command_tree(std::move(below));
  return root;
}

std::vector<std::string> names_below(const Command& command) {
  std::vector<std::string> names;
  for (const Command& below : command.commands) names.push_back(below.name);
  return names;
}

const Command& command_below(const Command& command, const std::string& name) {
  const auto below = std::find_if(command.commands.begin(), command.commands.end(),
                                  [&](const Command& one) { return one.name == name; });
  CHECK(below != command.commands.end(), "the name is that of a command below");
  return *below;
}

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> nodes;
  for (const Command& node : root.commands) {
    nodes.push_back(&node);
    for (const Command* below : all_commands(node)) nodes.push_back(below);
  }
  return nodes;
}

JsonValue commands_json(const Command& root) {
  JsonValue options = json_list({}), commands = json_list({});
  for (const Option& option : root.options) {
    options.items.push_back(json_object({{"names", json_texts(option.names)},
                                         {"positional", json_boolean(option.positional)},
                                         {"required", json_boolean(option.rules.required)},
                                         {"several", json_boolean(option.several)},
                                         {"type", json_text(option.type)},
                                         {"choices", json_texts(option.choices)},
                                         {"default", json_text(option.otherwise)},
                                         {"summary", json_text(option.summary)}}));
  }
  for (const Command& below : root.commands) commands.items.push_back(commands_json(below));
  return json_object({{"command", json_text(root.path)},
                      {"summary", json_text(root.summary)},
                      {"options", std::move(options)},
                      {"commands", std::move(commands)}});
}

namespace {

/// Adds "path=" and "path=name" for every key that stands at `path`, or below it.
void add_settings(const ContractType& type, const std::string& path,
                  std::vector<std::string>& words) {
  for (const std::string& name : type.names) words.push_back(path + "=" + name);
  if (type.form == ContractType::Form::Either) {
    for (const ContractType& form : type.of) add_settings(form, path, words);
  }
  if (type.form != ContractType::Form::Object) return;
  for (const ContractKey& key : contract_object(type.object).keys) {
    if (key.key.starts_with("$")) continue;
    const std::string below = (path.empty() ? "" : path + ".") + key.key;
    words.push_back(below + "=");
    add_settings(key.type, below, words);
  }
}

}  // namespace

std::vector<std::string> setting_words() {
  std::vector<std::string> words;
  add_settings(contract::object(""), "", words);
  for (const std::string& name : zoo_names()) words.push_back("model=" + name);
  for (const std::string& name : catalogue_names()) words.push_back("cluster=" + name);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace interlock
