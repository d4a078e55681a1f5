// The contract: each object is read, defaults are what they say, and every key has a sentence.
// SPDX-License-Identifier: Apache-2.0
//
// All readers read by the rows and stop at a key that a row lacks, or that they never ask for
// (Section): the documents of this test have every object, so that each reader runs.
#include "scenarios/contract/contract.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/scenarios/schema/contract_documents.h"
#include "tests/support/cases.h"

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
  for (const char* of_jobs : {"jobs", "jobs.placement"}) all.erase(of_jobs);  // in tests/jobs
  for (const std::string& name : all)
    CHECK_MESSAGE(seen.count(name) == 1, "in a document: " << name);
}

Seconds step_of(JsonValue document) {
  for (const char* long_run : {"run", "swarm"}) set_json(document, long_run, {}, "test");
  return run_scenario(load_questions(document).front(), false).measurement.metrics.step_time;
}

TEST_CASE("a default that is written down changes nothing") {
  std::map<int, Seconds> steps;
  std::map<std::string, int> accepted;
  const int most = is_soak() ? std::numeric_limits<int>::max() : 2;
  each_key([&](const Place& place, const ContractKey& key) {
    if (accepted[id_of(place, key)] == most) return;
    if (!key.value || place.value->find(key.key) || place.path.starts_with("sweep")) return;
    const JsonValue written = changed(place, key.key, *key.value);
    if (mistakes_of(written) != "") return;  // means nothing beside what is there
    ++accepted[id_of(place, key)];
    const int number = place.document;
    if (!steps.count(number))
      steps[number] = step_of(documents()[static_cast<std::size_t>(number)]);
    CHECK(step_of(written).value() == steps[number].value());
  });
  const auto met = [](const auto& key) { return key.second > 0; };
  CHECK(std::count_if(accepted.begin(), accepted.end(), met) > 120);
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
