// interlock schema: the contract of scenarios, for editors and for readers.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/result/value_json.h"
#include "scenarios/contract/json_schema.h"
#include "scenarios/contract/reference_page.h"

namespace interlock {

void schema(const std::string& json, bool quiet, bool reference) {
  check_json(json);
  const std::string text = json_file(json_schema());
  if (reference) {
    print(reference_page());
  } else if (json.empty()) {
    print(text);
  }
  write_json(json, text, quiet);
}

}  // namespace interlock
