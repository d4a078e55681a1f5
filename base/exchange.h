// Exchange: what devices send each other inside an op; where models meet hardware, as in work.h.
// SPDX-License-Identifier: Apache-2.0
//
// Example: {AllReduce, MeshAxis::Tensor, 2 MiB, count 25} is what the forward of the first half of
// gpt2-medium waits for on tensor ranks: 25 times in turn the ranks add up 2 MiB each, and each has
// the sum.
#pragma once

#include <compare>
#include <vector>

#include "base/units.h"

namespace interlock {

/// Which devices take part: those that differ in one coordinate of the device mesh only.
enum class MeshAxis {
  Tensor,
  TensorRow,       // of a grid of tensor ranks (2D, 2.5D, 3D)
  TensorColumn,    // likewise
  TensorDepth,     // likewise
  Context,         // parts of a sequence, or of images
  ContextRows,     // of Context as a grid: bands of rows of images, or the ring of a hybrid
  ContextColumns,  // likewise: bands of columns, or neighbours that turn heads of a hybrid
  Expert,          // holders of different experts
  Data,            // holders of equal weights: data and context ranks together
  Shard,           // of Data: those that share one copy of a state between them (ZeRO, FSDP)
  Replica,         // of Data: the same part of each such copy (hybrid sharding)
  ExpertTensor,    // holders of parts of the same experts, where Tensor is another group
  ExpertData,      // holders of equal experts, or of equal parts of them
  ToHost,          // one device alone, and the memory of its host
  FromHost,        // likewise
  Pipeline,        // holders of different stages
  FromFirst,       // the same, the first of which sends
  FromLast,        // the same, the last of which sends
  Resharding,      // holders of samples, or of parts, that a layer of other degrees has together
};
inline constexpr int kMeshAxes = 19;

inline bool is_host(MeshAxis axis) {
  return axis == MeshAxis::ToHost || axis == MeshAxis::FromHost;
}

/// Names the collectives. Each says what one of n members holds before and after; S is the `bytes`
/// of an Exchange.
enum class CollectiveKind {
  AllReduce,      // S before, S after, added up
  AllGather,      // S / n before, S after
  ReduceScatter,  // S before, S / n after, added up
  Broadcast,      // S at the first member before, at all after
  Reduce,         // S before, S at the first member after, added up
  AllToAll,       // S before, S after: a part of S / n for each
  Shift,          // S to the next member, and S from the one before
  HostCopy,       // S between a device and its host, in the direction that the axis says
  Halo,           // S to the next member and S back to the one before, where there are such
};
inline constexpr int kCollectiveKinds = 9;

/// The way of tokens to the holders of their experts, or back; None: of anything else, or of tokens
/// that their op waits for. Gradients take the same ways, the way back first.
enum class TokenWay { None, There, Back };

/// How an AllToAll carries tokens to `per_token` of the `experts` of a layer each. Without experts
/// (0) a copy goes to each expert by itself. Else a token goes once to each node that holds any of
/// its experts, and from there to each of their holders; S is then the bytes of a member's tokens,
/// one copy of each. A token's experts lie in `groups_per_token` of `groups` equal groups.
struct TokenRouting {
  int experts = 0, per_token = 1;
  int groups = 1, groups_per_token = 1;
  bool back = false;  // what experts made: added up at each holder and node, and sent back
  auto operator<=>(const TokenRouting&) const = default;
};

/// One collective, or `count` equal ones in turn.
struct Exchange {
  CollectiveKind kind = CollectiveKind::AllReduce;
  MeshAxis axis = MeshAxis::Tensor;
  Bytes bytes;  // S above, of one collective, for one member
  int count = 1;
  /// Runs beside the compute of its op; else the op stands still meanwhile.
  bool overlapped = false;
  Bytes back = {};  // Halo: of what goes to the member before
  TokenWay way = TokenWay::None;
  TokenRouting routing = {};
  int layout = 0;  // whose groups they are, where layers have degrees of their own
};

/// Returns true if two exchanges differ in nothing but their count.
inline bool alike(const Exchange& a, const Exchange& b) {
  return a.kind == b.kind && a.axis == b.axis && a.bytes == b.bytes && a.back == b.back &&
         a.overlapped == b.overlapped && a.way == b.way && a.routing == b.routing &&
         a.layout == b.layout;
}

/// Returns true if no member sends anything.
inline bool is_empty(const Exchange& exchange) {
  return exchange.bytes <= Bytes(0) && exchange.back <= Bytes(0);
}

}  // namespace interlock
