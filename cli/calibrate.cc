// interlock calibrate: measures this machine, prints how well the fit does, writes a device file.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/inputs.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "hardware/devices/device.h"
#include "validate/calibration/calibration_file.h"
#include "validate/cpu/cpu_collectives.h"
#include "validate/training/execution.h"
#include "validate/training/scenario_probes.h"

namespace interlock {
namespace {

constexpr std::string_view kGpu = "cuda";

struct GpuPlace {
  int device = 0, partitions = 1;
};

[[noreturn]] void refuse_device(const std::string& device) {
  throw Error("--device " + device +
              ": expected cpu, cuda, or cuda:N for GPU number N (cuda:N/K: one of K equal "
              "partitions of it)");
}

/// Returns the numbers in "cuda", "cuda:N" and "cuda:N/K".
GpuPlace gpu_place(const std::string& device) {
  GpuPlace place;
  const char *at = device.data() + kGpu.size(), *end = device.data() + device.size();
  const auto read = [&](char mark, int least, int& number) {
    if (at == end) return;
    if (*at != mark) refuse_device(device);
    const auto [after, failed] = std::from_chars(at + 1, end, number);
    if (failed != std::errc() || number < least) refuse_device(device);
    at = after;
  };
  read(':', 0, place.device);
  read('/', 2, place.partitions);
  if (at != end) refuse_device(device);
  return place;
}

Bench bench_of(const std::string& device) {
  if (device == "cpu") {
    Bench bench = cpu_bench();
    add_collectives(bench);
    return bench;
  }
  if (!device.starts_with(kGpu)) refuse_device(device);
  const GpuPlace place = gpu_place(device);
  std::string why;
  if (std::optional<Bench> bench = cuda_bench(place.device, place.partitions, why)) return *bench;
  throw Error("--device " + device + ": " + why);
}

Beside beside_of(const std::string& name) {
  for (const Beside beside : {Beside::Nothing, Beside::Products, Beside::Copies}) {
    if (name == name_of(beside)) return beside;
  }
  throw Error("--beside " + name + ": expected nothing, products or copies");
}

/// Adds the kernels of the scenarios that were named, and says which of them nothing stands for.
void add_wanted(const CalibrateOptions& options, CalibrationOptions& asked) {
  const std::vector<Question> scenarios = load_inputs(
      {.inputs = options.scenarios, .overrides = options.overrides, .quiet = options.quiet});
  if (scenarios.empty() && !options.overrides.empty()) {
    throw Error("--set changes the scenarios of --for, and there are none; expected --for as well");
  }
  ScenarioProbes wanted;
  for (const Question& scenario : scenarios) {
    append_probes(wanted, scenario_probes(scenario.training().graph, network_of(scenario),
                                          scenario.training().precision));
    asked.wanted_for.push_back(scenario.name);
  }
  if (!scenarios.empty() && !options.quiet) {
    tell("calibrate: " + std::to_string(wanted.probes.size()) + " kernels of " +
         std::to_string(scenarios.size()) + " scenarios; " +
         std::to_string(wanted.left_out.size()) + " that nothing stands for");
  }
  asked.wanted = std::move(wanted.probes);
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

template <class... Values>
std::string line(const char* form, Values... values) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), form, values...);
  return text.data();
}

std::string errors_table(const Calibration& calibration) {
  constexpr const char* kForm = "%-13s %-9s %-8s %7s  %6s %6s %6s %6s %6s  %s\n";
  std::string text = line(kForm, "Kernels", "Held out", "Priced", "Samples", "MAPE", "Median",
                          "p95", "Max", "Bias", "95% of MAPE");
  const auto percent = [](double share) { return line("%.1f", 100 * share); };
  for (const HeldOutErrors& row : calibration.errors) {
    const std::string& name = op_class_names()[static_cast<std::size_t>(row.op_class)];
    for (const auto& [level, summary] :
         {std::pair("roofline", row.roofline), std::pair("kernel", row.kernel)}) {
      text += line(kForm, name.c_str(), name_of(row.part), level,
                   std::to_string(summary.count).c_str(), percent(summary.mape).c_str(),
                   percent(summary.median).c_str(), percent(summary.p95).c_str(),
                   percent(summary.most).c_str(), percent(summary.bias).c_str(),
                   (percent(summary.low) + " - " + percent(summary.high)).c_str());
    }
  }
  return text;
}

std::string summary(const Calibration& calibration) {
  std::string text = calibration.facts.processor + "\n" +
                     std::to_string(calibration.samples.size()) + " kernels measured, " +
                     std::to_string(calibration.rejected) + " rejected as too unsteady; drift " +
                     line("%.1f", 100 * calibration.drift) + "%\n\n";
  text += errors_table(calibration);
  text +=
      "\nErrors in % of kernels that the fit has not seen: one in five at random (interior), "
      "and the largest 15 %.\nroofline: of the class; kernel: as the simulator prices them, by "
      "the kernel of the nearest measured shape.\n";
  if (calibration.copies) {
    text += "\nCopies from one thread to another: " + format(calibration.copies->latency) + ", " +
            format(calibration.copies->bandwidth) + "\n";
  }
  text += "Times beside products | copies on all other processors:";
  for (std::size_t i = 0; i + 1 < calibration.interference.size(); i += 2) {
    const Slowdown& one = calibration.interference[i];
    text += line("%s %s %.2f | %.2f", i ? "," : "",
                 op_class_names()[static_cast<std::size_t>(one.op_class)].c_str(), one.factor,
                 calibration.interference[i + 1].factor);
  }
  return text + "\n";
}

}  // namespace

void calibrate(const CalibrateOptions& options) {
  if (!options.out.empty()) check_output("--out", options.out);
  if (!options.samples.empty()) check_output("--samples", options.samples);
  check_json(options.json);
  CalibrationOptions asked{.quick = options.quick,
                           .seed = options.seed,
                           .beside = beside_of(options.beside),
                           .warm = options.warm,
                           .progress = [&](const std::string& sentence) {
                             if (!options.quiet) tell("calibrate: " + sentence);
                           }};
  add_wanted(options, asked);
  const Calibration result = calibrate(bench_of(options.device), asked);
  if (options.json != "-" && !options.quiet) print(summary(result));
  if (!options.samples.empty()) write_file(options.samples, samples_csv(result));
  const std::string device = device_file(
      result,
      {.date = date_now(), .command = options.command_line, .program_version = INTERLOCK_VERSION});
  write_json(options.json, device, options.quiet);
  if (options.out.empty() && !options.json.empty()) return;
  if (options.out.empty()) {
    if (options.quiet) return;
    tell("nothing was kept; --out FILE.json writes a device that scenarios can use");
    return;
  }
  write_file(options.out, device);
  if (!options.quiet)
    tell("wrote " + options.out + "; in a scenario: \"device\": \"" + options.out + "\"");
}

}  // namespace interlock
