// ChakraAttributes: the attributes of a message of a Chakra trace, beside its fields.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "sim/workloads/chakra.pb.h"

namespace interlock {

/// The version of Chakra's schema.
inline constexpr const char* kChakraVersion = "0.0.4";
/// The unit of its times, in seconds.
inline constexpr double kChakraTime = 1e-6;
/// The values of interlock_cargo, by Cargo.
inline constexpr std::array kCargoNames = {"activation", "gradient", "readout",         "copy",
                                           "context",    "weights",  "weight_gradients"};
inline constexpr int kMostChakraCount = 1'000'000'000;

/// Attributes by name; numbers of any type are numbers, lists are left out. Reads throw Error,
/// which begins with `where`, if there is something else than expected, and give nothing if there
/// is none.
/// Example: {name "comm_size", int64_val 1048576}: number("comm_size", 0, 1e18) is 1,048,576, and
/// of "comm_src", which is not there, nothing. If comm_size were a string, number() would throw.
class ChakraAttributes {
 public:
  template <class Message>
  ChakraAttributes(const Message& message, std::string where) : where_(std::move(where)) {
    for (const chakra::AttributeProto& attribute : message.attr()) add(attribute);
  }
  std::optional<double> number(const std::string& name, double least, double most) const;
  std::optional<int> count(const std::string& name, int least) const;
  bool is_true(const std::string& name) const { return count(name, 0).value_or(0) != 0; }
  std::string text(const std::string& name) const;  // empty: none
  const std::string& where() const { return where_; }

 private:
  void add(const chakra::AttributeProto& attribute);

  std::string where_;
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> texts_;
};

}  // namespace interlock
