// RealDevices: the devices that a harness runs a scenario on for real, where that is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

struct RealDevices {
  /// Virtual: nothing but clocks. Cpu: a thread for each device. Cuda: GPUs, or parts of one.
  enum class Kind { Virtual, Cpu, Cuda };
  /// The way of messages between the parts of one GPU. Emulated, for threads: a message arrives no
  /// sooner than the scenario's links say.
  enum class Links { Immediate, Emulated, CopyEngine, Paced, Zero };
  Kind kind = Kind::Cpu;
  Links links = Links::Immediate;
  bool partitions = false;  // of one GPU; else a GPU for each device
  int multiprocessors = 0;  // of a partition; 0: as many as fit
  bool nccl = false;        // between GPUs
};

/// Returns "virtual", "cpu" or "cuda".
std::string name_of(RealDevices::Kind kind);

}  // namespace interlock
