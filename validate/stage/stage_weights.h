// StageWeights: the weights of a stage, their gradient accumulation, and their old versions.
// SPDX-License-Identifier: Apache-2.0
//
// A pipeline that does not flush goes back with the weights that a micro-batch went forward with.
// Example: version 2 is the newest and micro-batch 7 went forward with version 1. Weights lie
// twice, the newest where the update writes and version 1 in a room beside it, until 7 has gone
// back.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "validate/stage/stage_device.h"

namespace interlock {

/// Hands out the resident bytes of a rank, class by class; all of them begin as zeros.
class Resident {
 public:
  /// `states`: the bytes of the optimiser's, if they are others than the program's.
  Resident(const Job& job, const Rank& rank, StageDevice& device,
           std::optional<std::int64_t> states);
  char* take(MemoryClass memory_class, std::int64_t bytes);
  std::int64_t left(MemoryClass memory_class) const {
    return left_[static_cast<std::size_t>(memory_class)].bytes;
  }
  bool is_empty() const;

 private:
  std::array<Block, kMemoryClasses> left_;
};

/// The sum of the gradients of one update, over its micro-batches.
struct GradientSum {
  std::vector<char*> of_stage, of_head;  // by parameter
  int batches = 0, head_batches = 0;     // in them
};

class StageWeights {
 public:
  /// Takes room for the weights. `keeps_versions`: backwards use the weights of their forwards,
  /// else those that they find.
  StageWeights(const Job& job, int stage, bool keeps_versions, StageDevice& device);

  /// Returns the version that a forward of `micro_batch` uses.
  int version_of_forward(int micro_batch) const;
  /// Returns the weights that an op of a micro-batch uses whose forward used `version`.
  const std::vector<char*>& of_version(int version) const;
  const std::vector<char*>& of_head() const { return head_weights_; }
  /// Returns what gradients of `micro_batch` are added to.
  GradientSum& sum_for(int micro_batch);
  /// Returns that sum as one block, which stays the accumulation's; of no weights, no bytes.
  Block gradients(int micro_batch);
  /// Returns the newest weights as one block.
  Block newest() const;
  /// Returns the bytes of either that each replica updates: shards of equal size, the last of which
  /// may have less.
  std::int64_t shard_bytes() const { return shard_ * device_.number_bytes(); }
  /// Returns the bytes of the states of a shard.
  std::int64_t state_bytes() const;

  /// Updates with the sum that ends with `micro_batch`; `read` are the versions that micro-batches
  /// under way went forward with. Notes the numbers in dump() if it `dumps`.
  void update(int micro_batch, const std::set<int>& read, bool dumps);
  /// Frees the room of old versions that nothing reads, nor any later forward will.
  void drop_versions(const std::set<int>& read) { drop_versions_before(version_, read); }
  const std::vector<NamedArray>& dump() const { return dump_; }

  friend std::optional<std::int64_t> divided_states(const std::vector<StageWeights*>& stages);
  friend void place_weights(const std::vector<StageWeights*>& stages, Resident& resident);

 private:
  /// Old weights that some backward still needs.
  struct Version {
    char* room = nullptr;
    std::vector<char*> weights = {};
  };
  void add_parameters(int module, bool of_head);
  void divide();
  int states_of_number() const;
  std::int64_t numbers() const;
  std::int64_t bytes() const { return numbers() * device_.number_bytes(); }
  void place(Resident& resident);
  GradientSum sum_at(char* room) const;
  void keep_version(const std::set<int>& read);
  void drop_versions_before(int newest, const std::set<int>& read);
  void note(NamedArray& array, const TrainedParameter& parameter, const char* values, double factor,
            bool adds);

  const Job& job_;
  const int stage_;
  const bool keeps_versions_;
  StageDevice& device_;
  std::vector<TrainedParameter> parameters_;  // of the stage, then of its head
  std::int64_t shard_ = 0;                    // numbers
  std::vector<char*> weights_, head_weights_;
  int version_ = 0;                      // of these; updates so far
  std::map<int, Version> versions_;      // but for the newest
  std::vector<char*> spare_;             // room for further ones
  std::map<int, GradientSum> sums_;      // by update
  std::vector<GradientSum> spare_sums_;  // zeros
  std::vector<NamedArray> dump_;
};

/// Returns the bytes of the optimiser's states of the stages of a rank, where replicas divide them:
/// shards are of whole numbers, which the program's need not be.
std::optional<std::int64_t> divided_states(const std::vector<StageWeights*>& stages);
/// Places the weights of the stages of a rank, what belongs to them, and their first values.
void place_weights(const std::vector<StageWeights*>& stages, Resident& resident);

}  // namespace interlock
