// interlock schedule: one step drawn in the terminal, and as a picture or a text on demand.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/terminal/layout.h"
#include "reports/terminal/terminal_grid.h"

namespace interlock {
namespace {

GridStyle grid_style(const ScheduleOptions& options) {
  const TableStyle terminal = terminal_style();
  return {.colour = terminal.colour && !options.no_colour,
          .unicode = options.unicode,
          .width = options.width > 0 ? options.width : terminal.width};
}

std::string drawing(const ScenarioResult& result, const GridStyle& grid, bool exact) {
  std::vector<Headline> headlines = schedule_headlines(result);
  if (exact) headlines.push_back(exact_headline(result));
  const TableStyle style = {grid.colour, grid.width};
  std::string text = paint(result.plan.question.name, Ink::Strong, style) + "\n";
  for (const std::string& line : wrap(subtitle(result), std::max(grid.width, 60))) {
    text += paint(line, Ink::Faint, style) + "\n";
  }
  return text + "\n" + terminal_grid(result, grid) + "\n" + headline_lines(headlines, style);
}

void draw(const ScheduleOptions& options) {
  check_outputs(options.command);
  if (options.command.csv.empty() && options.command.csv_messages != "none") {
    throw Error("--messages: are rows of --csv; expected --csv FILE beside it");
  }
  const std::vector<Question> scenarios = load_inputs(options.command);
  const bool files =
      !options.command.svg.empty() || !options.command.csv.empty() || !options.command.json.empty();
  if (files && scenarios.size() > 1) {
    throw Error("--svg, --csv and --json hold one scenario, and there are " +
                std::to_string(scenarios.size()) +
                "; leave one: --set sweep=null --set PATH=VALUE");
  }
  std::string text;
  std::vector<ScenarioResult> results;
  for (const Question& scenario : scenarios) {
    results = {run_scenario(scenario, true)};
    text +=
        (text.empty() ? "" : "\n") + drawing(results.front(), grid_style(options), options.exact);
  }
  write_outputs(options.command, results, false);
  const bool printed = options.command.json == "-" || options.command.csv == "-";
  if (!printed && !options.command.quiet) print(text);
}

}  // namespace

void schedule(const ScheduleOptions& options) {
  const bool scenario = !options.command.inputs.empty();
  if (scenario + options.list + options.table != 1) {
    throw Error(
        "expected one of interlock schedule SCENARIO, interlock schedule --list and "
        "interlock schedule --table");
  }
  if (scenario) return draw(options);
  const CommandOptions& command = options.command;
  if (options.list) return list("schedules", {}, false, command.json, command.quiet);
  if (!options.command.json.empty()) {
    throw Error("--table prints a page of Markdown; expected no --json, or --list --json FILE");
  }
  if (!options.command.svg.empty()) write_file(options.command.svg, schedule_map());
  print(schedule_table());
}

}  // namespace interlock
