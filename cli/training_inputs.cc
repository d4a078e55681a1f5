// Samples and descent as options ask for them, and Ctrl-C.
// SPDX-License-Identifier: Apache-2.0
#include "cli/training_inputs.h"

#include "base/error.h"
#include "base/file.h"

namespace interlock {
namespace {

std::atomic<bool> stopped = false;

}  // namespace

StopOnInterrupt::StopOnInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stopped = true; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, &before_);
}

StopOnInterrupt::~StopOnInterrupt() { sigaction(SIGINT, &before_, nullptr); }

const std::atomic<bool>& StopOnInterrupt::asked() { return stopped; }

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
