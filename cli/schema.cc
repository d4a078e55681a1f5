// interlock schema: the JSON Schema of scenarios, for editors.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"

namespace interlock {

void schema(const std::string& json, bool quiet) {
  check_json(json);
  const std::string text = read_file(data_folder("scenarios") + "/scenario.schema.json");
  if (json.empty()) print(text);
  write_json(json, text, quiet);
}

}  // namespace interlock
