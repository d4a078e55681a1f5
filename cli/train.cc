// interlock train: scenarios trained for real, on the same numbers.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/terminal.h"
#include "validate/training/execution.h"
#include "validate/training/npz.h"

namespace interlock {
namespace {

std::atomic<bool> stopped = false;

/// Ctrl-C ends the run under way; a second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    struct sigaction action = {};
    action.sa_handler = [](int) { stopped = true; };
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGINT, &action, &before_);
  }
  ~StopOnInterrupt() { sigaction(SIGINT, &before_, nullptr); }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction before_ = {};
};

BatchSource batches_of(const TrainOptions& options, const NeuralNetwork& network) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const bool text = network.samples == SampleKind::Tokens;
  if (text && options.data.empty()) {
    throw Error("a language model reads a file, any file; expected --data FILE");
  }
  if (!text && !options.data.empty()) {
    throw Error("--data " + options.data +
                ": a classifier of vectors or images trains on samples that are generated; leave "
                "--data out, or train a transformer");
  }
  return text ? text_batches(read_file(options.data), options.data, network, seed)
              : generated_batches(network, seed);
}

Descent descent_of(const TrainOptions& options, Optimizer optimizer) {
  Descent descent{.optimizer = optimizer};
  const bool adam = optimizer == Optimizer::Adam;
  descent.rate = options.rate.value_or(adam ? 1e-3 : 0.05);
  descent.momentum = options.momentum;
  descent.decay = options.decay;
  return descent;
}

void check(const TrainOptions& options, std::size_t scenarios) {
  if (!options.dump.empty() && scenarios > 1) {
    throw Error("--dump writes the numbers of one scenario, and there are " +
                std::to_string(scenarios) + "; expected one: --set sweep=null");
  }
  if (!options.dump.empty() && options.dump_step >= options.steps) {
    throw Error("--dump-step " + std::to_string(options.dump_step) + ": there are " +
                std::to_string(options.steps) + " steps, counted from 0; expected one of them");
  }
}

}  // namespace

void train(const TrainOptions& options) {
  check_outputs(options.command);
  const std::vector<Scenario> scenarios = load_inputs(options.command);
  check(options, scenarios.size());
  const StopOnInterrupt interrupt;
  std::vector<TrainingCurve> curves;
  for (const Scenario& scenario : scenarios) {
    if (stopped) break;
    const NeuralNetwork network = network_of(scenario);
    const ExecutionOptions asked{.steps = options.steps,
                                 .batches = batches_of(options, network),
                                 .descent = descent_of(options, scenario.optimizer),
                                 .seed = static_cast<std::uint64_t>(options.seed),
                                 .dump_step = options.dump.empty() ? -1 : options.dump_step,
                                 .stop = &stopped};
    if (!options.command.quiet) tell("training " + scenario.name + " ...");
    const Execution execution = execute(scenario, network, asked);
    curves.push_back(training_curve(scenario, execution, asked));
    if (!options.dump.empty()) write_file(options.dump, npz(execution.outcome.dump));
  }
  const CommandOptions& files = options.command;
  if (!files.quiet && files.json != "-") print(training_table(curves, terminal_style()));
  if (!files.svg.empty()) write_file(files.svg, training_svg(curves));
  if (files.json == "-") print(training_json(curves));
  if (!files.json.empty() && files.json != "-") write_file(files.json, training_json(curves));
  if (stopped) throw Error("interrupted: what is written has the steps that were done");
}

}  // namespace interlock
