// ReplicaPool: which devices make up which replica, while devices come and go.
// SPDX-License-Identifier: Apache-2.0
//
// Devices are interchangeable. Those of no replica are idle, and take the places of others when
// replicas are regrouped; a replica that cannot be filled is dissolved, and its devices are idle.
//
// Example: two replicas of two devices, and a fifth device, which is idle. Device 1 goes down:
// apply() returns true and whole() is 1. After regroup() replica 0 consists of devices 0 and 4;
// only replica 1 holds the state until share_state().
#pragma once

#include <set>
#include <vector>

#include "sim/runs/outages.h"

namespace interlock {

class ReplicaPool {
 public:
  /// Makes replicas of the first replicas * devices_per_replica of `devices`, which hold the state
  /// of training; those of `absent` are not there.
  ReplicaPool(int replicas, int devices_per_replica, int devices, const std::vector<int>& absent);

  /// Applies an event. Returns true if a device of a replica went down; the replica then neither
  /// runs nor holds the state.
  bool apply(const DeviceEvent& event);
  /// Returns how many replicas could be made of all devices that are up.
  int possible() const;
  /// Forms as many replicas as possible.
  void regroup();

  int whole() const { return replicas_ - static_cast<int>(broken_.size()); }  // replicas
  bool any_holds_state() const { return holders_ > 0; }
  void share_state();   // every whole replica now holds the state
  void forget_state();  // none does
  int up() const { return up_; }

 private:
  bool take_down(int device);
  void bring_up(int device);
  void fill(int replica);
  void dissolve(int replica);

  int replicas_, devices_per_replica_;
  std::vector<int> outages_;     // (devices) that are under way: of the device, its link, its node
  std::vector<int> replica_of_;  // (devices) -1: of none
  std::vector<std::vector<int>> members_;  // (replicas) those that are up
  std::vector<char> holds_;                // (replicas) the state
  std::vector<int> broken_;                // replicas that lack a device
  std::set<int> idle_;
  int up_ = 0, holders_ = 0;
};

}  // namespace interlock
