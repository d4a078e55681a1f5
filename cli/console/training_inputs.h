// Inputs that train and validate share: samples and descent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/parser/commands.h"
#include "validate/training/execution.h"

namespace interlock {

/// Throws: Error if the network needs a file and there is none, or the other way round.
BatchSource batches_of(const TrainOptions& options, const NeuralNetwork& network);
/// Throws: Error if a rate, a momentum or a decay is not one.
void check_descent(const TrainOptions& options);
Descent descent_of(const TrainOptions& options, Optimizer optimizer);

}  // namespace interlock
