// Contention by the native engine against SimGrid: every flow ends at the same tick.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/program/ticks.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/sim/support/tree_network.h"
#include "tests/support/cases.h"

namespace interlock::native_contention_test {
namespace {

/// Checks that both engines tell the same, to the last bit.
void compare(const Program& program) {
  CHECK(difference(realise(program, run_native), realise_simgrid(program)) == "");
}

/// Adds to `program` a rank that computes and sends in turns, to leaves of `tree`.
void add_sender(Program& program, const TreeNetwork& tree, Random& random, int sends) {
  const int rank = static_cast<int>(program.ranks.size());
  const int leaf = random.integer(0, tree.leaves - 1);
  const int first = static_cast<int>(program.instructions.size());
  const bool whole = random.integer(0, 1) == 0;  // numbers, so that flows begin and end together
  for (int i = 0; i < sends; ++i) {
    const double pause = whole ? random.integer(0, 4) : 4 * random.uniform();
    program.instructions.push_back({Opcode::Compute, static_cast<int>(program.ops.size()), i});
    program.ops.push_back({OpKind::F, rank, rank, true, Seconds(1e-3 * pause)});
    int to = random.integer(0, tree.leaves - 2);
    to += to >= leaf ? 1 : 0;
    const double bytes = 1e6 * (whole ? random.integer(1, 12) : 0.1 + 12 * random.uniform());
    program.instructions.push_back({Opcode::Send, static_cast<int>(program.channels.size()), i});
    program.channels.push_back({.from_rank = rank,
                                .to_rank = rank,
                                .wire = static_cast<int>(program.wires.size()),
                                .bytes = Bytes(bytes),
                                .latency = Seconds(1e-6 * random.integer(0, 5))});
    program.wires.push_back({.from_rank = rank, .to_rank = rank, .links = tree.route(leaf, to)});
  }
  const int segment = static_cast<int>(program.segments.size());
  program.segments.push_back({first, 2 * sends, 1, 0});
  program.streams.push_back({segment, 1, 1, 0});
  program.ranks.push_back({.first_stream = rank, .streams = 1, .stages = {rank}});
}

/// Messages of many ranks over a tree of links, none of which is ever received.
Program random_network(std::uint64_t seed) {
  Random random(192, seed);
  const TreeNetwork tree = random_tree(random);
  Program program;
  for (const double bandwidth : tree.bandwidths) {
    program.links.push_back({"link", BytesPerSecond(bandwidth)});
  }
  const int most = seed % 50 == 7 ? (is_soak() ? 1000 : 300) : seed % 5 == 0 ? 60 : 12;
  const int senders = random.integer(1, most);
  for (int i = 0; i < senders; ++i) add_sender(program, tree, random, random.integer(1, 3));
  program.stages = senders;
  std::vector<int> users(program.links.size(), 0);
  for (const Wire& wire : program.wires) {
    for (const int link : wire.links) ++users[link];
  }
  for (Wire& wire : program.wires) {
    wire.bandwidth = BytesPerSecond(kInfinity);
    for (const int link : wire.links) {
      wire.bandwidth = std::min(wire.bandwidth, program.links[link].bandwidth);
      wire.shared = wire.shared || users[link] > 1;
    }
  }
  for (Channel& channel : program.channels) {
    channel.occupancy = channel.bytes / program.wires[channel.wire].bandwidth;
  }
  round_durations(program, 1e18);
  return program;
}

/// Returns the most messages on their way at one instant.
int most_at_once(const TraceLog& log) {
  std::vector<std::pair<Seconds, int>> changes;
  for (const Transfer& transfer : log.transfers) {
    changes.emplace_back(transfer.start, 1);
    changes.emplace_back(transfer.end, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& change : changes) most = std::max(most, now += change.second);
  return most;
}

TEST_CASE("flows end as SimGrid has them, on trees of links with up to a thousand at once") {
  int most = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(250)); ++seed) {
    INFO("seed " << seed);
    const Program program = random_network(seed);
    compare(program);
    most = std::max(most, most_at_once(realise(program, run_native).log));
  }
  MESSAGE("up to " << most << " messages at once");
  CHECK(most >= 100);
}

/// Hangs the devices of `chain` on a switch, with messages that take a while.
Program on_a_switch(TestChain chain) {
  chain.cluster.mesh = false;
  for (StageCost& cost : chain.costs) cost.output += Bytes(500);
  return program_of(chain);
}

TEST_CASE("every family of schedules takes the same times as with SimGrid where ports are shared") {
  std::set<std::string_view> met;
  for (const std::string_view family : families()) {
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(std::max(8, cases(8))); ++seed) {
      Random random(193, seed);
      const TestChain chain = random_chain(random, family);
      const Program program = on_a_switch(chain);
      if (!shares_links(program)) continue;
      INFO("seed " << seed << ": " << describe(chain));
      compare(program);
      met.insert(family);
    }
  }
  CHECK(met.size() * 10 >= families().size() * 8);
}

TEST_CASE("ranks that choose their order choose the same with SimGrid where ports are shared") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(200)); ++seed) {
    Random random(194, seed);
    const TestChain chain = random_choosing_chain(random);
    const Program program = on_a_switch(chain);
    if (!shares_links(program)) continue;
    INFO("seed " << seed << ": " << describe(chain));
    compare(program);
    ++compared;
  }
  CHECK(compared > met_by_cases(20));
}

}  // namespace
}  // namespace interlock::native_contention_test
