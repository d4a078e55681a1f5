// Module frames: parts of the model in traces whose loop names none.
// SPDX-License-Identifier: Apache-2.0
//
// With with_stack or with_modules the profiler records a frame for each call of an nn.Module, e.g.
//   nn.Module: GPT_0
//     nn.Module: Embedding_0
//     nn.Module: Block_0        a class with several instances: the layers
//       nn.Module: Linear_0
//     nn.Module: Block_1
//     nn.Module: LayerNorm_4
// Parts are the frames at the depth where most of the time is spent in classes with several
// instances, and frames above it that hold no other: embedding 0, block 0, block 1, layernorm 4.
#pragma once

#include "reports/kineto/kineto_events.h"

namespace interlock {

/// Returns true if a range of the trace names a forward or a backward.
bool names_its_parts(const KinetoEvents& events);

/// Names the chosen frames "forward NAME", unless a range of the trace names a forward or a
/// backward itself. Does nothing to a trace without frames.
void name_module_frames(KinetoEvents& events);

}  // namespace interlock
