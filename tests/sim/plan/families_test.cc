// Every schedule family, over all small shapes: each op at the time that its order alone gives.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/sim/support/order_times.h"
#include "tests/sim/support/realised.h"

namespace interlock::families_test {
namespace {

std::string text(const OpName& name) {
  const auto [kind, stage, micro_batch, loss] = name;
  return std::to_string(stage) + letter(kind) + std::to_string(micro_batch) + ":" +
         std::to_string(loss);
}

/// Returns where `spans` first differ from `expected`; empty if they are the same ops at the same
/// times.
std::string fault_of_times(const Program& program, const TraceLog& log,
                           const std::map<OpName, OpTimes>& expected) {
  double last = 0;
  for (const auto& [name, times] : expected) last = std::max(last, times.end);
  const double allowed = 1e-9 * last;
  std::set<OpName> found;
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[span.op];
    if (op.kind == OpKind::R) continue;
    const OpName name = {op.kind, op.stage, span.micro_batch, op.loss};
    const auto times = expected.find(name);
    if (times == expected.end()) return text(name) + " is in no order";
    if (!found.insert(name).second) return text(name) + " runs twice";
    const double early = times->second.start - span.start.value();
    const double late = span.end.value() - times->second.end;
    if (std::abs(early) > allowed || std::abs(late) > allowed) {
      return text(name) + " runs from " + std::to_string(span.start.value()) + " to " +
             std::to_string(span.end.value()) + ", by its order from " +
             std::to_string(times->second.start) + " to " + std::to_string(times->second.end);
    }
  }
  if (found.size() != expected.size()) return "ops are missing";
  return "";
}

/// Memory that a rank ever holds below nothing, or has left at the end; messages that are not
/// received; a rank that runs two ops at once.
std::string fault_of_balance(const Program& program, const TraceLog& log) {
  std::map<std::pair<int, MemoryClass>, double> held;
  std::vector<MemoryChange> changes = log.memory;
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.time, -a.bytes) < std::pair(b.time, -b.bytes);
  });
  for (const MemoryChange& change : changes) {
    double& bytes = held[{change.rank, change.memory_class}];
    bytes += change.bytes;
    if (bytes < -1e-3) return "rank " + std::to_string(change.rank) + " gives what it has not";
  }
  for (const auto& [place, bytes] : held) {
    if (std::abs(bytes) > 1e-3) return "rank " + std::to_string(place.first) + " keeps bytes";
  }
  std::vector<Span> spans = log.spans;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.rank, a.start, a.end) < std::tie(b.rank, b.start, b.end);
  });
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i - 1].rank == spans[i].rank && spans[i].start < spans[i - 1].end) {
      return "rank " + std::to_string(spans[i].rank) + " runs two ops at once";
    }
  }
  const auto between = [](Seconds a, Seconds b) { return a <= b; };
  for (const Transfer& t : log.transfers) {
    if (!between(t.sent, t.start) || !between(t.start, t.end) || !between(t.end, t.arrival)) {
      return "channel " + std::to_string(t.channel) + " runs backwards";
    }
  }
  return static_cast<std::int64_t>(log.spans.size() + log.transfers.size()) < count_tasks(program)
             ? "tasks are missing"
             : "";
}

/// Every legal shape of every family that fits into a few ranks, with costs of its own.
void for_small_shapes(const std::function<void(TestChain&)>& visit) {
  std::uint64_t shapes = 0;
  for (const std::string_view kind : families()) {
    const ScheduleEntry& entry = schedule_named(kind);
    for (int ranks = 1; ranks <= 4; ++ranks) {
      for (int chunks = 1; chunks <= 4; ++chunks) {
        for (int m = 1; m <= 9; ++m) {
          const bool copied = has_copies(entry.layout);
          if (copied && chunks != entry.chunks) continue;
          if (entry.layout == StageLayout::OneEach && chunks > 1) continue;
          Random random(231, ++shapes);
          TestChain chain = make_laid_chain(ranks, kind, {}, copied ? 2 * chunks : chunks);
          if (is_plain(chain)) {
            for (int s = 0; s < ranks * chunks; ++s) chain.rank_of_stage[s] = s % ranks;
          }
          chain.micro_batches = m;
          chain.steps = 2;
          if (!entry.updates_each) chain.policy.update_every = m;
          if (entry.slices) chain.slices = 1 + m % 3;
          if (entry.overlaps) chain.policy.overlap = 0.5;
          if (!entry.replays) chain.policy.queue = {QueuePolicy::Kind::Unlimited, 0};
          chain.policy.barrier = m % 3 == 0 && !entry.replays;
          if (!shape_problem(chain).empty()) continue;
          draw_costs(chain, random);
          visit(chain);
        }
      }
    }
  }
}

TEST_CASE("every small shape of every family ends, keeps nothing, and runs as its order says") {
  int shapes = 0, timed = 0;
  std::set<std::string_view> kinds;
  for_small_shapes([&](TestChain& chain) {
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    INFO(describe(chain));
    CHECK(run.deadlock == "");
    CHECK(fault_of_balance(program, run.log) == "");
    if (!chooses_order(program)) CHECK(difference(run, realise(program, run_event_loop)) == "");
    if (++shapes % 25 == 0) CHECK(difference(run, realise_simgrid(program), 1e-9) == "");
    if (!has_plain_rules(chain)) return;
    CHECK(fault_of_times(program, run.log, order_times(chain)) == "");
    ++timed;
    kinds.insert(chain.policy.kind->name);
  });
  MESSAGE(shapes << " shapes, " << timed << " of " << kinds.size() << " families by their order");
  // Not the list form, nor replays, nor weipipe, whose times are in weipipe_test.
  CHECK(kinds.size() >= families().size() - 3);
}

TEST_CASE("random chains of all families run as their order says") {
  int timed = 0;
  for (std::uint64_t seed = 0; timed < 1500; ++seed) {
    Random random(232, seed);
    TestChain chain = random_chain(random);
    chain.policy.queue = {};
    chain.policy.copies_on_compute_stream = false;
    chain.strategy.readout_every = 0;
    if (!has_plain_rules(chain)) continue;
    ++timed;
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(run.deadlock == "");
    CHECK(fault_of_times(program, run.log, order_times(chain)) == "");
    CHECK(fault_of_balance(program, run.log) == "");
  }
}

}  // namespace
}  // namespace interlock::families_test
