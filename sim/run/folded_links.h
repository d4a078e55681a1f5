// FoldedLinks: the links of a cluster as ranks see them that stand for many equal ones.
// SPDX-License-Identifier: Apache-2.0
//
// What a folded rank sends stands for what all equal ranks send at the same time. Links that play
// the same part in that are one class, which the program has one link for. Where k equal messages
// use a link at once and one is simulated, that one sees a k-th of the link. Users that take turns
// at a class must see the same share of it, on every link of it; else the folding is not exact, and
// problem() says why. It is a quotient of the graph of flows by the symmetry of the layout.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hardware/collective.h"
#include "sim/run/lower.h"

namespace interlock {

class FoldedLinks {
 public:
  explicit FoldedLinks(const LowerInputs& inputs);

  /// What equal ranks do together.
  struct Orbit {
    std::unordered_map<LinkId, int> uses;  // messages on each link at once
  };
  /// Messages from one simulated rank to another. Returns the way of one and fills in `orbit`.
  Route add_way(int from_rank, int to_rank, Orbit& orbit);
  /// What `plan` says for `group`, which `rank` belongs to along `axis`. Returns how long the flows
  /// take alone.
  Seconds add_collective(const CollectivePlan& plan, const std::vector<int>& group, MeshAxis axis,
                         int rank, Orbit& orbit);

  int device_of_rank(int rank) const { return devices_[rank]; }
  const Coordinates& coordinates(int rank) const { return simulated_[rank]; }
  bool folds() const { return folded_.size() > 1; }

  // When all ways are known.
  /// The link that stands for the class of `link`.
  LinkId class_of(LinkId link);
  /// Messages of the orbit on each link of the class at once; nothing where links differ.
  std::optional<int> uses_of_each(LinkId link, const Orbit& orbit);
  int most_uses(LinkId link, const Orbit& orbit);
  /// Why the folding is not exact whatever is shared; empty if nothing is wrong so far.
  const std::string& problem() const { return problem_; }

 private:
  LinkId find(LinkId link);
  void unite(const Route& one, const Route& other);
  std::vector<std::vector<int>> equal_groups(MeshAxis axis, int rank) const;

  const LowerInputs& inputs_;
  std::vector<Coordinates> simulated_, folded_;
  std::vector<int> devices_;  // by rank
  std::unordered_map<LinkId, LinkId> parents_;
  std::unordered_map<LinkId, int> sizes_;  // of classes, by the link that stands for them
  std::string problem_;
};

}  // namespace interlock
