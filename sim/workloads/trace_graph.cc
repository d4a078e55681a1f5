// Checks execution traces: ids, cycles, both ends of messages, all members of collectives.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/trace_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace interlock {
namespace {

constexpr std::size_t kMostShown = 60;  // of a name

/// "rank.0.et: node 17 (forward)".
std::string name_of(const ExecutionTrace& trace, const ExecutionNode& node) {
  const std::string name = node.name.empty() ? "" : " (" + printable(node.name, kMostShown) + ")";
  return trace.file + ": node " + std::to_string(node.id) + name;
}

std::string place(const ExecutionTrace& trace, const ExecutionNode& node) {
  return name_of(trace, node) + ": ";
}

class Builder {
 public:
  explicit Builder(const std::vector<ExecutionTrace>& traces) : traces_(traces) {}

  TraceGraph build() {
    for (rank_ = 0; rank_ < static_cast<int>(traces_.size()); ++rank_) {
      graph_.first.push_back(static_cast<int>(graph_.nodes.size()));
      add_rank();
    }
    graph_.first.push_back(static_cast<int>(graph_.nodes.size()));
    match_messages();
    match_collectives();
    fit_steps();
    return std::move(graph_);
  }

 private:
  const ExecutionTrace& trace() const { return traces_[static_cast<std::size_t>(rank_)]; }
  std::string where(int index) const {
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(index)];
    return place(traces_[static_cast<std::size_t>(node.rank)], *node.node);
  }
  std::string named(int index) const {
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(index)];
    return name_of(traces_[static_cast<std::size_t>(node.rank)], *node.node);
  }
  const ExecutionNode& node_of(int index) const {
    return *graph_.nodes[static_cast<std::size_t>(index)].node;
  }

  /// The nodes of a rank, sorted topologically.
  void add_rank() {
    const std::vector<ExecutionNode>& nodes = trace().nodes;
    std::unordered_map<std::uint64_t, int> known;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (known.try_emplace(nodes[i].id, static_cast<int>(i)).second) continue;
      throw Error(place(trace(), nodes[i]) + "a second node of this id; expected each once");
    }
    std::vector<std::vector<int>> followers(nodes.size());
    std::vector<int> missing(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::uint64_t other : nodes[i].after) {
        const auto found = known.find(other);
        if (found == known.end()) {
          throw Error(place(trace(), nodes[i]) + "comes after node " + std::to_string(other) +
                      ", which this file does not have");
        }
        followers[static_cast<std::size_t>(found->second)].push_back(static_cast<int>(i));
        ++missing[i];
      }
    }
    sort(followers, missing, known);
  }

  void sort(const std::vector<std::vector<int>>& followers, std::vector<int>& missing,
            const std::unordered_map<std::uint64_t, int>& known) {
    const std::vector<ExecutionNode>& nodes = trace().nodes;
    using Ready = std::pair<std::uint64_t, int>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (missing[i] == 0) ready.push({nodes[i].id, static_cast<int>(i)});
    }
    std::vector<int> position(nodes.size(), -1);
    int computes = 0;
    for (; !ready.empty();) {
      const auto i = static_cast<std::size_t>(ready.top().second);
      ready.pop();
      position[i] = static_cast<int>(graph_.nodes.size());
      GraphNode& node = graph_.nodes.emplace_back();
      node.node = &nodes[i];
      node.kind = nodes[i].kind;
      node.rank = rank_;
      if (node.kind == NodeKind::Compute) node.number = computes++;
      for (const std::uint64_t other : nodes[i].after) {
        node.after.push_back(position[static_cast<std::size_t>(known.at(other))]);
      }
      for (const int next : followers[i]) {
        if (--missing[static_cast<std::size_t>(next)] > 0) continue;
        ready.push({nodes[static_cast<std::size_t>(next)].id, next});
      }
    }
    const auto stuck = std::find(position.begin(), position.end(), -1);
    if (stuck == position.end()) return;
    const auto first = static_cast<std::size_t>(stuck - position.begin());
    throw Error(place(trace(), nodes[first]) +
                "never begins, because it comes after itself, or after a node that does");
  }

  // Messages.

  using Way = std::tuple<int, int, int>;  // from, to, tag
  struct Ends {
    std::vector<int> sends, receives;
  };

  void match_messages() {
    std::map<Way, Ends> ways;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const GraphNode& node = graph_.nodes[static_cast<std::size_t>(i)];
      if (node.kind != NodeKind::Send && node.kind != NodeKind::Receive) continue;
      const bool sends = node.kind == NodeKind::Send;
      check_ends(i, sends);
      Ends& ends = ways[{node.node->from, node.node->to, node.node->tag}];
      (sends ? ends.sends : ends.receives).push_back(i);
    }
    for (const auto& [way, ends] : ways) pair_up(ends);
  }

  void check_ends(int index, bool sends) const {
    const ExecutionNode& node = node_of(index);
    const int own = sends ? node.from : node.to, other = sends ? node.to : node.from;
    const int rank = graph_.nodes[static_cast<std::size_t>(index)].rank;
    const std::string& key = sends ? "comm_src" : "comm_dst";
    if (own != rank) {
      throw Error(where(index) + key + " is " + std::to_string(own) +
                  ", but this is the file of rank " + std::to_string(rank));
    }
    if (other < 0 || other >= static_cast<int>(traces_.size()) || other == rank) {
      throw Error(where(index) + (sends ? "comm_dst" : "comm_src") + " is " +
                  std::to_string(other) + "; expected another one of the " +
                  std::to_string(traces_.size()) + " ranks, from 0 on");
    }
  }

  void pair_up(const Ends& ends) {
    const std::size_t pairs = std::min(ends.sends.size(), ends.receives.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      const int send = ends.sends[i], receive = ends.receives[i];
      const Bytes sent = node_of(send).bytes, received = node_of(receive).bytes;
      if (sent != received) {
        throw Error(where(receive) + "receives " + bytes_of(received) + ", but " + where(send) +
                    "sends " + bytes_of(sent));
      }
      graph_.nodes[static_cast<std::size_t>(send)].partner = receive;
      graph_.nodes[static_cast<std::size_t>(receive)].partner = send;
    }
    const std::vector<int>& more = ends.sends.size() > pairs ? ends.sends : ends.receives;
    if (more.size() == pairs) return;
    const ExecutionNode& node = node_of(more[pairs]);
    const bool sends = node.kind == NodeKind::Send;
    throw Error(where(more[pairs]) + "nothing on rank " +
                std::to_string(sends ? node.to : node.from) + (sends ? " receives" : " sends") +
                " this message, which has the tag " + std::to_string(node.tag));
  }

  static std::string bytes_of(Bytes bytes) {
    return std::to_string(static_cast<std::int64_t>(bytes.value())) + " bytes";
  }

  // Collectives.

  void match_collectives() {
    std::map<std::string, std::map<int, std::vector<int>>> groups;  // nodes by rank
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const GraphNode& node = graph_.nodes[static_cast<std::size_t>(i)];
      if (node.kind == NodeKind::Collective) groups[node.node->group][node.rank].push_back(i);
    }
    for (const auto& [name, members] : groups) add_group(members);
  }

  void add_group(const std::map<int, std::vector<int>>& members) {
    const std::vector<int>& first = members.begin()->second;
    if (members.size() == 1) {
      for (const int i : first) graph_.nodes[static_cast<std::size_t>(i)].kind = NodeKind::Other;
      return;
    }
    std::vector<int>& ranks = graph_.groups.emplace_back();
    const int begin = static_cast<int>(graph_.meetings.size());
    for (const int index : first) {
      const ExecutionNode& node = node_of(index);
      const bool gathers = node.collective == CollectiveKind::AllGather;
      const double parts = gathers ? static_cast<double>(members.size()) : 1;
      graph_.meetings.push_back({static_cast<int>(graph_.groups.size()) - 1, node.collective,
                                 node.bytes * parts, node.micro_batch});
    }
    for (const auto& [rank, nodes] : members) {
      ranks.push_back(rank);
      for (std::size_t i = 0; i < std::min(nodes.size(), first.size()); ++i) {
        check_alike(first[i], nodes[i]);
        graph_.nodes[static_cast<std::size_t>(nodes[i])].meeting = begin + static_cast<int>(i);
      }
      if (nodes.size() == first.size()) continue;
      const bool lacks = nodes.size() < first.size();
      const int alone = lacks ? first[nodes.size()] : nodes[first.size()];
      throw Error(where(alone) + "rank " + std::to_string(lacks ? rank : members.begin()->first) +
                  ", of the same group, has no collective of its own for this one");
    }
  }

  void check_alike(int one, int other) const {
    const ExecutionNode &a = node_of(one), &b = node_of(other);
    if (a.collective == b.collective && a.bytes == b.bytes) return;
    throw Error(where(other) + "joins a collective that is of another type or size than " +
                named(one) +
                ", with which it would meet; expected both alike, in the same order on each rank "
                "of a group");
  }

  // Steps.

  /// All files must tell the same of the run, and every op must be part of it.
  void fit_steps() {
    const std::optional<TraceSteps>& steps = traces_.front().steps;
    for (const ExecutionTrace& other : traces_) {
      if (other.steps == steps) continue;
      throw Error(other.file + ": is of another run than " + traces_.front().file);
    }
    if (!steps) return;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const ExecutionNode& node = node_of(i);
      if (node.kind == NodeKind::Compute && !node.op) return;  // another tool added a node
      const bool inside =
          0 <= node.micro_batch && node.micro_batch / steps->micro_batches < steps->steps;
      const bool known =
          !node.cargo || (0 <= node.cargo->stage && node.cargo->stage < steps->stages);
      const bool staged = !node.op || (0 <= node.op->stage && node.op->stage < steps->stages &&
                                       0 <= node.op->loss && node.op->loss < steps->stages);
      if (inside && staged && known) continue;
      throw Error(where(i) + "is of a stage or micro-batch that the run has not");
    }
    graph_.steps = steps;
  }

  const std::vector<ExecutionTrace>& traces_;
  int rank_ = 0;
  TraceGraph graph_;
};

}  // namespace

void check_devices(const std::vector<ExecutionTrace>& traces, const Cluster& cluster) {
  if (static_cast<int>(traces.size()) > cluster.devices) {
    throw Error("there are traces of " + std::to_string(traces.size()) +
                " ranks, and the cluster has " + std::to_string(cluster.devices) +
                " devices; expected a device for each rank");
  }
  for (const ExecutionTrace& trace : traces) {
    for (const ExecutionNode& node : trace.nodes) {
      const bool copies = node.kind == NodeKind::Load || node.kind == NodeKind::Store;
      if (!copies || has_host(cluster)) continue;
      throw Error(place(trace, node) +
                  "copies to or from the memory of its host, which the cluster does not say how to "
                  "reach; expected \"host\" in the cluster");
    }
  }
}

TraceGraph graph_of(const std::vector<ExecutionTrace>& traces) { return Builder(traces).build(); }

}  // namespace interlock
