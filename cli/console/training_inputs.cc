// Samples and descent as options ask for them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/training_inputs.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace interlock {
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

void check_descent(const TrainOptions& options) {
  const auto require = [](const char* option, double value, bool right, const char* expected) {
    if (right && std::isfinite(value)) return;
    throw Error(std::string(option) + ": expected " + expected + ", got " +
                (std::isfinite(value) ? format_number(value) : std::to_string(value)));
  };
  if (options.rate) require("--rate", *options.rate, *options.rate > 0, "a number above 0");
  require("--momentum", options.momentum, options.momentum >= 0 && options.momentum < 1,
          "a number from 0 to below 1");
  require("--decay", options.decay, options.decay >= 0, "a number from 0");
}

Descent descent_of(const TrainOptions& options, Optimizer optimizer) {
  Descent descent{.optimizer = optimizer};
  const bool adam = optimizer == Optimizer::Adam;
  descent.rate = options.rate.value_or(adam ? 1e-3 : 0.05);
  descent.momentum = options.momentum;
  descent.decay = options.decay;
  return descent;
}

}  // namespace interlock
