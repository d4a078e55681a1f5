// StagePlan: the layers of a stage, or of a head, as steps over tensors whose places are fixed.
// SPDX-License-Identifier: Apache-2.0
//
// The stash holds what a forward keeps, in exactly the bytes that models/layers/operators.h
// counts; a tensor that is kept is written there at once, so that a forward needs nothing else.
// Gradients of a backward lie in the workspace. The last backward of a stage, which makes its
// weight gradients, lets the gradient of a kept tensor take that tensor's place where nothing reads
// the tensor any more (norms, GELU, attention, loss): these are the gradients that the weight half
// of a split backward still needs. Norms make their weight gradients in the input half, while they
// can.
//
// A module that is computed again keeps only its input, or all but what parts of it make: the
// outputs of its norms, what its MLP makes inside, the probabilities of its attention. The rest
// lies at the end of the workspace, for as long as its forward, or its backward with what is done
// again before it, runs.
//
// Example: Linear 4 -> 8, Relu and Linear 8 -> 2 over three rows of fp32 take an input of 48 bytes
// and a stash of 96, in which the Relu works in place. Backward: the input gradient of the second
// product into the workspace (96 bytes), the Relu's mask over it, then that of the first; both
// weight gradients are late.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "validate/network/network.h"

namespace interlock {

/// The blocks of memory that steps work on.
enum class Place : std::uint8_t {
  None,
  Input,  // of the stage; kept from forward to backward
  Stash,  // what else is kept
  Workspace,
  Output,
  OutputGradient,
  InputGradient,
  Again,     // of modules that are computed again; begins at the end of the workspace: offsets < 0
  Returned,  // the output, which comes back with its gradient where stages are reversible
};
inline constexpr int kPlaces = 9;

/// A matrix in a block, or some of the columns of one.
struct Tensor {
  Place place = Place::None;
  std::int64_t offset = 0;  // bytes from the block's start
  std::int64_t rows = 0;
  int columns = 0;
  int first_column = 0, stride = 0;  // of `stride` columns; 0: it has them all
  std::int64_t size() const { return rows * columns; }
};

enum class StepKind : std::uint8_t {
  Forward,
  BackwardInput,
  BackwardWeight,
  Add,   // dx + x
  Copy,  // x
  Less,  // x - dx
  Mask
};

/// Returns the bytes of a statistic: those of fp32, or of double where all numbers are double.
inline int statistic_bytes(int element) { return std::max<int>(sizeof(float), element); }

/// Returns the first or the second half of the columns.
Tensor half_of(const Tensor& whole, bool second);

/// One kernel, or a few.
struct Step {
  StepKind kind = StepKind::Forward;
  const Layer* layer = nullptr;  // none of Add, Copy, Less and Mask
  int parameter = 0;             // number of its first one in the stage's list
  Tensor x;                      // what the layer read; Add: what is added; Mask: what a Relu made
  Tensor y;                      // what it makes, or the gradient of that
  Tensor dx;                     // BackwardInput, Add, Copy, Less, Mask: what is written or changed
  Tensor probabilities;          // Attention: kept, unless it is fused
  /// Fused attention: of each head and token the logarithm of its sum of exponentials; kept.
  Tensor statistics;
  Tensor output;  // fused attention, backwards: what its forward made
  /// Attention that is not fused, backwards: of a head of a sample: positions^2, and in place
  /// positions * size more.
  Tensor scratch;
  bool accumulate = false;  // what is written is added to what is there
  bool rectified = false;   // AveragePool, backwards: x was made by a Relu
  bool late = false;        // BackwardWeight: may run apart, when all others are done
};

/// Returns whether a backward makes again what `part` made: all is made again where no `parts` are
/// named. Each layer belongs to one part at most.
constexpr bool is_again(LayerParts parts, LayerParts part) {
  LayerParts both = parts;
  both |= part;
  return parts.empty() || (!part.empty() && both == parts);
}

/// Layers [first, end) of a stage.
struct LayerRange {
  std::size_t first = 0, end = 0;
  LayerParts parts = {};  // of them, only these are computed again; none: all is
};

struct PlanInputs {
  const std::vector<Layer>& layers;  // must outlive the plan
  int samples = 1;
  std::int64_t rows = 1;  // of the input
  int columns = 1;
  int element = 4;               // bytes
  bool input_rectified = false;  // a Relu made the input
  /// The place of the input's gradient: InputGradient; Workspace: it is made, but not read; None:
  /// it is not made.
  Place input_gradient = Place::InputGradient;
  std::vector<LayerRange> again = {};  // modules that are computed again, in order
  bool again_early = true;             // the last of them before all, not right before it goes back
  /// Couplings at the end, all in one range of `again`: rebuilt from the output, last to first. The
  /// input of the first of them is rebuilt, too: it is Place::Input where that is the stage's.
  bool rebuilds = false;
};

struct StagePlan {
  std::vector<Step> forward;
  std::vector<Step> backward;  // with weight gradients; of the layers, last to first
  std::vector<Step> passing;   // without, which changes nothing that is kept; empty with a loss
  std::vector<Step> again;     // comes before either: the last module again; others are in them
  Tensor output;               // rows and columns; none with a loss
  std::int64_t input = 0, stash = 0, workspace = 0;  // bytes that are needed
  std::int64_t parameters = 0;                       // numbers
  /// Every weight gradient that is late reads tensors that stay until all others are made.
  bool splits = true;
};

/// Throws nothing; whether `workspace` is there is up to the caller.
StagePlan plan_stage(const PlanInputs& inputs);

/// Returns whether a Relu makes the output of `layers`.
bool ends_rectified(const std::vector<Layer>& layers);

}  // namespace interlock
