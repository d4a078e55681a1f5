// Work: what one kernel has to do. Here models (what must be computed) meet hardware (how fast).
// SPDX-License-Identifier: Apache-2.0
//
// Example: 32 samples through a layer of 784 inputs and 1,024 outputs in fp32 are a product of m =
// 32, k = 784 and n = 1,024: 2 m k n = 51.4 Mflop, and 4 (m k + k n + m n) = 3.44 MB of traffic.
#pragma once

#include <optional>

#include "base/units.h"

namespace interlock {

/// Classes of kernels that reach different shares of a device's peak rates.
enum class OpClass {
  Gemm,
  Convolution,
  Attention,
  Elementwise,
  Normalisation,
  Embedding,
  Loss,
  Optimizer,
  Measured,  // the duration is known; no device model is asked
};
inline constexpr int kOpClasses = 9;

/// Number format of the main computation; accumulation and masters are fp32 throughout.
enum class Precision { Fp32, Tf32, Fp16, Bf16, Fp8, Fp4 };
inline constexpr int kPrecisions = 6;

/// Which part of its operator a kernel is. What measured kernels are told apart by.
enum class OpRole { Other, Forward, InputGradient, WeightGradient };
inline constexpr int kOpRoles = 4;

/// Kernels of one class that take different times for equal work. Fused: attention in one kernel.
/// StateSpace: chunks of tokens whose states decay, likewise without stored scores. Factored: QR
/// of a square matrix.
enum class OpVariant {
  Plain,
  Relu,
  Gelu,
  Softmax,
  Add,
  Dropout,
  Momentum,
  Adam,
  Fused,
  StateSpace,
  Factored
};

/// Places of kernels in a layer whose tokens pass to experts and back beside other kernels:
/// between these ways (Experts), beside the way there or back (of shared experts), or around them.
enum class KernelPlace { Around, BesideThere, Experts, BesideBack };
inline constexpr int kKernelPlaces = 4;

/// Sizes of a matrix product, (m, k) times (k, n), of each of `batch` equal ones. k = 0: it is no
/// product, or its shape is unknown. Of a kernel of several products (the gradients of both
/// operands, a fused attention), those of the product that its forward begins with: of attention,
/// one head of a sample, with as many columns as are computed of a row on average.
struct ProductShape {
  double m = 0, n = 0, k = 0, batch = 1;
  bool operator==(const ProductShape&) const = default;
};

/// One kernel, or several equal ones: arithmetic, memory traffic and launches.
/// `flops` and `bytes` are totals over all launches, `shape` is that of one.
/// `flops` is the arithmetic that the kernel executes: time and HFU come from it. MFU counts
/// `counted` where that is another number; see counted_flops().
/// `measured` holds for OpClass::Measured only.
struct Work {
  OpClass op_class = OpClass::Elementwise;
  Flops flops;
  Bytes bytes;
  int launches = 1;
  Seconds measured;
  OpRole role = OpRole::Other;
  OpVariant variant = OpVariant::Plain;
  ProductShape shape = {};
  std::optional<Flops> counted = {};
  KernelPlace place = KernelPlace::Around;
  bool replayed = false;  // in a CUDA graph: the host does not issue it
  bool awaited = false;   // the host issues no later kernel until it has ended
  bool wide = false;      // in 16 bits, where the training has 8 or 4
  int more_issues = 0;    // products of further experts, in what counts as `launches` kernels
};

/// Returns what the convention behind MFU counts of `work`. It differs for attention, where the
/// convention counts the whole score matrix or half of it, whatever the kernel computes of it.
inline Flops counted_flops(const Work& work) { return work.counted.value_or(work.flops); }

/// Returns true if `work` lets tokens see each other and stores no scores.
inline bool stores_no_scores(const Work& work) {
  return work.variant == OpVariant::Fused || work.variant == OpVariant::StateSpace;
}

/// Returns a kernel whose duration is known, e.g. from a profile.
inline Work measured_work(Seconds duration) {
  return {.op_class = OpClass::Measured, .launches = 0, .measured = duration};
}

}  // namespace interlock
