// An event loop that can do nothing but 1F1B, as one would write it for speed.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/heap_loop.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace interlock {

namespace {

struct Event {
  double time;
  int stage;
  int kind;  // 0: its op ends; 1: an activation arrives; 2: a gradient arrives
  bool operator<(const Event& other) const { return time > other.time; }
};

struct StageState {
  int next = 0;         // position in its order of 2 M ops
  int activations = 0;  // arrived
  int gradients = 0;
  bool busy = false;
  double up_free = 0, down_free = 0;  // its two wires
};

class HeapLoop {
 public:
  explicit HeapLoop(const HeapLoopCase& c) : case_(c), stages_(c.stages) {}
  HeapLoopResult run();

 private:
  struct Op {
    bool forward;
    int micro_batch;
  };
  Op op_at(int stage, int position) const;
  void try_start(int stage, double now);
  void end_op(int stage, double now);

  HeapLoopCase case_;
  std::vector<StageState> stages_;
  std::priority_queue<Event> events_;
  std::int64_t tasks_ = 0;
};

HeapLoop::Op HeapLoop::op_at(int stage, int position) const {
  const int ahead = std::min(case_.stages - 1 - stage, case_.micro_batches);
  if (position < ahead) return {true, position};
  const int steady = 2 * (case_.micro_batches - ahead);
  const int i = position - ahead;
  if (i < steady) return {i % 2 == 0, i % 2 == 0 ? ahead + i / 2 : i / 2};
  return {false, case_.micro_batches - ahead + (i - steady)};
}

void HeapLoop::try_start(int index, double now) {
  StageState& stage = stages_[index];
  if (stage.busy || stage.next == 2 * case_.micro_batches) return;
  const Op op = op_at(index, stage.next);
  const int arrived = op.forward ? stage.activations : stage.gradients;
  if (arrived <= op.micro_batch) return;
  stage.busy = true;
  events_.push({now + (op.forward ? case_.forward : case_.backward), index, 0});
}

void HeapLoop::end_op(int index, double now) {
  StageState& stage = stages_[index];
  const Op op = op_at(index, stage.next++);
  stage.busy = false;
  ++tasks_;
  if (op.forward && index + 1 < case_.stages) {
    stage.up_free = std::max(now, stage.up_free) + case_.occupancy;
    events_.push({stage.up_free + case_.latency, index + 1, 1});
  } else if (!op.forward && index > 0) {
    stage.down_free = std::max(now, stage.down_free) + case_.occupancy;
    events_.push({stage.down_free + case_.latency, index - 1, 2});
  }
  try_start(index, now);
}

HeapLoopResult HeapLoop::run() {
  stages_.front().activations = case_.micro_batches;
  stages_.back().gradients = case_.micro_batches;
  for (int stage = 0; stage < case_.stages; ++stage) try_start(stage, 0);
  double now = 0;
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now = event.time;
    if (event.kind == 0) {
      end_op(event.stage, now);
      continue;
    }
    ++tasks_;
    ++(event.kind == 1 ? stages_[event.stage].activations : stages_[event.stage].gradients);
    try_start(event.stage, now);
  }
  return {now, tasks_};
}

}  // namespace

HeapLoopResult run_heap_loop(const HeapLoopCase& c) { return HeapLoop(c).run(); }

}  // namespace interlock
