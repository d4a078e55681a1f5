// KernelRates: how fast the kernels of each rank run beside communication on their device.
// SPDX-License-Identifier: Apache-2.0
//
// Communication under way takes a share s of the multiprocessors and a share m of the memory
// bandwidth from the kernels beside it, and is not slowed down itself: links are slower than
// memory. Of an op's time, what waits for arithmetic then takes 1 / (1 - s) times as long, and what
// waits for memory 1 / (1 - m); launches take as long as ever. A kernel keeps the bound that it has
// alone, and half of the memory bandwidth at least, as max-min fair sharing between it and all
// communication would leave it. Where links are shared, a transfer loads the memory as if it had
// them alone. An op under way changes its rate whenever communication begins or ends.
//
// Example: an op waits for arithmetic all of its 9 ms. Beside communication that takes a tenth of
// the multiprocessors it takes 10 ms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// The shares of a device that a communication takes from its kernels.
struct KernelLoad {
  double sms = 0, memory = 0;
};

class KernelRates {
 public:
  /// REQUIRES: program.interference says something of each rank.
  explicit KernelRates(const Program& program);

  /// When the op of a rank ends if nothing else begins or ends, in ticks.
  struct End {
    double time = 0;
    int stream = 0;
    std::uint32_t generation = 0;  // never 0, and no two alike
  };
  /// Notes that `span`, all of which takes `ticks` alone, begins at `now`.
  End begin(const Span& span, int stream, double ticks, double now);
  /// Returns true if an End of `rank` is the last one that was announced.
  bool is_current(int rank, std::uint32_t generation) const {
    return ranks_[rank].generation == generation;
  }
  /// Ends the op of `rank`; returns its span.
  Span end(int rank);
  /// Notes that some communication begins or ends at `rank`. Returns the new end of the op under
  /// way, if its end has moved.
  std::optional<End> change(int rank, const KernelLoad& load, bool begins, double now);

  const KernelLoad& of_sender(int channel) const { return senders_[channel]; }
  const KernelLoad& of_receiver(int channel) const { return receivers_[channel]; }
  KernelLoad of_member(const Collective& collective, int rank) const;

 private:
  struct RankState {
    int loads = 0;  // under way
    KernelLoad load;
    Span span;
    double left = 0, since = 0, rate = 1;  // of the op, in ticks: alone, when that was so, now
    int stream = -1;                       // -1: no op
    std::uint32_t generation = 0;
  };
  double rate_of(const RankState& rank) const;
  End next_end(RankState& rank, double now);

  const Program& program_;
  std::vector<RankState> ranks_;
  std::vector<KernelLoad> senders_, receivers_;  // by channel
  std::uint32_t generations_ = 0;
};

}  // namespace interlock
