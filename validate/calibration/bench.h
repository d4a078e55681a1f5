// Bench: what a device can be asked to time. CPUs and GPUs each supply one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/exchange.h"
#include "base/work.h"

namespace interlock {

enum class ProbeKind {
  Stream,  // a plain copy, which tells how fast bytes move
  Linear,
  Convolution,  // 3x3, stride 1, as a product with the windows of all pixels
  Scores,       // of attention: queries times keys, batched
  Values,       // scores times values, batched
  Relu,
  Gelu,
  Residual,
  Softmax,
  LayerNorm,
  Embedding,
  CrossEntropy,
  Momentum,
  Adam,
};
inline constexpr int kProbeKinds = 14;

/// One kernel to time. `work` is what the models say of it, so that they find it in the table.
/// Example: the forward of a ReLU over 64 rows of 256 fp32 numbers is {Relu, Fp32, a work of
/// 131,072 bytes, rows 64, width 256}.
struct Probe {
  ProbeKind kind = ProbeKind::Linear;
  Precision precision = Precision::Fp32;
  Work work;
  std::int64_t rows = 1, width = 1;                // of the matrix that it works on
  std::int64_t inputs = 1, samples = 1, side = 1;  // Convolution: channels that it reads, images
  int heads = 0;      // of a sample, of attention; 0: as many as sixteen
  int words = 0;      // Embedding: rows of the table; 0: as many as a bench likes
  bool bias = true;   // Linear
  bool warm = false;  // operands are found in caches, where they fit; see Bench::cold
};

/// Names what other processors of the machine, or the rest of the device, do meanwhile.
enum class Beside { Nothing, Products, Copies };

/// Times of single executions, in seconds: those that the device was busy, and those of the wall
/// clock.
struct Readings {
  std::vector<double> busy, wall;
  std::string kernel;  // that ran, as the library calls it
};

struct BenchFacts {
  std::string kind, name, processor, driver, clocks;
  Bytes memory;
};

struct Bench {
  BenchFacts facts;
  std::vector<Precision> precisions;
  std::array<Flops, kPrecisions> most_flops;  // of a probe, that takes some ten milliseconds
  std::int64_t longest_side = 4096;           // of a product
  /// Those of the device, where products run in waves of tiles over them; 0: they do not.
  int multiprocessors = 0;
  Bytes most_bytes;          // likewise, and more than the caches hold
  bool cold = false;         // operands are found in memory, unless a probe is warm
  double most_spread = 0.1;  // of readings: beyond, the measurement is repeated, then rejected
  std::function<Readings(const Probe& probe, int count, Beside beside)> time;
  /// Calls of a kernel that does nothing.
  std::function<Readings(int count)> launch;
  /// Times messages of `bytes` from one worker to another, one way. Empty: there is no other
  /// worker.
  std::function<Readings(Bytes bytes, int count)> copy;
  /// Times a collective of `members` devices, of which there are `most_members`; `bytes` as in
  /// base/exchange.h. Empty: there is one device, or nothing that joins them.
  std::function<Readings(CollectiveKind kind, int members, Bytes bytes, int count)> collective;
  int most_members = 1;
  std::vector<CollectiveKind> collectives = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                             CollectiveKind::ReduceScatter,
                                             CollectiveKind::AllToAll};  // that it can time
  Bytes most_exchanged = Bytes(1 << 28);                                 // of a collective
};

/// This machine's processors, one thread at a time, with kernels on Eigen; fp32 only.
Bench cpu_bench();

/// Returns GPU number `device`, or one of `partitions` equal ones of it, whose neighbours are the
/// others; nothing if there is none to measure, and `why`. Throws: Error if it cannot be divided
/// so.
std::optional<Bench> cuda_bench(int device, int partitions, std::string& why);

}  // namespace interlock
