// Memory of a run, found out behind it: equal to that of logical clocks, change by change.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/issued_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "tests/harness/support/virtual_clocks.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "validate/executors/executor.h"

namespace interlock::issued_memory_test {
namespace {

using Change = std::tuple<int, double, int, double>;  // rank, time, class, bytes

std::string words_of(const Change& change) {
  const auto& [rank, time, memory_class, bytes] = change;
  return "rank " + std::to_string(rank) + " at " + std::to_string(time) + " s, class " +
         std::to_string(memory_class) + ", " + std::to_string(bytes) + " bytes";
}

/// Every change that is one, in order; what is taken and given back of one class at one instant
/// counts together.
std::vector<Change> in_order(const std::vector<MemoryChange>& log) {
  std::map<std::tuple<int, double, int>, double> sums;
  for (const MemoryChange& c : log) {
    sums[{c.rank, c.time.value(), static_cast<int>(c.memory_class)}] += c.bytes;
  }
  std::vector<Change> changes;
  for (const auto& [key, bytes] : sums) {
    if (std::abs(bytes) < 1e-9) continue;
    changes.emplace_back(std::get<0>(key), std::get<1>(key), std::get<2>(key), bytes);
  }
  return changes;
}

/// A rendezvous of devices lasts until the message is taken; clocks know ahead when that will be.
bool stands_ahead(const Program& program) {
  return std::any_of(program.channels.begin(), program.channels.end(), [](const Channel& channel) {
    return channel.depth == 0 && !channel.synchronous;
  });
}

void check_equal(const Program& program) {
  const Realised clocks = realise(program, run_virtual);
  TraceLog told = clocks.log;
  told.memory.clear();
  const auto found = in_order(memory_of_issued(program, issue_order(program), told));
  const auto expected = in_order(clocks.log.memory);
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    INFO("change " << i << ": " << words_of(expected[i]) << "; found: " << words_of(found[i]));
    const auto& [rank, time, memory_class, bytes] = expected[i];
    const auto& [r, t, c, b] = found[i];
    REQUIRE(std::tie(r, t, c) == std::tie(rank, time, memory_class));
    REQUIRE(b == doctest::Approx(bytes).epsilon(1e-9));  // summed up in another order
  }
  CHECK(found.size() == expected.size());
}

TEST_CASE("memory is found out from ops and messages alone, as logical clocks have it") {
  int programs = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(831, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    if (chooses_order(program) || !why_not_executable(program).empty()) continue;
    if (stands_ahead(program)) continue;
    if (!realise(program, run_native).deadlock.empty()) continue;
    INFO("seed " << seed << ": " << describe(chain));
    check_equal(program);
    ++programs;
  }
  CHECK(programs > 100);
}

TEST_CASE("of a rank with several streams memory is taken when its op begins") {
  int programs = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(832, seed);
    const TestChain chain = random_choosing_chain(random);
    const Program program = program_of(chain);
    if (!why_not_executable(program).empty() || stands_ahead(program)) continue;
    if (std::any_of(program.channels.begin(), program.channels.end(),
                    [](const Channel& c) { return c.synchronous || c.from_resident; })) {
      continue;  // several streams that stand for messages, or read weights, at one instant
    }
    if (!realise(program, run_native).deadlock.empty()) continue;
    INFO("seed " << seed << ": " << describe(chain));
    check_equal(freeze(program, EngineKind::Native));
    ++programs;
  }
  CHECK(programs > 100);
}

TEST_CASE("a run that ends early has the memory of what was issued") {
  const Program program = program_of(make_chain(3, "1f1b"));
  const std::vector<Issue> whole = issue_order(program);
  TraceLog log = realise(program, run_virtual).log;
  log.memory.clear();
  const std::vector<Issue> half(whole.begin(), whole.begin() + static_cast<int>(whole.size() / 2));
  const auto all = memory_of_issued(program, whole, log),
             some = memory_of_issued(program, half, log);
  CHECK(some.size() < all.size());
  CHECK(!some.empty());
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i].time == all[i].time);
}

}  // namespace
}  // namespace interlock::issued_memory_test
