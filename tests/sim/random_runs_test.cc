// Engines against each other on random programs: every op, message and byte at the same time.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::random_runs_test {
namespace {

/// How many of the random programs ended, and how many deadlocked: both kinds are wanted.
struct Outcomes {
  int ended = 0, deadlocked = 0;
  void count(const Realised& realised) { ++(realised.deadlock.empty() ? ended : deadlocked); }
};

TEST_CASE("the sweep and the loop agree exactly on random programs of fixed order") {
  Outcomes outcomes;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    Random random(111, seed);
    const TestChain chain = random_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    const Program program = program_of(chain);
    if (chooses_order(program)) continue;
    const Realised swept = realise(program, run_longest_path);
    CHECK(difference(swept, realise(program, run_event_loop)) == "");
    outcomes.count(swept);
  }
  CHECK(outcomes.ended > 200);
  CHECK(outcomes.deadlocked > 0);
}

TEST_CASE("SimGrid and native agree to 1e-9 on random programs") {
  Outcomes outcomes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(112, seed);
    const TestChain chain = seed % 5 == 1 ? random_chain_in_line(random) : random_chain(random);
    const Program program = program_of(chain);
    const Realised native = realise(program, run_native);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(difference(native, realise_simgrid(program), 1e-9) == "");
    outcomes.count(native);
  }
  CHECK(outcomes.ended > 200);
}

TEST_CASE("a frozen order replays to identical times, whatever chose it") {
  Outcomes outcomes;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(113, seed);
    const TestChain chain =
        seed % 5 == 1 ? random_chain_in_line(random) : random_choosing_chain(random);
    const Program program = program_of(chain);
    if (!chooses_order(program)) continue;  // fewer micro-batches than may be in flight
    const Realised realised = realise(program, run_event_loop);
    outcomes.count(realised);
    if (!realised.deadlock.empty()) continue;
    const Program frozen = freeze(program, EngineKind::Native);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK_FALSE(chooses_order(frozen));
    CHECK(difference(realised, realise(frozen, run_longest_path)) == "");
    CHECK(difference(realised, realise(frozen, run_event_loop)) == "");
  }
  CHECK(outcomes.ended > 300);
}

TEST_CASE("an order that SimGrid realised replays in the sweep to 1e-9") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(114, seed);
    const TestChain chain = random_choosing_chain(random);
    const Program program = program_of(chain);
    const Realised realised = realise_simgrid(program);
    if (!realised.deadlock.empty()) continue;
    const Program frozen = freeze(program, EngineKind::SimGrid);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(difference(realised, realise(frozen, run_longest_path), 1e-9) == "");
  }
}

TEST_CASE("a frozen wire that several channels use keeps the order of their messages") {
  // Stages 0 and 1 on one rank, 2 and 3 on another, and two micro-batches in flight: activations
  // 1 -> 2 of two slots share a wire, and in a loop so would others.
  TestChain chain = make_chain(
      std::vector<ChainStage>{
          {1, 1, 1, 1, 0, 3000}, {2, 1, 1, 1, 0, 5000}, {1, 2, 1, 1, 0, 2000}, {1, 1, 3, 0, 0, 0}},
      "eager");
  chain.strategy = n_wise(2);
  chain.rank_of_stage = {0, 1, 0, 1};
  chain.policy.in_flight = 2;
  chain.steps = 6;
  for (const auto kind :
       {QueuePolicy::Kind::Rendezvous, QueuePolicy::Kind::Buffered, QueuePolicy::Kind::Unlimited}) {
    chain.policy.queue.kind = kind;
    const Program program = program_of(chain);
    std::vector<int> channels_of_wire(program.wires.size(), 0);
    for (const Channel& channel : program.channels) ++channels_of_wire[channel.wire];
    CHECK(*std::max_element(channels_of_wire.begin(), channels_of_wire.end()) > 2);
    INFO("queue " << static_cast<int>(kind));
    const Realised realised = realise(program, run_event_loop);
    REQUIRE(realised.deadlock == "");
    CHECK(difference(realised, realise(freeze(program, EngineKind::Native), run_longest_path)) ==
          "");
  }
}

TEST_CASE("a stage does not replay when its message is made at that very instant") {
  // Stage 0 sends every 8 s. Stage 1 passes it on in no time, works 4 s, and replays for 4 s, stage
  // 2 works 2 s and replays three times: at 16, 24, ... both end a replay as both messages come.
  TestChain chain = make_chain(std::vector<ChainStage>{{8, 0, 0}, {0, 2, 2}, {1, 0, 1}}, "dgl");
  chain.steps = 6;
  const Program program = program_of(chain);
  const Realised looped = realise(program, run_event_loop);
  CHECK(difference(looped, realise(program, run_longest_path)) == "");
  for (const Span& span : looped.log.spans) {
    const OpInfo& op = program.ops[span.op];
    if (op.kind == OpKind::F && op.stage > 0)
      CHECK(span.start == Seconds(8 * (span.micro_batch + 1)));
  }
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(5112, seed);
    const TestChain replaying = random_chain(random, "dgl");
    const Program random_program = program_of(replaying);
    INFO("seed " << seed << ": " << describe(replaying));
    CHECK(difference(realise(random_program, run_event_loop),
                     realise(random_program, run_longest_path)) == "");
  }
}

TEST_CASE("a watcher changes nothing") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(115, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    const Realised watched = realise(program, run_native);
    if (!watched.deadlock.empty()) continue;
    const RunSummary blind = run_native(program, {});
    CHECK(blind.makespan == watched.summary.makespan);
    TraceLog spans_only;
    run_native(program, {.span = [&](const Span& s) { spans_only.spans.push_back(s); }});
    CHECK(spans_only.spans.size() == watched.log.spans.size());
    Seconds last;
    for (const Span& span : spans_only.spans) last = std::max(last, span.end);
    for (const Span& span : watched.log.spans) last = std::max(last, span.end);
    CHECK(last <= watched.summary.makespan);
  }
}

TEST_CASE("spans of a rank come in order of their start, from every engine") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(116, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    for (const auto kind : {EngineKind::Native, EngineKind::SimGrid}) {
      std::vector<Seconds> end(program.ranks.size());
      const TraceSink sink{.span = [&](const Span& span) {
        CHECK(span.start >= end[span.rank]);
        end[span.rank] = span.end;
      }};
      try {
        run_program(program, kind, sink);
      } catch (const Error&) {  // a deadlock, after spans in order
      }
    }
  }
}

TEST_CASE("the same program gives the same trace again, to the last bit") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(117, seed);
    const Program program = program_of(random_chain(random));
    INFO("seed " << seed);
    CHECK(difference(realise(program, run_native), realise(program, run_native)) == "");
    CHECK(difference(realise_simgrid(program), realise_simgrid(program)) == "");
  }
}

}  // namespace
}  // namespace interlock::random_runs_test
