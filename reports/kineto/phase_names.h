// PhaseNames: what the name of a range says about the work inside it.
// SPDX-License-Identifier: Apache-2.0
//
// Examples:
//   forward stage 0                  a phase, then a stage, a layer, or whatever it is called
//   backward_input of layer 3        "of" may stand between them, and _, -, : or / for blanks
//   forward stage 0 micro-batch 5    which micro-batch it is makes no difference
//   forward                          of all that its file holds
//   PP:2F5                           as torch.distributed.pipelining says: stage 2, micro-batch 5
//   Optimizer.step#Adam.step         as PyTorch's optimisers say: an update
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace interlock {

enum class Phase { Forward, BackwardInput, BackwardWeight, Backward, Head, Recompute, Update };
inline constexpr int kPhases = 7;

struct PhaseName {
  Phase phase = Phase::Forward;
  std::string part;  // of the model: "stage 0"; empty: all of its file
};

/// Returns nothing if `name` is of another kind.
std::optional<PhaseName> read_phase_name(std::string_view name);

/// Returns "forward", "backward_input", ...
const char* name_of(Phase phase);

}  // namespace interlock
