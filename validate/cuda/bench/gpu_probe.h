// GpuProbe: a probe's operands on the device, and one execution of it after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "validate/cuda/bench/probe_plan.h"
#include "validate/cuda/stage/gpu_kernel.h"

namespace interlock::cuda {

/// Fills `bytes` from `begin` on with normal numbers of `element`, which repeat after a prime.
void fill_with_noise(const Stream& stream, char* begin, std::int64_t bytes);

class GpuProbe {
 public:
  /// Takes all of `arena`, for as many sets of operands as leave a cache of `cache` bytes.
  /// `context` is the device's, of any element type; its scratch is filled with noise.
  GpuProbe(const Probe& probe, const KernelContext& context, Scratch& arena, std::int64_t cache);
  GpuProbe(const GpuProbe&) = delete;
  GpuProbe& operator=(const GpuProbe&) = delete;

  /// Issues one execution, on set `number` modulo their count.
  void issue(int number) const;
  int sets() const { return static_cast<int>(sets_.size()); }
  /// Returns what ran: the library's algorithm, or the kernel's name. REQUIRES: issue() was called.
  std::string kernel() const;

 private:
  struct Set {
    ProbeOperands operands;
    StageTensors tensors;
  };
  void put_labels(char* to);
  void add_set(char* begin);

  ProbeKind kind_;
  OpRole role_;
  ProbePlan plan_;
  KernelContext context_;
  std::vector<Step> steps_;
  std::deque<Set> sets_;  // tensors refer to operands beside them
  GpuBatch labels_;
};

}  // namespace interlock::cuda
