// Bounds a step by what cannot be avoided.
// SPDX-License-Identifier: Apache-2.0
//
// A device runs one op at a time, so a step lasts no shorter than the ops of one device, with the
// exchanges for which an op stands still. Under a flush more is known. Let a device begin a step
// with a forward of stage s, and end its backwards with one of stage t: before comes the forward of
// that micro-batch through all stages below s, behind comes a backward through all below t, and
// then what the device of stage 0 still does before its next step. These follow each other, so
// their sum is no more than a step.
// Memory: states stay; the stash of a micro-batch lives from its forward to its last backward on a
// stage, in an order that is known beforehand.
#include <algorithm>
#include <functional>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/lower/op_cost.h"
#include "sim/lower/unfold.h"
#include "sim/plan/stage_cost.h"

namespace interlock {

namespace {

Bytes total(const Footprint& state) { return state.weights + state.gradients + state.optimizer; }

/// Times of ops, with the exchanges for which they stand still. Those beside kernels may hide, and
/// so may tokens on their way to experts and back.
class OpTimes {
 public:
  explicit OpTimes(const Question& question) {
    const int places = is_mixed(question.cluster) ? question.ranks : 1;
    for (int rank = 0; rank < places; ++rank) {
      exchange_times_.push_back(price_inputs(question, {0, 0, 0, rank}).exchange_time);
    }
  }

  Seconds of(const OpCost& cost, int rank) const {
    const auto& exchange_time = exchange_times_[exchange_times_.size() == 1 ? 0 : rank];
    Seconds time = cost.time;
    for (const Exchange& exchange : cost.exchanges) {
      const bool hides = exchange.overlapped || exchange.way != TokenWay::None;
      if (!hides) time += exchange.count * exchange_time(exchange);
    }
    return time;
  }

 private:
  std::vector<std::function<Seconds(const Exchange&)>> exchange_times_;  // by rank, or for all
};

/// Returns the least time of pairs of overlapped ops, over their times alone: F + B - o min(F, B).
double least_share(double overlap) { return 1 - overlap / 2; }

/// A rank's part of a step.
struct RankWork {
  Seconds kernels;  // of all its ops
  Seconds time;     // with exchanges
  Seconds behind;   // of this, what comes after its last backward that makes an input gradient
  int first_stage = 0, last_stage = 0;  // of its first forward, and of that backward
  Bytes memory;
};

LowerInputs inputs_of_step(const Plan& plan) {
  LowerInputs inputs = lower_inputs(plan);
  inputs.schedule = schedule_of(plan, inputs, 1);
  inputs.unfolded = kFolded;  // a step is no shorter than that of its first replica
  return unfold(std::move(inputs));
}

struct StepBound {
  Seconds time;
  Bytes memory;                    // of the device that takes most
  Bytes fullest, memory_capacity;  // of the fullest device; capacity 0: unknown
  Seconds busy;                    // of kernels in a step, a mean over the devices
};

StepEstimate estimate_of(const StepBound& bound) {
  return {.time = bound.time,
          .memory = bound.memory,
          .fullest = bound.fullest,
          .memory_capacity = bound.memory_capacity,
          .busy = bound.time > Seconds(0) ? std::min(1.0, bound.busy / bound.time) : 0};
}

class PlanWork {
 public:
  explicit PlanWork(const Plan& plan)
      : times_(plan.question), inputs_(inputs_of_step(plan)), costs_(inputs_) {}
  PlanWork(const PlanWork&) = delete;  // its costs point into it
  PlanWork& operator=(const PlanWork&) = delete;

  StepEstimate bound() const {
    const Schedule& schedule = inputs_.schedule;
    std::vector<RankWork> ranks;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) ranks.push_back(work_of(rank));
    StepBound bound = {.memory_capacity = capacity_of(0)};
    for (const RankWork& rank : ranks) {
      bound.time = std::max(bound.time, rank.time);
      bound.memory = std::max(bound.memory, rank.memory);
      const Bytes capacity = capacity_of(static_cast<int>(&rank - ranks.data()));
      const bool alike = capacity == bound.memory_capacity;
      if (alike ? rank.memory > bound.fullest
                : rank.memory / capacity > bound.fullest / bound.memory_capacity) {
        bound.fullest = rank.memory;
        bound.memory_capacity = capacity;
      }
      bound.busy += rank.kernels / static_cast<double>(ranks.size());
    }
    // Replicas on other machines may be less busy than the first one.
    if (is_mixed(inputs_.cluster)) bound.busy = Seconds(0);
    if (!flushes()) return estimate_of(bound);
    const RankWork& first = ranks[static_cast<std::size_t>(schedule.rank_of_stage.front())];
    const OpKind back = backward();
    const Seconds end = first.last_stage == 0 ? first.behind : Seconds(0);
    for (const RankWork& rank : ranks) {
      const Seconds inside = rank.time - rank.behind;
      bound.time = std::max(bound.time, chain(OpKind::F, rank.first_stage) + inside +
                                            chain(back, rank.last_stage) + end);
    }
    return estimate_of(bound);
  }

 private:
  /// Returns the memory of the device of `rank` in the first replica.
  Bytes capacity_of(int rank) const {
    const int device = device_of(inputs_.mesh, {0, 0, 0, rank});
    return machine_of(inputs_.cluster, device).device.memory;
  }

  /// Returns the shorter of the backwards that the order has.
  OpKind backward() const {
    for (const std::vector<Sequence>& rank : inputs_.schedule.ranks) {
      for (const Run& run : rank.front().runs) {
        for (const Op& op : run.ops) {
          if (op.kind == OpKind::I) return OpKind::I;
        }
      }
    }
    return OpKind::B;
  }

  bool flushes() const {
    const Schedule& schedule = inputs_.schedule;
    const bool plain = schedule.copies == 1 && schedule.replicas == 1 && schedule.slices == 1;
    const bool fixed = std::all_of(schedule.ranks.begin(), schedule.ranks.end(),
                                   [](const auto& rank) { return rank.size() == 1; });
    return inputs_.strategy.kind == StrategyKind::Global && plain && fixed &&
           inputs_.policy.kind->flushes;
  }

  Seconds time_of(const Op& op) const {
    const int rank = inputs_.schedule.rank_of_stage[op.stage];
    Seconds time = times_.of(costs_.of(op), rank);
    if (op.kind == OpKind::I || op.kind == OpKind::B) time += times_.of(costs_.recompute(op), rank);
    return time * least_share(inputs_.policy.overlap);
  }

  Seconds kernels_of(const Op& op) const {
    Seconds time = costs_.of(op).time;
    if (op.kind == OpKind::I || op.kind == OpKind::B) time += costs_.recompute(op).time;
    return time * least_share(inputs_.policy.overlap);
  }

  /// Returns the time of one op of `kind` of each stage below `stage`, one after the other.
  Seconds chain(OpKind kind, int stage) const {
    Seconds time(0);
    for (int below = 0; below < stage; ++below) {
      const int loss = kind == OpKind::F ? below : inputs_.schedule.stages - 1;
      time += time_of({.kind = kind, .stage = below, .micro_batch = 0, .loss = loss});
    }
    return time;
  }

  Bytes held(const Op& op) const {
    const StageCost& stage = costs_.of_stage(op);
    return stage.stash - stage.host_stash;
  }

  bool recomputes(const Op& op) const { return costs_.recompute(op).time > Seconds(0); }

  /// Returns the gradient of the output that a backward reads, from a message or its head; 0 if
  /// there are several losses.
  Bytes read_gradient(const Op& op) const {
    const StageRole& role = inputs_.roles[op.stage];
    const bool sent = role.traversals.size() == 1 && (op.loss != op.stage || role.head);
    return sent ? costs_.of_stage(op).output_gradient() : Bytes(0);
  }

  /// Returns the bytes of an op that are there while it runs.
  Bytes needs(const Op& op) const {
    const StageCost& stage = costs_.of_stage(op);
    switch (op.kind) {
      case OpKind::F:
        return stage.workspace + stage.output * double(costs_.after(op.stage).size());
      case OpKind::H:
        return stage.head_memory;
      case OpKind::I:
      case OpKind::B: {
        const bool sends = costs_.traversal(op).to_previous;
        return stage.workspace + read_gradient(op) + (sends ? costs_.input_gradient(op) : Bytes(0));
      }
      case OpKind::W:
        return recomputes(op) ? Bytes(0) : stage.workspace;
      case OpKind::R:
      case OpKind::U:
        break;
    }
    return Bytes(0);
  }

  /// Returns the bytes that the input half of a split backward leaves for the other half to read.
  Bytes left(const Op& op) const {
    if (!costs_.traversal(op).weights) return Bytes(0);
    return read_gradient(op) + (recomputes(op) ? costs_.of_stage(op).workspace : Bytes(0));
  }

  /// Says that the stash is freed after `op`.
  bool gives_back(const Op& op) const {
    if (op.kind != OpKind::B && op.kind != OpKind::W) return false;
    return inputs_.roles[op.stage].traversals.back().loss == op.loss;
  }

  Bytes resident(std::size_t rank) const {
    Bytes bytes(0);
    for (int stage = 0; stage < inputs_.schedule.stages; ++stage) {
      const bool own = inputs_.schedule.rank_of_stage[stage] == static_cast<int>(rank);
      if (own) bytes += total(inputs_.stages[stage].state);
    }
    return bytes;
  }

  /// Adds the times of a run that has `turns` turns in a step. Its last turn may be the last of the
  /// rank.
  void add_times(const Run& run, double turns, RankWork& work) const {
    Seconds behind(0), all(0);  // its last backward in a turn; of a turn
    bool goes_back = false;
    for (const Op& op : run.ops) {
      work.kernels += turns * kernels_of(op);
      const Seconds time = time_of(op);
      all += time;
      behind += time;
      if (op.kind != OpKind::I && op.kind != OpKind::B) continue;
      goes_back = true;
      behind = Seconds(0);
      work.last_stage = op.stage;
    }
    work.time += turns * all;
    work.behind = goes_back ? behind : work.behind + run.repeats * all;
  }

  /// Raises the peak of `work`, on top of `held_before`. Returns what is held after the run.
  Bytes add_memory(const Run& run, Bytes held_before, RankWork& work) const {
    Bytes rises(0), most(0);  // in a turn
    for (const Op& op : run.ops) {
      // In a pair whose tokens pass, a backward's stash makes room for the forward's.
      const bool pairs = op.overlaps_next && inputs_.policy.passes_in_pairs;
      if (op.kind == OpKind::F && !pairs) rises += held(op);
      most = std::max(most, rises + needs(op));
      if (op.kind == OpKind::I) rises += left(op);
      if (op.kind == OpKind::W) rises -= left(op);
      if (gives_back(op)) rises -= held(op);
      if (&op != run.ops.data() && (&op)[-1].overlaps_next && inputs_.policy.passes_in_pairs) {
        rises += held((&op)[-1]);
      }
    }
    const Bytes growth = std::max(Bytes(0), rises * double(run.repeats - 1));
    work.memory = std::max(work.memory, held_before + growth + most);
    return held_before + rises * double(run.repeats);
  }

  RankWork work_of(std::size_t rank) const {
    const Bytes states = resident(rank);
    RankWork work = {.memory = states};
    bool begun = false;
    for (const Sequence& sequence : inputs_.schedule.ranks[rank]) {
      Bytes bytes = states;
      for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
        const Run& run = sequence.runs[r];
        if (run.repeats <= 0) continue;
        const bool once = r < static_cast<std::size_t>(sequence.lead) ||
                          r + static_cast<std::size_t>(sequence.tail) >= sequence.runs.size();
        for (const Op& op : run.ops) {
          if (begun || op.kind != OpKind::F) continue;
          begun = true;
          work.first_stage = op.stage;
        }
        add_times(run, once ? run.repeats : double(run.repeats) * sequence.repeats, work);
        bytes = add_memory(run, bytes, work);
      }
    }
    return work;
  }

  OpTimes times_;
  LowerInputs inputs_;
  OpCosts costs_;
};

}  // namespace

StepEstimate bound_plan(const Plan& plan) { return PlanWork(plan).bound(); }

StepEstimate bound_layout(const Question& question, const ScheduleFamily& family,
                          Bytes most_memory) {
  const StrategyKind kind = question.strategy.kind;
  const bool global = kind == StrategyKind::Global;
  // On a mixed cluster it depends on which stages lie on which machine.
  if (is_mixed(question.cluster)) return {};
  // Under other strategies the work on a micro-batch depends on where stages begin.
  if (!global && kind != StrategyKind::Local && kind != StrategyKind::Interlocking) return {};
  const Partition one{.boundaries = {0, static_cast<int>(question.graph.modules.size())}};
  const std::vector<StageCost> modules =
      priced_in_stages(question, question.graph, price_inputs(question), one);
  StageCost whole = price_stages(modules, one, {}, make_roles({}, 1, false)).front();
  apply_zero(question.data_parallel, question.mesh, 1, whole);  // the least that there can be
  apply_offload(question.offload, question.data_parallel, question.mesh, whole);
  const double ranks = question.ranks;
  StepBound bound = {.memory = total(whole.state) / ranks,
                     .memory_capacity = question.cluster.machines.front().device.memory};
  // A device begins the backward of a micro-batch when it has done all of its forward. The mean of
  // what devices then hold is no more than the most.
  if (global && family.keeps_stash) bound.memory += (whole.stash - whole.host_stash) / ranks;
  bound.fullest = bound.memory;
  if (bound.memory > most_memory) return estimate_of(bound);
  const OpTimes times(question);
  Seconds time(0), kernels(0);
  for (const OpCost* cost :
       {&whole.forward, &whole.backward_input, &whole.backward_weight, &whole.recompute}) {
    time += times.of(*cost, 0);
    kernels += cost->time;
  }
  // An input gradient that no stage needs may be skipped, wherever stages begin.
  for (const StageCost& module : modules) {
    if (global && &module != &modules.front()) break;
    time -= module.first_backward_input.whole();
    kernels -= module.first_backward_input.time;
  }
  const double turns = question.micro_batches * least_share(family.overlap) / ranks;
  bound.time = std::max(Seconds(0), time * turns);
  bound.busy = std::max(Seconds(0), kernels * turns);
  return estimate_of(bound);
}

}  // namespace interlock
