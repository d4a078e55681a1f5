// Writes docs/reference.md from the scenario contract.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/reference_page.h"

#include <cctype>
#include <cmath>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/json_schema.h"

namespace interlock {
namespace {

using Form = ContractType::Form;
using QuantityKind = WrittenQuantity::Dimension;

constexpr std::size_t kManyNames = 12;
constexpr double kTelling = 1e6;  // bounds from here on are far beyond what is meant

constexpr const char* kHead = R"(# Reference: every key of a scenario

To look up a key: `interlock schema --reference` prints this page, a test compares them.
[Recipes](recipes.md) begin with a task instead.

A scenario is one what-if question as a JSON file. `interlock simulate FILE` answers it;
`interlock check FILE` only reads it. Files to start from: `scenarios/quickstart/`,
`scenarios/examples/`, and what `interlock init` writes.

Reading is strict. An unknown key, a wrong type or a value out of range is a mistake. All mistakes
of a file are told at once, as `file:line: /json/path: what is wrong; expected what`, and the exit
code is 2. `//` and `/* */` comments are allowed.

**Quantities** with a dimension are strings with a unit; a plain number there is a mistake. Counts,
ranks and shares are numbers.

| dimension | units | example |
| --- | --- | --- |
)";

constexpr const char* kPaths =
    R"(| price | three capital letters of a currency, `/h` | `"2.50 USD/h"` |

**Paths** of files start at the file that names them; given with `--set` or in a scenario from
standard input, where you stand. A name without `/` and `.json` is looked up in the zoo or the
catalogue.

**Overrides**: `--set path=VALUE` sets any key, and may be repeated. The path has dots, and numbers
for places in lists (`model.modules.0.forward`); the value is JSON if it parses, else a text. An
object is merged over an object that is there, unless both have a `kind` and these differ; `null`
removes a key; anything else replaces. A key may be set inside a name: `--set
training.schedule.overlap=0.5` makes `{"kind": "dualpipe", "overlap": 0.5}` of `"dualpipe"`, and
`--set cluster.device.memory_bandwidth='4 TB/s'` changes one number of a machine of the catalogue.

**Editors**: `scenarios/scenario.schema.json` (also `interlock schema`) is a JSON Schema of all
below. Point `"$schema"` at it, and an editor such as VS Code completes and explains keys; for files
with comments, choose the language "JSON with Comments".
)";

constexpr const char* kLimits = R"(
## Limits

A run of more than 2 x 10^9 ops (stages x micro-batches x steps) is refused, so is a micro-batch of
more than 4 x 10^6 ops, and an order of work that repeats only after 2 x 10^7 ops (a smaller
`update_every` helps). `auto` looks for orders of steps of up to 10^6 ops. A search for a balanced
partition of very many modules is refused; give a list or `uniform`. A sweep stands for at most
10,000 scenarios under `simulate`, `compare` and `report`, and ten million under `interlock sweep`.
A model that does not fit in memory is a result, not a mistake, unless `--require-fit` is given.
)";

std::string in_code(const std::string& text) { return "`" + text + "`"; }

std::string units_row(const std::string& name, QuantityKind dimension, const std::string& example) {
  std::string units;
  for (const std::string& unit : unit_names(dimension)) units += (units.empty() ? "" : " ") + unit;
  return "| " + name + " | " + in_code(units) + " | " + in_code(in_quotes(example)) + " |\n";
}

/// Returns a link to the heading of the object, whose anchor is made as sites make it.
std::string link_to(const std::string& object) {
  if (object.empty()) return "[a scenario](#the-document)";
  std::string anchor;
  for (const char c : object) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    if (kept) anchor += c;
  }
  return "[" + object + "](#" + anchor + ")";
}

std::string in_range(const std::string& noun, const ContractType& type) {
  const std::string most = type.most < kTelling ? " to " + described(json_number(type.most)) : "";
  const std::string least = described(json_number(type.least));
  if (type.above) return noun + " above " + least;
  return std::isfinite(type.least) ? noun + " from " + least + most : noun;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string names_of(const ContractType& type) {
  if (type.names.size() > kManyNames) return "a name";
  std::vector<std::string> names;
  for (const std::string& name : type.names) names.push_back(in_code(name));
  return joined(names, ", ");
}

std::string whole_numbers(const ContractType& type) {
  std::vector<std::string> numbers;
  for (const int number : type.numbers) numbers.push_back(std::to_string(number));
  return numbers.empty() ? in_range("whole number", type) : joined(numbers, ", ");
}

std::string dimension_name(QuantityKind dimension) {
  constexpr const char* kNames[] = {"time", "size", "bandwidth", "flop rate", "power", "energy"};
  return kNames[static_cast<std::size_t>(dimension)];
}

/// Says how a value of `type` is written.
std::string written(const ContractType& type) {
  switch (type.form) {
    case Form::Text:
      return type.known ? "name or path" : "text";
    case Form::Boolean:
      return "`true` or `false`";
    case Form::Whole:
      return whole_numbers(type);
    case Form::Number:
      return in_range("number", type);
    case Form::Quantity:
      return dimension_name(type.dimension);
    case Form::Price:
      return "price";
    case Form::Names:
      return names_of(type);
    case Form::Object:
      return link_to(type.object);
    case Form::List:
      return "list of: " + written(type.of.front());
    case Form::Map:
      return "object of: " + written(type.of.front());
    case Form::Null:
      return "`null`";
    case Form::Anything:
      return "anything";
    case Form::Either:
      break;
  }
  std::vector<std::string> forms;
  for (const ContractType& form : type.of) forms.push_back(written(form));
  return joined(forms, "; or ");
}

std::string otherwise_of(const ContractKey& key) {
  const bool text = key.value && key.value->kind == JsonValue::Kind::String;
  if (!key.value) return key.otherwise;
  return in_code(text ? in_quotes(key.otherwise) : key.otherwise);
}

std::string table_of(const ContractObject& object) {
  std::string table = "\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const ContractKey& key : object.keys) {
    table += "| " + in_code(key.key) + " | " + written(key.type) + " | " + otherwise_of(key) +
             " | " + meaning_of(key) + " |\n";
  }
  return table;
}

/// Writes the heading, the meaning and the table of `object`; inner objects get smaller headings.
std::string section_of(const ContractObject& object) {
  const bool inner = object.name.find('.') != std::string::npos;
  const std::string title = object.name.empty() ? "The document" : in_code(object.name);
  return "\n" + std::string(inner ? "### " : "## ") + title + "\n\n" + object.meaning + "\n" +
         table_of(object);
}

bool belongs(const ContractObject& object, const std::string& key) {
  return object.name == key || object.name.starts_with(key + ".");
}

}  // namespace

std::string reference_page() {
  const std::vector<ContractObject>& contract = scenario_contract();
  std::string page = kHead;
  page += units_row("time", QuantityKind::Time, "3 us") +
          units_row("size", QuantityKind::Size, "80 GiB");
  page += units_row("bandwidth", QuantityKind::Bandwidth, "450 GB/s");
  page += units_row("flop rate", QuantityKind::FlopRate, "989 TFLOP/s");
  page += units_row("power", QuantityKind::Power, "400 W") + kPaths + section_of(contract.front());
  for (const ContractKey& key : contract.front().keys) {
    // A model and a cluster are one of several objects, and none has their own name.
    const bool several = form_of(key.type, Form::Object) && form_of(key.type, Form::Text);
    if (several) page += "\n## " + in_code(key.key) + "\n\n" + key.meaning + "\n";
    for (const ContractObject& object : contract) {
      if (belongs(object, key.key)) page += section_of(object);
    }
  }
  return page + kLimits;
}

}  // namespace interlock
