// The blocks that a stage on the CPU holds, as steps see them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/cpu/cpu_stage.h"

namespace interlock {

/// Of what lies `bytes` behind the begin of a block; null if there is no block.
template <class T>
T* numbers(const Block& block, std::int64_t bytes = 0) {
  return block ? reinterpret_cast<T*>(block.data + bytes) : nullptr;
}

template <class T>
void set(StageTensors<T>& tensors, Place place, T* begin) {
  tensors.places[static_cast<std::size_t>(place)] = begin;
}

template <class T>
StageTensors<T> tensors_of(const CpuStage<T>& stage, const MicroBatch& batch) {
  StageTensors<T> tensors;
  tensors.samples = stage.job->network.samples_per_micro_batch;
  tensors.rows_per_sample = stage.job->network.rows_per_sample;
  tensors.weights = &weights_of(stage, stage.keeps_versions ? batch.version : stage.version);
  T* const lent = reinterpret_cast<T*>(batch.lent);
  set(tensors, Place::Input, lent != nullptr ? lent : numbers<T>(batch.input));
  set(tensors, Place::Stash, numbers<T>(batch.stash));
  set(tensors, Place::Output, numbers<T>(batch.output));
  return tensors;
}

/// What is computed again lies at the end of the workspace, an input that is not kept at its begin.
template <class T>
void set_workspace(const CpuStage<T>& stage, StageTensors<T>& tensors, const Block& workspace) {
  const std::int64_t input = stage.drops_input() ? stage.plan.input : 0;
  if (input > 0) set(tensors, Place::Input, numbers<T>(workspace));
  set(tensors, Place::Workspace, numbers<T>(workspace, input));
  set(tensors, Place::Again, numbers<T>(workspace, workspace.bytes));
}

}  // namespace interlock
