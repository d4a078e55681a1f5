// Reads a range and counts through it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/sweep_range.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr double kMostOfRange = 10'000;

/// A number and the unit behind it: "100 GB/s"; no unit for a plain number.
struct Measure {
  double number = 0;
  std::string unit;
};

std::optional<Measure> measure_of(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::Number) return Measure{value.number, ""};
  if (value.kind != JsonValue::Kind::String || !parse_quantity(value.text)) return std::nullopt;
  Measure measure;
  const char* end = value.text.data() + value.text.size();
  const char* unit = std::from_chars(value.text.data(), end, measure.number).ptr;
  measure.unit.assign(unit, end);
  return measure;
}

JsonValue value_of(const Measure& measure, const JsonValue& like) {
  JsonValue value = like;
  value.members.clear();
  value.kind = measure.unit.empty() ? JsonValue::Kind::Number : JsonValue::Kind::String;
  value.number = measure.number;
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", measure.number);
  value.text = measure.unit.empty() ? "" : text + measure.unit;
  return value;
}

std::optional<Measure> read_measure(const JsonNode& node, Diagnostics& diagnostics) {
  auto measure = measure_of(*node.value);
  if (!measure) {
    report(diagnostics, node, "expected a number or a quantity, got " + described(*node.value));
  }
  return measure;
}

struct Range {
  std::optional<Measure> from, to, step;
  double factor = 1;  // in place of a step
};

/// Returns what is wrong with a range whose parts are right; empty if nothing.
std::string problem_of(const Range& range) {
  if (range.from->unit != range.to->unit || (range.step && range.step->unit != range.from->unit)) {
    return "a range in different units; expected one unit throughout";
  }
  const bool grows =
      range.step ? range.step->number > 0 : range.factor > 1 && range.from->number > 0;
  if (grows && range.to->number >= range.from->number) return "";
  return "never gets from \"from\" to \"to\"; expected a larger \"to\" and a \"step\" above 0 or "
         "\"times\" above 1";
}

}  // namespace

std::vector<JsonValue> read_range(const JsonNode& node, Diagnostics& diagnostics) {
  const Mistakes mistakes(diagnostics);
  Section reader(contract_object("sweep.range"), node, diagnostics);
  const auto from = reader.require("from", "a number or a quantity");
  const auto to = reader.require("to", "a number or a quantity");
  const auto step = reader.get("step"), times = reader.get("times");
  reader.finish();
  if (step && times) report(diagnostics, *times, "beside \"step\"; expected one of them");
  if (!mistakes.none()) return {};
  Range range = {read_measure(*from, diagnostics), read_measure(*to, diagnostics), {}, 1};
  if (times) range.factor = read_number(*times, 0, 1e12, diagnostics).value_or(0);
  if (step) range.step = read_measure(*step, diagnostics);
  if (!mistakes.none()) return {};
  if (!step && !times) range.step = Measure{1, range.from->unit};
  const std::string problem = problem_of(range);
  if (!problem.empty()) {
    report(diagnostics, node, problem);
    return {};
  }
  constexpr double kRounding = 1e-9;
  const double most = range.to->number + kRounding * std::abs(range.to->number);
  std::vector<JsonValue> values;
  for (double i = 0;; ++i) {
    const double number = range.step ? range.from->number + i * range.step->number
                                     : range.from->number * std::pow(range.factor, i);
    if (number > most) return values;
    if (i >= kMostOfRange) {
      report(
          diagnostics, node,
          "stands for more than " + format_number(kMostOfRange) + " values; expected a wider step");
      return {};
    }
    values.push_back(value_of({number, range.from->unit}, *node.value));
  }
}

}  // namespace interlock
