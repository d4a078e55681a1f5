// Boundary bytes by hand: outputs that a head still reads, and gradients that are added up.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "sim/engines/engines.h"
#include "sim/measure/memory.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::boundary_memory_test {
namespace {

constexpr double kOutput = 10;  // bytes: 0.01 s on a link

/// Stages that hold nothing but what crosses boundaries: an op takes a second, an update none.
TestChain boundary_chain(int stages, const Strategy& strategy, std::string_view kind) {
  TestChain chain = make_chain(
      std::vector<ChainStage>(static_cast<std::size_t>(stages), {.head = 1, .output = kOutput}),
      kind);
  chain.strategy = strategy;
  chain.policy.split_backward = true;
  return chain;
}

/// The most boundary bytes of each rank, over kOutput.
std::vector<double> boundary_peaks(const TestChain& chain) {
  const Program program = program_of(chain);
  MemoryTracker tracker(program);
  run_native(program, {.span = [&](const Span& span) { tracker.pass(span.rank, span.start); },
                       .memory = [&](const MemoryChange& change) { tracker.add(change); }});
  std::vector<double> tensors;
  for (const MemoryPeak& peak : tracker.finish()) {
    CHECK(peak.total == peak.at_peak[static_cast<int>(MemoryClass::Boundary)]);
    tensors.push_back(peak.total.value() / kOutput);
  }
  return tensors;
}

TEST_CASE("a sum of gradients is held until the weight gradients are made") {
  // Four stages, every loss trains all that it reaches. A middle stage, when the furthest loss
  // comes: the sum of the nearer ones, its gradient, and the one that goes further down. The first
  // stage passes nothing on: it has the gradients of all four losses at once, its own head's too.
  // The last one makes a gradient, and has none. With the furthest loss alone, what is held is that
  // and what goes down.
  INFO("stage 0: 4; stages 1, 2: sum + furthest + input's; stage 3: 1");
  const std::vector<double> summed = {4, 3, 3, 1};
  for (const GradientMode mode : {GradientMode::Sum, GradientMode::Mean}) {
    const Strategy strategy{.kind = StrategyKind::Interlocking, .n_wise = 4, .gradient = mode};
    CHECK(boundary_peaks(boundary_chain(4, strategy, "eager")) == summed);
  }
  const Strategy furthest{.kind = StrategyKind::Interlocking, .n_wise = 4};
  CHECK(boundary_peaks(boundary_chain(4, furthest, "eager")) == std::vector<double>{1, 2, 2, 1});
}

TEST_CASE("an output that has arrived elsewhere stays until its head has begun") {
  // Both stages on one rank: the first one's output is handed over at once, and the second stage's
  // forward goes before the first one's head. While it runs there are two outputs: its own, and the
  // one that the head waits for; what it received became stash, of no bytes here.
  TestChain chain = boundary_chain(3, kLocal, "eager");
  chain.rank_of_stage = {0, 0, 1};
  const Program program = program_of(chain);
  std::vector<std::pair<OpKind, int>> order;
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[static_cast<std::size_t>(span.op)];
               if (span.rank == 0 && order.size() < 3) order.emplace_back(op.kind, op.stage);
             }});
  CHECK(order ==
        std::vector<std::pair<OpKind, int>>{{OpKind::F, 0}, {OpKind::F, 1}, {OpKind::H, 0}});
  INFO("F1: output of 0 for its head, output of 1; then gradients of both heads");
  CHECK(boundary_peaks(chain)[0] == 2);
}

TEST_CASE("an output whose head begins first stays until its transfer has ended") {
  // The head begins when the forward ends, the transfer a hundredth of a second later; meanwhile
  // the head makes the gradient of the output, which is a second tensor.
  CHECK(boundary_peaks(boundary_chain(2, kLocal, "eager"))[0] == 2);
}

}  // namespace
}  // namespace interlock::boundary_memory_test
