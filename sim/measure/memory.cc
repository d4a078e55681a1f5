// Settling memory changes in order of time.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace interlock {

namespace {

double in_blocks(double bytes) {
  const double blocks = std::ceil(std::abs(bytes) / MemoryTracker::kBlock);
  return std::copysign(blocks * MemoryTracker::kBlock, bytes);
}

/// Returns the peak of a device whose allocator holds `held` bytes for each of `peak`.
MemoryPeak held(MemoryPeak peak, double held) {
  for (Bytes* bytes : {&peak.total, &peak.stash, &peak.allocated}) *bytes *= held;
  for (Bytes& bytes : peak.at_peak) bytes *= held;
  return peak;
}

}  // namespace

MemoryTracker::MemoryTracker(const Program& program)
    : ranks_(program.ranks.size()),
      communicators_(program.communicators.size()),
      held_(program.memory_held) {
  CHECK(program.wire_order.empty(), "memory of a frozen program");
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankState& rank = ranks_[r];
    const auto kept = always_held(program.ranks[r]);
    for (int c = 0; c < kMemoryClasses; ++c) {
      rank.bytes[c] = kept[c].value();
      rank.allocated += in_blocks(rank.bytes[c]);
    }
    note_peak(rank, 0);
  }
  for (const Channel& channel : program.channels) {
    if (channel.from_rank == channel.to_rank) continue;
    auto& senders = ranks_[channel.to_rank].senders;
    if (std::find(senders.begin(), senders.end(), channel.from_rank) == senders.end()) {
      senders.push_back(channel.from_rank);
    }
  }
  for (const Event& event : program.events) {
    if (event.gives_back < 0) continue;
    const int communicator = program.collectives[event.collective].communicator;
    if (program.communicators[communicator].ranks.size() == 1 ||
        !communicators_[communicator].ranks.empty())
      continue;
    communicators_[communicator] = program.communicators[communicator];
    for (const int rank : communicators_[communicator].ranks)
      ranks_[rank].communicators.push_back(communicator);
  }
}

void MemoryTracker::add(const MemoryChange& change) {
  RankState& rank = ranks_[change.rank];
  const double time = change.time.value();
  rank.sorted = rank.sorted && (rank.pending.empty() || rank.pending.back().time <= time);
  rank.pending.push_back({time, change.bytes, change.memory_class});
  if (rank.pending.size() < rank.patience) return;
  settle(rank, settled_before(rank));
  rank.patience = std::max(kLeastPatience, 2 * rank.pending.size());
}

double MemoryTracker::settled_before(const RankState& rank) const {
  double before = rank.passed;
  for (const int sender : rank.senders) before = std::min(before, ranks_[sender].passed);
  for (const int communicator : rank.communicators) {
    for (const int member : communicators_[communicator].ranks)
      before = std::min(before, ranks_[member].passed);
  }
  return before;
}

void MemoryTracker::pass(int rank, Seconds start) { ranks_[rank].passed = start.value(); }

std::vector<MemoryPeak> MemoryTracker::finish() {
  std::vector<MemoryPeak> peaks;
  for (RankState& rank : ranks_) {
    settle(rank, kInfinity);
    peaks.push_back(held(rank.peak, held_));
  }
  return peaks;
}

void MemoryTracker::settle(RankState& rank, double before) {
  auto& pending = rank.pending;
  const auto earlier = [](const Change& a, const Change& b) { return a.time < b.time; };
  if (!rank.sorted) std::stable_sort(pending.begin(), pending.end(), earlier);
  rank.sorted = true;
  auto change = pending.begin();
  while (change != pending.end() && change->time < before) {
    const double instant = change->time;
    for (; change != pending.end() && change->time == instant; ++change) {
      if (change->memory_class == MemoryClass::HostStash) {
        rank.host_stash += change->bytes;
      } else {
        rank.bytes[static_cast<int>(change->memory_class)] += change->bytes;
        rank.allocated += in_blocks(change->bytes);
      }
    }
    note_peak(rank, instant);
  }
  pending.erase(pending.begin(), change);
}

void MemoryTracker::note_peak(RankState& rank, double time) {
  MemoryPeak& peak = rank.peak;
  const double total = std::accumulate(rank.bytes.begin(), rank.bytes.end(), 0.0);
  const double stash = rank.bytes[static_cast<int>(MemoryClass::Stash)];
  peak.stash = std::max(peak.stash, Bytes(stash));
  peak.allocated = std::max(peak.allocated, Bytes(rank.allocated));
  peak.host_stash = std::max(peak.host_stash, Bytes(rank.host_stash));
  if (total <= peak.total.value()) return;
  peak.total = Bytes(total);
  peak.time = Seconds(time);
  for (int c = 0; c < kMemoryClasses; ++c) peak.at_peak[c] = Bytes(rank.bytes[c]);
}

}  // namespace interlock
