// When stages update: after the gradients that count, and before too much is begun.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/sim/support/test_chain.h"

namespace interlock::updates_test {
namespace {

/// The spans of random runs that end, in the order of each rank.
void for_random_runs(
    std::uint64_t stream,
    const std::function<void(const TestChain&, const Program&, const std::vector<Span>&)>& visit) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(stream, seed);
    const TestChain chain = seed % 2 == 0 ? random_chain(random) : random_choosing_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    TraceLog log;
    try {
      run_native(program, log_sink(log));
    } catch (const Error&) {  // a deadlock
      continue;
    }
    visit(chain, program, log.spans);
  }
}

/// When the weight gradients of each (stage, window of micro-batches) are all made.
using Windows = std::map<std::pair<int, int>, Seconds>;

Windows gradients_made(const TestChain& chain, const Program& program,
                       const std::vector<Span>& spans) {
  Windows made;
  for (const Span& span : spans) {
    const OpInfo& op = program.ops[span.op];
    if (op.kind != OpKind::B && op.kind != OpKind::W) continue;
    Seconds& end = made[{op.stage, span.micro_batch / update_every(chain)}];
    end = std::max(end, span.end);
  }
  return made;
}

TEST_CASE("a stage updates after the weight gradients of all micro-batches of its window") {
  for_random_runs(171, [](const TestChain& chain, const Program& program, const auto& spans) {
    const Windows made = gradients_made(chain, program, spans);
    for (const Span& span : spans) {
      const OpInfo& op = program.ops[span.op];
      if (op.kind != OpKind::U) continue;
      CHECK(span.start >= made.at({op.stage, span.micro_batch / update_every(chain)}));
    }
  });
}

TEST_CASE("with a barrier no stage updates before every stage has its gradients") {
  int barriers = 0;
  for_random_runs(172, [&](const TestChain& chain, const Program& program, const auto& spans) {
    if (!chain.policy.barrier) return;
    ++barriers;
    std::map<int, Seconds> made;  // by window, on all stages
    for (const auto& [window, end] : gradients_made(chain, program, spans)) {
      made[window.second] = std::max(made[window.second], end);
    }
    for (const Span& span : spans) {
      if (program.ops[span.op].kind != OpKind::U) continue;
      CHECK(span.start >= made.at(span.micro_batch / update_every(chain)));
    }
  });
  CHECK(barriers > 30);
}

TEST_CASE("a stage begins a micro-batch once it has made the updates due in_flight before it") {
  for_random_runs(173, [](const TestChain& chain, const Program& program, const auto& spans) {
    if (is_flushed(chain) || program.ahead > 0) return;
    const int every = update_every(chain);
    std::map<std::pair<int, int>, Seconds> updated;  // by stage and window
    for (const Span& span : spans) {
      const OpInfo& op = program.ops[span.op];
      if (op.kind == OpKind::U) updated[{op.stage, span.micro_batch / every}] = span.end;
    }
    for (const Span& span : spans) {
      const OpInfo& op = program.ops[span.op];
      const int begun_before = span.micro_batch - chain.policy.in_flight + 1;
      const int due = begun_before / every;  // windows that end before that one
      if (op.kind == OpKind::F && begun_before > 0 && due > 0) {
        CHECK(span.start >= updated.at({op.stage, due - 1}));
      }
    }
  });
}

TEST_CASE("a stage that is always busy lets no sequence run ahead of the others") {
  // One local stage, two in flight, an update every two: if nothing held them back, all even
  // micro-batches would come before the first update, which is the last in priority.
  TestChain chain = make_chain(1, "eager");
  chain.micro_batches = 2;
  chain.policy.update_every = 2;
  chain.policy.in_flight = 2;
  chain.steps = 4;
  const Program program = program_of(chain);
  std::string order;
  run_native(program, {.span = [&](const Span& span) {
               order += letter(program.ops[span.op].kind) + std::to_string(span.micro_batch) + ' ';
             }});
  // F2 is begun while 1 is in flight (0 is done, though not updated on); F3 and F4 wait for U1.
  CHECK(order == "F0 F1 B0 F2 B1 B2 U1 F3 F4 B3 B4 U3 F5 F6 B5 B6 U5 F7 B7 U7 ");
}

}  // namespace
}  // namespace interlock::updates_test
