// StageDevice: what a stage runs on: memory, arithmetic on it, and the steps of plans.
// SPDX-License-Identifier: Apache-2.0
//
// There are two. A CpuDevice has done what it is asked for when it returns; a GpuDevice issues it
// to a stream and returns at once. On both, what is asked for later happens later, so that a stage
// (stage.h) is written once. Addresses are the device's own: a stage only hands them on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validate/network/job.h"
#include "validate/network/stage_plan.h"

namespace interlock {

/// Bytes of the memory of a rank; of no bytes, nothing.
struct Block {
  int rank = 0;
  char* data = nullptr;
  std::int64_t offset = -1, bytes = 0;
  std::shared_ptr<int> holders;  // how many hold these bytes, where several may
  explicit operator bool() const { return data != nullptr; }
};

/// The addresses that steps work on: the start of every block that the plan names, and one for each
/// parameter. On a CPU, Input is tokens (64 bits each) for a stage that starts with an Embedding.
struct StageTensors {
  std::array<char*, kPlaces> places{};
  const std::vector<char*>* weights = nullptr;
  const std::vector<char*>* gradients = nullptr;  // only for weight gradients; added to
  int micro_batch = 0;                            // whose targets, and tokens, are read
  int samples = 1;
  int rows_per_sample = 1;  // of the network's input
};

enum class StepPart : std::uint8_t { All, ButLate, Late };

/// A weight, and what its optimiser keeps.
struct TrainedParameter {
  Parameter parameter;
  int number = 0;  // in the whole network
  bool of_head = false;
  std::int64_t first_own = 0, own = 0;  // numbers that this replica updates, and has states of
  char* weight = nullptr;
  char* master = nullptr;  // the exact weight, where weights are rounded
  char* first = nullptr;   // momentum, or the mean of gradients
  char* second = nullptr;  // the mean of their squares
};

class StageDevice {
 public:
  StageDevice() = default;
  StageDevice(const StageDevice&) = delete;
  StageDevice& operator=(const StageDevice&) = delete;
  virtual ~StageDevice() = default;

  /// Returns the bytes of a number: of weights, gradients and activations; of the optimiser.
  virtual int number_bytes() const = 0;
  virtual int state_bytes() const = 0;

  /// Allocates `bytes` of the device's own memory. Throws: Error where there is no room.
  virtual Block allocate(std::int64_t bytes, MemoryClass memory_class) = 0;
  /// Frees `block`, which the op under way is the last to use, and empties it.
  virtual void free(Block& block) = 0;
  virtual void retag(const Block& block, MemoryClass memory_class) = 0;
  /// Notes that the op under way uses `block`, which something else may free.
  virtual void note_use(const Block& block) = 0;
  /// Returns whether messages may still be read from their blocks when a stage is told that they
  /// have left.
  virtual bool messages_linger() const = 0;

  virtual void clear(char* to, std::int64_t bytes) = 0;
  virtual void copy(char* to, const char* from, std::int64_t bytes) = 0;
  /// Computes to += from, number by number.
  virtual void add(const Block& from, const Block& to) = 0;
  virtual void scale(const Block& block, double factor) = 0;
  /// Casts all numbers of `from` to a message, and those of a message to fill `to`.
  virtual void cast(const Block& from, const Block& to, SentFormat format) = 0;
  virtual void cast_back(const Block& from, const Block& to, SentFormat format) = 0;

  /// Writes the tokens or features of a micro-batch, which take `bytes`.
  virtual void read_input(char* to, std::int64_t bytes, int micro_batch) = 0;
  virtual void run(const std::vector<Step>& steps, const StageTensors& tensors, StepPart part) = 0;
  /// Notes the loss that was made last as that of `micro_batch`; of a replay it is only checked.
  /// Throws: Error if it is known not to be a number.
  virtual void note_loss(int micro_batch, bool replay) = 0;

  /// Writes a parameter's first values, which are equal on every device.
  virtual void begin(const TrainedParameter& parameter) = 0;
  /// Changes a weight and what its optimiser keeps, and clears `gradient`, a sum: its own numbers.
  virtual void descend(const TrainedParameter& parameter, char* gradient,
                       const StepFactors& factors) = 0;
  /// Returns `count` numbers, when all that comes before is done.
  virtual std::vector<double> fetch(const char* numbers, std::int64_t count) = 0;
};

}  // namespace interlock
