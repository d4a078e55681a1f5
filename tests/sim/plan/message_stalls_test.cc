// Stalls of messages in line: closed forms, and the sentence when no rank can go on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::message_stalls_test {
namespace {

using Lines = MessageOrder::Lines;

/// Returns `ranks` ranks of stages whose ops take a second each, or `backward` seconds.
TestChain chain_of(int ranks, std::string_view kind, int chunks, int micro_batches,
                   double backward = 1) {
  TestChain chain = make_laid_chain(
      ranks, kind, {.backward_input = backward / 2, .backward_weight = backward / 2}, chunks);
  chain.micro_batches = chain.policy.update_every = micro_batches;
  chain.contention = false;
  return chain;
}

Metrics measured(const TestChain& chain) {
  return measure(programs_of(chain), {.steps = 3}, false).metrics;
}

double step_of(const TestChain& chain) { return measured(chain).step_time.value(); }

// Rank 0 asks for what the last rank hands back behind the first forward of a round, and sends the
// second one after that: as late as the message has gone round, p - 2 ops later than needed. So do
// all p forwards of a round, in each of the v - 1 rounds after which chunks follow.
TEST_CASE("interleaved 1F1B in one line a rank stalls p (p - 2) (v - 1) ops, whatever M") {
  for (int p = 2; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (const int m : {p, 2 * p}) {
        TestChain chain = chain_of(p, "interleaved", v, m);
        INFO(p << " ranks, " << v << " chunks, " << m << " micro-batches");
        const double ideal = 2 * (m * v + p - 1);
        for (const bool batched : {false, true}) {
          chain.policy.messages = {.lines = Lines::Pair, .batched = batched};
          CHECK(step_of(chain) == doctest::Approx(ideal).epsilon(1e-9));
          chain.policy.messages.lines = Lines::Rank;
          CHECK(step_of(chain) == doctest::Approx(ideal + p * (p - 2) * (v - 1)).epsilon(1e-9));
        }
      }
    }
  }
}

// A message takes t. Ranks between the ends exchange with both neighbours in each turn, and with
// three ranks or more there is one: F + B + 2 t. Two ranks exchange once.
TEST_CASE("1F1B in batches before the ops that read them shows both messages of each turn") {
  constexpr double kForward = 1, kBackward = 2, kMessage = 0.25;
  for (int p = 2; p <= 8; ++p) {
    for (const int m : {p, p + 1, 3 * p}) {
      TestChain chain = chain_of(p, "1f1b", 1, m, kBackward);
      chain.cluster.machines.front().port_latency = Seconds(0);
      for (StageCost& stage : chain.costs) stage.output = Bytes(1000 * kMessage);
      const double shown = p == 2 ? m + 1 : 2 * (m + p) - 5;
      const double step = (m + p - 1) * (kForward + kBackward) + shown * kMessage;
      for (const bool waits : {false, true}) {
        INFO(p << " ranks, " << m << " micro-batches, waits for sends: " << waits);
        chain.policy.waits_for_sends = waits;
        chain.policy.messages = {.lines = Lines::Rank, .batched = true, .late = true};
        CHECK(step_of(chain) == doctest::Approx(step).epsilon(1e-9));
      }
      // Ranks that stand until what they send has left show as much.
      chain.policy.messages = {};
      CHECK(step_of(chain) == doctest::Approx(step).epsilon(1e-9));
    }
  }
}

TEST_CASE("the wait for a message in line is exposed while it is on its way, else it is a bubble") {
  // Two ranks, one micro-batch: F0, 3 s, F1 B1, 3 s, B0. Rank 0 idles 3 + 2 + 3 s, rank 1 its 3 s
  // and then 3 + 1 s in which rank 0 ends its step.
  TestChain chain = chain_of(2, "1f1b", 1, 1);
  chain.cluster.machines.front().port_latency = Seconds(3);
  for (const Lines lines : {Lines::Free, Lines::Rank, Lines::Pair}) {
    chain.policy.messages.lines = lines;
    const Metrics metrics = measured(chain);
    INFO("lines " << static_cast<int>(lines));
    CHECK(metrics.step_time.value() == doctest::Approx(10));
    CHECK(metrics.exposed_communication.value() == doctest::Approx((3 + 3) / 2.0));
  }
}

TEST_CASE("ranks whose sends meet no receive are named, with what they are to send") {
  TestChain chain = chain_of(2, "1f1b", 1, 4);
  chain.policy.messages = {.lines = Lines::Rank, .late = true};
  const Realised realised = realise(program_of(chain), run_native);
  CHECK(realised.deadlock ==
        "the schedule deadlocks: nothing can go on, and 4 streams are not done\n"
        "  rank 0 waits until 1B0 has come\n"
        "  rank 0 waits in its line to send 0F1 to rank 1, which has not come to that\n"
        "  rank 1 waits until 0F1 has come\n"
        "  rank 1 waits in its line to send 1B0 to rank 0, which has not come to that\n"
        "expected sends and receives that meet in the order of both ranks; try \"receives\": "
        "\"early\", or \"batched_messages\": true, in /training/schedule");
  chain.policy.messages.batched = true;
  CHECK(realise(program_of(chain), run_native).deadlock == "");
}

}  // namespace
}  // namespace interlock::message_stalls_test
