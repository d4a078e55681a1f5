// Attributes of many types, as numbers and texts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/chakra_attributes.h"

#include "base/error.h"
#include "base/text.h"

namespace interlock {
namespace {

using Value = chakra::AttributeProto;

std::optional<double> number_in(const Value& value) {
  switch (value.value_case()) {
    case Value::kDoubleVal:
      return value.double_val();
    case Value::kFloatVal:
      return static_cast<double>(value.float_val());
    case Value::kInt32Val:
      return static_cast<double>(value.int32_val());
    case Value::kInt64Val:
      return static_cast<double>(value.int64_val());
    case Value::kUint32Val:
      return static_cast<double>(value.uint32_val());
    case Value::kUint64Val:
      return static_cast<double>(value.uint64_val());
    case Value::kSint32Val:
      return static_cast<double>(value.sint32_val());
    case Value::kSint64Val:
      return static_cast<double>(value.sint64_val());
    case Value::kFixed32Val:
      return static_cast<double>(value.fixed32_val());
    case Value::kFixed64Val:
      return static_cast<double>(value.fixed64_val());
    case Value::kSfixed32Val:
      return static_cast<double>(value.sfixed32_val());
    case Value::kSfixed64Val:
      return static_cast<double>(value.sfixed64_val());
    case Value::kBoolVal:
      return value.bool_val() ? 1.0 : 0.0;
    default:
      return std::nullopt;
  }
}

}  // namespace

void ChakraAttributes::add(const chakra::AttributeProto& attribute) {
  if (const auto number = number_in(attribute)) numbers_[attribute.name()] = *number;
  if (attribute.has_string_val()) texts_[attribute.name()] = attribute.string_val();
}

std::optional<double> ChakraAttributes::number(const std::string& name, double least,
                                               double most) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    if (texts_.count(name) > 0) throw Error(where_ + name + " is a text; expected a number");
    return std::nullopt;
  }
  if (least <= found->second && found->second <= most) return found->second;
  throw Error(where_ + name + " is " + format_number(found->second) + "; expected " +
              format_number(least) + " to " + format_number(most));
}

std::optional<int> ChakraAttributes::count(const std::string& name, int least) const {
  const auto value = number(name, least, kMostChakraCount);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::string ChakraAttributes::text(const std::string& name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? "" : found->second;
}

}  // namespace interlock
