// Scenarios whose layers have degrees of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/validate/support/layout_trial.h"

namespace interlock {

/// Modules [first, end) on tensor x data devices.
struct LayersOf {
  int first = 0, end = 0, tensor = 1, data = 1;
};

/// The text of "layer_layouts".
std::string layers_text(const std::vector<LayersOf>& layers);

struct LayersTrial {
  LayoutTrial trial;  // without layers
  std::vector<LayersOf> layers;
  int modules = 0;
  int pipeline = 1, context = 1, tensor = 1, data = 1, samples = 1;  // of a micro-batch
  /// Returns the trial with its layers.
  LayoutTrial with_layers() const;
};

/// A small transformer of some schedule, strategy and cluster on up to `most` devices, a quarter of
/// them or more a pipeline rank if these are many, and one to three entries of layers; equal seeds
/// make equal ones. Some are refused when they are loaded.
LayersTrial random_layers(std::uint64_t seed, int most = 32);

}  // namespace interlock
