// LinkSharing: the links of a program, and what each of its messages and collectives has of them.
// SPDX-License-Identifier: Apache-2.0
//
// The last step of lowering: collectives get wires for their flows; links are replaced by those
// that stand for them; where ranks stand for others, each user of a link sees as much of it as if
// these sent too. Nothing to do for that where no rank stands for another.
//
// Example: 16 replicas of a pipeline, four in each node, one of which is simulated. Four messages
// and four flows of a gradient exchange leave each node by one card: the message crosses it once,
// the flow once, and the card has a quarter of its bandwidth.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/lower/links/folded_links.h"

namespace interlock {

/// The devices that do a collective, and the stage that they do it for.
struct CollectiveDoers {
  std::vector<int> group;  // devices
  int rank = 0, stage = 0, communicator = 0;
};

/// The flows of a collective, before it has wires.
struct PlannedCollective {
  std::shared_ptr<const CollectivePlan> plan;
  CollectiveDoers doers;
  MeshAxis axis = MeshAxis::Data;
  int layout = 0;
  std::shared_ptr<const FoldedLinks::Orbit> orbit;
  double size = 1;                         // of the bytes in the orbit
  const CollectiveLinks* links = nullptr;  // of flows of that size
};

class LinkSharing {
 public:
  struct Users {
    const std::vector<PlannedCollective>& planned;  // by collective
    const std::vector<FoldedLinks::Orbit>& orbits;  // by wire of messages
    std::vector<std::vector<LinkId>> ways;          // by wire of messages
  };
  /// `alone`: see FoldedLinks. REQUIRES: `program` has all its messages and collectives.
  LinkSharing(const LowerInputs& inputs, bool alone, FoldedLinks& folded, Users users,
              Program& program);

  /// Gives collectives their wires, and all wires their links. Returns why the folding is not
  /// exact, or ""; uneven shares are taken for exact where inputs.folds_nearly.
  std::string finish();

 private:
  void make_flows(int collective);
  std::string fold_links();
  std::string share_links();
  /// The users of a class of links.
  struct LinkUse {
    int users = 0, last_user = 0;
    double share = 1;     // of the program's link, see ProgramLink
    bool alike = true;    // on every link of the class, and for every user
    bool varies = false;  // the share, from one collective or user to the next
    bool uneven = false;  // equal messages, on the links that they use
  };
  std::optional<int> too_uneven(const std::vector<LinkUse>& uses);
  std::vector<LinkUse> link_uses();
  void note_use(std::vector<LinkUse>& uses, int user, const std::vector<int>& wires,
                const FoldedLinks::Orbit& orbit);
  std::vector<bool> communicators_that_meet(const std::vector<LinkUse>& uses) const;
  std::string part_uneven_flows(const std::vector<LinkUse>& uses);
  bool part_uneven_flows(int collective, const std::vector<LinkUse>& uses, bool meets_equals);
  FoldedLinks::Member member_of(const PlannedCollective& planned) const;
  void share_in_turn(std::vector<LinkUse>& uses, const std::vector<bool>& meets);
  /// By link of the program, how many equals of a wire's flow cross each link of its class at once;
  /// where not all of the class are crossed alike: 0, or nearly as many as cross the busiest.
  using Crossings = std::map<int, int>;
  std::vector<Crossings> crossings_of_equals();
  Crossings crossings_of(const FoldedLinks::LinkCounts& counts);
  void add_crossings_of(std::size_t collective, std::vector<Crossings>& crossings);
  bool weigh(int link, const std::vector<Crossings>& crossings, LinkUse& use);
  const FlowWays& ways_of(const PlannedCollective& planned);
  void note_loads(int collective);
  int link_index(LinkId id);

  const LowerInputs& inputs_;
  Program& program_;
  bool alone_;
  FoldedLinks& folded_;
  const std::vector<PlannedCollective>& planned_;
  const std::vector<FoldedLinks::Orbit>& orbits_;
  std::vector<std::vector<LinkId>> ways_;  // by wire
  /// A flow that stands for a set that nothing else meets, and what it takes.
  struct FlowApart {
    int collective = 0, flow = 0;
    Seconds time;
  };
  std::vector<FlowApart> apart_;
  /// Wires by communicator, the links of the collective's kind and size, number and way.
  std::map<std::tuple<int, const CollectiveLinks*, int, std::vector<LinkId>>, int> wires_;
  std::map<const CollectiveLinks*, FlowWays> class_ways_;
  std::map<const CollectiveLinks*, std::vector<FlowSet>> sets_;  // of these ways
  std::vector<LinkId> raw_links_;                                // by link of the program
  std::unordered_map<LinkId, int> links_;
};

}  // namespace interlock
