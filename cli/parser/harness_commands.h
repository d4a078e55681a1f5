// HarnessCommands: the commands that run real kernels, which a module of their own brings.
// SPDX-License-Identifier: Apache-2.0
//
// train, calibrate and validate need Eigen and, on GPUs, CUDA, and take half as long to compile as
// all the rest. They lie in libinterlock_harness.so, which the program opens when one is asked for.
#pragma once

#include "cli/parser/asked.h"

namespace interlock {

/// Holds what the module offers; see commands.h.
struct HarnessCommands {
  void (*train)(const TrainOptions& options) = nullptr;
  void (*validate_run)(const ValidateOptions& options) = nullptr;
  void (*validate_fit)(const FitOptions& options) = nullptr;
  int (*validate_published)(const PublishedOptions& options) = nullptr;
  void (*calibrate)(const CalibrateOptions& options) = nullptr;
};

/// Names the entry point of the module, `interlock_harness_commands`.
using OfferHarness = const HarnessCommands* (*)();

}  // namespace interlock
