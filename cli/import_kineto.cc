// interlock import kineto: traces of real runs into a model that scenarios can name.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "reports/kineto/duration_table.h"

namespace interlock {
namespace {

/// A trace takes long to record, and should not be lost to a slip.
void check_target(const ImportOptions& options) {
  if (!options.out.ends_with(".json")) {
    throw Error("--out " + options.out + ": expected a name that ends with .json");
  }
  check_output("--out", options.out);
  std::error_code failed;
  for (const std::string& trace : options.traces) {
    if (std::filesystem::equivalent(trace, options.out, failed)) {
      throw Error("--out " + options.out + " is one of the traces; expected another name");
    }
  }
}

}  // namespace

void add_import(CLI::App& command, ImportOptions& options) {
  command.require_subcommand(1);
  CLI::App& kineto = *command.add_subcommand("kineto", "traces of PyTorch's profiler");
  kineto
      .add_option("TRACES", options.traces,
                  "files of export_chrome_trace, .json or .json.gz, one of each rank")
      ->required();
  kineto.add_option("--out", options.out, "where to: a model file, with what it was made of")
      ->type_name("FILE.json")
      ->required();
  kineto.add_flag("--quiet,-q", options.quiet, "print nothing");
}

void import_kineto(const ImportOptions& options) {
  check_target(options);
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
