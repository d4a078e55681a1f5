// Logical clocks against the engines: every op, message, collective and byte at the same tick.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/lower/bulk_synchronous.h"
#include "sim/measure/memory.h"
#include "tests/harness/support/virtual_clocks.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::virtual_test {
namespace {

/// How many programs there were of everything that tells them apart.
class Tally {
 public:
  void count(const std::string& kind, const std::string& name) { ++counts_[kind][name]; }
  int of(const std::string& kind) const {
    const auto found = counts_.find(kind);
    return found == counts_.end() ? 0 : static_cast<int>(found->second.size());
  }
  int of(const std::string& kind, const std::string& name) const {
    return counts_.at(kind).count(name) > 0 ? counts_.at(kind).at(name) : 0;
  }
  std::string text() const {
    std::ostringstream out;
    for (const auto& [kind, names] : counts_) {
      out << '\n' << kind << ':';
      for (const auto& [name, count] : names) out << ' ' << name << ' ' << count;
    }
    return out.str();
  }

 private:
  std::map<std::string, std::map<std::string, int>> counts_;
};

/// Peaks as metrics have them, in order of time.
std::vector<MemoryPeak> peaks_of(const Program& program, const TraceLog& log) {
  MemoryTracker tracker(program);
  for (const MemoryChange& change : log.memory) tracker.add(change);
  return tracker.finish();
}

/// Messages and collectives that several streams of a rank bring to one wire or communicator at one
/// instant: which is first is left open.
struct OpenTurns {
  bool wires = false, communicators = false;
  std::vector<std::vector<std::int32_t>> wire_order;  // that the engine chose
};

OpenTurns open_turns(const Program& program) {
  OpenTurns turns{.wire_order = {program.wires.size(), std::vector<std::int32_t>{}}};
  std::map<std::pair<int, Seconds>, int> sent, joined;
  const TraceSink sink{
      .transfer =
          [&](const Transfer& transfer) {
            const int wire = program.channels[transfer.channel].wire;
            const auto first = sent.insert({{wire, transfer.sent}, transfer.channel}).first;
            turns.wires = turns.wires || first->second != transfer.channel;
            turns.wire_order[wire].push_back(transfer.channel);
          },
      .collective =
          [&](const CollectiveSpan& span) {
            const int communicator = program.collectives[span.collective].communicator;
            turns.communicators =
                !joined.insert({{communicator, span.joined}, 0}).second || turns.communicators;
          }};
  run_native(program, sink);
  return turns;
}

void check_peaks(const Program& program, const TraceLog& engine, const TraceLog& clocks) {
  const auto theirs = peaks_of(program, engine), ours = peaks_of(program, clocks);
  for (std::size_t r = 0; r < theirs.size(); ++r) {
    CHECK(theirs[r].total == ours[r].total);
    CHECK(theirs[r].allocated == ours[r].allocated);
    CHECK(theirs[r].at_peak == ours[r].at_peak);
    CHECK(theirs[r].host_stash == ours[r].host_stash);
  }
}

/// Returns whether the program ends.
bool check_equal(const Program& program, Tally& tally) {
  const Realised engine = realise(program, run_native);
  tally.count("outcome", engine.deadlock.empty() ? "ended" : "deadlocked");
  if (!engine.deadlock.empty()) {
    CHECK(engine.deadlock == realise(program, run_virtual).deadlock);
    return false;
  }
  OpenTurns turns = open_turns(program);
  Program settled = program;
  if (program.wire_order.empty() && turns.wires) settled.wire_order = std::move(turns.wire_order);
  const Realised clocks = realise(settled, run_virtual);
  const std::string what = difference(engine, clocks);
  tally.count("turns at one instant", turns.communicators ? "communicators"
                                      : turns.wires       ? "wires"
                                                          : "none");
  if (turns.communicators && !what.empty()) {
    tally.count("of communicators", "another order");
    return true;
  }
  REQUIRE(what == "");
  if (program.wire_order.empty()) check_peaks(program, engine.log, clocks.log);
  return true;
}

void count(const TestChain& chain, const Program& program, Tally& tally) {
  const SchedulePolicy& policy = chain.policy;
  const char* const queues[] = {"rendezvous", "buffered", "unlimited"};
  tally.count("schedule", policy.kind->name);
  tally.count("strategy", name_of(chain.strategy));
  tally.count("queue", queues[static_cast<int>(policy.queue.kind)]);
  tally.count("in flight", std::to_string(policy.in_flight));
  tally.count("update every", std::to_string(update_every(chain)));
  tally.count("copies of the model", std::to_string(chain.copies));
  tally.count("slices", std::to_string(chain.slices));
  tally.count("copies", policy.copies_on_compute_stream ? "compute stream" : "overlapped");
  tally.count("order", chooses_order(program) ? "chosen" : "fixed");
}

TEST_CASE("logical clocks and engines agree exactly on random programs of every kind") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(811, seed);
    const TestChain chain = seed % 4 == 0   ? random_choosing_chain(random)
                            : seed % 5 == 1 ? random_chain_in_line(random)
                                            : random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    count(chain, program, tally);
    const bool ends = check_equal(program, tally);
    const bool puts_off = chain.policy.deferred_readout > 0;  // scenarios refuse it beside phases
    if (!ends || seed % 3 > 0 || chain.copies > 1 || puts_off ||
        !bulk_synchronous_problem(program).empty())
      continue;
    check_equal(bulk_synchronous(program), tally);
    tally.count("execution", "bulk-synchronous");
  }
  INFO(tally.text());
  CHECK(tally.of("schedule") == static_cast<int>(families().size()));
  CHECK(tally.of("strategy") >= 9);
  CHECK(tally.of("outcome", "ended") > 700);
  CHECK(tally.of("outcome", "deadlocked") > 10);
  CHECK(tally.of("order", "chosen") > 100);
  CHECK(tally.of("execution", "bulk-synchronous") > 20);
  MESSAGE(tally.text());
}

TEST_CASE("a frozen order takes the same times on logical clocks, also with other durations") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(812, seed);
    TestChain chain = random_choosing_chain(random);
    const Program program = program_of(chain);
    if (!realise(program, run_native).deadlock.empty()) continue;
    Program frozen = freeze(program, EngineKind::Native);
    INFO("seed " << seed << ": " << describe(chain));
    check_equal(frozen, tally);
    for (OpInfo& op : frozen.ops) op.duration = op.duration * random.integer(0, 1);
    check_equal(frozen, tally);
  }
  CHECK(tally.of("outcome", "ended") > 200);
}

TEST_CASE("logical clocks and engines agree exactly on collectives, ZeRO and folded ranks") {
  Tally tally;
  std::size_t most_communicators = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const LayoutTrial trial = random_layout(seed, RandomCluster::Mesh);
    try {
      const Question scenario = load(trial);
      const Program program = lower_plan(make_plan(scenario), scenario.training().steps);
      if (shares_links(program)) {
        tally.count("layout", "shares links");
        continue;
      }
      INFO(document(trial));
      check_equal(program, tally);
      most_communicators = std::max(most_communicators, program.communicators.size());
      tally.count("layout", program.collectives.empty() ? "no collectives" : "collectives");
    } catch (const Error&) {
      tally.count("layout", "refused");
    }
  }
  INFO(tally.text());
  CHECK(tally.of("layout", "collectives") > 50);
  CHECK(tally.of("of communicators") == 0);
  CHECK(most_communicators > 4);
}

TEST_CASE("logical clocks and engines agree exactly on what devices keep with their hosts") {
  Tally tally;
  int in_turn = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(813, seed);
    const int ranks = random.integer(1, 4);
    const LayoutTrial trial = {
        .model = R"({"kind": "profile", "modules": [{"repeat": )" + std::to_string(ranks) +
                 R"(, "forward": "2 ms", "backward_input": "3 ms", "backward_weight": "1 ms",
                    "parameters": "4 MB", "output": "1 MB", "stash": "8 MB"}]})",
        .cluster = R"({"kind": "uniform", "memory": "80 GiB", "link": {"bandwidth": "1 GB/s"},
                     "host": {"bandwidth": ")" +
                   std::to_string(random.integer(1, 8)) +
                   R"( GB/s", "memory": "1 TB"}, "devices": )" + std::to_string(ranks) + "}",
        .parallel = "\"pipeline\": " + std::to_string(ranks),
        .training =
            R"("strategy": "global", "steps": 3, "schedule": )" +
            std::string(random.integer(0, 1) == 0 ? R"("1f1b")"
                                                  : R"({"kind": "gpipe", "queue": "rendezvous"})") +
            R"(, "offload": {"activations": )" + std::to_string(random.integer(1, 4) / 4.0) +
            "}, \"micro_batches\": " + std::to_string(random.integer(2, 6))};
    INFO(document(trial));
    const Question scenario = load(trial);
    const Program program = lower_plan(make_plan(scenario), scenario.training().steps);
    for (const Event& event : program.events) in_turn += event.in_turn ? 1 : 0;
    check_equal(program, tally);
  }
  INFO(tally.text());
  CHECK(tally.of("outcome", "ended") > 20);
  CHECK(in_turn > 50);
}

TEST_CASE("what logical clocks cannot do is refused") {
  Program program = program_of(make_chain(2, "gpipe"));
  program.variation.compute.spread = 0.1;
  CHECK_THROWS_WITH_AS(run_virtual(program, {}), doctest::Contains("variation"), Error);
  program.variation = {};
  program.interference.assign(program.ranks.size(), {.message_sms = 0.1});
  CHECK_THROWS_WITH_AS(run_virtual(program, {}), doctest::Contains("collective_sms"), Error);
}

}  // namespace
}  // namespace interlock::virtual_test
