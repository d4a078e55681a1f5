// Reads CLI11's tree of commands.
// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <functional>

#include "hardware/cluster.h"
#include "models/model_graph.h"
#include "reports/value_json.h"
#include "scenarios/contract.h"
#include "scenarios/framework_reader.h"

namespace interlock {
namespace {

using Value = OptionNode::Value;

/// The names in "TEXT:{a,b,c}", which is how CLI11 tells a set.
std::vector<std::string> names_in_braces(const std::string& type) {
  std::vector<std::string> names;
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return names;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(type.find(',', begin), close);
    names.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// Names that a type of value stands for; the rest of what it takes, files say, is not listed.
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

Value value_of(const OptionNode& node) {
  const std::string& type = node.positional ? node.names.front() : node.type;
  if (!node.choices.empty()) return Value::Choice;
  if (names_file(type)) return Value::File;
  if (type == "FOLDER") return Value::Folder;
  return type == "PATH=VALUE" ? Value::Setting : Value::Other;
}

OptionNode option_node(const CLI::Option& option) {
  OptionNode node{.positional = !option.nonpositional(),
                  .several = option.get_items_expected_max() > 1,
                  .required = option.get_required(),
                  .summary = option.get_description(),
                  .otherwise = option.get_default_str()};
  if (node.positional) node.names.push_back(option.get_name());
  for (const std::string& name : option.get_lnames()) node.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) node.names.push_back("-" + name);
  if (option.get_items_expected_max() == 0) return node;  // a flag
  const std::string type = option.get_type_name();
  node.type = type.substr(0, type.find(':'));
  node.choices = names_in_braces(type);
  if (node.choices.empty()) node.choices = names_of_type(node.type);
  node.value = value_of(node);
  return node;
}

CommandNode command_node(const CLI::App& app, const std::string& parent) {
  CommandNode node{.path = parent, .name = app.get_name(), .summary = app.get_description()};
  const auto options = app.get_options();
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : options) {
      if (option->nonpositional() != positional) node.options.push_back(option_node(*option));
    }
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string path = (parent.empty() ? "" : parent + " ") + below->get_name();
    node.commands.push_back(command_node(*below, path));
  }
  return node;
}

}  // namespace

CommandNode command_tree(const CLI::App& app) { return command_node(app, ""); }

std::vector<const CommandNode*> all_commands(const CommandNode& root) {
  std::vector<const CommandNode*> nodes;
  for (const CommandNode& node : root.commands) {
    nodes.push_back(&node);
    for (const CommandNode* below : all_commands(node)) nodes.push_back(below);
  }
  return nodes;
}

JsonValue commands_json(const CommandNode& root) {
  JsonValue options = json_list({}), commands = json_list({});
  for (const OptionNode& option : root.options) {
    options.items.push_back(json_object({{"names", json_texts(option.names)},
                                         {"positional", json_boolean(option.positional)},
                                         {"required", json_boolean(option.required)},
                                         {"several", json_boolean(option.several)},
                                         {"type", json_text(option.type)},
                                         {"choices", json_texts(option.choices)},
                                         {"default", json_text(option.otherwise)},
                                         {"summary", json_text(option.summary)}}));
  }
  for (const CommandNode& below : root.commands) commands.items.push_back(commands_json(below));
  return json_object({{"command", json_text(root.path)},
                      {"summary", json_text(root.summary)},
                      {"options", std::move(options)},
                      {"commands", std::move(commands)}});
}

std::vector<std::string> setting_words() {
  std::vector<std::string> words;
  for (const ContractObject& object : scenario_contract()) {
    for (const ContractKey& key : object.keys) {
      if (key.key.starts_with("$")) continue;
      const std::string path = (object.path.empty() ? "" : object.path + ".") + key.key + "=";
      words.push_back(path);
      for (const std::string& name : key.names) words.push_back(path + name);
    }
  }
  for (const std::string& name : zoo_names()) words.push_back("model=" + name);
  for (const std::string& name : catalogue_names()) words.push_back("cluster=" + name);
  return words;
}

}  // namespace interlock
