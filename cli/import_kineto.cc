// interlock import kineto: traces of real runs into a model that scenarios can name.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "reports/kineto/duration_table.h"
#include "reports/value_json.h"

namespace interlock {

void import_kineto(const ImportOptions& options) {
  DurationTable table;
  for (const std::string& trace : options.traces) add_trace(table, read_kineto_file(trace));
  order_parts(table);
  write_file(options.out, duration_json(table));
  write_json(
      options.json,
      json_file(json_object({{"format", json_text("interlock-written/1")},
                             {"wrote", json_texts({options.out})},
                             {"parts", json_number(static_cast<double>(table.parts.size()))}})),
      options.quiet);
  if (options.quiet || options.json == "-") return;
  print(duration_report(table, terminal_style()));
  tell("wrote " + options.out +
       (table.parts.empty() ? "" : "; in a scenario: \"model\": \"" + options.out + "\""));
}

}  // namespace interlock
