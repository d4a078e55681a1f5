// The contract says exactly what the readers accept: keys, names, ranges and defaults.
// SPDX-License-Identifier: Apache-2.0
//
// The loader's own sections are read by the table. Models and clusters are read by their folders,
// so everything that the table says is tried on the readers, at every place of the documents where
// an object of the table stands; and each key that their sources ask for is looked up in it.
#include "scenarios/contract/contract.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/scenarios/schema/contract_documents.h"

namespace interlock::contract_test {
namespace {

using Form = ContractType::Form;
using Names = std::set<std::string>;

const std::vector<JsonValue>& documents() {
  static const std::vector<JsonValue> parsed = [] {
    std::vector<JsonValue> all;
    for (const std::string& text : contract_documents())
      all.push_back(parse_json(text, "test.json"));
    return all;
  }();
  return parsed;
}

/// An object of the contract in a document.
struct Place {
  const ContractObject* object;
  const JsonValue* value;
  std::string path;  // dotted; empty: the document
  int document;
};

/// Tells whether models/ or hardware/ reads `object`, not the loader by the table.
bool in_own_folder(const ContractObject& object) {
  return object.name.starts_with("model.") || object.name.starts_with("cluster.");
}

const ContractKey* key_of(const ContractObject& object, const std::string& key) {
  for (const ContractKey& one : object.keys) {
    if (one.key == key) return &one;
  }
  return nullptr;
}

/// Tells whether `value` is written as `object`, by its kind and the keys that it has.
bool matches(const ContractObject& object, const JsonValue& value) {
  for (const ContractKey& key : object.keys) {
    const JsonValue* member = value.find(key.key);
    if (!member && key.otherwise == "required") return false;
    if (key.key != "kind" || !member) continue;
    const auto& names = form_of(key.type, Form::Names)->names;
    if (std::find(names.begin(), names.end(), member->text) == names.end()) return false;
  }
  return object.others || std::all_of(value.members.begin(), value.members.end(),
                                      [&](const auto& one) { return key_of(object, one.first); });
}

void find_places(const ContractType& type, const JsonValue& value, const std::string& path,
                 std::vector<Place>& found) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (type.form == Form::Either) {
    for (const ContractType& form : type.of) find_places(form, value, path, found);
  }
  for (std::size_t i = 0; type.form == Form::List && i < value.items.size(); ++i) {
    find_places(type.of.front(), value.items[i], below(std::to_string(i)), found);
  }
  for (const auto& [key, member] : value.members) {
    if (type.form == Form::Map && key.find('.') == std::string::npos) {
      find_places(type.of.front(), member, below(key), found);
    }
  }
  if (type.form != Form::Object || value.kind != JsonValue::Kind::Object) return;
  const ContractObject& object = contract_object(type.object);
  if (!matches(object, value)) return;
  found.push_back({&object, &value, path, 0});
  for (const auto& [key, member] : value.members) {
    const ContractKey* known = key_of(object, key);
    if (known) find_places(known->type, member, below(key), found);
  }
}

const std::vector<Place>& places() {
  static const std::vector<Place> all = [] {
    std::vector<Place> found;
    for (std::size_t i = 0; i < documents().size(); ++i) {
      const std::size_t before = found.size();
      find_places(contract::object(""), documents()[i], "", found);
      for (std::size_t k = before; k < found.size(); ++k) found[k].document = static_cast<int>(i);
    }
    return found;
  }();
  return all;
}

/// Returns the document of `place` with `key` of its object set to `value`.
JsonValue changed(const Place& place, const std::string& key, const JsonValue& value) {
  JsonValue document = documents()[static_cast<std::size_t>(place.document)];
  set_json(document, (place.path.empty() ? "" : place.path + ".") + key, value, "test");
  return document;
}

std::string said(const Place& place, const std::string& key, const JsonValue& value) {
  return mistakes_of(changed(place, key, value)) + "\n";
}

/// Tells whether the object at `place` is of a kind that `key` means something for.
bool in_use(const Place& place, const ContractKey& key) {
  const JsonValue* kind = place.value->find("kind");
  return key.with.empty() ||
         (kind && std::count(key.with.begin(), key.with.end(), kind->text) == 1);
}

/// Visits every key that is in use, of every object at all places, but the kinds of objects.
template <class Visit>
void each_key(const Visit& visit) {
  for (const Place& place : places()) {
    for (const ContractKey& key : place.object->keys) {
      INFO(place.document << ": " << place.path << "." << key.key);
      const bool kind = key.key == "kind" || key.key == "model_type";
      if (!kind && in_use(place, key)) visit(place, key);
    }
  }
}

std::string id_of(const Place& place, const ContractKey& key) {
  return place.object->name + "." + key.key;
}

TEST_CASE("the documents are right and have every object of the contract") {
  for (const std::string& text : contract_documents()) {
    CAPTURE(text);
    CHECK(mistakes_of(parse_json(text, "")) == "");
  }
  Names seen, all;
  for (const Place& place : places()) seen.insert(place.object->name);
  for (const ContractObject& object : scenario_contract()) {
    CHECK_MESSAGE(all.insert(object.name).second, "there once: " << object.name);
  }
  all.erase("workload");     // has files; its section is read by the table
  all.erase("sweep.range");  // stands under dotted paths; read by the table, too
  for (const std::string& name : all)
    CHECK_MESSAGE(seen.count(name) == 1, "in a document: " << name);
}

TEST_CASE("readers know every key of the contract, and no other") {
  for (const Place& place : places()) {
    INFO(place.document << ": " << place.path);
    if (place.object->others) continue;
    const std::string message = said(place, "nonsense", json_number(0));
    CHECK(message.find("/nonsense: unknown key") != std::string::npos);
  }
  each_key([](const Place& place, const ContractKey& key) {
    CHECK(said(place, key.key, json_text("?")).find("/" + key.key + ": unknown key") ==
          std::string::npos);
  });
}

/// Returns the names that a reader lists when it is given one that it does not know.
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

TEST_CASE("readers know the names of the contract, and no other") {
  std::map<std::string, Names> known, told;
  each_key([&](const Place& place, const ContractKey& key) {
    const ContractType* choice = form_of(key.type, Form::Names);
    const bool lists = place.object->name != "search" && id_of(place, key) != "training.schedule";
    if (!choice || !lists) return;
    known[id_of(place, key)] = {choice->names.begin(), choice->names.end()};
    const Names names = names_told(said(place, key.key, json_text("?")), key.key);
    if (!names.empty()) told[id_of(place, key)] = names;
  });
  CHECK(known.size() > 60);
  for (const auto& of_key : known) {
    INFO(of_key.first);
    CHECK(told[of_key.first] == of_key.second);
  }
}

TEST_CASE("kinds of models, heads, networks, executors and strategies are the readers'") {
  std::map<std::string, Names> kinds;
  for (const ContractObject& object : scenario_contract()) {
    const ContractKey* kind = key_of(object, "kind");
    if (!kind) continue;
    const auto& names = form_of(kind->type, Form::Names)->names;
    const bool one = names.size() == 1;
    const std::string group = one ? object.name.substr(0, object.name.rfind('.')) : object.name;
    kinds[group].insert(names.begin(), names.end());
  }
  std::set<std::string> checked;
  for (const Place& place : places()) {
    if (!key_of(*place.object, "kind")) continue;
    const std::string& name = place.object->name;
    const std::string group = kinds.count(name) ? name : name.substr(0, name.rfind('.'));
    const Names names = names_told(said(place, "kind", json_text("?")), "kind");
    if (names.empty()) continue;  // a schedule: the strategy says which there are
    CAPTURE(name);
    CHECK(names == kinds[group]);
    checked.insert(group);
  }
  CHECK(checked == Names{"cluster", "cluster.executor", "cluster.network", "model", "model.head",
                         "training.optimizer", "training.strategy"});
}

TEST_CASE("readers refuse what is out of the ranges of the contract, and name the ranges") {
  Names ranges, told;
  each_key([&](const Place& place, const ContractKey& key) {
    for (const Form form : {Form::Whole, Form::Number}) {
      const ContractType* type = form_of(key.type, form);
      // The devices of a node limit its switches.
      const bool limited = place.object->name == "cluster.pcie";
      if (!type || !in_own_folder(*place.object) || limited) continue;
      const double values[] = {type->least - 1, 2 * type->most + 1};
      for (const double value : values) {
        if (!std::isfinite(value)) continue;
        const std::string message = said(place, key.key, json_number(value));
        const std::string least = described(json_number(type->least));
        const std::string most =
            std::isfinite(type->most) ? " to " + described(json_number(type->most)) : "";
        const std::string id = id_of(place, key) + (value < type->least ? " <" : " >");
        ranges.insert(id);
        if (message.find("from " + least + most) != std::string::npos) told.insert(id);
      }
    }
  });
  CHECK(ranges.size() > 60);
  for (const std::string& range : ranges) CHECK_MESSAGE(told.count(range) == 1, range);
}

Seconds step_of(JsonValue document) {
  for (const char* long_run : {"run", "swarm"}) set_json(document, long_run, {}, "test");
  return run_scenario(load_questions(document).front(), false).measurement.metrics.step_time;
}

TEST_CASE("a default that is written down changes nothing") {
  std::map<int, Seconds> steps;
  Names accepted;
  each_key([&](const Place& place, const ContractKey& key) {
    if (!key.value || place.value->find(key.key) || place.path.starts_with("sweep")) return;
    const JsonValue written = changed(place, key.key, *key.value);
    if (mistakes_of(written) != "") return;  // means nothing beside what is there
    accepted.insert(id_of(place, key));
    const int number = place.document;
    if (!steps.count(number))
      steps[number] = step_of(documents()[static_cast<std::size_t>(number)]);
    CHECK(step_of(written).value() == steps[number].value());
  });
  CHECK(accepted.size() > 120);
}

/// Returns the keys that the sources of `folder` ask a reader for.
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

TEST_CASE("every key that models and hardware ask for is in the contract") {
  Names known;
  for (const ContractObject& object : scenario_contract()) {
    if (!in_own_folder(object)) continue;
    for (const ContractKey& key : object.keys) known.insert(key.key);
  }
  Names asked = keys_asked_in("models");
  asked.merge(keys_asked_in("hardware"));
  CHECK(asked.size() > 40);
  for (const std::string& key : asked) CHECK_MESSAGE(known.count(key) == 1, key);
}

TEST_CASE("every key has a sentence, and a default that is a value fits its type") {
  for (const ContractObject& object : scenario_contract()) {
    CHECK_MESSAGE(object.meaning.ends_with('.'), object.name);
    for (const ContractKey& key : object.keys) {
      INFO(object.name << "." << key.key);
      CHECK(key.meaning.ends_with('.'));
      const bool choice = key.type.form == Form::Names;
      if (choice && key.value)
        CHECK(std::count(key.type.names.begin(), key.type.names.end(), key.otherwise) == 1);
      const bool plain = key.type.form == Form::Boolean || key.type.form == Form::Quantity;
      CHECK(
          (!plain || key.value || key.otherwise.find_first_of("0123456789") == key.otherwise.npos));
    }
  }
}

}  // namespace
}  // namespace interlock::contract_test
