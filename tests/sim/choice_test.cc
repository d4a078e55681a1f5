// Choices of ranks: which op comes next, judged from the trace alone.
// SPDX-License-Identifier: Apache-2.0
//
// Ops take time here: what a zero-length op makes ready comes after the choice of its own instant.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "tests/sim/support/readiness.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::choice_test {
namespace {

/// F, H, R, I, B, W, U; then the nearer loss; then the older micro-batch.
bool comes_first(const ReadyOp& a, const ReadyOp& b) {
  static const std::string letters = "FHRIBWU";
  const auto priority = [&](const ReadyOp& o) {
    return std::tuple(letters.find(letter(o.op.kind)), o.op.loss - o.op.stage, o.micro_batch);
  };
  return priority(a) < priority(b);
}

TestChain timed_chain(std::uint64_t seed) {
  Random random(121, seed);
  TestChain chain = random_choosing_chain(random);
  for (StageCost& cost : chain.costs) {
    for (OpCost* op : {&cost.forward, &cost.backward_input, &cost.backward_weight, &cost.head,
                       &cost.update, &cost.next_forward, &cost.link.backward_weight}) {
      op->time += Seconds(1);
    }
    cost.recompute = cost.link.recompute = {};
  }
  return chain;
}

/// The trace of a run by `kind`; nothing if it deadlocked.
TraceLog trace_of(const Program& program, EngineKind kind) {
  TraceLog log;
  try {
    run_program(program, kind, log_sink(log));
  } catch (const Error&) {
    log = {};
  }
  return log;
}

/// The ops that the streams of a rank would run next, had the rank run those before `start`.
std::vector<ReadyOp> candidates(const std::vector<std::vector<ReadyOp>>& streams, const Rank& rank,
                                Seconds start) {
  std::vector<ReadyOp> found;
  for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
    const auto next = std::find_if(streams[s].begin(), streams[s].end(),
                                   [&](const ReadyOp& o) { return o.start >= start; });
    if (next != streams[s].end()) found.push_back(*next);
  }
  return found;
}

void check_choices(const Program& program, const TraceLog& log, int& choices) {
  const auto streams = readiness(program, log);
  for (const Rank& rank : program.ranks) {
    std::vector<ReadyOp> ops;
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      ops.insert(ops.end(), streams[s].begin(), streams[s].end());
    }
    std::sort(ops.begin(), ops.end(),
              [](const ReadyOp& a, const ReadyOp& b) { return a.start < b.start; });
    Seconds free;
    for (const ReadyOp& op : ops) {
      INFO(op.op.stage << std::string(1, letter(op.op.kind)) << op.micro_batch << " at "
                       << op.start.value());
      CHECK(op.ready <= op.start);
      const auto rivals = candidates(streams, rank, op.start);
      Seconds earliest = op.ready;
      for (const ReadyOp& rival : rivals) {
        earliest = std::min(earliest, rival.ready);
        if (rival.ready > op.start) continue;
        INFO("while " << rival.op.stage << std::string(1, letter(rival.op.kind))
                      << rival.micro_batch << " was ready since " << rival.ready.value());
        CHECK_FALSE(comes_first(rival, op));
        choices += comes_first(op, rival) ? 1 : 0;
      }
      CHECK(op.start == std::max(free, earliest));  // never idle while something is ready
      free = op.end;
    }
  }
}

TEST_CASE("a rank that chooses starts no op while one of higher priority is ready, nor idles") {
  int choices = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const TestChain chain = timed_chain(seed);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    const TraceLog log = trace_of(program, EngineKind::Native);
    if (!log.spans.empty()) check_choices(program, log, choices);
  }
  CHECK(choices > 2000);
}

TEST_CASE("SimGrid lets ranks choose by the same rule") {
  int choices = 0;
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    TestChain chain = timed_chain(seed);
    for (StageCost& cost : chain.costs) {  // whole numbers, so that both clocks are exact
      for (OpCost* op : {&cost.forward, &cost.backward_input, &cost.backward_weight, &cost.head,
                         &cost.update, &cost.next_forward}) {
        op->time = Seconds(std::ceil(op->time.value()));
      }
      cost.gradient_addition = Seconds(0);
      cost.first_backward_input = {};
      cost.output = Bytes(1000 * std::ceil(cost.output.value() / 1000));
    }
    chain.cluster.machines.front().port_latency =
        Seconds(std::ceil(chain.cluster.machines.front().port_latency.value()));
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    const TraceLog log = trace_of(program, EngineKind::SimGrid);
    if (!log.spans.empty()) check_choices(program, log, choices);
  }
  CHECK(choices > 100);
}

/// Ops of a run in order: stage, letter, micro-batch, at when.
std::string order_of(const TestChain& chain) {
  const Program program = program_of(chain);
  std::string order;
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[span.op];
               if (!order.empty()) order += ' ';
               order += std::to_string(op.stage) + letter(op.kind) +
                        std::to_string(span.micro_batch) + '@' +
                        std::to_string(static_cast<int>(span.start.value()));
             }});
  return order;
}

TEST_CASE("forwards go before heads and backwards, backwards before updates") {
  // Both stages on one rank, local. At 1, stage 0 is done with F0: its head (0 s) and stage 1's
  // forward are ready. At 4, after its backward of 2 s, its update and stage 1's backward are.
  TestChain chain = make_chain(2, "eager");
  chain.rank_of_stage = {0, 0};
  CHECK(order_of(chain) == "0F0@0 1F0@1 0H0@2 0B0@2 1B0@4 0U0@6 1U0@6");
}

TEST_CASE("an older micro-batch goes before a newer one of the same kind") {
  TestChain chain = make_chain(std::vector<ChainStage>{{.update = 1}}, "eager");
  chain.policy.in_flight = 2;
  chain.steps = 4;
  // Forwards first, then backwards, updates last: U0 waits for B1, and F2 follows U0 at once.
  CHECK(order_of(chain) ==
        "0F0@0 0F1@1 0B0@2 0B1@4 0U0@6 0F2@7 0B2@8 0U1@10 0F3@11 0B3@12 0U2@14 0U3@15");
}

TEST_CASE("a nearer loss goes before a further one, though it is of a newer micro-batch") {
  // Stage 1 of three, 3-wise with all heads, two in flight. It pushes two gradients: of its own
  // loss, ready after its head, and of loss 2, ready when stage 2 has sent it. At 7 both are ready:
  // I of loss 1 for micro-batch 1, and I of loss 2 for micro-batch 0.
  TestChain chain = make_chain(
      std::vector<ChainStage>{{1, 1, 1, 0, 0, 0}, {1, 2, 1, 1, 0, 0}, {1, 1, 1, 0, 0, 0}}, "eager");
  chain.strategy = n_wise(3, true);
  chain.policy.in_flight = 2;
  chain.policy.queue.kind = QueuePolicy::Kind::Unlimited;
  chain.steps = 2;
  std::string stage_1;
  const Program program = program_of(chain);
  run_native(program, {.span = [&](const Span& span) {
               const OpInfo& op = program.ops[span.op];
               if (op.stage != 1) return;
               stage_1 += letter(op.kind) + std::to_string(span.micro_batch) + ':' +
                          std::to_string(op.loss) + '@' +
                          std::to_string(static_cast<int>(span.start.value())) + ' ';
             }});
  // F0 at 1, F1 at 2, H0 3, H1 4, I of loss 1 for 0 at 5 (stage 2 sent loss 2 for 0 at 4), then for
  // 1 at 7 before that of loss 2 for 0 at 9.
  CHECK(stage_1.substr(0, stage_1.find('W')) ==
        "F0:1@1 F1:1@2 H0:1@3 H1:1@4 I0:1@5 I1:1@7 I0:2@9 I1:2@11 ");
}

}  // namespace
}  // namespace interlock::choice_test
