// Makes the points of a sweep: which combination, what it sets, what it is called.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/sweep_plan.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr std::size_t kLongestLabel = 60;

/// Returns true if an object at `path` may have a "name" of its own; elsewhere it names the
/// scenario.
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

/// Returns what a value adds to the name of its scenario: "key=value", or the members of an object.
std::string label(const SweptPath& swept, const JsonValue& value) {
  if (swept.path == "name") return "";
  const bool speaks =
      name_in(value) || (value.kind == JsonValue::Kind::Object && !value.members.empty());
  return " | " + (speaks ? "" : swept.short_name + "=") + value_words(value);
}

SweptValue swept_value(const std::string& path, const JsonValue& value) {
  SweptValue swept{path, value_words(value), std::nullopt};
  if (value.kind == JsonValue::Kind::Number) swept.number = value.number;
  return swept;
}

/// `value` without the name that only labels its scenario.
JsonValue unnamed(const std::string& path, JsonValue value) {
  if (name_in(value) && !owns_name(path, value)) {
    std::erase_if(value.members, [](const auto& member) { return member.first == "name"; });
  }
  return value;
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

void set_at(const std::string& path, const JsonNode& value, JsonValue& document,
            Diagnostics& diagnostics) {
  const std::string file = value.value->file ? *value.value->file : "";
  try {
    set_key(document, path, unnamed(path, *value.value), file);
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool named = message.starts_with(file + ": ");
    report(diagnostics, value, named ? message.substr(file.size() + 2) : message);
  }
}

/// `count` of `from`, each as likely, in their order.
std::vector<std::uint32_t> draw(std::vector<std::uint32_t> from, const SweepSample& sample) {
  constexpr std::uint64_t kStream = 0x5a3d1e;
  Random random(sample.seed, kStream);
  const std::size_t count = std::min(sample.count, from.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(from[i], from[i + random.bits() % (from.size() - i)]);
  }
  from.resize(count);
  std::sort(from.begin(), from.end());
  return from;
}

}  // namespace

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

std::string default_name(const JsonValue& document) {
  std::string name = document.file ? *document.file : "scenario";
  name = name.substr(name.find_last_of('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  return name;
}

SweepPlan::SweepPlan(JsonValue document, double most, Diagnostics& diagnostics)
    : document_(std::make_shared<const JsonValue>(std::move(document))), base_(*document_) {
  const bool swept = base_.kind == JsonValue::Kind::Object && base_.find("sweep");
  if (!swept) {
    size_ = 1;
    return;
  }
  std::erase_if(base_.members, [](const auto& member) { return member.first == "sweep"; });
  const Mistakes mistakes(diagnostics);
  const JsonNode sweep = JsonNode{document_.get(), ""}.child("sweep");
  axes_ = read_sweep(sweep, most, diagnostics);
  if (!mistakes.none()) return;
  choose_points();
  if (size_ == 0) report(diagnostics, sweep, "everything is excluded; expected a scenario");
}

void SweepPlan::choose_points() {
  size_ = axes_.product();
  if (axes_.exclusions.empty() && !axes_.sample) return;
  for (std::size_t i = 0; i < size_; ++i) {
    if (!excluded(choice(i))) kept_.push_back(static_cast<std::uint32_t>(i));
  }
  if (axes_.sample) kept_ = draw(std::move(kept_), *axes_.sample);
  size_ = kept_.size();
}

/// Which value of each axis combination `i` of the product has; the last axis varies fastest.
std::vector<std::size_t> SweepPlan::choice(std::size_t i) const {
  std::vector<std::size_t> choice(axes_.axes.size());
  for (std::size_t axis = choice.size(); axis-- > 0; i /= axes_.axes[axis].count()) {
    choice[axis] = i % axes_.axes[axis].count();
  }
  return choice;
}

bool SweepPlan::excluded(const std::vector<std::size_t>& choice) const {
  const auto holds = [&](const SweepExclusion::Part& part) {
    const SweptPath& path = axes_.axes[part.axis].paths[part.path];
    const JsonValue& value = *path.values[choice[part.axis]].value;
    return std::any_of(part.same.begin(), part.same.end(),
                       [&](const JsonValue* same) { return same_value(*same, value); });
  };
  return std::any_of(axes_.exclusions.begin(), axes_.exclusions.end(),
                     [&](const SweepExclusion& exclusion) {
                       return std::all_of(exclusion.parts.begin(), exclusion.parts.end(), holds);
                     });
}

SweepPoint SweepPlan::point(std::size_t i, Diagnostics& diagnostics) const {
  SweepPoint point{base_, {}};
  if (axes_.axes.empty()) return point;
  const std::vector<std::size_t> chosen = choice(kept_.empty() ? i : kept_[i]);
  std::string suffix;
  for (std::size_t axis = 0; axis < chosen.size(); ++axis) {
    for (const SweptPath& path : axes_.axes[axis].paths) {
      const JsonNode& value = path.values[chosen[axis]];
      set_at(path.path, value, point.document, diagnostics);
      if (!path.told) continue;
      suffix += label(path, *value.value);
      point.swept.push_back(swept_value(path.path, *value.value));
    }
  }
  if (!suffix.empty()) set_name(point.document, suffix);
  return point;
}

std::vector<SweepSetting> SweepPlan::settings(std::size_t i) const {
  std::vector<SweepSetting> settings;
  if (axes_.axes.empty()) return settings;
  const std::vector<std::size_t> chosen = choice(kept_.empty() ? i : kept_[i]);
  for (std::size_t axis = 0; axis < chosen.size(); ++axis) {
    for (const SweptPath& path : axes_.axes[axis].paths) {
      settings.push_back({path.path, unnamed(path.path, *path.values[chosen[axis]].value)});
    }
  }
  return settings;
}

std::vector<std::string> SweepPlan::paths() const {
  std::vector<std::string> paths;
  for (const SweepAxis& axis : axes_.axes) {
    for (const SweptPath& path : axis.paths) {
      if (path.told) paths.push_back(path.path);
    }
  }
  return paths;
}

}  // namespace interlock
