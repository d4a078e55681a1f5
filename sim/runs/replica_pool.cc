// Keeps replicas, their devices and the idle ones.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/replica_pool.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

ReplicaPool::ReplicaPool(int replicas, int devices_per_replica, int devices,
                         const std::vector<int>& absent)
    : replicas_(replicas),
      devices_per_replica_(devices_per_replica),
      outages_(devices, 0),
      replica_of_(devices, -1),
      members_(replicas),
      holds_(replicas, 1),
      up_(devices),
      holders_(replicas) {
  CHECK(replicas * devices_per_replica <= devices, "there are devices for all replicas");
  for (int device = 0; device < devices; ++device) {
    if (device >= replicas * devices_per_replica) {
      idle_.insert(device);
      continue;
    }
    replica_of_[device] = device / devices_per_replica;
    members_[replica_of_[device]].push_back(device);
  }
  for (const int device : absent) take_down(device);
}

bool ReplicaPool::take_down(int device) {
  if (++outages_[device] > 1) return false;
  --up_;
  const int replica = replica_of_[device];
  if (replica < 0) {
    idle_.erase(device);
    return false;
  }
  std::vector<int>& members = members_[replica];
  if (static_cast<int>(members.size()) == devices_per_replica_) broken_.push_back(replica);
  members.erase(std::find(members.begin(), members.end(), device));
  replica_of_[device] = -1;
  if (holds_[replica]) {
    holds_[replica] = 0;
    --holders_;
  }
  return true;
}

void ReplicaPool::bring_up(int device) {
  CHECK(outages_[device] > 0, "a device that comes up was down");
  if (--outages_[device] > 0) return;
  ++up_;
  idle_.insert(device);
}

bool ReplicaPool::apply(const DeviceEvent& event) {
  // Parts at the end may reach beyond the last device.
  const int end = std::min(event.first + event.count, static_cast<int>(outages_.size()));
  bool hit = false;
  for (int device = event.first; device < end; ++device) {
    if (event.up) {
      bring_up(device);
    } else {
      hit = take_down(device) || hit;
    }
  }
  return hit;
}

int ReplicaPool::possible() const { return std::min(replicas_, up_ / devices_per_replica_); }

void ReplicaPool::fill(int replica) {
  while (static_cast<int>(members_[replica].size()) < devices_per_replica_) {
    const int device = *idle_.begin();
    idle_.erase(idle_.begin());
    replica_of_[device] = replica;
    members_[replica].push_back(device);
  }
}

void ReplicaPool::dissolve(int replica) {
  for (const int device : members_[replica]) {
    replica_of_[device] = -1;
    idle_.insert(device);
  }
  members_[replica].clear();
}

void ReplicaPool::regroup() {
  // Those that lack least are filled.
  std::sort(broken_.begin(), broken_.end(), [&](int a, int b) {
    return members_[a].size() != members_[b].size() ? members_[a].size() > members_[b].size()
                                                    : a < b;
  });
  const int filled = possible() - whole();
  for (std::size_t i = filled; i < broken_.size(); ++i) dissolve(broken_[i]);
  for (int i = 0; i < filled; ++i) fill(broken_[i]);
  broken_.erase(broken_.begin(), broken_.begin() + filled);
}

void ReplicaPool::share_state() {
  std::fill(holds_.begin(), holds_.end(), char{1});
  for (const int replica : broken_) holds_[replica] = 0;
  holders_ = whole();
}

void ReplicaPool::forget_state() {
  std::fill(holds_.begin(), holds_.end(), char{0});
  holders_ = 0;
}

}  // namespace interlock
