// Classes of links, and how many equal messages each carries.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/folded_links.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "base/error.h"
#include "sim/lower/links/slowest_replica.h"
#include "sim/plan/layer_layouts.h"

namespace interlock {

namespace {

constexpr double kRounding = 1e-10;  // by which ends of flows that do the same may differ

/// Counts messages and bytes on links, by their numbers.
class LinkCounter {
 public:
  void add(const std::vector<int>& links, Bytes bytes, int group) {
    for (const int link : links) {
      const auto at = static_cast<std::size_t>(link);
      if (at >= places_.size()) places_.resize(at + 1, -1);
      if (places_[at] < 0) {
        places_[at] = static_cast<int>(orbit_.size());
        orbit_.push_back({link, 0, Bytes(0), group});
      }
      LinkOfOrbit& use = orbit_[static_cast<std::size_t>(places_[at])];
      ++use.messages;
      use.bytes += bytes;
      if (use.group != group) use.group = LinkOfOrbit::kSeveral;
    }
  }
  const LinkOrbit& orbit() const { return orbit_; }

 private:
  std::vector<int> places_;  // in the orbit, by link; -1: none
  LinkOrbit orbit_;
};

}  // namespace

FoldedLinks::FoldedLinks(const LowerInputs& inputs, bool alone)
    : inputs_(inputs),
      alone_(alone),
      uneven_(!inputs.cluster.slow_links.empty() || is_mixed(inputs.cluster)),
      simulated_(simulated_ranks(inputs.mesh, inputs.unfolded)),
      folded_(inputs.layouts.empty() ? folded_ranks(inputs.mesh, inputs.unfolded)
                                     : std::vector<Coordinates>{{0, 0, 0, 0}}) {
  const KnownFlows::Layout layout = {inputs.mesh, inputs.unfolded,         inputs.cluster.devices,
                                     alone,       !inputs.layouts.empty(), inputs.layers};
  known_ = inputs.known_flows
               ? inputs.known_flows->of(layout)
               : std::make_shared<KnownFlows::OfLayout>(KnownFlows::OfLayout{.layout = layout});
  if (alone && folds()) {
    const Coordinates by = slowest_replica(inputs, [&](const Exchange& one, const auto& group) {
      return interlock::time_alone(inputs_.cluster, *plan_of(one, group));
    });
    for (Coordinates& at : simulated_) at = shifted(inputs.mesh, at, by);
  }
  for (const Coordinates& at : simulated_) devices_.push_back(device_of(inputs.mesh, at));
  if (!folds() || !known_->ranks.empty()) return;
  for (std::size_t rank = 0; rank < simulated_.size(); ++rank) {
    for (const Coordinates& by : folded_) {
      const int device = device_of(inputs.mesh, shifted(inputs.mesh, simulated_[rank], by));
      known_->ranks[device] = static_cast<int>(rank);
    }
  }
}

Route FoldedLinks::add_way(int from_rank, int to_rank, Orbit& orbit) {
  Route own = route(inputs_.cluster, devices_[from_rank], devices_[to_rank]);
  if (!folds()) return own;
  LinkCounter counter;
  std::vector<int> own_links, links;
  classes_.number(own, own_links);
  Route equal;
  for (const Coordinates& by : folded_) {
    const int from = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[from_rank], by));
    const int to = device_of(inputs_.mesh, shifted(inputs_.mesh, simulated_[to_rank], by));
    route(inputs_.cluster, from, to, equal);
    if (equal.links.size() != own.links.size() || equal.bandwidth != own.bandwidth ||
        equal.latency != own.latency) {
      problem_ = "the way from device " + std::to_string(from) + " to " + std::to_string(to) +
                 " is another than that from " + std::to_string(devices_[from_rank]) + " to " +
                 std::to_string(devices_[to_rank]);
      break;
    }
    classes_.number(equal, links);
    for (std::size_t i = 0; i < links.size(); ++i) unite(own_links[i], links[i]);
    counter.add(links, Bytes(0), 0);
  }
  orbit = counter.orbit();
  return own;
}

std::vector<int> FoldedLinks::group_of_rank(const Exchange& exchange, int rank) const {
  const Mesh& mesh = mesh_of_layers(inputs_, rank, exchange.layout);
  const bool own = inputs_.layers.empty();
  const Coordinates at = own ? simulated_[rank] : place_in(mesh, inputs_.mesh, simulated_[rank]);
  return group_of(mesh, exchange.axis, at);
}

/// Returns the ranks that stand for the devices of `group`, sorted.
std::vector<int> FoldedLinks::ranks_of(const std::vector<int>& group) const {
  std::vector<int> ranks;
  ranks.reserve(group.size());
  for (const int device : group) ranks.push_back(known_->ranks.at(device));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// Returns whether the members of `group` that are simulated stand for all of `equal`.
bool FoldedLinks::stands_for(const std::vector<int>& group, const std::vector<int>& equal) const {
  std::vector<int> ranks = ranks_of(group);
  if (ranks != ranks_of(equal)) return false;
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return std::find(group.begin(), group.end(), devices_[rank]) != group.end();
  });
}

/// The groups that stand in for each other, that of the member first.
std::vector<std::vector<int>> FoldedLinks::equal_groups(const Member& member) const {
  const bool own = inputs_.layers.empty();
  const Mesh& mesh = own ? inputs_.mesh : inputs_.layers.at(member.layout);
  std::vector<std::vector<int>> groups;
  std::set<int> seen;
  for (const Coordinates& by : folded_) {
    Coordinates at = shifted(inputs_.mesh, simulated_[member.rank], by);
    if (seen.count(device_of(inputs_.mesh, at)) > 0) continue;
    if (!own) at = place_in(mesh, inputs_.mesh, at);
    groups.push_back(group_of(mesh, member.axis, at));
    seen.insert(groups.back().begin(), groups.back().end());
  }
  return groups;
}

namespace {

/// The flows of a group, by places in it, so that they are those of any equal group, too.
class FlowsOfGroup {
 public:
  FlowsOfGroup(const std::vector<Flow>& flows, const std::vector<int>& group) {
    std::unordered_map<int, int> places;
    for (std::size_t i = 0; i < group.size(); ++i) places[group[i]] = static_cast<int>(i);
    const auto place_of = [&](int device) { return device == kHost ? kNone : places.at(device); };
    for (const Flow& flow : flows) ends_.emplace_back(place_of(flow.from), place_of(flow.to));
  }
  /// Returns the way of flow `flow` in group `equal`, up to the next call.
  const Route& way(const Cluster& cluster, const std::vector<int>& equal, std::size_t flow) {
    const auto device_at = [&](int place) { return place == kNone ? kHost : equal[place]; };
    route(cluster, device_at(ends_[flow].first), device_at(ends_[flow].second), way_);
    return way_;
  }

 private:
  static constexpr int kNone = -1;
  std::vector<std::pair<int, int>> ends_;
  Route way_;
};

}  // namespace

const std::vector<FoldedLinks::LinkCounts>& FoldedLinks::crossed(
    const CollectiveLinks& links, const Member& member, const std::vector<int>& kinds) const {
  KnownFlows::OfLayout::Crossed& known = known_->crossed[&links];
  if (known.kinds == kinds) return known.counts;
  known.kinds = kinds;
  known.counts.assign(1 + *std::max_element(kinds.begin(), kinds.end()), {});
  FlowsOfGroup flows(links.plan->flows, member.group);
  for (const std::vector<int>& equal : equal_groups(member)) {
    for (std::size_t f = 0; f < kinds.size(); ++f) {
      const Route& way = flows.way(inputs_.cluster, equal, f);
      for (const LinkId link : way.links) ++known.counts[kinds[f]][link];
    }
  }
  return known.counts;
}

std::vector<GroupFlow> FoldedLinks::flows_of_equals(const CollectiveLinks& links,
                                                    const Member& member,
                                                    const std::vector<int>& chosen) const {
  FlowsOfGroup of_group(links.plan->flows, member.group);
  const std::vector<std::vector<int>> groups = equal_groups(member);
  std::vector<GroupFlow> flows;
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    for (const int f : chosen) {
      const auto flow = static_cast<std::size_t>(f);
      flows.push_back(
          {of_group.way(inputs_.cluster, groups[g], flow).links, links.plan->flows[flow].bytes, g});
    }
  }
  return flows;
}

std::optional<Seconds> FoldedLinks::time_alone(const CollectiveLinks& links, const Member& member,
                                               const std::vector<int>& chosen) const {
  const auto [known, fresh] = known_->times_alone.try_emplace({&links, chosen});
  if (!fresh) return known->second;
  const std::vector<Seconds> ends =
      ends_of_groups(inputs_.cluster, flows_of_equals(links, member, chosen));
  const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
  if (*last - *first <= kRounding * *last) known->second = *last;
  return known->second;
}

std::shared_ptr<const CollectivePlan> FoldedLinks::plan_of(const Exchange& exchange,
                                                           const std::vector<int>& group) const {
  auto& plan = known_->plans[{exchange.axis, group.front(), exchange.kind, exchange.bytes.value(),
                              exchange.back.value(), exchange.routing, exchange.layout}];
  if (!plan) {
    plan = std::make_shared<const CollectivePlan>(plan_exchange(inputs_.cluster, group, exchange));
  }
  return plan;
}

const CollectiveLinks& FoldedLinks::add_collective(
    const std::shared_ptr<const CollectivePlan>& plan, const Member& member, Orbit& orbit) {
  const auto [known, fresh] =
      known_->links.try_emplace({plan.get(), member.axis, member.rank, member.alone});
  if (fresh) known->second = links_of(plan, member);
  const CollectiveLinks& links = known->second;
  if (!folds()) return links;
  std::vector<int> numbers;
  numbers.reserve(links.met.size());
  for (const LinkId id : links.met) numbers.push_back(classes_.number(id));
  for (const auto& [one, other] : links.united) unite(numbers[one], numbers[other]);
  orbit = links.orbit;
  for (Use& use : orbit) use.link = numbers[use.link];
  if (!links.problem.empty()) problem_ = links.problem;
  return links;
}

namespace {

/// Follows flows over links that nothing else uses.
class FollowedFlows {
 public:
  explicit FollowedFlows(CollectiveLinks& links) : links_(links) {}

  void number(const Route& route, std::vector<int>& numbers) { classes_.number(route, numbers); }
  void add(const std::vector<int>& own, const std::vector<int>& equal, Bytes bytes, int group) {
    unite(own, equal);
    counter_.add(equal, bytes, group);
  }
  void unite(const std::vector<int>& one, const std::vector<int>& other) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (classes_.unite(one[i], other[i])) links_.united.emplace_back(one[i], other[i]);
    }
  }
  void finish() {
    links_.met = classes_.ids();
    links_.orbit = counter_.orbit();
  }

 private:
  CollectiveLinks& links_;
  LinkClasses classes_;
  LinkCounter counter_;
};

}  // namespace

CollectiveLinks FoldedLinks::links_of(const std::shared_ptr<const CollectivePlan>& plan,
                                      const Member& member) const {
  CollectiveLinks links = {.plan = plan};
  const std::vector<Flow>& flows = plan->flows;
  FollowedFlows followed(links);
  std::vector<Route> own;
  std::vector<std::vector<int>> numbers;  // of links, by flow
  own.reserve(flows.size());
  numbers.reserve(flows.size());
  for (const Flow& flow : flows) {
    own.push_back(route(inputs_.cluster, flow.from, flow.to));
    followed.number(own.back(), numbers.emplace_back());
    links.ways.insert(links.ways.end(), numbers.back().begin(), numbers.back().end());
    links.ends.push_back(links.ways.size());
  }
  links.own_busy = links.busy = occupancy(inputs_.cluster, flows);
  if (!folds() || flows.empty()) {
    followed.finish();
    return links;
  }
  // Members of equal groups play the same parts in the same places. The first is their own.
  FlowsOfGroup of_group(flows, member.group);
  std::vector<int> other_numbers;
  const auto problem_of = [&](const std::vector<int>& equal, int group) -> std::string {
    const std::string those = "the group of device " + std::to_string(equal.front());
    const std::string own_device = " than that of device " + std::to_string(member.group.front());
    if (!stands_for(member.group, equal)) return those + " has others" + own_device;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const Route& other = of_group.way(inputs_.cluster, equal, f);
      if (own[f].links.size() != other.links.size() || own[f].bandwidth != other.bandwidth) {
        return those + " is laid otherwise" + own_device;
      }
      followed.number(other, other_numbers);
      followed.add(numbers[f], other_numbers, flows[f].bytes, group);
    }
    return "";
  };
  int group = 0;
  for (const std::vector<int>& equal : equal_groups(member)) {
    links.problem = problem_of(equal, group++);
    if (links.problem.empty()) continue;
    followed.finish();
    links.orbit.clear();
    return links;
  }
  if (member.alone) {
    // Flows of a group that do the same are alike, where one member stands for the group.
    std::map<std::tuple<Bytes, std::size_t, BytesPerSecond, Seconds>, std::vector<int>> first;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const auto [entry, fresh] = first.try_emplace(
          {flows[f].bytes, numbers[f].size(), own[f].bandwidth, own[f].latency}, numbers[f]);
      if (!fresh) followed.unite(entry->second, numbers[f]);
    }
  }
  followed.finish();
  if (alone_) return links;
  links.busy = Seconds(0);
  for (const Use& use : links.orbit) {
    const BytesPerSecond bandwidth = bandwidth_of(inputs_.cluster, links.met[use.link]);
    links.busy = std::max(links.busy, use.bytes / bandwidth);
  }
  return links;
}

void FoldedLinks::unite(int one, int other) {
  if (uneven_) {
    const int a = classes_.find(one), b = classes_.find(other);
    if (a != b) compare(classes_.ids()[a], classes_.ids()[b]);
  }
  classes_.unite(one, other);
}

void FoldedLinks::compare(LinkId one, LinkId other) {
  const Link first = link(inputs_.cluster, one), second = link(inputs_.cluster, other);
  if (first.bandwidth == second.bandwidth) return;
  problem_ = "link " + first.name + " has another bandwidth than link " + second.name;
}

FlowWays FoldedLinks::class_ways(const CollectiveLinks& links) {
  std::vector<LinkId> classes;  // by number of the link
  classes.reserve(links.met.size());
  for (const LinkId link : links.met) classes.push_back(class_of(link));
  FlowWays found;
  std::map<std::vector<LinkId>, int> numbers;
  std::vector<const int*> of_flow;
  of_flow.reserve(links.ends.size());
  std::vector<LinkId> way;
  const std::span all(links.ways);
  std::size_t begin = 0;
  for (const std::size_t end : links.ends) {
    way.clear();
    for (const int link : all.subspan(begin, end - begin)) way.push_back(classes[link]);
    of_flow.push_back(&numbers.try_emplace(way, 0).first->second);  // copies a new way only
    begin = end;
  }
  for (auto& [key, number] : numbers) {
    number = static_cast<int>(found.ways.size());
    found.ways.push_back(key);
  }
  for (const int* number : of_flow) found.of_flow.push_back(*number);
  return found;
}

LinkId FoldedLinks::class_of(LinkId link) {
  const int number = classes_.known(link);
  return number < 0 ? link : classes_.ids()[classes_.find(number)];
}

int FoldedLinks::class_size(LinkId link) {
  const int number = classes_.known(link);
  return number < 0 ? 1 : classes_.size(number);
}

std::unordered_map<LinkId, FoldedLinks::ClassCrossings> FoldedLinks::class_crossings(
    const LinkCounts& counts) {
  struct Range {
    int least = 0, most = 0, links = 0;
  };
  std::unordered_map<LinkId, Range> ranges;
  for (const auto& [link, count] : counts) {
    Range& range = ranges.try_emplace(class_of(link), Range{count, count}).first->second;
    range.least = std::min(range.least, count);
    range.most = std::max(range.most, count);
    ++range.links;
  }
  std::unordered_map<LinkId, ClassCrossings> crossings;
  for (const auto& [link, range] : ranges) {
    const bool alike = range.least == range.most && range.links == class_size(link);
    crossings[link] = {range.most, alike};
  }
  return crossings;
}

std::vector<std::string> FoldedLinks::names_in_class(LinkId link) {
  std::vector<std::string> names;
  const int number = classes_.known(link);
  if (number < 0) return names;
  const int own_class = classes_.find(number);
  const std::vector<LinkId>& ids = classes_.ids();
  for (std::size_t other = 0; other < ids.size(); ++other) {
    if (classes_.find(static_cast<int>(other)) != own_class) continue;
    names.push_back(interlock::link(inputs_.cluster, ids[other]).name);
  }
  return names;
}

const FoldedLinks::ClassUses& FoldedLinks::class_uses(const Orbit& orbit) {
  const auto [known, first] = class_uses_.try_emplace(&orbit);
  ClassUses& classes = known->second;
  if (!first) return classes;
  for (const Use& one : orbit) {
    const int own_class = classes_.find(one.link), size = classes_.size(own_class);
    const auto [entry, fresh] =
        classes.try_emplace(classes_.ids()[own_class], ClassUse{one.messages, one.messages});
    ClassUse& use = entry->second;
    use.least = std::min(use.least, one.messages);
    use.most = std::max(use.most, one.messages);
    use.alike = ++use.links == size && use.least == use.most;
    use.bytes += one.bytes / size;
    use.mean += static_cast<double>(one.messages) / size;
  }
  return classes;
}

}  // namespace interlock
