// Values of a scenario, found and scaled; changes put together.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explain/change.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/loader.h"
#include "scenarios/plan/plan.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

/// Returns the shortest text that reads back as `number`.
std::string shortest(double number) {
  std::array<char, 64> digits{};
  // 12 digits hide what a decimal factor leaves of a binary fraction: 4.8, not 4.800000000000001.
  for (const int precision : {12, 17}) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                   std::chars_format::general, precision);
    std::string text(digits.data(), end.ptr);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    const double error = number == 0 ? 0 : (back - number) / number;
    if (error < 1e-15 && error > -1e-15) return text;
  }
  return std::string(digits.data());
}

std::string scaled_quantity(const std::string& written, double factor) {
  const auto quantity = parse_quantity(written);
  if (!quantity || quantity->value == 0) return "";
  double number = 0;
  const auto end = std::from_chars(written.data(), written.data() + written.size(), number);
  if (end.ec != std::errc()) return "";
  return shortest(number * factor) + std::string(end.ptr, written.data() + written.size());
}

}  // namespace

const JsonValue* value_at(const JsonValue& document, std::string_view dotted_path) {
  const JsonValue* value = &document;
  while (value != nullptr && !dotted_path.empty()) {
    const std::size_t end = std::min(dotted_path.find('.'), dotted_path.size());
    if (value->kind != Kind::Object) return nullptr;
    value = value->find(dotted_path.substr(0, end));
    dotted_path.remove_prefix(std::min(end + 1, dotted_path.size()));
  }
  return value;
}

std::string scaled_text(const JsonValue* value, double factor) {
  if (value == nullptr) return "";
  if (value->kind == Kind::String) return scaled_quantity(value->text, factor);
  if (value->kind == Kind::Number) return shortest(value->number * factor);
  if (value->kind != Kind::Array || value->items.empty()) return "";
  std::string text;
  for (const JsonValue& item : value->items) {
    std::string inner = "null";
    if (item.kind != Kind::Null) {
      inner = scaled_text(&item, factor);
      if (inner.empty() && item.kind == Kind::String) inner = item.text;
      if (inner.empty()) return "";
      if (item.kind == Kind::String) inner = "\"" + inner + "\"";
    }
    text += (text.empty() ? "[" : ", ") + inner;
  }
  return text + "]";
}

void lay_stages_anew(const Baseline& baseline, Change& change, bool cuts_itself) {
  for (const char* path : {"parallel.stages", "parallel.placement"}) {
    if (value_at(baseline.document, path) == nullptr) continue;
    change.settings.push_back(std::string(path) + "=null");
  }
  const JsonValue* partition = value_at(baseline.document, "partition");
  if (partition != nullptr && (cuts_itself || partition->kind == Kind::Array)) {
    change.settings.emplace_back(cuts_itself ? "partition=null" : "partition=balanced");
  }
}

std::string set_cut(const Partition& partition) {
  std::string list;
  for (int part = 0; part < partition.stages(); ++part) {
    const int count = partition.boundaries[part + 1] - partition.boundaries[part];
    list += (part == 0 ? "" : ", ") + std::to_string(count);
  }
  return "partition=[" + list + "]";
}

namespace {

/// Keeps the cut of the baseline where `change` of the machine would have the model cut anew.
void hold_cut(const Baseline& baseline, Change& change) {
  const Plan& own = baseline.result.plan;
  const JsonValue* written = value_at(baseline.document, "partition");
  if (own.question.trace() || own.partition.stages() < 2) return;
  if (written != nullptr && written->kind == Kind::Array) return;
  const bool searched = written != nullptr && written->text == "auto";
  try {
    JsonValue changed = baseline.document;
    apply_overrides(changed, change.settings);
    const auto cuts = [&] {
      return lay_out(load_questions(changed).front()).draft.partition.boundaries;
    };
    if (searched || cuts() != own.partition.boundaries) {
      change.settings.push_back(set_cut(own.partition));
    }
  } catch (const Error&) {  // the change is refused when it is tried
  }
}

}  // namespace

std::vector<Change> all_changes(const Baseline& baseline) {
  std::vector<Change> all;
  std::set<std::vector<std::string>> seen;
  for (const auto& list :
       {machine_changes(baseline), plan_changes(baseline), layout_changes(baseline)}) {
    for (Change change : list) {
      if (change.kind == Change::Kind::Machine) hold_cut(baseline, change);
      if (seen.insert(change.settings).second) all.push_back(change);
    }
  }
  return all;
}

}  // namespace interlock
