// Turns on old inputs: decoupled greedy learning, whose stages do not wait for new ones.
// SPDX-License-Identifier: Apache-2.0
//
// Belilovsky et al., arXiv 1901.08164, section 3.2: a stage has a buffer of its last inputs; a turn
// takes the least used of them, the newest of equal ones, as the authors' code does. Forward, head,
// backward and update are those of a new input, with today's weights. Nothing is handed on.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "validate/cpu/cpu_stage.h"

namespace interlock {
namespace {

template <class T>
OldInput& next_of(CpuStage<T>& stage) {
  CHECK(!stage.old_inputs.empty(), "a stage has had an input before it learns from an old one");
  // Oldest first: of equal ones the last.
  OldInput* next = &stage.old_inputs.front();
  for (OldInput& one : stage.old_inputs) {
    if (one.turns <= next->turns) next = &one;
  }
  return *next;
}

/// Forward, head, backward and update of a micro-batch whose input the stage holds.
template <class T>
void run_turn(CpuStage<T>& stage, int micro_batch) {
  run_forward(stage, micro_batch)();
  if (stage.role.head) run_head(stage, micro_batch)();
  stage.memory->give_back(stage.under_way.at(micro_batch).output);
  for (const Traversal& traversal : stage.role.traversals) {
    CHECK(!traversal.to_previous, "who learns from old inputs hands no gradient on");
    if (stage.runs_again) run_again(stage, traversal.loss, micro_batch)();
    run_backward(stage, OpKind::B, traversal.loss, micro_batch)();
  }
  run_update(stage, micro_batch)();
}

}  // namespace

template <class T>
EndOfOp run_replay(CpuStage<T>& stage) {
  OldInput& old = next_of(stage);
  ++old.turns;
  std::map<int, MicroBatch> others = std::exchange(stage.under_way, {});
  std::map<int, double> unnoted;
  std::map<int, double>* const losses = std::exchange(stage.losses, &unnoted);
  stage.replays = true;
  // No backward writes over the input of a stage, but of the first.
  stage.under_way[old.micro_batch].lent = old.data;
  run_turn(stage, old.micro_batch);
  stage.replays = false;
  stage.losses = losses;
  stage.under_way = std::move(others);
  return [] {};
}

template <class T>
void keep_input(CpuStage<T>& stage, int micro_batch, const Block& input) {
  if (stage.input_room.empty() && stage.old_inputs.empty()) return;
  OldInput kept = {.micro_batch = micro_batch, .turns = 1};
  if (stage.input_room.empty()) {
    kept.data = stage.old_inputs.front().data;
    stage.old_inputs.erase(stage.old_inputs.begin());
  } else {
    kept.data = stage.input_room.back();
    stage.input_room.pop_back();
  }
  std::memcpy(kept.data, input.data, static_cast<std::size_t>(input.bytes));
  stage.old_inputs.push_back(kept);
}

#define INTERLOCK_REPLAY(T)                     \
  template EndOfOp run_replay<T>(CpuStage<T>&); \
  template void keep_input<T>(CpuStage<T>&, int, const Block&)
INTERLOCK_REPLAY(float);
INTERLOCK_REPLAY(double);
#undef INTERLOCK_REPLAY

}  // namespace interlock
