// The order in which one host thread may issue a program: always a linear extension of it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/harness/support/happens_before.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::issue_order_test {
namespace {

std::string deadlock_of(const Program& program) {
  try {
    issue_order(program);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("every order of issue is one that its program allows, or both deadlock") {
  int ended = 0, deadlocked = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(821, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    if (chooses_order(program) || !why_not_executable(program).empty()) continue;
    INFO("seed " << seed << ": " << describe(chain));
    const bool ends = realise(program, run_native).deadlock.empty();
    const std::string deadlock = deadlock_of(program);
    REQUIRE(deadlock.empty() == ends);
    ++(ends ? ended : deadlocked);
    if (ends) CHECK(broken_rule(program, issue_order(program), Listed::Everything) == "");
    if (!ends) CHECK(deadlock.find("the schedule deadlocks") != std::string::npos);
  }
  CHECK(ended > 250);
  CHECK(deadlocked > 10);
}

TEST_CASE("a frozen program is issued in the order that its ranks realised") {
  int frozen = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(822, seed);
    const TestChain chain = random_choosing_chain(random);
    const Program program = program_of(chain);
    if (!why_not_executable(program).empty()) continue;
    if (!realise(program, run_native).deadlock.empty()) continue;
    const Program fixed = freeze(program, EngineKind::Native);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(broken_rule(fixed, issue_order(fixed), Listed::Everything) == "");
    ++frozen;
  }
  CHECK(frozen > 100);
}

TEST_CASE("the checker of orders refuses orders that are none") {
  const Program program = program_of(make_chain(3, ScheduleKind::OneFOneB));
  const std::vector<Issue> good = issue_order(program);
  REQUIRE(broken_rule(program, good, Listed::Everything) == "");
  int refused = 0;
  for (std::size_t i = 1; i < good.size(); ++i) {
    std::vector<Issue> swapped = good;
    std::swap(swapped[i - 1], swapped[i]);
    if (good[i - 1].stream != good[i].stream) continue;
    CHECK(broken_rule(program, swapped, Listed::Everything) != "");
    ++refused;
  }
  CHECK(refused > 5);
  CHECK(broken_rule(program, {good.begin(), good.end() - 1}, Listed::Everything) != "");
  std::vector<Issue> late = good;  // a Receive before everything else
  std::stable_partition(late.begin(), late.end(),
                        [](const Issue& issue) { return issue.stream == 1; });
  CHECK(broken_rule(program, late, Listed::Everything) != "");
}

TEST_CASE("ops of ranks take turns, and a message follows its op at once") {
  TestChain chain = make_chain(2, ScheduleKind::GPipe);
  chain.micro_batches = 3;
  const Program program = program_of(chain);
  std::string ops;
  for (const auto& [stream, instruction] : issue_order(program)) {
    if (instruction.code == Opcode::Compute) {
      const OpInfo& op = program.ops[instruction.index];
      ops += std::to_string(op.stage) + letter(op.kind) + std::to_string(instruction.micro_batch);
      ops += ' ';
    }
  }
  // Written down by hand: each rank in turn does one op as soon as its message is there.
  CHECK(ops == "0F0 1F0 0F1 1F1 0F2 1F2 1B0 0B0 1B1 0B1 1B2 0B2 1U2 0U2 ");
}

TEST_CASE("what only engines can run is named") {
  CHECK(why_not_executable(program_of(make_chain(2, ScheduleKind::GPipe))).empty());
  TestChain replaying = make_chain(3, ScheduleKind::Dgl);
  CHECK(why_not_executable(program_of(replaying)).find("old inputs") != std::string::npos);
  Program grouped = program_of(make_chain(2, ScheduleKind::GPipe));
  grouped.collectives.push_back({});
  CHECK(why_not_executable(grouped).find("collectives") != std::string::npos);
}

}  // namespace
}  // namespace interlock::issue_order_test
