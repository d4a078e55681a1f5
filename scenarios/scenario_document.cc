// Reads the document of a scenario, and sets what the command line overrides.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <iterator>
#include <string>

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
  apply_overrides(document, overrides);
  return document;
}

}  // namespace interlock
