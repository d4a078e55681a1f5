// interlock validate run: predict, run for real, compare.
// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/console/inputs.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/console/training_inputs.h"
#include "cli/parser/commands.h"
#include "validate/crosscheck/validation.h"

namespace interlock {
namespace {

std::optional<OpClock> clock_of(const std::string& name) {
  if (name == "wall") return OpClock::Wall;
  if (name == "processor") return OpClock::Processor;
  return std::nullopt;
}

struct Predictions {
  std::vector<ScenarioResult> results;
  std::string checksum;
};

/// Predicts all plans before any of them runs, so that no prediction can know a measurement.
Predictions predict_all(const ValidateOptions& options, const std::vector<Plan>& plans) {
  const int steps = options.training.steps;
  Predictions predictions;
  predictions.results.reserve(plans.size());
  for (const Plan& plan : plans) {
    predictions.results.push_back(predict(plan, options.fill, steps));
  }
  const std::string text = prediction_json(predictions.results, options.fill, steps);
  predictions.checksum = sha256(text);
  if (!options.prediction.empty()) write_file(options.prediction, text);
  if (!options.training.command.quiet) tell("predicted; SHA-256 " + predictions.checksum);
  return predictions;
}

}  // namespace

void validate_run(const ValidateOptions& options) {
  const TrainOptions& training = options.training;
  check_outputs(training.command);
  check_descent(training);
  const std::vector<Question> scenarios = load_inputs(training.command);
  check_single(training.command, scenarios.size());
  std::vector<NeuralNetwork> networks;
  networks.reserve(scenarios.size());
  std::vector<Plan> plans;
  for (const Question& scenario : scenarios) {
    networks.push_back(network_of(scenario));
    plans.push_back(plan_training(scenario, networks.back(), training.graph));
  }
  const Predictions predictions = predict_all(options, plans);
  const StopOnInterrupt interrupt;
  std::vector<Comparison> comparisons;
  std::vector<ScenarioResult> timelines;
  std::exception_ptr failed;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!training.command.quiet) tell("running " + scenarios[i].name + " ...");
    const ExecutionOptions execution{
        .steps = options.fill + training.steps,
        .batches = batches_of(training, networks[i]),
        .descent = descent_of(training, scenarios[i].training().optimizer.kind),
        .seed = static_cast<std::uint64_t>(training.seed),
        .graph = training.graph,
        .streams = training.streams,
        .stop = &StopOnInterrupt::asked()};
    try {
      Validation validation = validate(
          predictions.results[i], networks[i],
          {.execution = execution, .fill = options.fill, .clock = clock_of(options.clock)});
      comparisons.push_back(std::move(validation.comparison));
      timelines.push_back(predictions.results[i]);
      timelines.push_back(std::move(validation.measured));
    } catch (const Error&) {
      if (comparisons.empty()) throw;
      failed = std::current_exception();  // what others came to is not lost
      break;
    }
  }
  const CommandOptions& files = training.command;
  if (!files.quiet && files.json != "-") print(validation_table(comparisons, terminal_style()));
  const std::string json = validation_json(comparisons, predictions.checksum);
  if (files.json == "-") print(json);
  if (!files.json.empty() && files.json != "-") write_file(files.json, json);
  if (!files.report.empty()) write_file(files.report, validation_html(comparisons, timelines));
  write_traces(files, timelines.back());
  if (failed) std::rethrow_exception(failed);
}

}  // namespace interlock
