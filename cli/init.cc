// interlock init: a scenario with comments, of a model, a machine and a number of devices.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/result/value_json.h"
#include "scenarios/starter/starter.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

/// Asks at the terminal and returns what is typed.
std::string ask(const std::string& what) {
  std::cerr << what << ": " << std::flush;
  std::string line;
  std::getline(std::cin, line);
  return line;
}

int number_of(const std::string& text) {
  std::size_t used = 0;
  int number = 0;
  try {
    number = std::stoi(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || number < 1 || number > 1'000'000) {
    throw Error(in_quotes(text) + " is no number of devices; expected 1 to 1000000");
  }
  return number;
}

void ask_for_missing(InitOptions& options) {
  std::string missing;
  const auto lacks = [&](bool is, const char* name) {
    if (is) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  lacks(options.model.empty(), "--model (interlock list models)");
  lacks(options.machine.empty(), "--machine (interlock list machines)");
  lacks(options.devices == 0, "--devices");
  if (missing.empty()) return;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) {
    throw Error("missing " + missing +
                "; e.g. interlock init --model gpt2-xl --machine dgx-a100-80g "
                "--devices 8");
  }
  if (options.model.empty())
    options.model = ask("Model, a name of interlock list models or a file");
  if (options.machine.empty()) {
    options.machine = ask("Machine, a name of interlock list machines or a file");
  }
  if (options.devices == 0) options.devices = number_of(ask("Devices"));
}

void check_target(const InitOptions& options) {
  check_json(options.json);
  if (options.json == "-" && options.out.empty()) {
    throw Error("--json - and the scenario both go to standard output; expected --out FILE");
  }
  if (options.out.empty()) return;
  check_output("--out", options.out);
  if (!options.force && std::filesystem::exists(options.out)) {
    throw Error("--out " + options.out + ": is there already; --force writes over it");
  }
}

std::string plan_json(const InitOptions& options, const Starter& starter) {
  const StarterPlan& plan = starter.plan;
  JsonValue json = json_object(
      {{"format", json_text("interlock-written/1")},
       {"wrote", json_texts({options.out})},
       {"pipeline", json_number(plan.pipeline)},
       {"tensor", json_number(plan.tensor)},
       {"data", json_number(plan.data)},
       {"context", json_number(plan.context)},
       {"expert", json_number(plan.expert)},
       {"expert_tensor", json_number(plan.expert_tensor)},
       {"global_batch_size", json_number(plan.global_batch_size)},
       {"micro_batch_size", json_number(plan.micro_batch_size)},
       {"recompute", json_text(plan.recompute)},
       {"plans", json_number(static_cast<double>(starter.plans))},
       {"step_time_s", json_number(starter.step_time.value())},
       {"peak_memory_bytes", json_number(starter.peak_memory.value())},
       {"reserve", json_text(starter.reserve)},
       {"efficiencies_of", json_text(starter.lender.empty() ? "its own" : starter.lender)},
       {"proven", json_boolean(starter.unproven == 0 && !starter.cut_off)},
       {"left_out", starter.left_out.empty() ? JsonValue() : json_text(starter.left_out)},
       {"fits_in_memory", json_boolean(starter.fits)}});
  if (options.out.empty()) json.members[1].second.items.clear();
  return json_file(json);
}

/// Returns nothing if an interrupt came before any plan was looked at.
std::optional<Starter> choose(const InitOptions& options) {
  std::optional<EndOnInterrupt> until_first(std::in_place, kNothingWritten);
  std::optional<StopOnInterrupt> until_chosen;
  Progress line("plans", 0, 0, !options.quiet, Rest::Unknown);
  const auto told = [&](std::size_t done, std::size_t of) {
    line.reach(done, of);
    if (!until_chosen) {
      until_first.reset();
      until_chosen.emplace();
    }
    if (StopOnInterrupt::asked()) throw StopSearch{};
  };
  const StarterQuestion question = {.model = options.model,
                                    .machine = options.machine,
                                    .devices = options.devices,
                                    .sequence_length = options.sequence_length,
                                    .overrides = options.overrides};
  try {
    return make_starter(question, usable_processors(), told);
  } catch (const StopSearch&) {
    return std::nullopt;
  }
}

void write_starter(const InitOptions& options, const Starter& starter) {
  const std::string folder = std::filesystem::path(options.out).parent_path().string();
  write_file(options.out, starter_text(starter, folder));
  if (!options.quiet) {
    for (const std::string& note : starter.notes) tell("note: " + options.model + ": " + note);
    if (!starter.share.empty()) tell("note: " + starter.share);
    if (!starter.borrowed.empty()) tell("note: " + starter.borrowed);
    tell("wrote " + options.out + "; interlock simulate " + options.out);
    if (!starter.fits) tell("no plan that was tried fits; the file says what it lacks");
    if (starter.unproven > 0 && !starter.cut_off) {
      tell("note: " + std::to_string(starter.unproven) +
           " plans that may be better cost too much to look at");
    }
  }
}

}  // namespace

bool init(InitOptions options) {
  ask_for_missing(options);
  check_target(options);
  const std::optional<Starter> chosen = choose(options);
  if (!chosen) {
    tell(kNothingWritten);
    return false;
  }
  const Starter& starter = *chosen;
  if (options.out.empty()) print(starter_text(starter, ""));
  write_json(options.json, plan_json(options, starter), options.quiet);
  if (!options.out.empty()) write_starter(options, starter);
  if (starter.cut_off) tell("interrupted: the plan is the best of those that were looked at");
  return !starter.cut_off;
}

}  // namespace interlock
