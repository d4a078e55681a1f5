// Reads JSON values as what they should be, or reports what they are.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json/json.h"
#include "base/json/typed_words.h"
#include "base/text.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;
using Dimension = WrittenQuantity::Dimension;

constexpr std::size_t kFewNames = 12;  // as many are listed in a message

/// Reports a value that is not `kind`, or is out of range.
void report_unexpected(Diagnostics& diagnostics, const JsonNode& node, Kind kind,
                       std::string_view wrong, std::string_view expected) {
  std::string message(wrong);
  if (!wrong.empty()) message += "; ";
  message += "expected " + std::string(expected) + ", got " + described(*node.value);
  report(diagnostics, node, message, node.value->kind != kind);
}

std::string number_text(double number) {
  return described({.kind = Kind::Number, .number = number});
}

/// "a number from 0 to 1", with the bounds that are there.
std::string in_range(const char* noun, double least, double most) {
  const bool bounded_below = least > -kInfinity && least != std::numeric_limits<double>::lowest();
  const bool bounded_above = most < kInfinity && most != std::numeric_limits<double>::max();
  if (bounded_below && bounded_above) {
    return noun + (" from " + number_text(least)) + " to " + number_text(most);
  }
  if (bounded_below) return noun + (" of at least " + number_text(least));
  if (bounded_above) return noun + (" of at most " + number_text(most));
  return noun;
}

/// How a quantity is asked for.
struct Asked {
  Dimension dimension;
  const char* what;  // with an example
  bool zero_allowed;
};
constexpr Asked kTime = {Dimension::Time, "a time such as \"3 us\"", true};
constexpr Asked kDuration = {Dimension::Time, "a time such as \"3 h\"", false};
constexpr Asked kSize = {Dimension::Size, "a size such as \"80 GiB\"", true};
constexpr Asked kBandwidth = {Dimension::Bandwidth, "a bandwidth such as \"450 GB/s\"", false};
constexpr Asked kFlopRate = {Dimension::FlopRate, "a rate such as \"989 TFLOP/s\"", false};
constexpr Asked kPower = {Dimension::Power, "a power such as \"400 W\"", true};
constexpr Asked kEnergy = {Dimension::Energy, "an energy such as \"20 MWh\"", false};

/// Returns what is wrong with the value at `node` as the quantity asked for, or null.
const char* wrong_quantity(const JsonNode& node, const Asked& asked,
                           const std::optional<WrittenQuantity>& quantity) {
  if (node.value->kind == Kind::Number) return "a plain number has no unit";
  if (node.value->kind != Kind::String) return "wrong type";
  if (!quantity) return "not a number with a known unit";
  if (quantity->dimension != asked.dimension) return "wrong unit";
  if (quantity->value < 0) return "must not be negative";
  if (quantity->value == 0 && !asked.zero_allowed) return "must be above zero";
  return nullptr;
}

template <class Result>
std::optional<Result> read_quantity(const JsonNode& node, const Asked& asked,
                                    Diagnostics& diagnostics) {
  std::optional<WrittenQuantity> quantity;
  if (node.value->kind == Kind::String) quantity = parse_quantity(node.value->text);
  if (const char* wrong = wrong_quantity(node, asked, quantity)) {
    const auto meant = quantity_meant(node.value->text);
    report(diagnostics, node,
           std::string(wrong) + "; expected " + asked.what + ", got " + described(*node.value) +
               (meant ? " (did you mean " + in_quotes(*meant) + "?)" : ""),
           !quantity || quantity->dimension != asked.dimension);
    return std::nullopt;
  }
  return Result(quantity->value);
}

/// "known: a, b", shortened if there are many.
std::string known_names(const std::vector<std::string>& names) {
  if (names.empty()) return "no key is known here";
  std::string list = "known: ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += ", ";
    if (i + 1 == kFewNames && names.size() > kFewNames) return list + "...";
    list += names[i];
  }
  return list;
}

}  // namespace

void report(Diagnostics& diagnostics, const JsonNode& node, std::string_view message,
            bool wrong_type) {
  CHECK(node.value != nullptr, "there is a value to report at: " + std::string(message));
  const std::string_view file = node.value->file ? *node.value->file : std::string_view{};
  const std::string& path = node.value->written ? *node.value->written : node.path;
  diagnostics.add(file, node.value->line, path, message, wrong_type);
}

std::optional<bool> read_boolean(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == Kind::Boolean) return node.value->boolean;
  report_unexpected(diagnostics, node, Kind::Boolean, "", "true or false");
  return std::nullopt;
}

std::optional<double> read_number(const JsonNode& node, double least, double most,
                                  Diagnostics& diagnostics) {
  const double number = node.value->number;
  const bool fits = node.value->kind == Kind::Number && number >= least && number <= most;
  if (fits) return number;
  report_unexpected(diagnostics, node, Kind::Number, "", in_range("a number", least, most));
  return std::nullopt;
}

std::optional<int> read_count(const JsonNode& node, int least, int most, Diagnostics& diagnostics) {
  const double number = node.value->number;
  const bool fits = node.value->kind == Kind::Number && number >= least && number <= most &&
                    number == std::floor(number);
  if (fits) return static_cast<int>(number);
  report_unexpected(diagnostics, node, Kind::Number, "", in_range("a whole number", least, most));
  return std::nullopt;
}

std::optional<std::string> read_text(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == Kind::String) return node.value->text;
  report_unexpected(diagnostics, node, Kind::String, "", "a string");
  return std::nullopt;
}

std::optional<Seconds> read_seconds(const JsonNode& node, Diagnostics& diagnostics) {
  return read_quantity<Seconds>(node, kTime, diagnostics);
}

std::optional<Seconds> read_duration(const JsonNode& node, Diagnostics& diagnostics) {
  return read_quantity<Seconds>(node, kDuration, diagnostics);
}

std::optional<Bytes> read_bytes(const JsonNode& node, Diagnostics& diagnostics) {
  return read_quantity<Bytes>(node, kSize, diagnostics);
}

std::optional<BytesPerSecond> read_bytes_per_second(const JsonNode& node,
                                                    Diagnostics& diagnostics) {
  return read_quantity<BytesPerSecond>(node, kBandwidth, diagnostics);
}

std::optional<FlopsPerSecond> read_flops_per_second(const JsonNode& node,
                                                    Diagnostics& diagnostics) {
  return read_quantity<FlopsPerSecond>(node, kFlopRate, diagnostics);
}

std::optional<Watts> read_watts(const JsonNode& node, Diagnostics& diagnostics) {
  return read_quantity<Watts>(node, kPower, diagnostics);
}

std::optional<Joules> read_joules(const JsonNode& node, Diagnostics& diagnostics) {
  return read_quantity<Joules>(node, kEnergy, diagnostics);
}

std::optional<int> read_choice(const JsonNode& node, const std::vector<std::string>& names,
                               Diagnostics& diagnostics) {
  if (node.value->kind != Kind::String) {
    report_unexpected(diagnostics, node, Kind::String, "wrong type",
                      "a name (" + known_names(names) + ")");
    return std::nullopt;
  }
  const auto found = std::find(names.begin(), names.end(), node.value->text);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  std::string message = "unknown name " + described(*node.value) + "; " + known_names(names);
  std::optional<std::string> meant = name_meant(node.value->text, names);
  if (!meant) meant = nearest(node.value->text, names);
  if (meant) message += " (did you mean " + in_quotes(*meant) + "?)";
  report(diagnostics, node, message);
  return std::nullopt;
}

ObjectReader::ObjectReader(JsonNode node, Diagnostics& diagnostics)
    : node_(std::move(node)), diagnostics_(&diagnostics) {
  CHECK(node_.value != nullptr, "an ObjectReader has a value to read");
  if (node_.value->kind != Kind::Object)
    report_unexpected(diagnostics, node_, Kind::Object, "", "an object");
}

std::optional<JsonNode> ObjectReader::get(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  if (node_.value->find(key) == nullptr) return std::nullopt;
  return node_.child(key);
}

std::optional<JsonNode> ObjectReader::require(std::string_view key, std::string_view expected) {
  std::optional<JsonNode> member = get(key);
  if (!member && node_.value->kind == Kind::Object) {
    report(*diagnostics_, node_,
           "missing key " + in_quotes(key) + "; expected " + std::string(expected));
  }
  return member;
}

bool ObjectReader::boolean(std::string_view key, bool otherwise) {
  const auto member = get(key);
  return member ? read_boolean(*member, *diagnostics_).value_or(otherwise) : otherwise;
}

double ObjectReader::number(std::string_view key, double otherwise, double least, double most) {
  const auto member = get(key);
  return member ? read_number(*member, least, most, *diagnostics_).value_or(otherwise) : otherwise;
}

int ObjectReader::count(std::string_view key, int otherwise, int least, int most) {
  const auto member = get(key);
  return member ? read_count(*member, least, most, *diagnostics_).value_or(otherwise) : otherwise;
}

std::string ObjectReader::text(std::string_view key, std::string_view otherwise) {
  const auto member = get(key);
  const auto read = member ? read_text(*member, *diagnostics_) : std::nullopt;
  return read.value_or(std::string(otherwise));
}

Seconds ObjectReader::seconds(std::string_view key, Seconds otherwise) {
  const auto member = get(key);
  return member ? read_seconds(*member, *diagnostics_).value_or(otherwise) : otherwise;
}

Bytes ObjectReader::bytes(std::string_view key, Bytes otherwise) {
  const auto member = get(key);
  return member ? read_bytes(*member, *diagnostics_).value_or(otherwise) : otherwise;
}

BytesPerSecond ObjectReader::bytes_per_second(std::string_view key, BytesPerSecond otherwise) {
  const auto member = get(key);
  return member ? read_bytes_per_second(*member, *diagnostics_).value_or(otherwise) : otherwise;
}

FlopsPerSecond ObjectReader::flops_per_second(std::string_view key, FlopsPerSecond otherwise) {
  const auto member = get(key);
  return member ? read_flops_per_second(*member, *diagnostics_).value_or(otherwise) : otherwise;
}

int ObjectReader::choice(std::string_view key, const std::vector<std::string>& names,
                         int otherwise) {
  const auto member = get(key);
  return member ? read_choice(*member, names, *diagnostics_).value_or(otherwise) : otherwise;
}

void ObjectReader::finish() {
  for (const auto& [key, member] : node_.value->members) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string message = "unknown key; ";
    if (!diagnostics_->full()) {
      std::optional<std::string> meant = key_meant(key, known_);
      if (!meant) meant = nearest(key, known_);
      message += meant ? "did you mean " + in_quotes(*meant) + "?" : known_names(known_);
    }
    report(*diagnostics_, {&member, json_pointer(node_.path, key)}, message);
  }
}

}  // namespace interlock
