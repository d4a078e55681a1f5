// FoldedLinks: the links of a cluster as ranks see them that stand for many equal ones.
// SPDX-License-Identifier: Apache-2.0
//
// What a folded rank sends stands for what all equal ranks send at the same time. Links that play
// the same part in that are one class, which the program has one link for. Where k equal messages
// use a link at once and one is simulated, that one sees a k-th of the link, or, beside users of
// another k, crosses it k times. Users must find all links of a class alike; else the folding is
// not exact, and problem() says why. It is a quotient of flows by the symmetry of the layout.
//
// Example: eight devices of a DGX A100, 2 stages x 2 replicas x 2 tensor devices. Devices 0 to 3
// hold stage 0; rank 0 is device 0, rank 1 is device 4.
//   message 0 -> 1      stands for 0 -> 4, 1 -> 5, 2 -> 6, 3 -> 7
//   its links           "gpu0 up" and "gpu4 down", each stands for 4 ports; share 1
//   all-reduce, rank 0  crosses "gpu0 up", and "gpu1 down" for the 4 ports down of stage 0
// With 2 nodes of eight devices and one card a node, a stage on each node, eight messages leave by
// "node0 nic0 up" at once: the one that is simulated sees a share of 1/8 of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hardware/collectives/collective.h"
#include "sim/lower/links/flows_apart.h"
#include "sim/lower/links/known_flows.h"
#include "sim/lower/lower.h"

namespace interlock {

class FoldedLinks {
 public:
  /// `alone`: ranks do not meet those that they stand for, as if there were none; then they are
  /// those whose groups lie worst, see slowest_replica.h.
  FoldedLinks(const LowerInputs& inputs, bool alone);

  using Use = LinkOfOrbit;
  using Orbit = LinkOrbit;
  /// Messages from one simulated rank to another. Returns the way of one and fills in `orbit`.
  Route add_way(int from_rank, int to_rank, Orbit& orbit);
  /// A simulated member of a group; `alone` if it stands for all the others.
  struct Member {
    const std::vector<int>& group;
    MeshAxis axis;
    int layout;
    int rank;
    bool alone;
  };
  /// Returns the plan of what `group` exchanges: devices of one axis of the mesh.
  std::shared_ptr<const CollectivePlan> plan_of(const Exchange& exchange,
                                                const std::vector<int>& group) const;
  /// Adds the flows of `plan` for the member's group. Returns what they do to links.
  const CollectiveLinks& add_collective(const std::shared_ptr<const CollectivePlan>& plan,
                                        const Member& member, Orbit& orbit);

  int device_of_rank(int rank) const { return devices_[rank]; }
  /// Returns the devices with which `rank` does an exchange.
  std::vector<int> group_of_rank(const Exchange& exchange, int rank) const;
  bool folds() const { return folded_.size() > 1; }
  using LinkCounts = std::unordered_map<LinkId, int>;
  /// Returns how many flows of the member's group and of its equals cross each link, by kinds of
  /// flows: `kinds` says which each flow of the group is of.
  const std::vector<LinkCounts>& crossed(const CollectiveLinks& links, const Member& member,
                                         const std::vector<int>& kinds) const;
  /// Returns what the flows that `chosen` names take, with those of equal groups and alone on their
  /// links; nothing if some groups end later than others.
  std::optional<Seconds> time_alone(const CollectiveLinks& links, const Member& member,
                                    const std::vector<int>& chosen) const;

  // When all ways are known.
  /// Returns the ways of the flows of a collective, in order.
  FlowWays class_ways(const CollectiveLinks& links);
  /// Returns the link that stands for the class of `link`.
  LinkId class_of(LinkId link);
  /// Returns the number of links of that class.
  int class_size(LinkId link);
  /// How often the links of a class are crossed.
  struct ClassCrossings {
    int most = 0;  // the busiest
    bool alike = false;
  };
  /// Returns the crossings of the class of each link of `counts`, by the link that stands for it.
  std::unordered_map<LinkId, ClassCrossings> class_crossings(const LinkCounts& counts);
  /// Returns the names of the links of that class; none if nothing is folded.
  std::vector<std::string> names_in_class(LinkId link);
  /// How an orbit uses the links of a class.
  struct ClassUse {
    int least = 0, most = 0;  // messages on a link at once
    int links = 0;            // that it uses
    bool alike = false;       // all links of the class
    Bytes bytes = {};         // on a link of the class, on average
    double mean = 0;          // messages on a link of the class at once
  };
  using ClassUses = std::unordered_map<LinkId, ClassUse>;
  /// Returns the uses by the link that stands for the class; worked out once for an orbit, which
  /// stays where it is.
  const ClassUses& class_uses(const Orbit& orbit);
  LinkId link_of(const Use& use) const { return classes_.ids()[use.link]; }
  /// Returns why the folding is not exact whatever is shared; empty if nothing is wrong so far.
  const std::string& problem() const { return problem_; }

 private:
  CollectiveLinks links_of(const std::shared_ptr<const CollectivePlan>& plan,
                           const Member& member) const;
  void unite(int one, int other);
  /// Notes a problem if the links have other bandwidths.
  void compare(LinkId one, LinkId other);
  std::vector<std::vector<int>> equal_groups(const Member& member) const;
  std::vector<GroupFlow> flows_of_equals(const CollectiveLinks& links, const Member& member,
                                         const std::vector<int>& chosen) const;
  std::vector<int> ranks_of(const std::vector<int>& group) const;
  bool stands_for(const std::vector<int>& group, const std::vector<int>& equal) const;

  const LowerInputs& inputs_;
  bool alone_;
  bool uneven_;  // links that play the same part may differ in bandwidth
  std::vector<Coordinates> simulated_, folded_;
  std::vector<int> devices_;  // by rank
  LinkClasses classes_;
  std::shared_ptr<KnownFlows::OfLayout> known_;
  std::map<const Orbit*, ClassUses> class_uses_;
  std::string problem_;
};

}  // namespace interlock
