// KnownFlows: flows of collectives that were followed over links before.
// SPDX-License-Identifier: Apache-2.0
//
// Which links a collective and its equals meet, and which of these play the same part, depends on
// the cluster and on how devices are laid out, not on the schedule. A search lowers many programs
// of one layout, each for several lengths, so that this is worked out once.
//
// Example: four devices of one node, tensor 2 and data 2, replicas folded. The all-reduce of
// devices 0 and 1 meets "gpu0 up", "gpu1 down", "gpu1 up" and "gpu0 down"; its equal, of devices 2
// and 3, four more, each of which plays the part of one of these: `met` has eight, `united` four
// pairs, and two more where device 0 stands for device 1, too.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hardware/collectives/collective.h"
#include "sim/plan/mesh.h"

namespace interlock {

/// Links by numbers that are given as they are met, and which of them play the same part.
class LinkClasses {
 public:
  /// Writes the numbers of the links of `route` into `numbers`, whose memory is used again.
  void number(const Route& route, std::vector<int>& numbers);
  int number(LinkId link);
  int find(int link);  // the one that stands for its class
  /// Unites the classes of two. Returns whether they were apart.
  bool unite(int one, int other);
  /// Returns the number of `link`; -1 if it was never met.
  int known(LinkId link) const;
  const std::vector<LinkId>& ids() const { return ids_; }  // by number
  int size(int link) { return sizes_[find(link)]; }        // of its class

 private:
  std::size_t slot_of(LinkId link) const;
  void grow();

  std::vector<LinkId> ids_;
  std::vector<int> parents_, sizes_;
  std::vector<int> slots_;  // numbers by hashes of links, at most half of them taken; -1: none
};

/// The messages and flows of equal ranks on one link.
struct LinkOfOrbit {
  static constexpr int kSeveral = -1;
  int link = 0, messages = 0;  // at once
  Bytes bytes = {};            // of a collective
  int group = 0;               // whose flows they are, of those with the same part
};
using LinkOrbit = std::vector<LinkOfOrbit>;

/// Flows of a collective, and of its equals, on links: the same whatever else a program has.
/// Numbers of links count those that they meet.
struct CollectiveLinks {
  std::shared_ptr<const CollectivePlan> plan;
  std::vector<int> ways;          // of the plan's flows, one after the other
  std::vector<std::size_t> ends;  // of each of these
  std::vector<LinkId> met;
  std::vector<std::pair<int, int>> united;  // what plays the same part, as far as it was apart
  LinkOrbit orbit;
  Seconds busy;         // all that they take alone
  Seconds own_busy;     // what the flows of the group itself take alone
  std::string problem;  // why the folding is not exact; or empty
};

/// Keeps what programs found out of collectives on the links of one cluster, for others whose
/// devices are laid out alike. Not for several threads at once.
class KnownFlows {
 public:
  /// Devices that are laid out alike.
  struct Layout {
    Mesh mesh;
    Unfolded unfolded;
    int devices = 0;  // of the cluster
    bool alone = false;
    bool apart = false;             // pipeline ranks divide their stages each in its own way
    std::vector<Mesh> layers = {};  // see LowerInputs
    bool operator==(const Layout&) const = default;
  };
  using PlanKey = std::tuple<MeshAxis, int, CollectiveKind, double, double, TokenRouting, int>;
  struct OfLayout {
    Layout layout;
    std::unordered_map<int, int> ranks;  // that stand for devices
    std::map<PlanKey, std::shared_ptr<const CollectivePlan>> plans;
    std::map<std::tuple<const CollectivePlan*, MeshAxis, int, bool>, CollectiveLinks> links;
    struct Crossed {
      std::vector<int> kinds;
      std::vector<std::unordered_map<LinkId, int>> counts;  // see FoldedLinks::crossed()
    };
    std::map<const CollectiveLinks*, Crossed> crossed;
    /// See FoldedLinks::time_alone(); by collective and flows of it.
    std::map<std::pair<const CollectiveLinks*, std::vector<int>>, std::optional<Seconds>>
        times_alone;
  };
  /// Returns what is known of `layout`. It stays while kLayouts others are asked for.
  std::shared_ptr<OfLayout> of(const Layout& layout);

 private:
  static constexpr std::size_t kLayouts = 32;
  std::list<std::shared_ptr<OfLayout>> known_;  // the one that was asked for last comes first
};

}  // namespace interlock
