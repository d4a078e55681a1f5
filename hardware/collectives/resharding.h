// Resharding: a tensor goes from the devices of one stage to those of another, cut otherwise.
// SPDX-License-Identifier: Apache-2.0
//
// Cross-mesh resharding as in Zhuang et al., arXiv 2211.05322: the tensor falls into slices that
// no device cuts further; a slice goes from one of its holders to all who need it. With t the time
// of a slice over the link between hosts, to A hosts of B receivers each (their cost model):
//   PointToPoint    A B t        a copy for each receiver
//   LocalAllGather  A t          a part of a slice for each receiver of a host, gathered inside it
//   Broadcast       t + A t / K  a chain through all receivers, in K chunks
// Which holder sends, and in which order, decides when the last is done: a link that a slice keeps
// busy does one slice at a time.
//
// Example: a tensor of 1 MB lies in halves on devices 0 and 1 of a node, and devices 8 and 9 of the
// next each need all of it. Two tasks: 0 sends its 500 kB to {8, 9} from 0 to 33 us, 1 its own from
// 20 to 53 us, as both cross the card of device 8.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/collectives/collective.h"

namespace interlock {

/// Which part of a tensor each device holds. Devices with equal parts are replicas.
struct TensorPlacement {
  std::vector<int> devices;
  std::vector<int> cuts;   // equal parts along each dimension of the tensor
  std::vector<int> parts;  // by device: number of its part on that grid, last dimension fastest
};

enum class ReshardingStrategy { PointToPoint, LocalAllGather, Broadcast };
/// The first holder of each slice, in order of the slices; or what ends soonest: all orders and
/// holders where they are few, else the best of some greedy ones, randomly begun.
enum class SenderChoice { First, Balanced };

struct ReshardingChoice {
  ReshardingStrategy strategy = ReshardingStrategy::Broadcast;
  SenderChoice senders = SenderChoice::Balanced;
  int chunks = 64;  // K, of a broadcast
  std::uint64_t seed = 1;
};

/// A slice, or a copy of it, and when it is on its way.
struct ReshardingTask {
  int sender = 0;
  std::vector<int> receivers;
  Bytes bytes;  // of the slice
  Seconds start;
  Seconds end;  // all receivers have it
};

struct Resharding {
  std::vector<ReshardingTask> tasks;
  std::vector<Flow> flows;  // as in a CollectivePlan
  Seconds latency;          // likewise: time less what the flows take
  Seconds time;             // the last end, or the busiest link if that is later
  bool exact = false;       // no order and no holders end sooner
};

/// Plans the messages of a tensor of `bytes`. A device that holds what it needs receives nothing.
/// REQUIRES: as many dimensions on both sides; every part has a holder in `from`.
Resharding plan_resharding(const Cluster& cluster, const TensorPlacement& from,
                           const TensorPlacement& to, Bytes bytes, const ReshardingChoice& choice);

}  // namespace interlock
