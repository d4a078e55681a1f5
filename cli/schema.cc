// interlock schema: the JSON Schema of scenarios, for editors.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace interlock {

void schema() { print(read_file(data_folder("scenarios") + "/scenario.schema.json")); }

}  // namespace interlock
