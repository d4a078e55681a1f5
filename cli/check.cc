// interlock check: whether scenario files are right, without running them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/result/value_json.h"

namespace interlock {
namespace {

/// Returns for each file whether it is right, and its mistakes line by line.
std::string checks_json(const CommandOptions& options) {
  JsonValue files = json_list({});
  for (const std::string& input : options.inputs) {
    CommandOptions one = options;
    one.inputs = {input};
    one.quiet = true;  // notes are told once
    std::vector<std::string> mistakes;
    std::size_t scenarios = 0;
    try {
      load_inputs(one, [&](const std::string&, std::size_t found) { scenarios = found; });
    } catch (const Error& error) {
      std::istringstream lines(error.what());
      for (std::string line; std::getline(lines, line);) mistakes.push_back(line);
    }
    files.items.push_back(json_object({{"file", json_text(input)},
                                       {"right", json_boolean(mistakes.empty())},
                                       {"scenarios", json_number(static_cast<double>(scenarios))},
                                       {"mistakes", json_texts(mistakes)}}));
  }
  return json_file(json_object({{"format", json_text("interlock-check/1")}, {"files", files}}));
}

void write_checks(const CommandOptions& options) {
  if (options.json.empty()) return;
  check_json(options.json);
  // Standard input can be read once.
  const auto& inputs = options.inputs;
  if (std::find(inputs.begin(), inputs.end(), "-") != inputs.end()) {
    throw Error("check --json takes files; expected none to be standard input");
  }
  write_json(options.json, checks_json(options), options.quiet);
}

}  // namespace

void check(const CommandOptions& options) {
  write_checks(options);
  load_inputs(options, [&](const std::string& file, std::size_t scenarios) {
    if (options.quiet || options.json == "-") return;
    print(file + ": ok" + (scenarios > 1 ? " (" + std::to_string(scenarios) + " scenarios)" : "") +
          "\n");
  });
}

}  // namespace interlock
