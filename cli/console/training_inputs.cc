// Samples and descent as options ask for them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/training_inputs.h"

#include "base/error.h"
#include "base/file.h"

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

Descent descent_of(const TrainOptions& options, Optimizer optimizer) {
  Descent descent{.optimizer = optimizer};
  const bool adam = optimizer == Optimizer::Adam;
  descent.rate = options.rate.value_or(adam ? 1e-3 : 0.05);
  descent.momentum = options.momentum;
  descent.decay = options.decay;
  return descent;
}

}  // namespace interlock
