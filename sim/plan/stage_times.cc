// Adding up the times of modules as stages.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_times.h"

#include <algorithm>
#include <utility>

namespace interlock {
namespace {

/// Times of a module that not every stage with it takes.
struct ModuleTimes {
  int tied_to = 0;
  Seconds tied_update, first_backward_input, gradient_addition, head, head_update;
};

/// Times of all modules below one, so that a range costs the same whatever its length.
struct TimeSums {
  Seconds once, each_traversal, weight;
};

/// Adds up what a device is busy with for the modules [first, last).
struct BusyRange {
  std::vector<TimeSums> sums;
  std::vector<ModuleTimes> modules;
  std::vector<int> tied;  // modules that share weights with another
  int update_every, linked_modules;
  bool skips_input_gradients;

  /// Adds updates of weights that are shared with a module below the range.
  void add_tied(Seconds& busy, int first, int last) const {
    for (const int m : tied) {
      const bool copy = first <= m && m < last && first > modules[m].tied_to;
      if (copy) busy += modules[m].tied_update / update_every;
    }
  }
  void add_traversal(Seconds& busy, const Traversal& traversal, int first, int last) const {
    int lowest = first;
    if (traversal.partial) {
      lowest = std::max(first, last - linked_modules);
      busy += sums[last].each_traversal - sums[lowest].each_traversal + sums[last].weight -
              sums[lowest].weight;
    } else {
      busy += sums[last].each_traversal - sums[first].each_traversal;
    }
    const bool skips = !traversal.to_previous && skips_input_gradients;
    if (skips) busy -= modules[lowest].first_backward_input;
  }
  void add_backward(Seconds& busy, const StageRole& role, int first, int last) const {
    for (const Traversal& traversal : role.traversals) {
      add_traversal(busy, traversal, first, last);
    }
    busy += role.summed_gradients * modules[last - 1].gradient_addition;
  }
};

std::vector<TimeSums> time_sums(const std::vector<StageCost>& modules, int update_every) {
  std::vector<TimeSums> sums(1);
  for (const StageCost& module : modules) {
    TimeSums next = sums.back();
    next.once += module.forward.whole() + module.backward_weight.whole() +
                 (module.update.time + module.sweeps) / update_every;
    next.each_traversal += module.backward_input.whole() + module.recompute.whole();
    next.weight += module.backward_weight.whole();
    sums.push_back(next);
  }
  return sums;
}

}  // namespace

StageTime busy_time(const std::vector<StageCost>& priced, const Strategy& strategy,
                    const std::vector<StageRole>& roles, int update_every) {
  std::vector<StageCost> changed;
  const std::vector<StageCost>& run = as_run(priced, strategy, changed);
  BusyRange times{.sums = time_sums(run, update_every),
                  .modules = {},
                  .tied = {},
                  .update_every = update_every,
                  .linked_modules = strategy.linked_modules,
                  .skips_input_gradients = strategy.skip_unneeded_input_gradients};
  times.modules.reserve(run.size());
  for (const StageCost& module : run) {
    if (module.tied_update.time > Seconds(0)) {
      times.tied.push_back(static_cast<int>(times.modules.size()));
    }
    times.modules.push_back({module.tied_to, module.tied_update.time,
                             module.first_backward_input.whole(), module.gradient_addition,
                             module.head.whole(), module.head_update.time});
  }
  return [times = std::move(times), roles](int stage, int first, int last) {
    // The last part of overlapping blocks belongs to no stage of its own.
    const StageRole& role = roles[std::min<std::size_t>(stage, roles.size() - 1)];
    Seconds busy = times.sums[last].once - times.sums[first].once;
    times.add_tied(busy, first, last);
    const ModuleTimes& top = times.modules[last - 1];
    if (role.alone.empty()) {
      times.add_backward(busy, role, first, last);
    } else {
      Seconds crossing, alone;
      times.add_backward(crossing, role, first, last);
      times.add_backward(alone, role.alone.front(), first, last);
      busy += alone + (crossing - alone) / role.gradient_every;
    }
    if (role.head) busy += top.head + top.head_update / times.update_every;
    return busy;
  };
}
namespace {

/// Adds up what modules take on their way up and down loops.
class LoopSums {
 public:
  LoopSums(const std::vector<StageCost>& modules, const LoopPolicy& policy) {
    for (const StageCost& module : modules) {
      round_.push_back(round_.back() + module.forward.whole() + module.backward_input.whole() +
                       module.recompute.whole());
      weight_.push_back(weight_.back() + module.backward_weight.whole());
      update_.push_back(update_.back() +
                        (module.update.time + module.sweeps) / policy.update_every);
      head_.push_back(module.head.whole());
      head_update_.push_back(module.head_update.time / policy.update_every);
      first_.push_back(module.first_backward_input.whole());
    }
  }

  /// Returns the forward and the gradient of its input, if the stage below or all want it.
  Seconds round(int first, int last, bool whole) const {
    return round_[last] - round_[first] - (whole ? Seconds(0) : first_[first]);
  }
  Seconds weights(int first, int last) const { return weight_[last] - weight_[first]; }
  Seconds update(int first, int last, bool head) const {
    return update_[last] - update_[first] + (head ? head_update_[last - 1] : Seconds(0));
  }
  Seconds head(int last) const { return head_[last - 1]; }

 private:
  std::vector<Seconds> round_ = {Seconds(0)}, weight_ = {Seconds(0)}, update_ = {Seconds(0)};
  std::vector<Seconds> head_, head_update_, first_;
};

}  // namespace

bool wait_in_loops(const Strategy& strategy) {
  const StrategyKind kind = strategy.kind;
  const bool whole = kind == StrategyKind::Interlocking || kind == StrategyKind::Chunked;
  return whole || (kind == StrategyKind::Overlapping && !strategy.recompute_shared_forward);
}

StageLoops stage_loops(const std::vector<StageCost>& modules, const Strategy& strategy,
                       const std::vector<StageRole>& roles, const LoopPolicy& policy) {
  if (!wait_in_loops(strategy)) return {};
  const std::vector<int> tops = furthest_losses(strategy, static_cast<int>(roles.size()));
  const auto in_loop = [=, sums = LoopSums(modules, policy)](int loop, int stage, int first,
                                                             int last) {
    const StageRole& role = roles[stage];
    const int loss = tops[loop];
    const bool whole = stage > 0 || !strategy.skip_unneeded_input_gradients;
    Seconds time = sums.round(first, last, whole);
    const bool fused = !policy.split_backward && tops[stage] == loss;
    if (stage == loop || fused) time += sums.weights(first, last);
    if (stage == loss && role.head) time += sums.head(last);
    if (stage != loop) return time / role.gradient_every;
    // Others of its micro-batches go no further than its own head.
    const double others = 1 - 1.0 / role.gradient_every;
    if (role.head && loss > stage) time += others * sums.head(last);
    return time + sums.update(first, last, role.head);
  };
  return {tops, in_loop};
}

}  // namespace interlock
