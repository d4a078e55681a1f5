// BitPipe: its order against the authors' lists, its step, its stash and its traffic.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::bitpipe_test {
namespace {

TestChain chain_of(int ranks, int micro_batches, const ChainStage& stage = {}) {
  TestChain chain = make_laid_chain(ranks, "bitpipe", stage);
  chain.micro_batches = chain.policy.update_every = micro_batches;
  return chain;
}

/// Returns ops of one kind of a rank as the authors' program numbers them on 4 ranks: the forwards
/// of the first halves of 8 micro-batches are 0 to 7, those of their second halves 8 to 15.
std::vector<int> numbers_of(OpKind kind, int rank) {
  std::vector<int> numbers;
  for (const Op& op : expand(schedule_of(chain_of(4, 8)).ranks[rank].front())) {
    if (op.kind == kind) numbers.push_back(op.micro_batch + (op.stage % 8 < 4 ? 0 : 8));
  }
  return numbers;
}

TEST_CASE("passes of 4 ranks and 8 micro-batches come in the order that the authors write down") {
  const std::vector<std::vector<int>> forwards = {
      {0, 1, 2, 10, 3, 11, 8, 9, 4, 5, 6, 14, 7, 15, 12, 13},
      {0, 2, 1, 3, 10, 8, 11, 9, 4, 6, 5, 7, 14, 12, 15, 13},
      {2, 0, 3, 1, 8, 10, 9, 11, 6, 4, 7, 5, 12, 14, 13, 15},
      {2, 3, 0, 8, 1, 9, 10, 11, 6, 7, 4, 12, 5, 13, 14, 15}};
  const std::vector<std::vector<int>> backwards = {
      {8, 9, 10, 2, 11, 3, 0, 1, 12, 13, 14, 6, 15, 7, 4, 5},
      {8, 10, 9, 11, 2, 0, 3, 1, 12, 14, 13, 15, 6, 4, 7, 5},
      {10, 8, 11, 9, 0, 2, 1, 3, 14, 12, 15, 13, 4, 6, 5, 7},
      {10, 11, 8, 0, 9, 1, 2, 3, 14, 15, 12, 4, 13, 5, 6, 7}};
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(numbers_of(OpKind::F, rank) == forwards[rank]);
    CHECK(numbers_of(OpKind::B, rank) == backwards[rank]);
  }
}

// Stages 4 to 7 are the second copy: 0F0 goes down rank 0, 3F0 comes up to it; 5F1 goes down rank
// 0 from rank 1, where micro-batch 1 enters, and 6F1 comes up past it.
TEST_CASE("BitPipe of one unit on 2 ranks, as text") {
  CHECK(to_text(schedule_of(chain_of(2, 2))) ==
        "0F0 5F1 6F1 3F0 3B0 6B1 5B1 0B0 0U1 5U1 6U1 3U1\n"
        "4F1 1F0 2F0 7F1 7B1 2B0 1B0 4B1 4U1 1U1 2U1 7U1\n");
}

TEST_CASE("ramps of BitPipe take (p - 2) max(F, B), and each further unit (p - 2) |B - F| more") {
  for (int p = 2; p <= 12; p += 2) {
    for (int units = 1; units <= 4; ++units) {
      for (const auto& [forward, backward] :
           {std::pair(1.0, 1.0), {1.0, 2.0}, {2.0, 5.0}, {3.0, 2.0}, {1.0, 3.0}}) {
        const int m = units * p;
        const ChainStage stage = {
            .forward = forward, .backward_input = backward / 2, .backward_weight = backward / 2};
        const Realised run = realise(program_of(chain_of(p, m, stage)), run_native);
        const double idle =
            (p - 2) * (std::max(forward, backward) + (units - 1) * std::abs(backward - forward));
        INFO("p " << p << ", M " << m << ", F " << forward << ", B " << backward << ": 2M(F + B) + "
                  << idle);
        CHECK(run.summary.makespan.value() == doctest::Approx(2 * m * (forward + backward) + idle));
      }
    }
  }
}

TEST_CASE("a rank d from the nearer end keeps 3p/2 + d + 1 stages, those in the middle the most") {
  constexpr double kStash = 100;
  for (int p = 2; p <= 10; p += 2) {
    const TestChain chain = chain_of(p, 3 * p, {.stash = kStash});
    const Metrics m = measure(programs_of(chain), {.steps = 3}, false).metrics;
    for (int rank = 0; rank < p; ++rank) {
      const int depth = std::min(rank, p - 1 - rank);
      INFO("p " << p << ", rank " << rank);
      CHECK(m.devices[rank].peak_memory.value() == kStash * (3 * p / 2 + depth + 1));
    }
  }
}

TEST_CASE("each micro-batch of BitPipe crosses every wire of the chain twice, and back") {
  constexpr double kOutput = 10;
  for (const int p : {2, 4, 6}) {
    const int m = 2 * p;
    TestChain chain = chain_of(p, m, {.output = kOutput});
    double bytes = 0;
    for (const LinkMetrics& link : measure(programs_of(chain), {}, false).metrics.links) {
      if (std::abs(link.name[0] - link.name[3]) != 1) CHECK(link.bytes.value() == 0);  // gradients
      bytes += link.bytes.value();
    }
    // Down and up p - 1 wires; the turn of a V stays on its rank.
    CHECK(bytes == doctest::Approx(2.0 * m * 2 * (p - 1) * kOutput));
  }
}

}  // namespace
}  // namespace interlock::bitpipe_test
