// Execution traces: runs written down and read back, small graphs in closed form, bad graphs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/execution_trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::execution_trace_test {
namespace {

// Runs written down and read back. The oracle is the run itself.

/// An op or a message by what it is, and its times.
using Happened = std::tuple<int, int, int, int, double, double, double>;

std::vector<Happened> everything(const Program& program, const TraceLog& log) {
  std::vector<Happened> all;
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[span.op];
    all.emplace_back(span.rank, static_cast<int>(op.kind), op.stage, span.micro_batch,
                     span.start.value(), span.end.value(), op.loss);
  }
  for (const Transfer& transfer : log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    all.emplace_back(-1 - channel.from_rank, channel.to_rank, 0, transfer.micro_batch,
                     transfer.start.value(), transfer.end.value(), transfer.arrival.value());
  }
  for (const CollectiveSpan& span : log.collectives) {
    all.emplace_back(-1000, 0, 0, 0, span.start.value(), span.end.value(), 0);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The first thing that happens at another time in `b` than in `a`; "" if all is equal.
std::string first_difference(const std::vector<Happened>& a, const std::vector<Happened>& b) {
  std::ostringstream out;
  if (a.size() != b.size()) out << a.size() << " happenings became " << b.size();
  const double end = std::accumulate(a.begin(), a.end(), 0.0, [](double most, const Happened& h) {
    return std::max(most, std::get<5>(h));
  });
  const auto close = [&](double x, double y) { return std::abs(x - y) <= 1e-12 * end; };
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && out.str().empty(); ++i) {
    const auto [rank, kind, stage, micro_batch, start, stop, more] = a[i];
    const auto [rank2, kind2, stage2, micro_batch2, start2, stop2, more2] = b[i];
    const bool same =
        std::tie(rank, kind, stage, micro_batch) == std::tie(rank2, kind2, stage2, micro_batch2);
    if (same && close(start, start2) && close(stop, stop2) && close(more, more2)) continue;
    out << "rank " << rank << ", kind " << kind << ", stage " << stage << ", micro-batch "
        << micro_batch << ": " << start << " to " << stop << " (" << more << ") became rank "
        << rank2 << ", kind " << kind2 << ", stage " << stage2 << ", micro-batch " << micro_batch2
        << ": " << start2 << " to " << stop2 << " (" << more2 << ")";
  }
  return out.str();
}

std::vector<int> each_its_own(std::size_t ranks) {
  std::vector<int> devices(ranks);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Returns whether two messages were handed to one wire at one instant, of which any may be first.
bool has_tie(const Program& program, const TraceLog& log) {
  std::set<std::pair<int, double>> seen;
  return std::any_of(log.transfers.begin(), log.transfers.end(), [&](const Transfer& transfer) {
    const int wire = program.channels[transfer.channel].wire;
    return !seen.insert({wire, transfer.sent.value()}).second;
  });
}

/// Returns what changes when a run of `chain` is written down and read back; "" if nothing. Nothing
/// at all if the run itself deadlocks, or depends on times in a way that no trace can say, or on
/// which of two messages is first.
std::optional<std::string> change_by_trace(const TestChain& chain) {
  if (chain.policy.replays) return std::nullopt;
  const Program program = program_of(chain);
  TraceLog log, second;
  try {
    run_native(program, log_sink(log));
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto traces = execution_traces(program, log, each_its_own(program.ranks.size()));
  const Program again = lower_traces(traces, chain.cluster);
  try {
    run_native(again, log_sink(second));
  } catch (const Error& error) {
    return error.what();
  }
  const auto before = everything(program, log), after = everything(again, second);
  const std::string change = first_difference(before, after);
  // Nor does a trace say which rank of a group broadcasts, or that links are not shared.
  const bool rooted = chain.policy.vocabulary != VocabularySplit::Whole;
  if (rooted && before.size() == after.size()) return std::nullopt;
  // A stage of a tree that stands before it hands its output on to its own rank, too, cannot say
  // so.
  const bool tree = chain.strategy.kind == StrategyKind::Tree;
  if (change != "" && (tree || has_tie(program, log))) return std::nullopt;
  return change;
}

TEST_CASE("a run that is written down and read back happens at the same times") {
  int equal = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed, 71);
    const TestChain chain = seed % 4 == 0 ? random_choosing_chain(random) : random_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    const std::optional<std::string> change = change_by_trace(chain);
    CHECK(change.value_or("") == "");
    ++(change ? equal : without);
  }
  MESSAGE(equal << " runs, and " << without << " that replay, deadlock or have ties");
  CHECK(equal > 330);
}

TEST_CASE("every family's run that is written down and read back happens at the same times") {
  std::uint64_t seed = 0;
  for (const std::string_view kind : families()) {
    Random random(seed++, 72);
    for (int turn = 0; turn < 3; ++turn) {
      const TestChain chain = random_chain(random, kind);
      INFO(describe(chain));
      CHECK(change_by_trace(chain).value_or("") == "");
    }
  }
}

TEST_CASE("in a trace of an unbounded schedule every op starts when what it comes after ends") {
  TestChain chain =
      make_chain({{2, 3, 1, 0, 1, 500}, {3, 2, 2, 0, 1, 250}, {1, 1, 1, 0, 0, 0}}, "1f1b");
  chain.micro_batches = 5;
  const Program program = program_of(chain);
  TraceLog log;
  run_native(program, log_sink(log));
  for (const ExecutionTrace& trace : execution_traces(program, log, each_its_own(3))) {
    std::vector<double> ends(trace.nodes.size() + 1, 0);
    for (const ExecutionNode& node : trace.nodes) {
      double ready = 0;
      for (const std::uint64_t before : node.after) {
        REQUIRE(before < node.id);
        ready = std::max(ready, ends[before]);
      }
      INFO(node.name);
      if (node.kind == NodeKind::Compute) {
        CHECK(node.start.value() == ready);
        ready += node.duration.value();
      }
      if (node.kind == NodeKind::Receive) {
        // Its message, in the log, where the trace does not look.
        for (const Transfer& transfer : log.transfers) {
          const bool own = transfer.channel == node.tag && transfer.micro_batch == node.micro_batch;
          if (own) ready = std::max(ready, transfer.arrival.value());
        }
      }
      ends[node.id] = ready;
    }
  }
}

// Small graphs. Messages take bytes / (1 kB/s), latency is 0.

struct GraphWriter {
  explicit GraphWriter(int ranks) : traces(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) traces[rank].file = "rank." + std::to_string(rank);
  }
  ExecutionNode& add(int rank, std::uint64_t id, NodeKind kind, std::vector<std::uint64_t> after) {
    ExecutionNode& node = traces[rank].nodes.emplace_back();
    node.id = id;
    node.kind = kind;
    node.after = std::move(after);
    return node;
  }
  void compute(int rank, std::uint64_t id, double seconds, std::vector<std::uint64_t> after = {}) {
    add(rank, id, NodeKind::Compute, std::move(after)).duration = Seconds(seconds);
  }
  void message(int rank, std::uint64_t id, std::pair<int, int> way, double bytes,
               std::vector<std::uint64_t> after = {}) {
    ExecutionNode& node =
        add(rank, id, rank == way.first ? NodeKind::Send : NodeKind::Receive, std::move(after));
    node.from = way.first;
    node.to = way.second;
    node.bytes = Bytes(bytes);
  }
  void collective(int rank, std::uint64_t id, std::optional<CollectiveKind> kind, double bytes,
                  std::vector<std::uint64_t> after = {}) {
    ExecutionNode& node = add(rank, id, NodeKind::Collective, std::move(after));
    node.collective = kind;
    node.bytes = Bytes(bytes);
    node.group = "all";
  }
  std::vector<ExecutionTrace> traces;
};

Cluster small_cluster() {
  Cluster cluster = make_chain(3, "gpipe").cluster;
  cluster.machines.front().port_latency = Seconds(0);
  return cluster;
}

/// Start and end of every op, rank by rank.
std::string times_of(const GraphWriter& graph) {
  const Program program = lower_traces(graph.traces, small_cluster());
  TraceLog log;
  run_native(program, log_sink(log));
  std::stable_sort(log.spans.begin(), log.spans.end(),
                   [](const Span& a, const Span& b) { return a.rank < b.rank; });
  std::ostringstream out;
  for (const Span& span : log.spans) {
    out << span.rank << ": " << span.start.value() << "-" << span.end.value() << "; ";
  }
  return out.str();
}

TEST_CASE("a message of 500 bytes joins two ranks: 2 s, 0.5 s, 3 s") {
  GraphWriter graph(2);
  graph.compute(0, 1, 2);
  graph.message(0, 2, {0, 1}, 500, {1});
  graph.message(1, 1, {0, 1}, 500);
  graph.compute(1, 2, 3, {1});
  CHECK(times_of(graph) == "0: 0-2; 1: 2.5-5.5; ");
}

TEST_CASE("a rank computes one node at a time, of those that are ready the one of lowest id") {
  GraphWriter graph(1);
  graph.compute(0, 7, 3);
  graph.compute(0, 2, 2);
  graph.compute(0, 9, 1, {2, 7});
  CHECK(times_of(graph) == "0: 0-2; 0: 2-5; 0: 5-6; ");
}

TEST_CASE("a node that waits for a message does not keep others from computing") {
  GraphWriter graph(2);
  graph.compute(0, 1, 2);
  graph.message(0, 2, {0, 1}, 500, {1});
  graph.message(1, 1, {0, 1}, 500);
  graph.compute(1, 2, 1, {1});
  graph.compute(1, 3, 1);
  graph.compute(1, 4, 1, {3});
  CHECK(times_of(graph) == "0: 0-2; 1: 0-1; 1: 1-2; 1: 2.5-3.5; ");
}

TEST_CASE("a message is passed on while its rank computes something else") {
  GraphWriter graph(3);
  graph.message(0, 1, {0, 1}, 500);
  graph.compute(1, 1, 10);
  graph.message(1, 2, {0, 1}, 500);
  graph.message(1, 3, {1, 2}, 250, {2});
  graph.message(2, 1, {1, 2}, 250);
  graph.compute(2, 2, 1, {1});
  CHECK(times_of(graph) == "1: 0-10; 2: 0.75-1.75; ");
}

TEST_CASE("what comes after a send waits until the message has arrived") {
  GraphWriter graph(2);
  graph.message(0, 1, {0, 1}, 500);
  graph.compute(0, 2, 1, {1});
  graph.compute(1, 1, 4);
  graph.message(1, 2, {0, 1}, 500, {1});
  graph.compute(1, 3, 1, {2});
  CHECK(times_of(graph) == "0: 0.5-1.5; 1: 0-4; 1: 4-5; ");
}

TEST_CASE("messages of one tag may be taken in another order than they came") {
  GraphWriter graph(2);
  graph.message(0, 1, {0, 1}, 500);
  graph.message(0, 2, {0, 1}, 1000, {1});
  graph.message(1, 1, {0, 1}, 500);
  graph.message(1, 2, {0, 1}, 1000);
  graph.compute(1, 3, 1, {2});
  graph.compute(1, 4, 1, {1, 3});
  // The second is sent when the first has arrived: 0.5 s + 1 s.
  CHECK(times_of(graph) == "1: 1.5-2.5; 1: 2.5-3.5; ");
}

TEST_CASE("two ranks add up 1000 bytes: each sends twice half of them, after the later one") {
  GraphWriter graph(2);
  for (int rank = 0; rank < 2; ++rank) {
    graph.compute(rank, 1, 1 + rank);
    graph.collective(rank, 2, CollectiveKind::AllReduce, 1000, {1});
    graph.compute(rank, 3, 1, {2});
    graph.compute(rank, 4, 0.25, {1});
  }
  // Meanwhile rank 0 computes what does not wait: 1 to 1.25.
  CHECK(times_of(graph) == "0: 0-1; 0: 1-1.25; 0: 3-4; 1: 0-2; 1: 2-2.25; 1: 3-4; ");
}

TEST_CASE("an all-gather of 500 bytes of each takes as long as half a sum of 1000") {
  GraphWriter graph(2);
  for (int rank = 0; rank < 2; ++rank) {
    graph.collective(rank, 1, CollectiveKind::AllGather, 500);
    graph.compute(rank, 2, 1, {1});
  }
  CHECK(times_of(graph) == "0: 0.5-1.5; 1: 0.5-1.5; ");
}

TEST_CASE("a barrier takes no time, and nodes of other kinds hand on what they wait for") {
  GraphWriter graph(2);
  for (int rank = 0; rank < 2; ++rank) {
    graph.compute(rank, 1, 1 + rank);
    graph.collective(rank, 2, std::nullopt, 0, {1});
    graph.add(rank, 3, NodeKind::Other, {2});
    graph.compute(rank, 4, 1, {3});
  }
  CHECK(times_of(graph) == "0: 0-1; 0: 2-3; 1: 0-2; 1: 2-3; ");
}

// Bad graphs.

std::string refusal(const GraphWriter& graph) {
  try {
    times_of(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

GraphWriter pair_of_ranks() {
  GraphWriter graph(2);
  graph.message(0, 1, {0, 1}, 500);
  graph.message(1, 1, {0, 1}, 500);
  return graph;
}

TEST_CASE("a graph that cannot run is refused in one sentence with file and node") {
  GraphWriter graph = pair_of_ranks();
  graph.compute(0, 1, 1);
  CHECK(refusal(graph) == "rank.0: node 1: a second node of this id; expected each once");
  graph = pair_of_ranks();
  graph.compute(0, 2, 1, {5});
  CHECK(refusal(graph) == "rank.0: node 2: comes after node 5, which this file does not have");
  graph = pair_of_ranks();
  graph.compute(0, 2, 1, {3});
  graph.compute(0, 3, 1, {2});
  CHECK(refusal(graph) ==
        "rank.0: node 2: never begins, because it comes after itself, or after a node that does");
  graph = pair_of_ranks();
  graph.traces[0].nodes[0].to = 2;
  CHECK(refusal(graph) ==
        "rank.0: node 1: comm_dst is 2; expected another one of the 2 ranks, from 0 on");
  graph = pair_of_ranks();
  graph.traces[0].nodes[0].from = 1;
  CHECK(refusal(graph) == "rank.0: node 1: comm_src is 1, but this is the file of rank 0");
  graph = pair_of_ranks();
  graph.traces[0].nodes.clear();
  CHECK(refusal(graph) ==
        "rank.1: node 1: nothing on rank 0 sends this message, which has the tag 0");
  graph = pair_of_ranks();
  graph.traces[0].nodes[0].bytes = Bytes(7);
  CHECK(refusal(graph) == "rank.1: node 1: receives 500 bytes, but rank.0: node 1: sends 7 bytes");
  graph = pair_of_ranks();
  graph.collective(0, 2, CollectiveKind::AllReduce, 8);
  graph.collective(1, 2, CollectiveKind::AllReduce, 9);
  CHECK(refusal(graph) ==
        "rank.1: node 2: joins a collective that is of another type or size than rank.0: node 2, "
        "with which it would meet; expected both alike, in the same order on each rank of a group");
  graph.traces[1].nodes[1].bytes = Bytes(8);
  graph.collective(0, 3, CollectiveKind::AllReduce, 8);
  CHECK(refusal(graph) ==
        "rank.0: node 3: rank 1, of the same group, has no collective of its own for this one");
  graph = pair_of_ranks();
  graph.add(1, 2, NodeKind::Load, {});
  CHECK(refusal(graph).find("expected \"host\" in the cluster") != std::string::npos);
  graph = GraphWriter(4);
  CHECK(refusal(graph) ==
        "there are traces of 4 ranks, and the cluster has 3 devices; expected a device for each "
        "rank");
}

TEST_CASE("ranks that wait for each other deadlock") {
  GraphWriter graph(2);
  for (int rank = 0; rank < 2; ++rank) {
    graph.message(rank, 1, {1 - rank, rank}, 100);
    graph.message(rank, 2, {rank, 1 - rank}, 100, {1});
    graph.compute(rank, 3, 1, {1});
  }
  CHECK(refusal(graph).starts_with("the schedule deadlocks"));
}

}  // namespace
}  // namespace interlock::execution_trace_test
