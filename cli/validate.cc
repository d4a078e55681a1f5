// interlock validate run: predict, run for real, compare.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "cli/training_inputs.h"
#include "validate/crosscheck/validation.h"

namespace interlock {
namespace {

std::optional<OpClock> clock_of(const std::string& name) {
  if (name == "wall") return OpClock::Wall;
  if (name == "processor") return OpClock::Processor;
  return std::nullopt;
}

/// Before anything runs, so that nobody can say that it was known.
std::vector<ScenarioResult> predict_all(const ValidateOptions& options,
                                        const std::vector<Scenario>& scenarios) {
  std::vector<ScenarioResult> predictions;
  predictions.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) {
    predictions.push_back(predict(scenario, options.fill, options.training.steps));
  }
  if (!options.prediction.empty()) {
    write_file(options.prediction,
               prediction_json(predictions, options.fill, options.training.steps));
  }
  return predictions;
}

}  // namespace

void validate_run(const ValidateOptions& options) {
  const TrainOptions& training = options.training;
  check_outputs(training.command);
  const std::vector<Scenario> scenarios = load_inputs(training.command);
  check_single(training.command, scenarios.size());
  std::vector<NeuralNetwork> networks;
  networks.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) networks.push_back(network_of(scenario));
  const std::vector<ScenarioResult> predictions = predict_all(options, scenarios);
  const StopOnInterrupt interrupt;
  std::vector<Comparison> comparisons;
  std::vector<ScenarioResult> timelines;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!training.command.quiet) tell("running " + scenarios[i].name + " ...");
    const ExecutionOptions execution{.steps = options.fill + training.steps,
                                     .batches = batches_of(training, networks[i]),
                                     .descent = descent_of(training, scenarios[i].optimizer),
                                     .seed = static_cast<std::uint64_t>(training.seed),
                                     .stop = &StopOnInterrupt::asked()};
    Validation validation =
        validate(predictions[i], networks[i],
                 {.execution = execution, .fill = options.fill, .clock = clock_of(options.clock)});
    comparisons.push_back(std::move(validation.comparison));
    timelines.push_back(predictions[i]);
    timelines.back().scenario.name = "predicted | " + scenarios[i].name;
    timelines.push_back(std::move(validation.measured));
  }
  const CommandOptions& files = training.command;
  if (!files.quiet && files.json != "-") print(validation_table(comparisons, terminal_style()));
  if (files.json == "-") print(validation_json(comparisons));
  if (!files.json.empty() && files.json != "-") {
    write_file(files.json, validation_json(comparisons));
  }
  if (!files.report.empty()) write_file(files.report, html_report(timelines));
  write_traces(files, timelines.back());
}

}  // namespace interlock
