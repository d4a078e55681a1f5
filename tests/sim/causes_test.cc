// Causes, critical paths and bubbles: what the trace says again, and closed forms.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/causes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "sim/causes/bubbles.h"
#include "sim/causes/critical_path.h"
#include "sim/program/log_index.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::causes_test {
namespace {

using Kind = TraceNode::Kind;

Seconds end_of(const TraceNode& node, const TraceLog& log) {
  if (node.kind == Kind::Span) return log.spans[node.index].end;
  if (node.kind == Kind::Collective) return log.collectives[node.index].end;
  return node.kind == Kind::Transfer ? log.transfers[node.index].arrival : Seconds(0);
}

bool near(Seconds a, Seconds b, Seconds allowed) {
  return std::abs((a - b).value()) <= allowed.value();
}

/// Returns what is wrong with `cause` of something that starts at `start`; empty if nothing.
std::string fault_of(const Cause& cause, Seconds start, const TraceLog& log, Seconds allowed) {
  if (!near(cause.at, start, allowed)) {
    return "begins at " + std::to_string(start.value()) + ", its cause says " +
           std::to_string(cause.at.value());
  }
  const Seconds end = end_of(cause.node, log);
  if (cause.wait == Wait::Room) return end >= cause.at - allowed ? "" : "room since long";
  // A message that waited for the wire leaves when the one before has left, not arrived.
  if (cause.wait == Wait::Wire && cause.node.kind == Kind::Transfer) {
    return near(log.transfers[cause.node.index].end, cause.at, allowed) ? "" : "no wire was full";
  }
  return end >= cause.at - allowed ? "" : "its cause ended long before";
}

std::string first_fault(const Causes& causes, const TraceLog& log, Seconds allowed) {
  const auto check = [&](const auto& entries, const std::vector<Cause>& all, const char* what) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string fault = fault_of(all[i], entries[i].start, log, allowed);
      if (!fault.empty()) return what + std::to_string(i) + " " + fault;
    }
    return std::string();
  };
  std::string fault = check(log.spans, causes.spans, "span ");
  if (fault.empty()) fault = check(log.transfers, causes.transfers, "message ");
  if (fault.empty()) fault = check(log.collectives, causes.collectives, "collective ");
  return fault;
}

struct Run {
  TraceLog log;
  RunSummary summary;
};

/// The whole run, in the engine's own order; nothing if it deadlocks.
std::optional<Run> run_of(const Program& program) {
  Run run;
  try {
    run.summary = run_native(program, log_sink(run.log));
  } catch (const Error&) {
    return std::nullopt;
  }
  return run;
}

double sum(const Bubbles& bubbles) { return std::accumulate(bubbles.begin(), bubbles.end(), 0.0); }
double of(const Bubbles& bubbles, BubbleCause cause) {
  return bubbles[static_cast<std::size_t>(cause)];
}

/// Seconds of [from, to) that `rank` spends on ops.
double work_of(int rank, const TraceLog& log, Seconds from, Seconds to) {
  double work = 0;
  for (const Span& span : log.spans) {
    const Seconds part = std::min(span.end, to) - std::max(span.start, from);
    if (span.rank == rank) work += std::max(0.0, part.value());
  }
  return work;
}

TEST_CASE("everything in a run begins when its cause says, in random programs of all kinds") {
  int runs = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    Random random(301, seed);
    const TestChain chain = seed % 3 == 0   ? random_choosing_chain(random)
                            : seed % 5 == 1 ? random_chain_in_line(random)
                                            : random_chain(random);
    const Program program = program_of(chain);
    const auto run = run_of(program);
    INFO("seed " << seed << ": " << describe(chain));
    const bool early =
        chain.policy.messages.lines != MessageOrder::Lines::Free && !chain.policy.messages.late;
    if (early) REQUIRE(run);
    if (!run) continue;
    INFO("seed " << seed << ": " << describe(chain));
    const auto causes = find_causes(program, run->log);
    if (!causes) {
      ++without;
      const bool replays = std::any_of(program.channels.begin(), program.channels.end(),
                                       [](const Channel& channel) { return channel.replay >= 0; });
      CHECK(replays);
      continue;
    }
    ++runs;
    CHECK(first_fault(*causes, run->log, run->summary.makespan * 1e-9) == "");
  }
  MESSAGE(runs << " runs, and " << without << " with old inputs replayed, which have no causes");
  CHECK(runs > 600);
}

TEST_CASE("the critical path fills the run, and ops and bubbles of each device its window") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(302, seed);
    const TestChain chain = seed % 5 == 1 ? random_chain_in_line(random) : random_chain(random);
    const Program program = program_of(chain);
    const auto run = run_of(program);
    if (!run || run->log.spans.empty()) continue;
    const auto causes = find_causes(program, run->log);
    if (!causes) continue;
    INFO("seed " << seed << ": " << describe(chain));
    Seconds end;
    for (const Span& span : run->log.spans) end = std::max(end, span.end);
    const Seconds allowed = end * 1e-9;
    Seconds at;
    for (const PathPart& part : critical_path(run->log, *causes, Seconds(0), end)) {
      CHECK(near(part.begin, at, allowed));
      CHECK((part.node.kind != Kind::Begin || near(part.begin, part.end, allowed)));
      at = part.end;
    }
    CHECK(near(at, end, allowed));
    const Seconds from = end * random.uniform(), to = from + (end - from) * random.uniform();
    const auto ranks = find_bubbles(program, run->log, *causes, {from, to});
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double work = work_of(static_cast<int>(r), run->log, from, to);
      CHECK(sum(ranks[r]) + work == doctest::Approx((to - from).value()).epsilon(1e-9));
      CHECK(of(ranks[r], BubbleCause::Unknown) <= allowed.value());
    }
  }
}

/// Bubbles of two steady steps in the middle of a run of `chain`.
std::vector<Bubbles> two_steps(TestChain chain, Seconds step) {
  chain.steps = 6;
  const Program program = program_of(chain);
  const auto run = run_of(program);
  REQUIRE(run);
  const auto causes = find_causes(program, run->log);
  REQUIRE(causes);
  return find_bubbles(program, run->log, *causes, {step * 2, step * 4});
}

TEST_CASE(
    "1F1B of equal stages: (K - 1)(f + b) of bubble, which ends as a fill of i f, begins as a "
    "drain of i b, and is a wait for gradients in between") {
  const double f = 1, b = 2;
  for (int stages = 1; stages <= 6; ++stages) {
    for (const int batches : {6, 9}) {
      const ChainStage stage = {.forward = f, .backward_input = b / 2, .backward_weight = b / 2};
      TestChain chain = make_chain(std::vector<ChainStage>(stages, stage), "1f1b");
      chain.micro_batches = batches;
      const Seconds step((batches + stages - 1) * (f + b));
      const auto ranks = two_steps(chain, step);
      for (int i = 0; i < stages; ++i) {
        INFO("stage " << i << " of " << stages << ", " << batches << " micro-batches");
        const Bubbles& bubbles = ranks[i];  // of two steps
        CHECK(of(bubbles, BubbleCause::Fill) == doctest::Approx(2 * i * f));
        CHECK(of(bubbles, BubbleCause::Drain) == doctest::Approx(2 * i * b));
        CHECK(of(bubbles, BubbleCause::Gradient) ==
              doctest::Approx(2 * (stages - 1 - i) * (f + b)));
        CHECK(sum(bubbles) == doctest::Approx(2 * (stages - 1) * (f + b)));
      }
    }
  }
}

TEST_CASE("local training of unequal stages: a fast stage waits for activations only") {
  std::vector<ChainStage> stages(4);
  for (int i = 0; i < 4; ++i) stages[i] = {.forward = 1, .backward_weight = i == 0 ? 5.0 : 1.0};
  TestChain chain = make_chain(stages, "eager");
  chain.strategy = kLocal;
  chain.micro_batches = 4;
  // The first stage forwards 1 and, as it has no input gradient to make, works back 5.
  const Program program = program_of(chain);
  double slowest = 0;
  for (const OpInfo& op : program.ops) slowest += op.stage == 0 ? op.duration.value() : 0;
  const double step = 4 * slowest;
  const auto ranks = two_steps(chain, Seconds(step));
  CHECK(of(ranks[0], BubbleCause::Activation) == 0);
  for (int i = 1; i < 4; ++i) {
    const Bubbles& bubbles = ranks[i];
    const double idle = sum(bubbles);
    INFO("stage " << i);
    CHECK(idle > 0);
    CHECK(of(bubbles, BubbleCause::Activation) == doctest::Approx(idle));
  }
}

TEST_CASE("messages that nothing hides are on the critical path, with all their time") {
  // Two stages, one micro-batch: f, c, f, b, c, b, all in a row.
  std::vector<ChainStage> stages(2);
  for (ChainStage& stage : stages) stage.output = 500;  // half a second on 1 kB/s
  TestChain chain = make_chain(stages, "gpipe");
  chain.micro_batches = 1;
  chain.steps = 3;
  const Program program = program_of(chain);
  const auto run = run_of(program);
  REQUIRE(run);
  const auto causes = find_causes(program, run->log);
  REQUIRE(causes);
  Seconds end, messages;
  for (const Span& span : run->log.spans) end = std::max(end, span.end);
  for (const PathPart& part : critical_path(run->log, *causes, Seconds(0), end)) {
    if (part.node.kind == Kind::Transfer) messages = messages + (part.end - part.begin);
  }
  CHECK(messages.value() == doctest::Approx(3 * 2 * 0.5));
  const auto ranks = find_bubbles(program, run->log, *causes, {Seconds(0), end});
  CHECK(of(ranks[0], BubbleCause::Message) == doctest::Approx(3 * 0.5));  // the gradient's
  CHECK(of(ranks[1], BubbleCause::Message) == doctest::Approx(3 * 0.5));
}

// A log may hold the first steps of a run alone, and its causes ask for those of all.
TEST_CASE("what a log does not hold is not looked for among what was taken from it") {
  constexpr int kHeld = 200'000;
  LogPlaces places;
  for (int i = 0; i < kHeld; ++i) places.add(i % 2, 2 * i, i);
  places.sort();
  int found = 0, missing = 0;
  for (int i = kHeld - 1; i >= 0; --i) {
    found += places.take(i % 2, 2 * i) == i ? 1 : 0;
    missing += places.take(i % 2, 2 * i) == -1 ? 1 : 0;
    missing += places.take(i % 2, 2 * i - 1) == -1 ? 1 : 0;
  }
  INFO("a walk over what was taken would make 4e10 steps");
  CHECK(found == kHeld);
  CHECK(missing == 2 * kHeld);
}

}  // namespace
}  // namespace interlock::causes_test
