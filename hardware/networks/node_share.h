// NodeShare: how many devices of each node a job takes that fills no whole nodes.
// SPDX-License-Identifier: Apache-2.0
//
// Example: racks of 72 devices. A job of 1,024 devices takes 64 in each of 16 racks, as jobs do
// whose degrees are powers of two; one of 1,440 takes 20 whole racks, and one of 40 a part of one.
// 100 devices are 50 in each of two racks; 101 are 72 and 29, since they cannot be halved.
#pragma once

#include <string>

namespace interlock {

/// Returns the devices that a job of `devices` devices takes of each node of `devices_per_node`, so
/// that all of its nodes are alike: all where they fill whole nodes or less than one, and where a
/// node has a power of two; else the largest power of two below it if that divides the job, or the
/// largest number above half a node that does; all if there is none.
int share_of_node(int devices_per_node, int devices);

/// Returns the cards that `devices` devices have of a node that has `cards` for `stated` devices:
/// in proportion if each device has one or several of its own, else all.
int cards_of_share(int cards, int stated, int devices);

/// Says that such a job takes a part of each node; empty: it takes all of them.
std::string node_share_words(int devices_per_node, int devices);

}  // namespace interlock
