// What train and validate have in common: samples, descent, and a way to stop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>

#include "cli/commands.h"
#include "validate/training/execution.h"

namespace interlock {

/// Ctrl-C ends the run under way, which then gives what it has; a second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
  static const std::atomic<bool>& asked();

 private:
  struct sigaction before_ = {};
};

/// Throws: Error if the network needs a file and there is none, or the other way round.
BatchSource batches_of(const TrainOptions& options, const NeuralNetwork& network);
Descent descent_of(const TrainOptions& options, Optimizer optimizer);

}  // namespace interlock
