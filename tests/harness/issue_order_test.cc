// The order in which one host thread may issue a program: always a linear extension of it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "tests/harness/support/happens_before.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "validate/executors/executor.h"

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

/// Returns what is wrong with the slots of `order`, counted again by channel and by event; empty if
/// nothing.
std::string wrong_slot(const Program& program, const std::vector<Issue>& order) {
  std::vector<std::vector<int>> sent(program.channels.size()), taken(program.channels.size());
  std::map<std::pair<int, int>, std::pair<int, int>> generations;  // slot, records
  std::set<int> slots;
  for (const auto& [stream, instruction, slot, after, completes] : order) {
    const auto [code, index, micro_batch] = instruction;
    if (code == Opcode::Send) {
      const Channel& channel = program.channels[index];
      const int room = static_cast<int>(sent[index].size()) - channel.depth;
      const bool waits = !channel.synchronous && channel.depth > 0 && room >= 0;
      if (after != (waits ? taken[index].at(room) : -1)) return "room of another message";
      sent[index].push_back(slot);
    } else if (code == Opcode::Receive) {
      taken[index].push_back(slot);
      if (slot != sent[index].at(taken[index].size() - 1)) return "another message";
    } else if (code == Opcode::Record || (code == Opcode::Wait && micro_batch >= 0)) {
      const Event& event = program.events[index];
      auto& [known, records] =
          generations.try_emplace({index, micro_batch / event.micro_batches}, slot, 0)
              .first->second;
      if (code == Opcode::Record && records == 0 && !slots.insert(slot).second)
        return "a slot twice";
      if (code == Opcode::Record && completes != (++records >= event.recorders)) return "completes";
      if (slot != known) return "another generation";
    } else if (slot != -1) {
      return "a slot for nothing";
    }
  }
  return "";
}

TEST_CASE("slots join both ends of a message, and the records of a generation to what waits") {
  int bounded = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(823, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    if (chooses_order(program) || !deadlock_of(program).empty()) continue;
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(wrong_slot(program, issue_order(program)) == "");
    for (const Issue& issue : issue_order(program)) bounded += issue.after >= 0 ? 1 : 0;
  }
  CHECK(bounded > 100);
}

TEST_CASE("the checker of orders refuses orders that are none") {
  const Program program = program_of(make_chain(3, "1f1b"));
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
  TestChain chain = make_chain(2, "gpipe");
  chain.micro_batches = 3;
  const Program program = program_of(chain);
  std::string ops;
  for (const Issue& issue : issue_order(program)) {
    const Instruction& instruction = issue.instruction;
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
  CHECK(why_not_executable(program_of(make_chain(2, "gpipe"))).empty());
  TestChain replaying = make_chain(3, "dgl");
  CHECK(why_not_executable(program_of(replaying)).find("old inputs") != std::string::npos);
  Program grouped = program_of(make_chain(2, "gpipe"));
  grouped.replicas = 2;
  grouped.collectives.push_back({});  // a sum over them
  CHECK(why_not_executable(grouped).empty());
  grouped.collectives.push_back({.kind = CollectiveKind::AllGather});
  CHECK(why_not_executable(grouped).find("collectives") != std::string::npos);
}

}  // namespace
}  // namespace interlock::issue_order_test
