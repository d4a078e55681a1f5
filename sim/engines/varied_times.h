// VariedTimes: how long ops and transfers take in an engine, in ticks, whatever varies.
// SPDX-License-Identifier: Apache-2.0
//
// Example: an op of 1,000 ticks waits for exchanges in 200 of them. On a straggler with slowdown
// 1.5 it takes 200 + 1.5 x 800 = 1,400 ticks.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

class VariedTimes {
 public:
  explicit VariedTimes(const Program& program);

  /// Returns the ticks of op `index` for `micro_batch`.
  double op(int index, int micro_batch) const {
    if (ops_vary_) [[unlikely]]
      return varied_op(index, micro_batch);
    return durations_[index];
  }
  /// Returns the factor by which a message of `channel` takes longer than planned.
  double of_message(int channel, int micro_batch) const {
    return transfers_vary_ ? message_factor(channel, micro_batch) : 1;
  }
  struct Message {
    double occupancy = 0, latency = 0;
  };
  /// Returns the times of a message of `channel` whose planned times are `planned`.
  Message message(int channel, int micro_batch, Message planned) const {
    if (transfers_vary_) [[unlikely]]
      return varied_message(channel, micro_batch, planned);
    return planned;
  }
  /// Returns the factor for the collective of `event`.
  double of_collective(int event, int micro_batch) const {
    return transfers_vary_ ? collective_factor(event, micro_batch) : 1;
  }

 private:
  /// The key of an op for the generator of its factors.
  struct OpIdentity {
    std::uint64_t key = 0;
    int rank = 0;
    double waiting = 0;  // ticks of its duration in which no kernel runs
    int group = 0;       // of replicas that read the same documents
  };
  /// A micro-batch between two cases of PackedTimes.
  struct PackedPlace {
    std::uint32_t below = 0;
    double share = 0;  // of the case above it
  };

  // Apart from the loops of engines, which they would make larger.
  [[gnu::cold, gnu::noinline]] double varied_op(int index, int micro_batch) const;
  double measured_op(int index, int micro_batch) const;
  double packed_op(int index, int micro_batch) const;
  void place_packed();
  [[gnu::cold, gnu::noinline]] Message varied_message(int channel, int micro_batch,
                                                      Message planned) const;
  double message_factor(int channel, int micro_batch) const;
  double collective_factor(int event, int micro_batch) const;
  double transfer_factor(std::uint64_t transfer, std::uint64_t way, int micro_batch) const;

  const Program& program_;
  bool ops_vary_, transfers_vary_;
  std::vector<double> durations_;                 // by op
  std::vector<OpIdentity> identities_;            // by op, where ops vary
  std::vector<std::vector<PackedPlace>> places_;  // (groups, micro-batches)
};

/// Returns `ticks` times a factor, in whole ticks.
inline double scaled(double ticks, double factor) {
  return factor == 1 ? ticks : std::nearbyint(ticks * factor);
}

}  // namespace interlock
