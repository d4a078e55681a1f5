// Scenarios loaded from text, a good one as a start, and the messages of bad ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/load/question.h"

namespace interlock {

/// Four equal modules of 1 ms an op on four devices; strategy global.
inline const std::string kFourModules = R"({
  "model": {"kind": "profile", "modules": [
    {"repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global"}
})";

using Overrides = std::vector<std::string>;

inline JsonValue document(const std::string& text, const Overrides& overrides = {}) {
  JsonValue value = parse_json(text, "test.json");
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('=');
    const std::string path = override.substr(0, equals);
    set_json(value, path, parse_override(override.substr(equals + 1), "set"), "set");
  }
  return value;
}

/// The scenarios of kFourModules with `overrides`.
inline std::vector<Question> loaded_all(const Overrides& overrides) {
  return load_questions(document(kFourModules, overrides));
}

/// The one scenario of kFourModules with `overrides`.
inline Question loaded(const Overrides& overrides = {}) {
  std::vector<Question> scenarios = loaded_all(overrides);
  REQUIRE(scenarios.size() == 1);
  return scenarios.front();
}

/// Returns the mistakes that loading `value` reports; "" if nothing is wrong.
inline std::string mistakes_of(const JsonValue& value) {
  try {
    load_questions(value);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Returns the mistakes of kFourModules with `overrides`; "" if it is right.
inline std::string mistakes(const Overrides& overrides) {
  return mistakes_of(document(kFourModules, overrides));
}

}  // namespace interlock
