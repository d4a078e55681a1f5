// Reads the document of a scenario, and sets what the command line overrides.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <iterator>
#include <string>

#include "base/text.h"
#include "scenarios/scenario.h"
#include "scenarios/set_key.h"

namespace interlock {
namespace {

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace

JsonValue read_scenario_document(const std::string& path,
                                 const std::vector<std::string>& overrides) {
  JsonValue document =
      path == "-" ? parse_json(read_standard_input(), "standard input") : read_json_file(path);
  for (const std::string& override : overrides) {
    const std::size_t equals = override.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error("--set " + in_quotes(override) + ": expected path=VALUE, training.steps=16 say");
    }
    const std::string dotted = override.substr(0, equals), origin = "--set " + dotted;
    set_key(document, dotted, parse_override(override.substr(equals + 1), origin), origin);
  }
  return document;
}

}  // namespace interlock
