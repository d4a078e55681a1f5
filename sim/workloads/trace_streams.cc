// Chains of nodes that come after each other, and what each must wait for.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/trace_streams.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "base/error.h"

namespace interlock {
namespace {

constexpr int kMostSearched = 64;  // nodes between an op and the one that it follows
constexpr std::size_t kMostNeeds = 10'000;
constexpr int kMostReused = 8;  // streams without ops that are looked at

void sort_unique(std::vector<int>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

class Layout {
 public:
  Layout(const TraceGraph& graph, int rank)
      : graph_(graph),
        begin_(graph.first[static_cast<std::size_t>(rank)]),
        end_(graph.first[static_cast<std::size_t>(rank) + 1]),
        needs_(static_cast<std::size_t>(end_ - begin_)),
        stream_of_(static_cast<std::size_t>(end_ - begin_), -1) {}

  RankStreams lay() {
    for (int i = begin_; i < end_; ++i) find_needs(i);
    if (is_written()) return as_written();
    for (int i = begin_; i < end_; ++i) {
      switch (graph_.nodes[static_cast<std::size_t>(i)].kind) {
        case NodeKind::Compute:
          put_compute(i);
          break;
        case NodeKind::Receive:  // where what comes after it waits for it
        case NodeKind::Other:
          break;
        default:
          put_communication(i);
      }
    }
    RankStreams laid;
    int computing = 0;
    for (Chain& chain : chains_) {
      computing += chain.last_op >= 0 ? 1 : 0;
      laid.streams.push_back(std::move(chain.nodes));
    }
    if (computing == 1 && laid.streams.size() > 1) {
      laid.order.assign(static_cast<std::size_t>(ops_), op_stream_);
    }
    return laid;
  }

 private:
  struct Chain {
    std::vector<StreamNode> nodes;
    std::unordered_set<int> known;  // nodes that are done when its end is reached
    int last_op = -1;
    int beside = -1;  // without ops: the stream with ops whose end its nodes follow
  };

  const GraphNode& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }
  std::vector<int>& needs(int node) { return needs_[static_cast<std::size_t>(node - begin_)]; }
  int& stream_of(int node) { return stream_of_[static_cast<std::size_t>(node - begin_)]; }

  /// Returns true if all nodes name their stream of our program.
  bool is_written() const {
    if (!graph_.steps) return false;
    for (int i = begin_; i < end_; ++i) {
      const GraphNode& own = at(i);
      if (own.kind != NodeKind::Other && (own.node->stream < 0 || own.node->place < 0))
        return false;
    }
    return true;
  }

  RankStreams as_written() {
    std::map<int, std::vector<int>> streams;
    for (int i = begin_; i < end_; ++i) {
      if (at(i).kind != NodeKind::Other) streams[at(i).node->stream].push_back(i);
    }
    RankStreams laid;
    for (auto& [number, nodes] : streams) {
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](int a, int b) { return at(a).node->place < at(b).node->place; });
      const int stream = new_chain();
      for (const int node : nodes) {
        append(stream, node);
        const NodeKind kind = at(node).kind;
        const bool done = kind == NodeKind::Compute || kind == NodeKind::Receive ||
                          (kind == NodeKind::Send && holds_sender(*at(node).node));
        if (done) chains_.back().known.insert(node);
      }
      laid.streams.push_back(std::move(chains_.back().nodes));
    }
    for (int i = begin_; i < end_ && laid.streams.size() > 1; ++i) {
      if (at(i).kind == NodeKind::Compute) laid.order.push_back(stream_of(i));
    }
    return laid;
  }

  /// Finds the nodes that must be done before: Computes, collectives and arrivals. A Receive is
  /// done when its message has come and the nodes that it comes after are done.
  void find_needs(int node) {
    std::vector<int>& own = needs(node);
    for (const int before : at(node).after) {
      const NodeKind kind = at(before).kind;
      if (kind != NodeKind::Other) own.push_back(before);
      if (kind != NodeKind::Other && kind != NodeKind::Receive) continue;
      const std::vector<int>& further = needs(before);
      own.insert(own.end(), further.begin(), further.end());
    }
    sort_unique(own);
    if (own.size() <= kMostNeeds) return;
    throw Error("node " + std::to_string(at(node).node->id) + " of rank " +
                std::to_string(at(node).rank) + " comes after more than " +
                std::to_string(kMostNeeds) + " others at once; expected fewer");
  }

  /// Returns the stream that ends with an op which `node` comes after, directly or through
  /// communication.
  int stream_before(int node) {
    std::vector<int> open = needs(node);
    int found = -1;
    for (std::size_t i = 0; i < open.size() && i < kMostSearched; ++i) {
      const int before = open[i];
      if (at(before).kind == NodeKind::Compute) {
        const int stream = stream_of(before);
        const bool last = chains_[static_cast<std::size_t>(stream)].last_op == before;
        if (last && (found < 0 || before > chains_[static_cast<std::size_t>(found)].last_op)) {
          found = stream;
        }
      } else {
        const std::vector<int>& further = needs(before);
        open.insert(open.end(), further.begin(), further.end());
      }
    }
    return found;
  }

  void put_compute(int node) {
    int stream = stream_before(node);
    if (stream < 0) stream = new_chain();
    append(stream, node);
    Chain& chain = chains_[static_cast<std::size_t>(stream)];
    chain.known.insert(node);
    chain.last_op = node;
    op_stream_ = stream;
    ++ops_;
  }

  /// Sends that may stand belong to whom they hold up.
  bool holds_up(int node) const {
    const ExecutionNode& sent = *at(node).node;
    return at(node).kind == NodeKind::Send &&
           (holds_sender(sent) || (sent.ordered && sent.depth != Channel::kUnlimited));
  }

  void put_communication(int node) {
    const int beside = stream_before(node);
    if (beside >= 0 && (holds_up(node) || knows_all(beside, needs(node)))) {
      append(beside, node);
      if (holds_sender(*at(node).node)) {
        chains_[static_cast<std::size_t>(beside)].known.insert(node);
      }
      return;
    }
    int stream = beside >= 0 ? reusable(beside) : -1;
    if (stream < 0) {
      stream = new_chain();
      chains_.back().beside = beside;
      apart_.push_back(stream);
    }
    append(stream, node);
  }

  bool knows_all(int stream, const std::vector<int>& nodes) const {
    const std::unordered_set<int>& known = chains_[static_cast<std::size_t>(stream)].known;
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) { return known.count(node) > 0; });
  }

  /// Returns a stream without ops whose nodes all came after nothing that `beside` has not seen
  /// done.
  int reusable(int beside) {
    int looked = 0;
    for (auto stream = apart_.rbegin(); stream != apart_.rend() && looked < kMostReused;
         ++stream, ++looked) {
      const Chain& chain = chains_[static_cast<std::size_t>(*stream)];
      if (chain.beside == beside && knows_all(beside, needs(chain.nodes.back().node))) {
        return *stream;
      }
    }
    return -1;
  }

  int new_chain() {
    chains_.emplace_back();
    return static_cast<int>(chains_.size()) - 1;
  }

  void append(int stream, int node) {
    Chain& chain = chains_[static_cast<std::size_t>(stream)];
    StreamNode& placed = chain.nodes.emplace_back();
    placed.node = node;
    for (const int before : needs(node)) {
      if (chain.known.insert(before).second) placed.waits.push_back(before);
    }
    stream_of(node) = stream;
  }

  const TraceGraph& graph_;
  int begin_, end_;
  std::vector<std::vector<int>> needs_;  // by node of the rank
  std::vector<int> stream_of_;           // likewise
  std::vector<Chain> chains_;
  std::vector<int> apart_;  // those without ops
  int ops_ = 0, op_stream_ = 0;
};

}  // namespace

RankStreams lay_streams(const TraceGraph& graph, int rank) { return Layout(graph, rank).lay(); }

}  // namespace interlock
