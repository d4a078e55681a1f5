// Reads "training": the batch and its micro-batches, precision, optimiser, steps.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "scenarios/contract.h"
#include "scenarios/loader.h"

namespace interlock {
namespace {

constexpr int kLargestBatch = 1'000'000'000;
constexpr int kMostSteps = 1'000'000;
constexpr std::array kOptimizers = {Optimizer::Sgd, Optimizer::SgdMomentum, Optimizer::Adam,
                                    Optimizer::Adam};

void report_indivisible(const JsonNode& node, int divisor, int batch, Diagnostics& diagnostics) {
  report(diagnostics, node,
         "the global batch is no whole multiple of it; expected a divisor of " +
             std::to_string(batch) + ", got " + std::to_string(divisor));
}

/// Whichever of the three sizes are written decide the rest.
void read_batch(Section& section, TrainingKeys& training) {
  Diagnostics& diagnostics = section.diagnostics();
  const Mistakes mistakes(diagnostics);
  training.global_batch_size = section.count("global_batch_size", kLargestBatch);
  const std::optional<int> size = section.count("micro_batch_size", kLargestBatch);
  const std::optional<int> count = section.count("micro_batches", kLargestBatch);
  const std::optional<JsonNode> size_node = section.get("micro_batch_size");
  const std::optional<JsonNode> count_node = section.get("micro_batches");
  if (size_node && count_node) {
    report(diagnostics, *count_node,
           "given beside \"micro_batch_size\"; expected one of the two, the other follows");
  }
  if (mistakes.none()) {
    const std::optional<int> batch = training.global_batch_size;
    if (batch && size && *batch % *size) report_indivisible(*size_node, *size, *batch, diagnostics);
    if (batch && count && *batch % *count) {
      report_indivisible(*count_node, *count, *batch, diagnostics);
    }
    training.micro_batches = count ? *count : batch && size ? *batch / *size : 1;
    training.micro_batch_size = size ? *size : batch ? *batch / training.micro_batches : 1;
    training.samples_known = batch || size;
  }
  training.batch_valid = mistakes.none();
  if (!training.batch_valid) training.micro_batches = training.micro_batch_size = 1;
}

}  // namespace

TrainingKeys read_training(const JsonNode& node, Diagnostics& diagnostics) {
  TrainingKeys training{.node = node, .precision_node = node};
  Section section("training", node, diagnostics);
  if (const auto strategy = section.require("strategy", "\"global\", \"local\" or \"pairwise\"")) {
    training.strategy = read_strategy(*strategy, diagnostics);
  }
  training.schedule = section.get("schedule");
  read_batch(section, training);
  training.precision =
      static_cast<Precision>(section.choice("precision", static_cast<int>(Precision::Bf16)));
  if (const auto precision = section.get("precision")) training.precision_node = *precision;
  training.optimizer = kOptimizers[static_cast<std::size_t>(section.choice("optimizer", 1))];
  training.recompute = static_cast<Recompute>(section.choice("recompute", 0));
  training.steps = section.count("steps", 8, 1, kMostSteps);
  section.finish();
  return training;
}

}  // namespace interlock
