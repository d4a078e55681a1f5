// Orders of kernels and messages in layers with experts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/passages.h"

#include <algorithm>
#include <numeric>

namespace interlock {
namespace {

/// Writes the steps of one op of a pair, or of one alone, in the order in which it is told to.
class StepWriter {
 public:
  StepWriter(const PassageChain& chain, int op, std::vector<PassageStep>& steps)
      : chain_(chain), op_(op), steps_(steps) {}

  void begin(TokenWay way, int turn) {
    steps_.push_back({PassageStep::Kind::Begin, op_, {}, way, turn});
  }
  void end(TokenWay way, int turn) {
    steps_.push_back({PassageStep::Kind::End, op_, {}, way, turn});
  }
  void kernels(Seconds time) {
    if (time > Seconds(0)) steps_.push_back({.op = op_, .time = time});
  }
  void run(KernelPlace place) { kernels(share(chain_.times, place)); }
  void run_delayed(KernelPlace place) { kernels(share(chain_.delayed, place)); }
  /// Runs what no layer with experts has: in front of the layers backward, else behind them.
  void run_apart() { kernels(chain_.times.apart + chain_.delayed.apart); }

  /// One way, with what stands beside it.
  void pass(TokenWay way, KernelPlace beside, int turn) {
    begin(way, turn);
    run(beside);
    run_delayed(beside);
    end(way, turn);
  }
  /// A layer by itself.
  void layer(int turn) {
    if (!chain_.back) {
      run(KernelPlace::Around);
      pass(TokenWay::There, KernelPlace::BesideThere, turn);
      run(KernelPlace::Experts);
      return pass(TokenWay::Back, KernelPlace::BesideBack, turn);
    }
    pass(TokenWay::Back, KernelPlace::BesideBack, turn);
    run(KernelPlace::Experts);
    run_delayed(KernelPlace::Experts);
    pass(TokenWay::There, KernelPlace::BesideThere, turn);
    run(KernelPlace::Around);
    run_delayed(KernelPlace::Around);
  }

 private:
  Seconds share(const PlacedTimes& times, KernelPlace place) const {
    return times.at[static_cast<std::size_t>(place)] / std::max(1, chain_.turns);
  }

  const PassageChain& chain_;
  int op_;
  std::vector<PassageStep>& steps_;
};

/// Everything in one step, as nothing passes.
Seconds whole(const PassageChain& op) { return op.times.total() + op.delayed.total(); }

/// Appends the layers that both ops have.
void append_shared_layers(StepWriter& f, StepWriter& b, int layers) {
  using enum TokenWay;
  if (layers > 0) b.begin(Back, 0);
  for (int turn = 0; turn < layers; ++turn) {
    f.run(KernelPlace::Around);
    f.begin(There, turn);
    b.end(Back, turn);
    b.run(KernelPlace::Experts);
    b.begin(There, turn);
    b.run_delayed(KernelPlace::Experts);
    f.end(There, turn);
    f.run(KernelPlace::Experts);
    f.begin(Back, turn);
    b.end(There, turn);
    b.run(KernelPlace::Around);
    if (turn + 1 < layers) b.begin(Back, turn + 1);
    b.run_delayed(KernelPlace::Around);
    f.end(Back, turn);
  }
}

}  // namespace

Seconds PlacedTimes::total() const { return std::accumulate(at.begin(), at.end(), apart); }

std::vector<PassageStep> steps_alone(const PassageChain& op) {
  std::vector<PassageStep> steps;
  StepWriter writer(op, 0, steps);
  if (op.turns == 0) {
    steps.push_back({.time = whole(op)});
    return steps;
  }
  if (op.back) writer.run_apart();
  for (int turn = 0; turn < op.turns; ++turn) writer.layer(turn);
  if (!op.back) writer.run_apart();
  return steps;
}

std::vector<PassageStep> steps_of_pair(const PassageChain& forward, const PassageChain& backward) {
  std::vector<PassageStep> steps;
  StepWriter f(forward, 0, steps), b(backward, 1, steps);
  if (backward.turns == 0) {
    b.kernels(whole(backward));
  } else {
    b.run_apart();
  }
  const int shared = std::min(forward.turns, backward.turns);
  append_shared_layers(f, b, shared);
  for (int turn = shared; turn < backward.turns; ++turn) b.layer(turn);
  for (int turn = shared; turn < forward.turns; ++turn) f.layer(turn);
  if (forward.turns == 0) {
    f.kernels(whole(forward));
  } else {
    f.run_apart();
  }
  return steps;
}

Seconds time_of(const std::vector<PassageStep>& steps, const std::array<WayTimes, 2>& ways) {
  Seconds now, wire;
  std::array<std::array<Seconds, 2>, 2> arrived;  // by op and way; the last one
  for (const PassageStep& step : steps) {
    const auto op = static_cast<std::size_t>(step.op);
    const bool there = step.way == TokenWay::There;
    Seconds& last = arrived[op][there ? 0 : 1];
    if (step.kind == PassageStep::Kind::Kernels) {
      now += step.time;
    } else if (step.kind == PassageStep::Kind::Begin) {
      wire = std::max(wire, now) + (there ? ways[op].there : ways[op].back);
      last = wire;
    } else {
      now = std::max(now, last);
    }
  }
  return now;
}

}  // namespace interlock
