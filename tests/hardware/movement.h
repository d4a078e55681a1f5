// Movement: a linear movement of data between ranks, as what each rank sends each other.
// SPDX-License-Identifier: Apache-2.0
//
// The primitives of DistDL (Hewett and Grady, arXiv 2006.03108): each is a linear operator on the
// data of all ranks, and the backward pass is its adjoint, which moves the same bytes the other way
// round; what was copied is then added up. A movement says who sends what to whom, not how: a
// broadcast from one to many is one volume for each receiver, whichever ring or tree carries it.
// Tests hold collectives and halos of the product to these movements.
#pragma once

#include <cstdint>
#include <vector>

#include "base/window.h"
#include "hardware/collectives/collective.h"

namespace interlock {

/// Steps in turn, the flows of a step at once; ends of a flow are ranks. No rank sends to itself.
struct Movement {
  std::vector<std::vector<Flow>> steps;
};

/// The transposed movement: the last step first, each flow back.
Movement adjoint(const Movement& movement);
/// All that is moved.
Bytes volume(const Movement& movement);
/// The movement with rank r on devices[r]. Steps wait for each other, which becomes latency.
CollectivePlan plan_movement(const Cluster& cluster, const std::vector<int>& devices,
                             const Movement& movement);

/// Ranks on a grid, the last dimension fastest. A tensor of as many dimensions is cut evenly along
/// each; the first parts have one more where that does not come out even.
struct CartesianPartition {
  std::vector<int> shape;
  std::vector<int> ranks;
};

struct TensorShape {
  std::vector<std::int64_t> shape;
  Bytes element;
};

/// Returns the coordinates of rank number `position` in a grid of this shape.
std::vector<int> coordinates(const std::vector<int>& shape, std::size_t position);

Movement send_receive(int from, int to, Bytes bytes);
/// Copies of `bytes` of each rank of `from` to the ranks of `to` that it stands for: dimensions are
/// equal, or 1 in `from`. REQUIRES: that, and as many dimensions.
Movement broadcast(const CartesianPartition& from, const CartesianPartition& to, Bytes bytes);
/// Sums to `to`, where dimensions are equal, or 1.
Movement sum_reduce(const CartesianPartition& from, const CartesianPartition& to, Bytes bytes);
/// Sums over all ranks that differ only along `axes`, known to all of them afterwards: a sum to the
/// first of them, and a broadcast from it. Its own adjoint.
Movement all_sum_reduce(const CartesianPartition& partition, const std::vector<int>& axes,
                        Bytes bytes);
/// From one rank to the parts of a tensor, and back. Their sizes differ where cuts are not even.
Movement scatter(const TensorShape& tensor, int root, const CartesianPartition& to);
Movement gather(const TensorShape& tensor, const CartesianPartition& from, int root);
/// From one way to cut a tensor to another: a general all-to-all.
Movement repartition(const TensorShape& tensor, const CartesianPartition& from,
                     const CartesianPartition& to);

/// Brings each rank's input to what its part of the output needs, one dimension after the other, so
/// that corners take two hops; the own part, cut to what is needed, takes its halo along.
/// Halos are uneven: input and output are cut evenly each for itself, and strides and padding move
/// one against the other. A halo may be wider than the neighbour's part; then it comes from
/// further away in the same step. REQUIRES: a window for each dimension.
Movement halo_exchange(const TensorShape& tensor, const CartesianPartition& partition,
                       const std::vector<Window>& windows);

}  // namespace interlock
