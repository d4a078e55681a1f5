// The JSON Schema says exactly what the loader accepts: the same keys, the same names.
// SPDX-License-Identifier: Apache-2.0
//
// Three witnesses. The loader's own sections: a table that the loader cannot read past. Models and
// clusters: each key and name of the schema is tried on the loader, and each key that their sources
// ask a reader for is looked up in the schema.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "scenarios/contract/contract.h"
#include "tests/scenarios/documents.h"

namespace interlock::schema_test {
namespace {

using Names = std::set<std::string>;

const JsonValue& schema() {
  static const JsonValue value = read_json_file(data_folder("scenarios") + "/scenario.schema.json");
  return value;
}

/// `value`, or what its "$ref" stands for.
const JsonValue& resolved(const JsonValue& value) {
  const JsonValue* reference = value.find("$ref");
  if (!reference) return value;
  const std::string name = reference->text.substr(reference->text.rfind('/') + 1);
  const JsonValue* definition = schema().find("definitions")->find(name);
  REQUIRE_MESSAGE(definition, name);
  return resolved(*definition);
}

/// `value` itself and every alternative it allows.
std::vector<const JsonValue*> alternatives(const JsonValue& value) {
  const JsonValue& whole = resolved(value);
  std::vector<const JsonValue*> found = {&whole};
  for (const char* key : {"anyOf", "allOf"}) {
    if (const JsonValue* list = whole.find(key)) {
      for (const JsonValue& item : list->items) {
        for (const JsonValue* inner : alternatives(item)) found.push_back(inner);
      }
    }
  }
  return found;
}

/// The object among the alternatives of `value`, or that a list or a map of it is made of.
const JsonValue& object_in(const JsonValue& value) {
  for (const JsonValue* alternative : alternatives(value)) {
    if (alternative->find("properties")) return *alternative;
    if (const JsonValue* items = alternative->find("items"); items && items->find("properties")) {
      return *items;
    }
    if (const JsonValue* named = alternative->find("additionalProperties");
        named && named->kind == JsonValue::Kind::Object) {
      return object_in(*named);
    }
  }
  FAIL("the schema has no object here");
  return value;
}

Names keys_of(const JsonValue& object) {
  Names keys;
  for (const auto& [key, value] : object.find("properties")->members) keys.insert(key);
  return keys;
}

/// Texts that the schema lists for `value`.
Names names_in(const JsonValue& value) {
  Names names;
  for (const JsonValue* alternative : alternatives(value)) {
    if (const JsonValue* list = alternative->find("enum")) {
      for (const JsonValue& name : list->items) {
        if (name.kind != JsonValue::Kind::String) continue;
        CHECK_MESSAGE(names.insert(name.text).second, "listed once: " << name.text);
      }
    }
  }
  return names;
}

/// The schema of the object at a dotted path of the contract.
const JsonValue& schema_at(const std::string& path) {
  const JsonValue* value = &schema();
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const JsonValue* next =
        object_in(*value).find("properties")->find(path.substr(begin, end - begin));
    REQUIRE_MESSAGE(next, path);
    value = next;
    begin = end + 1;
  }
  return object_in(*value);
}

TEST_CASE("the loader's sections and the schema have the same keys and names") {
  for (const ContractObject& object : scenario_contract()) {
    CAPTURE(object.path);
    const JsonValue& found = schema_at(object.path);
    REQUIRE(found.find("additionalProperties"));
    CHECK(!found.find("additionalProperties")->boolean);
    Names keys;
    for (const ContractKey& key : object.keys) {
      CAPTURE(key.key);
      keys.insert(key.key);
      const JsonValue* member = found.find("properties")->find(key.key);
      REQUIRE(member);
      if (key.names.empty()) continue;
      CHECK(names_in(*member) == Names(key.names.begin(), key.names.end()));
    }
    CHECK(keys_of(found) == keys);
  }
}

/// Visits every object of the schema that has properties; `path` ends in the key that leads to it.
void visit_objects(const JsonValue& value, const std::string& path,
                   const std::function<void(const JsonValue&, const std::string&)>& visit) {
  if (value.find("properties")) visit(value, path);
  for (const auto& [key, member] : value.members) visit_objects(member, key, visit);
  for (const JsonValue& item : value.items) visit_objects(item, path, visit);
}

/// What an editor shows when the pointer rests on the key.
bool is_described(const JsonValue& member) {
  return member.find("description") || resolved(member).find("description");
}

TEST_CASE("every key is described, and defaults lie among the names") {
  int keys = 0;
  visit_objects(schema(), "", [&](const JsonValue& object, const std::string& path) {
    for (const auto& member : object.find("properties")->members) {
      INFO(path << "." << member.first);
      ++keys;
      CHECK(is_described(member.second));
      const JsonValue* otherwise = member.second.find("default");
      if (!otherwise || !member.second.find("enum")) continue;
      CHECK(names_in(member.second).count(otherwise->text) == 1);
    }
  });
  CHECK(keys > 90);
}

/// What is said about a model or cluster given as `text`.
std::string said_about(const std::string& section, const std::string& text) {
  const JsonValue value = parse_json(text, "");
  Diagnostics diagnostics;
  if (section == "cluster") {
    read_cluster({&value, ""}, diagnostics);
  } else {
    build_model({&value, ""}, {}, diagnostics);
  }
  std::string whole;
  for (const std::string& message : diagnostics.messages()) whole += message + "\n";
  return whole;
}

/// The names that the loader lists when it is given one that nobody has.
Names names_told(const std::string& message, const std::string& key) {
  const std::string start = "/" + key + ": unknown name \"?\"; known: ";
  const std::size_t at = message.find(start);
  if (at == std::string::npos) return {};
  std::string list = message.substr(at + start.size());
  list = list.substr(0, std::min(list.find('\n'), list.find(" (did")));
  Names names;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    names.insert(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return names;
}

/// Tries every key of one kind of object on its loader.
void try_keys(const std::string& section, const JsonValue& object) {
  std::string kind;
  if (const JsonValue* value = object.find("properties")->find("kind")) {
    kind = "\"kind\": \"" + value->find("const")->text + "\", ";
  } else {
    kind = "\"machine\": \"dgx-a100-80g\", ";
  }
  CAPTURE(kind);
  CHECK(said_about(section, "{" + kind + "\"nonsense\": 0}").find("/nonsense: unknown key") !=
        std::string::npos);
  for (const auto& member : object.find("properties")->members) {
    const std::string& key = member.first;
    if (key == "kind" || key == "machine") continue;
    INFO(key);
    std::string text = "{" + kind;
    text += "\"" + key + "\": \"?\"}";
    const std::string said = said_about(section, text);
    CHECK(said.find("/" + key + ": unknown key") == std::string::npos);
    if (member.second.find("enum")) CHECK(names_told(said, key) == names_in(member.second));
  }
}

TEST_CASE("every key of the schema's models and clusters is known to their readers") {
  int kinds = 0;
  for (const std::string section : {"model", "cluster"}) {
    for (const JsonValue* object : alternatives(*schema().find("properties")->find(section))) {
      if (!object->find("properties")) continue;
      try_keys(section, *object);
      ++kinds;
    }
  }
  CHECK(kinds == 10);
}

/// What is said about a machine with `text` for its `key`.
std::string said_of_machine(const std::string& key, const std::string& text) {
  return said_about("cluster",
                    "{\"kind\": \"machine\", \"device\": \"h100\", \"" + key + "\": " + text + "}");
}

TEST_CASE("every key of the schema's networks and PCIe trees is known to their readers") {
  const JsonValue& definitions = *schema().find("definitions");
  Names kinds;
  for (const JsonValue* object : alternatives(*definitions.find("network"))) {
    if (!object->find("properties")) continue;
    const std::string kind = object->find("properties")->find("kind")->find("const")->text;
    kinds.insert(kind);
    CAPTURE(kind);
    const auto said_of = [&](const std::string& key) {
      return said_of_machine("network", "{\"kind\": \"" + kind + "\", \"" + key + "\": \"?\"}");
    };
    CHECK(said_of("nonsense").find("/nonsense: unknown key") != std::string::npos);
    for (const auto& member : object->find("properties")->members) {
      if (member.first == "kind") continue;
      INFO(member.first);
      const std::string said = said_of(member.first);
      CHECK(said.find("/" + member.first + ": unknown key") == std::string::npos);
      CHECK(names_told(said, "network/" + member.first) == names_in(member.second));
    }
  }
  CHECK(names_told(said_of_machine("network", R"({"kind": "?"})"), "network/kind") == kinds);
  for (const std::string& key : keys_of(*definitions.find("pcie"))) {
    const std::string said = said_of_machine("pcie", "{\"" + key + "\": \"?\"}");
    CHECK(said.find("/" + key + ": unknown key") == std::string::npos);
  }
}

/// Keys that the sources of `folder` ask a reader for.
Names keys_asked_in(const std::string& folder) {
  const std::string methods = "get|require|boolean|number|count|text|choice|seconds|bytes";
  const std::string functions =
      "required_count|time_at|bytes_at|read_delay|read_bandwidth|read_memory|read_speed";
  const std::regex call("(?:\\.(?:" + methods + ")|(?:" + functions +
                        R"re())\(\s*(?:\w+,\s*)?"([a-z_]+)")re");
  Names keys;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_folder(folder))) {
    if (entry.path().extension() != ".cc") continue;
    // Programs write calibrations; docs/calibration.md has their keys.
    if (entry.path().stem() == "calibration_reader") continue;
    const std::string text = read_file(entry.path().string());
    for (std::sregex_iterator match(text.begin(), text.end(), call), end; match != end; ++match) {
      keys.insert((*match)[1]);
    }
  }
  return keys;
}

TEST_CASE("every key that models and hardware ask for is in the schema") {
  Names in_schema;
  visit_objects(*schema().find("definitions"), "",
                [&](const JsonValue& object, const std::string&) {
                  for (const std::string& key : keys_of(object)) in_schema.insert(key);
                });
  Names asked = keys_asked_in("models");
  asked.merge(keys_asked_in("hardware"));
  CHECK(asked.size() > 40);
  for (const std::string& key : asked) {
    CAPTURE(key);
    CHECK(in_schema.count(key) == 1);
  }
}

TEST_CASE("heads have the same names in the schema and in the reader") {
  const JsonValue& head = *schema().find("definitions")->find("head");
  const std::string start = R"({"kind": "mlp", "input_size": 1, "hidden_sizes": [1], "classes": 1,
                               "head": )";
  const std::string said = said_about("model", start + R"({"kind": "?", "weights": "?"}})");
  const JsonValue& properties = *object_in(head).find("properties");
  CHECK(names_told(said, "head/kind") == names_in(*properties.find("kind")));
  CHECK(names_told(said, "head/weights") == names_in(*properties.find("weights")));
  CHECK(names_told(said_about("model", start + "\"?\"}"), "head") == names_in(head));
}

}  // namespace
}  // namespace interlock::schema_test
