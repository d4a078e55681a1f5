// interlock plan: how many GPUs, which, how long and how much.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/console/convert_svg.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/swept_overrides.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "hardware/networks/network_size.h"
#include "reports/answers/sizing_report.h"
#include "reports/page/sizing_page.h"
#include "scenarios/contract/limits.h"
#include "scenarios/sweep/sweep_range.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

constexpr double kSecondsOfDay = 86400;

/// Returns a count such as "15e12" or "4M", with letters that stand for powers of `thousand`.
double count_of(const char* option, const std::string& text, double thousand, const char* such) {
  double count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, count);
  const std::string_view letters(rest, static_cast<std::size_t>(end - rest));
  static constexpr std::string_view kLetters = "kMGT";
  const std::string_view letter = letters == "B" ? "G" : letters;
  const std::size_t power = letter.empty() ? 0 : kLetters.find(letter) + 1;
  const bool known = letter.size() <= 1 && (letter.empty() || power > 0);
  count *= std::pow(thousand, static_cast<double>(power));
  if (failed == std::errc{} && known && count >= 1 && count <= kMostAmount) return count;
  throw Error(std::string(option) + " " + in_quotes(text) +
              ": expected a number from 1 to 1e18 such as " + such);
}

/// Returns the sizes, ascending and each once.
std::vector<int> sizes_of(const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw Error("--devices " + in_quotes(text) + ": " + what +
                "; expected numbers from 1 to 1000000 such as 64,128,256, 8..512x2 or 64..512..64");
  };
  std::vector<int> sizes;
  const auto take = [&](const JsonValue& value) {
    const double number = value.number;
    const bool whole = value.kind == JsonValue::Kind::Number && number == std::floor(number);
    if (!whole) refuse(described(value) + " is no number of devices");
    if (number < 1 || number > kMostDevices) refuse(described(value) + " is out of range");
    sizes.push_back(static_cast<int>(number));
  };
  const std::optional<JsonValue> axis = swept_axis(text, "--devices");
  if (!axis) {
    take(parse_override(text, "--devices"));
  } else if (axis->kind == JsonValue::Kind::Array) {
    for (const JsonValue& value : axis->items) take(value);
  } else {
    Diagnostics diagnostics;
    for (const JsonValue& value : read_range({&*axis, ""}, diagnostics)) take(value);
    diagnostics.throw_if_any();
  }
  return ascending(std::move(sizes));
}

/// Returns the machines, each once, with what --price says of them.
std::vector<SizedMachine> machines_of(const PlanOptions& options) {
  std::vector<SizedMachine> machines;
  std::vector<std::string> names;
  for (const std::string& list : options.machines) {
    std::istringstream stream(list);
    for (std::string name; std::getline(stream, name, ',');) {
      if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      machines.push_back({name, ""});
    }
  }
  const auto is_named = [](const std::string& price) { return price.find('=') != price.npos; };
  for (const std::string& price : options.prices) {
    if (is_named(price)) continue;
    for (SizedMachine& machine : machines) machine.price = price;
  }
  for (const std::string& price : options.prices) {
    if (!is_named(price)) continue;
    const std::size_t equals = price.find('=');
    const std::string name = price.substr(0, equals);
    const auto named = std::find(names.begin(), names.end(), name);
    if (named == names.end()) {
      throw Error("--price: " + in_quotes(name) + " is none of the machines; expected " +
                  join_choices(names));
    }
    machines[static_cast<std::size_t>(named - names.begin())].price = price.substr(equals + 1);
  }
  return machines;
}

SizingQuestion question_of(const PlanOptions& options) {
  if (options.tokens.empty() == options.samples.empty()) {
    throw Error("expected one of --tokens and --samples, e.g. --tokens 15e12");
  }
  if (options.days && !(*options.days > 0)) {
    throw Error("--days: expected a number above 0, e.g. --days 30");
  }
  SizingQuestion question{.model = options.model,
                          .machines = machines_of(options),
                          .devices = sizes_of(options.devices),
                          .sequence_length = options.sequence_length,
                          .in_samples = !options.samples.empty(),
                          .weak = options.weak,
                          .device_mtbf = options.mtbf,
                          .overrides = options.overrides};
  question.length = question.in_samples
                        ? count_of("--samples", options.samples, 1000, "1e9 or 300M")
                        : count_of("--tokens", options.tokens, 1000, "15e12 or 15T");
  if (!options.batch.empty()) {
    question.batch = count_of("--batch", options.batch, question.in_samples ? 1000 : 1024,
                              question.in_samples ? "1024" : "4M or 4194304");
  }
  if (options.days) question.aims.time = Seconds(*options.days * kSecondsOfDay);
  if (!options.budget.empty()) question.aims.budget = parse_budget(options.budget);
  return question;
}

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
  const SizingQuestion question = question_of(options);
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
    tell("--figure: no size fits, so there is nothing to draw");
  } else if (!options.figure.empty()) {
    write_told(options.figure, converted(line_chart_svg(sizing_chart(sizing)), format),
               options.quiet);
  }
  write_json(options.json, sizing_json(sizing), options.quiet);
  if (sizing.stopped && !options.quiet) tell("interrupted: sizes are missing");
  return !sizing.stopped;
}

}  // namespace interlock
