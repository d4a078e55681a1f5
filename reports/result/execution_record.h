// ExecutionRecord: on what a run on GPUs ran, and what the GPUs said of themselves meanwhile.
// SPDX-License-Identifier: Apache-2.0
//
//   {.gpus = {{.number = 0, .name = "NVIDIA H100 80GB HBM3", .multiprocessors = 132, ...}},
//    .divided = "green contexts",
//    .devices = {{0, 32}, {0, 32}, {0, 32}, {0, 32}}, .link_multiprocessors = 4, ...}
//
// is an example: a run of four ranks on four partitions of the first GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace interlock {

struct ExecutedGpu {
  int number = 0;
  std::string name, bus, capability;  // "0000:3b:00.0", "9.0"
  int multiprocessors = 0;
  std::int64_t memory = 0;  // bytes
  /// Bytes that the driver counts as taken at the end of the run, by whomever, and those of them
  /// that we asked for: the rest is of contexts, libraries and other processes.
  std::int64_t used = 0, asked = 0;
  int most_clock = 0;  // MHz that its multiprocessors reach at most; 0: unknown
};

/// The part of a GPU that one rank ran on.
struct ExecutedDevice {
  int gpu = 0, multiprocessors = 0;
};

/// A matrix product as the library ran it.
struct ExecutedProduct {
  std::string shape;  // "4096 x 1024 x 1024 bf16, weight gradient"
  int algorithm = 0, tile = 0, stages = 0, split_k = 0, cluster = 0;
  double waves = 0;
  std::int64_t workspace = 0, calls = 0;
};

/// Reading of a GPU at one moment of a run, by NVML. Numbers that it does not tell are 0.
struct ClockReading {
  Seconds time;  // since the first reading
  int gpu = 0;
  int sm_clock = 0, memory_clock = 0;  // MHz
  double power = 0;                    // W
  int temperature = 0;                 // degrees Celsius
  std::uint64_t reasons = 0;           // bits of NVML: what holds the clock back
};

/// An op on the device, and when the host had issued all of it, by one clock.
struct IssuedSpan {
  Seconds start, end, issued;
};

/// How far the host held up the device: an op that began before all of it was issued may have
/// waited for the rest, and its time may be that much too long.
struct HostLateness {
  int ops = 0, late = 0;  // of all ops, those that began too soon
  Seconds lost;           // at most, of the times of these ops
  Seconds busy;           // of all ops together
};
HostLateness lateness_of(const std::vector<IssuedSpan>& spans);

struct ExecutionRecord {
  std::vector<ExecutedGpu> gpus;
  std::string driver, driver_cuda, module_cuda, cublaslt;  // versions
  std::string divided;                                     // "gpus", "green contexts", ...
  std::vector<ExecutedDevice> devices;                     // by rank
  int link_multiprocessors = 0;                            // that no partition has
  std::string links;
  std::string replicas;  // by what they exchange gradients and weights; empty: there is one
  bool graph = false;    // the run that is told was one CUDA graph
  std::vector<std::string> notes;  // how requests were met, a sentence each
  std::vector<ExecutedProduct> products;
  std::int64_t workspace = 0;  // bytes of a device that products and kernels have beside tensors
  Seconds wall;                // of the host, from the first launch until all is done
  Seconds issue;               // of the host, that it issued work, waits left out
  std::optional<Seconds> untraced;  // wall of the same run without events around its ops
  HostLateness lateness;
  std::vector<ClockReading> clocks;
};

/// Returns a sentence if the host held up the device by more than 2 % of its ops; else nothing.
std::string lateness_words(const HostLateness& lateness);

/// Least, median and most of what was read.
struct ReadingRange {
  double least = 0, median = 0, most = 0;
};

/// The readings of one GPU in short.
struct ClockSummary {
  int gpu = 0, readings = 0;
  ReadingRange sm_clock, memory_clock, power, temperature;
  std::vector<std::pair<std::string, double>> slowed;  // by what, and the share of readings
};

/// Returns a summary for each GPU that was read, in order of their numbers.
std::vector<ClockSummary> clock_summaries(const ExecutionRecord& record);

/// Returns the name of a bit of NVML's reasons: "power cap" of 4; "reason 0x200" of an unknown one.
std::string name_of_clock_reason(std::uint64_t bit);

}  // namespace interlock
