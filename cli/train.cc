// interlock train: scenarios trained for real, on the same numbers.
// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include "base/file.h"
#include "cli/console/inputs.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/console/training_inputs.h"
#include "cli/parser/commands.h"
#include "reports/page/training_page.h"
#include "validate/training/npz.h"

namespace interlock {
namespace {

void check(const TrainOptions& options, std::size_t scenarios) {
  if (!options.dump.empty() && scenarios > 1) {
    throw Error("--dump writes the numbers of one scenario, and there are " +
                std::to_string(scenarios) + "; expected one: --set sweep=null");
  }
  if (!options.dump.empty() && options.seeds > 1) {
    throw Error("--dump writes the numbers of one run; expected --seeds 1, got " +
                std::to_string(options.seeds));
  }
  if (!options.dump.empty() && options.dump_step >= options.steps) {
    throw Error("--dump-step " + std::to_string(options.dump_step) + ": there are " +
                std::to_string(options.steps) + " steps, counted from 0; expected one of them");
  }
}

std::string message_of(const TrainOptions& options, const Question& scenario) {
  const std::string seed = options.seeds > 1 ? ", seed " + std::to_string(options.seed) : "";
  return "training " + scenario.name + seed + " ...";
}

void write_curves(const CommandOptions& files, const std::vector<TrainingCurve>& curves) {
  if (!files.quiet && files.json != "-") print(training_table(curves, terminal_style()));
  if (!files.svg.empty()) write_file(files.svg, line_chart_svg(training_chart(curves)));
  if (!files.report.empty()) write_file(files.report, training_html(curves));
  if (files.json == "-") print(training_json(curves));
  if (!files.json.empty() && files.json != "-") write_file(files.json, training_json(curves));
}

}  // namespace

void train(const TrainOptions& options) {
  check_outputs(options.command);
  check_descent(options);
  const std::vector<Question> scenarios = load_inputs(options.command);
  check(options, scenarios.size());
  std::vector<NeuralNetwork> networks;
  networks.reserve(scenarios.size());
  std::vector<Plan> plans;
  for (const Question& scenario : scenarios) {
    networks.push_back(network_of(scenario));
    plans.push_back(plan_training(scenario, networks.back(), options.graph));
  }
  const StopOnInterrupt interrupt;
  std::vector<TrainingCurve> curves;
  std::exception_ptr failed;
  const std::size_t runs = scenarios.size() * static_cast<std::size_t>(options.seeds);
  for (std::size_t run = 0; run < runs; ++run) {
    if (StopOnInterrupt::asked()) break;
    const std::size_t i = run % scenarios.size();  // all scenarios, then the next seed
    const Question& scenario = scenarios[i];
    const NeuralNetwork& network = networks[i];
    TrainOptions own = options;
    own.seed += static_cast<int>(run / scenarios.size());
    if (!options.command.quiet) tell(message_of(own, scenario));
    try {
      const ExecutionOptions asked{
          .steps = options.steps,
          .batches = batches_of(own, network),
          .descent = descent_of(options, scenario.training().optimizer.kind),
          .seed = static_cast<std::uint64_t>(own.seed),
          .dump_step = options.dump.empty() ? -1 : options.dump_step,
          .graph = options.graph,
          .streams = options.streams,
          .stop = &StopOnInterrupt::asked()};
      const Execution execution = execute(plans[i], network, asked);
      curves.push_back(training_curve(plans[i], execution, asked));
      if (!options.dump.empty()) write_file(options.dump, npz(execution.outcome.dump));
    } catch (const Error&) {
      if (curves.empty()) throw;
      failed = std::current_exception();  // what others have learnt is not lost
      break;
    }
  }
  write_curves(options.command, curves);
  if (failed) std::rethrow_exception(failed);
  if (StopOnInterrupt::asked())
    throw Error("interrupted: what is written has the steps that were done");
}

}  // namespace interlock
