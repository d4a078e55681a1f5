// ProbePlan: what a probe of the calibration runs on a GPU: a step of training, and its memory.
// SPDX-License-Identifier: Apache-2.0
//
// A probe becomes the layer that a model would have, the layer is planned as in training, and the
// step of the probe's role is taken from that plan: nothing is timed but what training runs. Pure
// arithmetic, tested without a GPU.
//
// Example: the forward of a Linear of 40 x 24 with bias on 96 rows in bf16 is a Step that works on
// 7,680 bytes of input, 1,920 of weights, 48 of bias and 4,608 of output. With a cache of 50 MB,
// operands of 10 MB have sets_of() 12 sets, and a kernel of 10 us runs repeats_of() 20 times a
// reading.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validate/calibration/bench.h"
#include "validate/cuda/kernels/kernels.h"
#include "validate/network/stage_plan.h"

namespace interlock::cuda {

struct ProbePlan {
  /// Scores, Softmax and Values are parts of an attention; Copy and Descent are no steps at all.
  enum class Call { Step, Scores, Softmax, Values, Copy, Descent };
  Call call = Call::Step;
  Element element = Element::Fp32;
  std::shared_ptr<const std::vector<Layer>> layers;  // that the step refers to
  Step step;
  int samples = 1, rows_per_sample = 1;
  std::int64_t tokens = 0;                       // rows that have a token and a target
  std::array<std::int64_t, kPlaces> bytes{};     // of every block that it works on
  std::vector<std::int64_t> weights, gradients;  // bytes of each parameter
  std::int64_t size = 0;                         // Copy, Descent: numbers
  DescentStep descent;
};

/// REQUIRES: probe.precision is Fp32 or Bf16.
ProbePlan plan_probe(const Probe& probe);

/// The operands of one execution.
struct ProbeOperands {
  std::array<char*, kPlaces> places{};
  std::vector<char*> weights, gradients;
  DescentState state;
};
/// Returns the operands from `begin` on, each at a multiple of 256 bytes.
ProbeOperands operands_at(const ProbePlan& plan, char* begin);
std::int64_t operand_bytes(const ProbePlan& plan);

inline constexpr int kMostRepeats = 50;
/// Returns how many sets of operands executions take by turns, so that each finds its own in
/// memory: together they leave a cache of `cache` bytes, or are as many as a reading has
/// executions; one where there is no cache to leave.
int sets_of(std::int64_t operand_bytes, std::int64_t cache);
/// Returns the executions in a reading, which shall take long enough beside its clock. `once`: s.
int repeats_of(double once);
/// Returns true if the clock, in MHz, changed during the readings; 0: it is unknown.
bool clock_moved(int before, int after);

}  // namespace interlock::cuda
