// Expands "sweep": the plain product of its lists, one document for each combination.
// SPDX-License-Identifier: Apache-2.0
//
// {"a.b": [v, w], "c": [x, y]} stands for four documents; the last path varies fastest. A value
// is set at its path as --set would. Later paths win over earlier ones. {"d, e": [v, [x, y]]} sets
// two paths together: both to v, then d to x and e to y.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "base/text.h"
#include "scenarios/contract.h"
#include "scenarios/loader.h"
#include "scenarios/set_key.h"

namespace interlock {
namespace {

constexpr std::size_t kMostScenarios = 10'000;
constexpr std::size_t kLongestLabel = 60;

/// One path of the sweep and the values it takes.
struct Axis {
  std::string path;
  std::vector<std::string> further;  // paths that are set with it
  JsonNode list;
  std::string short_name;  // the end of its path, as much as tells it from the other axes
};

std::string first_segment(const std::string& path) { return path.substr(0, path.find('.')); }

/// Whether an object at `path` may have a "name" of its own; elsewhere it names the scenario.
bool owns_name(const std::string& path, const JsonValue& value) {
  if (path == "cluster") return value.find("machine") == nullptr;
  return path == "model" || path == "cluster.device";
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", number);
  return text;
}

std::string compact(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      return "null";
    case JsonValue::Kind::Boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::Number:
      return number_text(value.number);
    case JsonValue::Kind::String:
      return value.text;
    case JsonValue::Kind::Array: {
      std::string text;
      for (const JsonValue& item : value.items) text += (text.empty() ? "" : ", ") + compact(item);
      return "[" + text + "]";
    }
    case JsonValue::Kind::Object: {
      std::string text;
      for (const auto& [key, member] : value.members) {
        text += (text.empty() ? "" : ", ") + key + ": " + compact(member);
      }
      return "{" + text + "}";
    }
  }
  return "";
}

const JsonValue* name_in(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::Object) return nullptr;
  const JsonValue* name = value.find("name");
  return name && name->kind == JsonValue::Kind::String ? name : nullptr;
}

/// A value in words: its name, itself, or the members of an object.
std::string value_words(const JsonValue& value) {
  if (const JsonValue* name = name_in(value)) return printable(name->text, kLongestLabel);
  if (value.kind != JsonValue::Kind::Object || value.members.empty()) {
    return printable(compact(value), kLongestLabel);
  }
  std::string text;
  for (const auto& [key, member] : value.members) {
    text += (text.empty() ? "" : ", ") + key + "=" + compact(member);
  }
  return printable(text, kLongestLabel);
}

/// What a value adds to the name of its scenario: "key=value", or the members of an object.
std::string label(const Axis& axis, const JsonValue& value) {
  if (axis.path == "name") return "";
  const bool speaks =
      name_in(value) || (value.kind == JsonValue::Kind::Object && !value.members.empty());
  return " | " + (speaks ? "" : axis.short_name + "=") + value_words(value);
}

SweptValue swept_value(const Axis& axis, const JsonValue& value) {
  SweptValue swept{axis.path, value_words(value), std::nullopt};
  if (value.kind == JsonValue::Kind::Number) swept.number = value.number;
  return swept;
}

/// What `value` sets path `k` of the axis to.
const JsonValue& part(const Axis& axis, const JsonValue& value, std::size_t k) {
  const bool each = !axis.further.empty() && value.kind == JsonValue::Kind::Array;
  return each ? value.items[k] : value;
}

/// `value` without the name that only labels its scenario.
JsonValue unnamed(const Axis& axis, JsonValue value) {
  if (name_in(value) && !owns_name(axis.path, value)) {
    std::erase_if(value.members, [](const auto& member) { return member.first == "name"; });
  }
  return value;
}

bool known_section(const std::string& section) {
  for (const ContractKey& key : scenario_contract().front().keys) {
    if (key.key == section) return true;
  }
  return false;
}

void check_path(const std::string& path, const Axis& axis, Diagnostics& diagnostics) {
  const std::string section = first_segment(path);
  if (section == "sweep") {
    report(diagnostics, axis.list,
           "a sweep over the sweep itself never ends; expected the path of another key");
  } else if (!known_section(section)) {
    report(diagnostics, axis.list,
           "the path " + in_quotes(path) +
               " leads to no key; expected one such as \"training.strategy\"");
  }
}

/// Lists for several paths have a value for each.
void check_parts(const Axis& axis, Diagnostics& diagnostics) {
  const std::size_t paths = axis.further.size() + 1;
  for (std::size_t i = 0; paths > 1 && i < axis.list.value->items.size(); ++i) {
    const JsonNode value = axis.list.item(i);
    if (value.value->kind != JsonValue::Kind::Array) continue;
    if (value.value->items.size() == paths) continue;
    report(diagnostics, value,
           "expected a value for all " + std::to_string(paths) +
               " paths, or a list with one for each, got " +
               std::to_string(value.value->items.size()));
  }
}

bool check_axis(const Axis& axis, Diagnostics& diagnostics) {
  const Mistakes mistakes(diagnostics);
  check_path(axis.path, axis, diagnostics);
  for (const std::string& path : axis.further) check_path(path, axis, diagnostics);
  if (axis.list.value->kind != JsonValue::Kind::Array) {
    report(diagnostics, axis.list, "expected a list of values");
  } else if (axis.list.value->items.empty()) {
    report(diagnostics, axis.list, "an empty list leaves nothing to run; expected a value");
  } else {
    check_parts(axis, diagnostics);
  }
  return mistakes.none();
}

bool ends_with_steps(const std::string& path, const std::string& tail) {
  return path == tail || path.ends_with("." + tail);
}

/// The shortest end of `path` that begins with a key, not an index, and ends no other axis' path.
std::string shortest_tail(const std::string& path, const std::vector<Axis>& axes) {
  for (std::size_t dot = path.rfind('.'); dot != std::string::npos;
       dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1)) {
    std::string tail = path.substr(dot + 1);
    const bool index = tail.find_first_not_of("0123456789") == tail.find('.');
    const auto others = std::count_if(axes.begin(), axes.end(), [&](const Axis& axis) {
      return axis.path != path && ends_with_steps(axis.path, tail);
    });
    if (!index && others == 0) return tail;
  }
  return path;
}

/// "a.b, c" as paths.
Axis axis_at(const JsonNode& sweep, const std::string& key) {
  Axis axis = {.path = "", .list = sweep.child(key)};
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t end = std::min(key.find(',', from), key.size());
    std::string path = key.substr(from, end - from);
    path.erase(0, path.find_first_not_of(' '));
    (from == 0 ? axis.path : axis.further.emplace_back()) = path;
    from = end + 1;
  }
  axis.short_name = axis.path;
  return axis;
}

/// The paths of the sweep that are right.
std::vector<Axis> read_axes(const JsonNode& sweep, Diagnostics& diagnostics) {
  std::vector<Axis> axes;
  if (sweep.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, sweep, "expected an object from paths to lists of values");
    return axes;
  }
  for (const auto& [path, list] : sweep.value->members) {
    const Axis axis = axis_at(sweep, path);
    if (check_axis(axis, diagnostics)) axes.push_back(axis);
  }
  for (Axis& axis : axes) axis.short_name = shortest_tail(axis.path, axes);
  double product = 1;
  for (const Axis& axis : axes) product *= static_cast<double>(axis.list.value->items.size());
  if (product > kMostScenarios) {
    report(diagnostics, sweep,
           "stands for " + number_text(product) + " scenarios; expected at most " +
               std::to_string(kMostScenarios));
  }
  return axes;
}

void set_name(JsonValue& document, const std::string& suffix) {
  JsonValue name = {.kind = JsonValue::Kind::String, .text = default_name(document)};
  if (const JsonValue* written = document.find("name")) {
    if (written->kind != JsonValue::Kind::String) return;  // the loader reports it
    name = *written;
  }
  name.text += suffix;
  set_json(document, "name", name, "sweep");
}

/// `document` with value `choice[i]` of each axis i.
SweepPoint combine(JsonValue document, const std::vector<Axis>& axes,
                   const std::vector<std::size_t>& choice, Diagnostics& diagnostics) {
  std::string suffix;
  std::vector<SweptValue> swept;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const JsonNode value = axes[i].list.item(choice[i]);
    const std::string file = value.value->file ? *value.value->file : "";
    const JsonValue& first = part(axes[i], *value.value, 0);
    try {
      set_key(document, axes[i].path, unnamed(axes[i], first), file);
      for (std::size_t k = 0; k < axes[i].further.size(); ++k) {
        set_key(document, axes[i].further[k], part(axes[i], *value.value, k + 1), file);
      }
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool named = message.starts_with(file + ": ");
      report(diagnostics, value, named ? message.substr(file.size() + 2) : message);
    }
    suffix += label(axes[i], first);
    swept.push_back(swept_value(axes[i], first));
  }
  if (!suffix.empty()) set_name(document, suffix);
  return {std::move(document), std::move(swept)};
}

/// Moves to the next combination, the last axis fastest. Returns false after the last one.
bool advance(std::vector<std::size_t>& choice, const std::vector<Axis>& axes) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (++choice[i] < axes[i].list.value->items.size()) return true;
    choice[i] = 0;
  }
  return false;
}

}  // namespace

std::string default_name(const JsonValue& document) {
  std::string name = document.file ? *document.file : "scenario";
  name = name.substr(name.find_last_of('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  return name;
}

std::vector<SweepPoint> expand_sweep(const JsonValue& document, Diagnostics& diagnostics) {
  const JsonNode root = {&document, ""};
  if (document.kind != JsonValue::Kind::Object || !document.find("sweep")) {
    return {{document, {}}};
  }
  const Mistakes mistakes(diagnostics);
  const std::vector<Axis> axes = read_axes(root.child("sweep"), diagnostics);
  JsonValue base = document;
  std::erase_if(base.members, [](const auto& member) { return member.first == "sweep"; });
  std::vector<std::size_t> choice(axes.size(), 0);
  std::vector<SweepPoint> points;
  points.push_back(combine(base, axes, choice, diagnostics));
  while (mistakes.none() && advance(choice, axes)) {
    points.push_back(combine(base, axes, choice, diagnostics));
  }
  return points;
}

}  // namespace interlock
