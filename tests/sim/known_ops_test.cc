// Ops that are lowered once, and written again for other micro-batches.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/known_ops.h"

#include <doctest/doctest.h>

#include <vector>

namespace interlock::known_ops_test {
namespace {

/// Lowers ops to what says how often it was asked: an instruction for the micro-batch, one for the
/// micro-batch before it, and one for that of the other op of a pair.
struct Lowered {
  explicit Lowered(const LowerInputs& inputs) : known(inputs, program) {}

  void append(const Op& op, const Op* pair = nullptr) {
    known.append(op, pair, [&] {
      ++asked;
      program.instructions.push_back({Opcode::Receive, asked, op.micro_batch});
      program.instructions.push_back({Opcode::Wait, asked, op.micro_batch - 1});
      if (pair) program.instructions.push_back({Opcode::Compute, asked, pair->micro_batch});
    });
  }

  Program program;
  KnownOps known;
  int asked = 0;
};

LowerInputs two_stages() {
  LowerInputs inputs;
  inputs.schedule.stages = 2;
  inputs.roles.resize(2);
  inputs.stages.resize(2);
  return inputs;
}

Op forward(int stage, int micro_batch) {
  return {.kind = OpKind::F, .stage = stage, .micro_batch = micro_batch, .loss = stage};
}

Op backward(int stage, int micro_batch, bool completes = false) {
  return {.kind = OpKind::B,
          .stage = stage,
          .micro_batch = micro_batch,
          .loss = 1,
          .completes = completes};
}

TEST_CASE("an op like one before it is that one for another micro-batch") {
  Lowered lowered(two_stages());
  lowered.append(forward(0, 3));
  lowered.append(forward(0, 7));
  lowered.append(forward(1, 7));  // another stage
  lowered.append(forward(0, 0));
  CHECK(lowered.asked == 2);
  CHECK(lowered.program.instructions == std::vector<Instruction>{{Opcode::Receive, 1, 3},
                                                                 {Opcode::Wait, 1, 2},
                                                                 {Opcode::Receive, 1, 7},
                                                                 {Opcode::Wait, 1, 6},
                                                                 {Opcode::Receive, 2, 7},
                                                                 {Opcode::Wait, 2, 6},
                                                                 {Opcode::Receive, 1, 0},
                                                                 {Opcode::Wait, 1, -1}});
}

TEST_CASE("ops that differ in more than the micro-batch are lowered each") {
  Lowered lowered(two_stages());
  lowered.append(backward(0, 3));
  lowered.append(backward(0, 4, true));
  Op of_own_loss = backward(0, 5);
  of_own_loss.loss = 0;
  lowered.append(of_own_loss);
  lowered.append(forward(0, 6));
  CHECK(lowered.asked == 4);
}

TEST_CASE("a pair is known by both ops and by how far their micro-batches are apart") {
  Lowered lowered(two_stages());
  const Op back = backward(1, 4), back_later = backward(1, 9), back_near = backward(1, 10);
  lowered.append(forward(0, 6), &back);
  lowered.append(forward(0, 11), &back_later);
  CHECK(lowered.asked == 1);
  CHECK(lowered.program.instructions.back() == Instruction{Opcode::Compute, 1, 9});
  lowered.append(forward(0, 11), &back_near);
  lowered.append(forward(0, 11));
  CHECK(lowered.asked == 3);
}

/// Says that `inputs` have each op lowered by itself.
bool lowers_each(const LowerInputs& inputs) {
  Lowered lowered(inputs);
  lowered.append(forward(0, 0));
  lowered.append(forward(0, 1));
  return lowered.asked == 2;
}

TEST_CASE("where an op depends on its micro-batch, or on others, each is lowered") {
  CHECK(!lowers_each(two_stages()));
  LowerInputs inputs = two_stages();
  inputs.schedule.slices = 2;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.policy.in_flight = 2;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.strategy.readout_every = 1;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.policy.vocabulary = VocabularySplit::OneBarrier;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.policy.trades_context = true;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.policy.kind = &schedule_named("weipipe");  // weights go round a ring
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.roles[1].gradient_every = 2;
  CHECK(lowers_each(inputs));
  inputs = two_stages();
  inputs.stages[1].host_stash = Bytes(1);
  CHECK(lowers_each(inputs));
}

}  // namespace
}  // namespace interlock::known_ops_test
