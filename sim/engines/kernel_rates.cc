// Rates of kernels under load.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/kernel_rates.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace interlock {

namespace {

constexpr double kMostSms = 0.9, kMostMemory = 0.5;  // that all communication takes together

/// Returns the share of the memory bandwidth that takes `bytes` in so long.
double memory_share(const Interference& interference, Bytes bytes, Seconds time) {
  if (interference.memory_bandwidth.value() <= 0 || time <= Seconds(0)) return 0;
  return bytes / time / interference.memory_bandwidth;
}

}  // namespace

KernelRates::KernelRates(const Program& program) : program_(program), ranks_(program.ranks.size()) {
  CHECK(program.interference.size() == ranks_.size(), "something slows kernels down");
  for (const Channel& channel : program.channels) {
    const auto load = [&](int rank, Bytes bytes) {
      if (channel.wire < 0) return KernelLoad{};
      const Interference& interference = program.interference[rank];
      return KernelLoad{interference.message_sms,
                        memory_share(interference, bytes, occupancy_alone(program, channel))};
    };
    senders_.push_back(load(channel.from_rank, channel.bytes));
    receivers_.push_back(load(channel.to_rank, channel.received.value_or(channel.bytes)));
  }
}

KernelLoad KernelRates::of_member(const Collective& collective, int rank) const {
  const Interference& interference = program_.interference[rank];
  const bool copy = is_host(collective.axis);
  const double carried =
      collective.axis == MeshAxis::Expert ? interference.token_sms : interference.collective_sms;
  return {copy ? interference.message_sms : carried,
          memory_share(interference, collective.memory_bytes,
                       collective.own_occupancy + collective.latency)};
}

double KernelRates::rate_of(const RankState& rank) const {
  const OpInfo& op = program_.ops[rank.span.op];
  const double sms = std::min(rank.load.sms, kMostSms);
  const double memory = std::min(rank.load.memory, kMostMemory);
  return 1 / (1 + op.compute_bound * sms / (1 - sms) + op.memory_bound * memory / (1 - memory));
}

KernelRates::End KernelRates::next_end(RankState& rank, double now) {
  rank.rate = rate_of(rank);
  rank.since = now;
  rank.generation = ++generations_;
  return {std::nearbyint(now + rank.left / rank.rate), rank.stream, rank.generation};
}

KernelRates::End KernelRates::begin(const Span& span, int stream, double ticks, double now) {
  RankState& rank = ranks_[span.rank];
  CHECK(rank.stream < 0, "one op at a time on a rank");
  rank.span = span;
  rank.stream = stream;
  rank.left = ticks;
  return next_end(rank, now);
}

Span KernelRates::end(int index) {
  RankState& rank = ranks_[index];
  rank.stream = -1;
  rank.generation = 0;
  return rank.span;
}

std::optional<KernelRates::End> KernelRates::change(int index, const KernelLoad& load, bool begins,
                                                    double now) {
  RankState& rank = ranks_[index];
  const double sign = begins ? 1 : -1;
  rank.loads += begins ? 1 : -1;
  CHECK(rank.loads >= 0, "a load ends after it began");
  // Sums of many are exactly nothing again when nothing is under way.
  rank.load.sms = rank.loads == 0 ? 0 : rank.load.sms + sign * load.sms;
  rank.load.memory = rank.loads == 0 ? 0 : rank.load.memory + sign * load.memory;
  if (rank.stream < 0 || rate_of(rank) == rank.rate) return std::nullopt;
  rank.left = std::max(0.0, rank.left - (now - rank.since) * rank.rate);
  return next_end(rank, now);
}

}  // namespace interlock
