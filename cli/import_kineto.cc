// interlock import kineto: traces of real runs into a model that scenarios can name.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "reports/kineto/duration_table.h"

namespace interlock {

void import_kineto(const ImportOptions& options) {
  DurationTable table;
  for (const std::string& trace : options.traces) add_trace(table, read_kineto_file(trace));
  order_parts(table);
  write_file(options.out, duration_json(table));
  if (options.quiet) return;
  print(duration_report(table, terminal_style()));
  tell("wrote " + options.out +
       (table.parts.empty() ? "" : "; in a scenario: \"model\": \"" + options.out + "\""));
}

}  // namespace interlock
