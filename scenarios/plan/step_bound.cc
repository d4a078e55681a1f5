// Bounds a step by what cannot be avoided.
// SPDX-License-Identifier: Apache-2.0
//
// A device runs one op at a time, so a step lasts no shorter than the ops of one device, with the
// exchanges for which an op stands still. Of several streams one computes while others wait: there
// it lasts no shorter than all kernels, or than the ops of one stream. Under a flush more is known.
// Let a device begin with a forward of stage s, and end its backwards with one of stage t: before
// comes the forward of that micro-batch below s, behind a backward through all below t, and then
// what the device of stage 0 still does before its next step; a step is no less than their sum.
// Before its next forward, a stage waits for the gradients that its last backward completes, for
// its update and for the weights that are gathered after it. From that forward to that backward it
// takes no less than the ops of its device in between, or than the way of the first micro-batch up
// to some device, the ops of that one, and the way of the last micro-batch back. Stages of a device
// share groups, whose messages go one by one: those of stages whose last backwards come after some
// instant come after it. Memory: states stay; a stage keeps a stash from forward to last backward.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "scenarios/plan/costs/op_times.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/lower/op_cost.h"
#include "sim/lower/unfold.h"
#include "sim/plan/stage_cost.h"

namespace interlock {
namespace {

/// Returns the least time of pairs of overlapped ops, over their times alone: F + B - o min(F, B).
double least_share(double overlap) { return 1 - overlap / 2; }

/// A stage of a rank within a step.
struct StageSpan {
  int stage = 0;
  Seconds first, last;  // its first forward starts, and the backward that completes its gradients
};

/// A rank's part of a step.
struct RankWork {
  Seconds kernels, time, in_turn;  // of its ops: alone, with exchanges, if streams took turns
  Seconds behind;  // of this, what comes after its last backward of an input gradient
  int first_stage = 0, last_stage = 0;  // of its first forward, and of that backward
  std::vector<StageSpan> spans;         // of stages of which both are there, by `last`
};

LowerInputs inputs_of_step(const Plan& whole) {
  const std::vector<int>& shares = whole.replica_micro_batches;
  const Plan plan = shares.empty() ? whole : with_micro_batches(whole, shares.front());
  LowerInputs inputs = lower_inputs(plan);
  order_steps(plan, inputs, 1);
  inputs.unfolded = kFolded;  // a step is no shorter than that of its first replica
  inputs = unfold(std::move(inputs));
  mark_last_backwards(inputs.schedule);
  return inputs;
}

struct StepBound {
  Seconds time, in_turn;           // with streams as they are, and if they took turns
  Bytes memory;                    // of the device that takes most
  Bytes fullest, memory_capacity;  // of the fullest device; capacity 0: unknown
  Bytes kept;                      // see StepEstimate
  Seconds busy;                    // of kernels in a step, a mean over the devices
};

StepEstimate estimate_of(const StepBound& bound) {
  return {.time = bound.time,
          .memory = bound.memory,
          .fullest = bound.fullest,
          .memory_capacity = bound.memory_capacity,
          .kept = bound.kept,
          .busy = bound.time > Seconds(0) ? std::min(1.0, bound.busy / bound.time) : 0,
          .expected = std::max(bound.time, bound.in_turn)};
}

class PlanWork {
 public:
  explicit PlanWork(const Plan& plan)
      : times_(plan.question), inputs_(inputs_of_step(plan)), costs_(inputs_) {}
  PlanWork(const PlanWork&) = delete;  // its costs point into it
  PlanWork& operator=(const PlanWork&) = delete;

  /// Returns the bound; that of memory alone if this is `enough`.
  StepEstimate bound(const EnoughKnown& enough) const {
    const Schedule& schedule = inputs_.schedule;
    StepBound bound = {.memory_capacity = capacity_of(0)};
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const Bytes memory = memory_of(rank), capacity = capacity_of(static_cast<int>(rank));
      bound.memory = std::max(bound.memory, memory);
      if (capacity == bound.memory_capacity
              ? memory > bound.fullest
              : memory / capacity > bound.fullest / bound.memory_capacity) {
        bound.fullest = memory;
        bound.memory_capacity = capacity;
      }
    }
    if (enough && enough(estimate_of(bound))) return estimate_of(bound);
    std::vector<RankWork> ranks;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) ranks.push_back(work_of(rank));
    for (const RankWork& rank : ranks) {
      bound.time = std::max(bound.time, rank.time);
      bound.in_turn = std::max(bound.in_turn, rank.in_turn);
      bound.busy += rank.kernels / static_cast<double>(ranks.size());
    }
    // Replicas on other machines may be less busy than the first one.
    if (is_mixed(inputs_.cluster)) bound.busy = Seconds(0);
    if (!flushes()) return estimate_of(bound);
    const RankWork& first = ranks[static_cast<std::size_t>(schedule.rank_of_stage.front())];
    const std::vector<Seconds> before = chains(OpKind::F), behind = chains(backward());
    const Seconds end = first.last_stage == 0 ? first.behind : Seconds(0);
    for (const RankWork& rank : ranks) {
      const Seconds inside = rank.time - rank.behind;
      bound.time =
          std::max(bound.time, before[rank.first_stage] + inside + behind[rank.last_stage] + end);
    }
    bound.time = std::max(bound.time, time_of_updates(ranks, before, behind));
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

  /// Time that the next forward of a stage waits for, once its gradients are complete.
  struct UpdateWait {
    GroupTimes gradients = {};
    Seconds others;  // its update, and weights that are gathered then
  };

  UpdateWait update_wait_of(int stage) const {
    const int rank = inputs_.schedule.rank_of_stage[stage];
    const Op update = {.kind = OpKind::U, .stage = stage, .micro_batch = 0, .loss = stage};
    const DataParallel& policy = inputs_.data_parallel;
    std::vector<Exchange> gradients, weights;
    for (const StageCost& part : parts_of(costs_.of_stage(update))) {
      const Mesh& mesh = mesh_of_layers(inputs_, rank, part.layout);
      for (const auto& one : gradient_exchanges(policy, mesh, part)) gradients.push_back(one);
      for (const auto& one : weight_exchanges(policy, mesh, part)) weights.push_back(one);
    }
    UpdateWait wait = {.gradients = times_.of(gradients, rank), .others = time_of(update)};
    const bool gathers = policy.zero_stage == 1 || policy.zero_stage == 2;
    if (gathers) wait.others += longest(times_.of(weights, rank));
    return wait;
  }

  /// Returns the longest time from the first forward of a stage to its next one, by what it waits
  /// for in between. `before`, `behind`: see chains().
  Seconds time_of_updates(const std::vector<RankWork>& ranks, const std::vector<Seconds>& before,
                          const std::vector<Seconds>& behind) const {
    if (inputs_.policy.update_every != inputs_.schedule.micro_batches) return Seconds(0);
    // From the start of the first forward of `up` to that of the last backward of `down`.
    const auto round = [&](const RankWork& own, const StageSpan& up, const StageSpan& down) {
      Seconds most = down.last - up.first;
      for (const RankWork& rank : ranks) {
        if (&rank == &own || rank.first_stage < up.stage || rank.last_stage <= down.stage) continue;
        most = std::max(most, before[rank.first_stage] - before[up.stage] + rank.time -
                                  rank.behind + behind[rank.last_stage] - behind[down.stage + 1]);
      }
      return most;
    };
    Seconds most(0);
    for (const RankWork& own : ranks) {
      GroupTimes gradients = {};
      std::vector<Seconds> others;  // of own.spans
      for (auto down = own.spans.rbegin(); down != own.spans.rend(); ++down) {
        const UpdateWait wait = update_wait_of(down->stage);
        for (std::size_t axis = 0; axis < gradients.size(); ++axis) {
          gradients[axis] += wait.gradients[axis];
        }
        others.push_back(wait.others);
        Seconds least(kInfinity);
        for (auto up = own.spans.rbegin(); up <= down; ++up) {
          const Seconds between = round(own, *up, *down);
          const Seconds other = others[static_cast<std::size_t>(up - own.spans.rbegin())];
          least = std::min(least, up->first > down->last ? Seconds(0) : between + other);
        }
        most = std::max(most, longest(gradients) + least);
      }
    }
    return most;
  }

  static bool goes_back(const Op& op) { return op.kind == OpKind::I || op.kind == OpKind::B; }

  /// Returns the messages that bring weights before `op`, or before what is computed again for it.
  OpTime gathers_of(const Op& op) const {
    if (op.kind != OpKind::F && !goes_back(op)) return {};
    const int rank = inputs_.schedule.rank_of_stage[op.stage];
    const auto mesh_of = [&](int layout) -> const Mesh& {
      return mesh_of_layers(inputs_, rank, layout);
    };
    return times_.of_gathers(inputs_.data_parallel, mesh_of, costs_.of_stage(op), rank);
  }

  /// Bounds all ops of one kind on a stage.
  struct OpBound {
    OpTime time;
    Seconds again;    // of what is computed again before it, which no other op overlaps
    Seconds kernels;  // of both
  };

  OpBound worked_out(const Op& op) const {
    const OpCost cost = costs_.of(op);
    const int rank = inputs_.schedule.rank_of_stage[op.stage];
    OpBound bound = {.time = times_.of(cost, rank), .again = {}, .kernels = cost.time};
    if (!goes_back(op) || !costs_.recomputes(op)) {
      bound.time += gathers_of(op);
      return bound;
    }
    const OpCost recompute = costs_.recompute(op);
    OpTime again = times_.of(recompute, rank);
    bound.again = (again += gathers_of(op)).alone();
    bound.kernels += recompute.time;
    return bound;
  }

  /// Returns the bound of `op`, which is worked out once for all micro-batches.
  const OpBound& bound_of(const Op& op) const {
    const int slice = op.micro_batch % inputs_.schedule.slices;
    const auto [known, fresh] =
        bounds_.try_emplace(std::tuple(op.kind, op.stage, op.loss, slice, op.defers, op.trade));
    if (fresh) known->second = worked_out(op);
    return known->second;
  }

  Seconds time_of(const Op& op) const {
    const OpBound& bound = bound_of(op);
    return (bound.time.alone() + bound.again) * least_share(inputs_.policy.overlap);
  }

  /// Returns the time of ops whose tokens pass beside the kernels of each other.
  Seconds time_of_pair(const Op& first, const Op& second) const {
    const OpBound &one = bound_of(first), &other = bound_of(second);
    OpTime both = one.time;
    both += other.time;
    return both.in_pair() + one.again + other.again;
  }

  Seconds kernels_of(const Op& op) const {
    return bound_of(op).kernels * least_share(inputs_.policy.overlap);
  }

  /// Returns the times of one op of `kind` of each stage below a stage, one after the other; by
  /// that stage.
  std::vector<Seconds> chains(OpKind kind) const {
    std::vector<Seconds> times(1);
    for (int stage = 0; stage + 1 < inputs_.schedule.stages; ++stage) {
      const int loss = kind == OpKind::F ? stage : inputs_.schedule.stages - 1;
      const Op op = {.kind = kind, .stage = stage, .micro_batch = 0, .loss = loss};
      Seconds time = time_of(op);
      if (inputs_.policy.recomputes_early) time = bound_of(op).time.alone();  // none is overlapped
      times.push_back(times.back() + time);
    }
    return times;
  }

  Bytes held(const Op& op) const {
    const StageCost& stage = costs_.of_stage(op);
    return stage.stash - stage.host_stash;
  }

  /// Returns the gradient of the output that a backward reads, from a message or its head; 0 if
  /// there are several losses.
  Bytes read_gradient(const Op& op) const {
    const StageRole& role = costs_.role(op);
    const bool sent = role.traversals.size() == 1 && (op.loss != op.stage || role.head);
    return sent ? costs_.of_stage(op).output_gradient() : Bytes(0);
  }

  /// Returns the bytes of an op that are there while it runs.
  Bytes needs(const Op& op) const {
    const StageCost& stage = costs_.of_stage(op);
    switch (op.kind) {
      case OpKind::F:
        return stage.workspace + costs_.sent_outputs(op);
      case OpKind::H:
        return stage.head_memory;
      case OpKind::I:
      case OpKind::B: {
        const Bytes sent =
            costs_.traversal(op).to_previous ? costs_.sent_input_gradient(op) : Bytes(0);
        return stage.workspace + read_gradient(op) + sent;
      }
      case OpKind::W:
        return costs_.recomputes(op) || op.defers ? Bytes(0) : stage.workspace;
      case OpKind::S:
      case OpKind::T:
        return stage.vocabulary.workspace;
      default:
        return Bytes(0);
    }
  }

  /// Returns the bytes that the input half of a split backward leaves for the other half to read.
  Bytes left(const Op& op) const {
    if (!costs_.traversal(op).weights) return Bytes(0);
    return read_gradient(op) + (costs_.recomputes(op) ? costs_.of_stage(op).workspace : Bytes(0));
  }

  static bool makes_deferred(const Op& op) { return op.defers && op.kind == OpKind::W; }

  /// Says that the stash is freed after `op`.
  bool gives_back(const Op& op) const {
    if ((op.kind != OpKind::B && op.kind != OpKind::W) || makes_deferred(op)) return false;
    return costs_.role(op).traversals.back().loss == op.loss;
  }

  Bytes resident(std::size_t rank) const {
    Bytes bytes = ring_buffers(inputs_);
    for (int stage = 0; stage < inputs_.schedule.stages; ++stage) {
      const bool own = inputs_.schedule.rank_of_stage[stage] == static_cast<int>(rank);
      if (own && keeps_state(inputs_, stage)) bytes += inputs_.stages[stage].state.total();
    }
    return bytes;
  }

  /// Says that the tokens of `op` pass beside the kernels of the op that follows.
  bool passes_beside(const Op& op) const {
    return op.overlaps_next && inputs_.policy.passes_in_pairs;
  }

  /// Notes that `op` starts at `start`, if it is one of those that the span of its stage is about.
  static void note_span(const Op& op, Seconds start, RankWork& work) {
    const auto known = std::find_if(work.spans.begin(), work.spans.end(),
                                    [&](const StageSpan& span) { return span.stage == op.stage; });
    if (op.kind == OpKind::F && known == work.spans.end()) {
      if (work.spans.empty()) work.first_stage = op.stage;
      work.spans.push_back({.stage = op.stage, .first = start, .last = Seconds(-1)});
    }
    if (op.completes && known != work.spans.end()) known->last = start;
  }

  /// Adds the times of a run that has `turns` turns in a step. Its last turn may be the last of the
  /// rank.
  void add_times(const Run& run, double turns, RankWork& work) const {
    Seconds behind(0), all(0);  // its last backward in a turn; of a turn
    Seconds start(0);           // of an op, or of the pair that it belongs to, in a turn
    bool backwards = false;
    for (const Op& op : run.ops) {
      work.kernels += turns * kernels_of(op);
      const Op* before = &op == run.ops.data() ? nullptr : &op - 1;
      if (before == nullptr || !before->overlaps_next) start = all;
      note_span(op, work.time + start, work);
      const bool paired = before != nullptr && passes_beside(*before);
      Seconds time = passes_beside(op) ? Seconds(0) : time_of(op);
      if (paired) time = time_of_pair(*before, op);
      all += time;
      behind += time;
      if (!goes_back(op)) continue;
      backwards = true;
      behind = Seconds(0);
      work.last_stage = op.stage;
    }
    work.time += turns * all;
    work.behind = backwards ? behind : work.behind + run.repeats * all;
  }

  /// Raises `peak` by what `run` takes on top of `held_before`. Returns what is held after it.
  Bytes add_memory(const Run& run, Bytes held_before, Bytes& peak) const {
    Bytes rises(0), most(0);  // in a turn
    for (const Op& op : run.ops) {
      // In a pair whose tokens pass, a backward's stash makes room for the forward's.
      const bool pairs = passes_beside(op);
      if (op.kind == OpKind::F && !pairs) rises += held(op);
      most = std::max(most, rises + needs(op));
      if (op.kind == OpKind::I) rises += left(op);
      if (op.kind == OpKind::W && !op.defers) rises -= left(op);
      if (gives_back(op)) rises -= held(op);
      if (op.defers) rises += (makes_deferred(op) ? -1.0 : 1.0) * costs_.of_stage(op).deferred;
      if (&op != run.ops.data() && passes_beside((&op)[-1])) {
        rises += held((&op)[-1]);
      }
    }
    const Bytes growth = std::max(Bytes(0), rises * double(run.repeats - 1));
    peak = std::max(peak, held_before + growth + most);
    return held_before + rises * double(run.repeats);
  }

  Bytes memory_of(std::size_t rank) const {
    const Bytes states = resident(rank);
    Bytes most = states;
    for (const Sequence& sequence : inputs_.schedule.ranks[rank]) {
      Bytes bytes = states;
      for (const Run& run : sequence.runs) {
        if (run.repeats > 0) bytes = add_memory(run, bytes, most);
      }
    }
    return most;
  }

  RankWork work_of(std::size_t rank) const {
    RankWork work;
    Seconds longest(0);  // stream, if it has all micro-batches of a step
    for (const Sequence& sequence : inputs_.schedule.ranks[rank]) {
      const Seconds before = work.time;
      for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
        const Run& run = sequence.runs[r];
        if (run.repeats <= 0) continue;
        const bool once = r < static_cast<std::size_t>(sequence.lead) ||
                          r + static_cast<std::size_t>(sequence.tail) >= sequence.runs.size();
        add_times(run, once ? run.repeats : double(run.repeats) * sequence.repeats, work);
      }
      if (inputs_.policy.in_flight == 1) longest = std::max(longest, work.time - before);
    }
    work.in_turn = work.time;
    if (inputs_.policy.in_flight > 1 || inputs_.schedule.ranks[rank].size() > 1) {
      work.time = std::min(work.in_turn, std::max(work.kernels, longest));
    }
    std::erase_if(work.spans, [](const StageSpan& span) { return span.last < Seconds(0); });
    std::sort(work.spans.begin(), work.spans.end(),
              [](const StageSpan& a, const StageSpan& b) { return a.last < b.last; });
    return work;
  }

  OpTimes times_;
  LowerInputs inputs_;
  OpCosts costs_;
  mutable std::map<std::tuple<OpKind, int, int, int, bool, ContextTrade>, OpBound> bounds_;
};

}  // namespace

StepEstimate bound_plan(const Plan& plan, const EnoughKnown& enough) {
  return PlanWork(plan).bound(enough);
}

StepEstimate bound_layout(const Question& question, const ScheduleFamily& family) {
  const Training& training = question.training();
  const StrategyKind kind = training.strategy.kind;
  const bool global = kind == StrategyKind::Global;
  // On a mixed cluster it depends on which stages lie on which machine.
  if (is_mixed(question.cluster)) return {};
  // Under other strategies the work on a micro-batch depends on where stages begin.
  if (!global && kind != StrategyKind::Local && kind != StrategyKind::Interlocking) return {};
  const Partition one{.boundaries = {0, static_cast<int>(training.graph.modules.size())}};
  const ModulePrices modules = priced_in_stages(question, training.graph, {}, one);
  StageCost whole = price_stages(*modules, one, {}, make_roles({}, 1, false)).front();
  const Layout& layout = question.layout;
  apply_zero(layout.data_parallel, layout.layers(), 1, whole);  // the least that there can be
  const double ranks = layout.ranks();
  StageCost least = whole;
  apply_offload({.activations = 1, .optimizer = 1}, layout.data_parallel, layout.layers(), least);
  apply_offload(training.offload, layout.data_parallel, layout.layers(), whole);
  StepBound bound = {.memory = whole.state.total() / ranks,
                     .memory_capacity = question.cluster.machines.front().device.memory,
                     .kept = least.state.total() / ranks};
  // A device begins the backward of a micro-batch when it has done all of its forward. The mean of
  // what devices then hold is no more than the most.
  if (global && family.keeps_stash) bound.memory += (whole.stash - whole.host_stash) / ranks;
  bound.fullest = bound.memory;
  const OpTimes times(question);
  OpTime ops;
  Seconds kernels(0);
  OpCost backward = whole.backward_input;  // weight gradients stand beside its tokens, too
  backward += whole.backward_weight;
  for (const OpCost* cost : {&whole.forward, &backward, &whole.recompute}) {
    ops += times.of(*cost, 0);
    kernels += cost->time;
  }
  // Weights come before a forward and before its backward, which frozen modules may not have.
  const int gathers = global && whole.frozen + whole.frozen_experts == Bytes(0) ? 2 : 1;
  const std::vector<Mesh> layers = layout.layers();
  const auto of = [&](int number) -> const Mesh& { return layers.at(number); };
  for (int i = 0; i < gathers; ++i) ops += times.of_gathers(layout.data_parallel, of, whole, 0);
  Seconds time = training.schedule.passes_in_pairs ? ops.in_pair() : ops.alone();
  // An input gradient that no stage needs may be skipped, wherever stages begin.
  for (const StageCost& module : *modules) {
    if (global && &module != &modules->front()) break;
    time -= module.first_backward_input.whole();
    kernels -= module.first_backward_input.time;
  }
  const double turns = training.micro_batches * least_share(family.overlap) / ranks;
  const bool streams =
      training.schedule.in_flight > 1 || family.streams.value_or(layout.stages > layout.ranks());
  bound.time = std::max(Seconds(0), (streams ? kernels : time) * turns);
  bound.busy = std::max(Seconds(0), kernels * turns);
  return estimate_of(bound);
}

}  // namespace interlock
