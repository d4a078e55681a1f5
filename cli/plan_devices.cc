// interlock plan: how many GPUs, which, how long and how much.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/console/convert_svg.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/sizing_options.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/answers/sizing_report.h"
#include "reports/page/sizing_page.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

Sizing size_up_aloud(const SizingQuestion& question, const PlanOptions& options) {
  const StopOnInterrupt until_sized;
  const std::size_t sizes = question.devices.size();
  Progress line("sizes", sizes * question.machines.size(), 0, !options.quiet);
  SizingListener listener;
  listener.stop = [] { return StopOnInterrupt::asked().load(); };
  listener.told = [&](const SizingProgress& at) {
    line.reach_part(at.row, static_cast<double>(at.done) / static_cast<double>(at.of),
                    question.machines[at.row / sizes].name + " x " +
                        std::to_string(question.devices[at.row % sizes]) + ": " +
                        std::to_string(at.done) + " of " + std::to_string(at.of) + " plans");
  };
  return size_up(question, options.jobs > 0 ? options.jobs : usable_processors(), listener);
}

void write_told(const std::string& path, const std::string& text, bool quiet) {
  write_file(path, text);
  if (!quiet) tell("wrote " + path);
}

}  // namespace

bool plan_devices(const PlanOptions& options) {
  check_json(options.json);
  if (!options.html.empty()) check_output("--html", options.html);
  PictureFormat format = PictureFormat::Svg;
  if (!options.figure.empty()) {
    format = picture_format("--figure", options.figure);
    check_output("--figure", options.figure);
  }
  const SizingQuestion question = sizing_question(options);
  if (!options.figure.empty() && question.devices.size() < 2) {
    throw Error("--figure: one size makes no curve; expected several, e.g. --devices 8..64x2");
  }
  const Sizing sizing = size_up_aloud(question, options);
  if (!options.quiet) {
    for (const std::string& note : sizing.notes) tell("note: " + question.model + ": " + note);
  }
  if (!options.quiet && options.json != "-") print(sizing_text(sizing, terminal_style()));
  if (!options.html.empty()) write_told(options.html, sizing_html(sizing), options.quiet);
  if (!options.figure.empty() && sizing.ranking.empty()) {
    tell("--figure: nothing is drawn");
  } else if (!options.figure.empty()) {
    write_told(options.figure, converted(line_chart_svg(sizing_chart(sizing)), format),
               options.quiet);
  }
  write_json(options.json, sizing_json(sizing), options.quiet);
  if (sizing.stopped && !options.quiet) tell("interrupted: sizes are missing");
  if (!sizing.stopped && sizing.ranking.empty()) throw Error("no size fits");
  return !sizing.stopped;
}

}  // namespace interlock
