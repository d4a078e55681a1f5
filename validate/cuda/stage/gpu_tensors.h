// What the steps of a stage on a GPU work on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/cuda/stage/gpu_stage.h"

namespace interlock::cuda {

inline void set(GpuTensors& tensors, Place place, const Extent& extent, std::int64_t bytes = 0) {
  if (extent) tensors.places[static_cast<std::size_t>(place)] = extent.data + bytes;
}

inline GpuTensors tensors_of(const GpuStage& stage, const GpuMicroBatch& batch, int micro_batch) {
  GpuTensors tensors;
  tensors.samples = stage.job->network.samples_per_micro_batch;
  tensors.rows_per_sample = stage.job->network.rows_per_sample;
  tensors.weights = &weights_of(stage, stage.keeps_versions ? batch.version : stage.version);
  tensors.batch = stage.batches[static_cast<std::size_t>(micro_batch)];
  tensors.loss = stage.losses + micro_batch;
  set(tensors, Place::Input, batch.input);
  set(tensors, Place::Stash, batch.stash);
  set(tensors, Place::Output, batch.output);
  return tensors;
}

/// What is computed again lies at the end of the workspace.
inline void set_workspace(GpuTensors& tensors, const Extent& workspace) {
  set(tensors, Place::Workspace, workspace);
  set(tensors, Place::Again, workspace, workspace.bytes);
}

}  // namespace interlock::cuda
