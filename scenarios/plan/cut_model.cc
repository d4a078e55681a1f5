// Cuts a model into stages by what its modules cost.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "scenarios/plan/choices.h"
#include "scenarios/plan/costs/message_costs.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/plan/schedules/message_bytes.h"
#include "sim/plan/stage_cost.h"
#include "sim/plan/stage_recompute.h"
#include "sim/plan/stage_times.h"

namespace interlock {
namespace {

Partition explicit_partition(const std::vector<int>& modules) {
  Partition partition{.boundaries = {0}};
  for (const int count : modules) {
    partition.boundaries.push_back(partition.boundaries.back() + count);
  }
  return partition;
}

/// Returns the rank of each stage where it is known before the model is cut; else nothing.
std::vector<int> known_ranks(const Layout& layout) {
  std::vector<int> ranks = layout.placement;
  if (ranks.empty() && layout.stages == layout.ranks()) {
    ranks.resize(static_cast<std::size_t>(layout.stages));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  return ranks;
}

/// Returns true if stages wait for the losses of others one micro-batch at a time, whose gradients
/// travel by themselves. With several in flight they fill the wait, more or less.
bool waits_alone(const Training& training) {
  const ScheduleEntry& entry = *training.schedule.kind;
  return wait_in_loops(training.strategy) && entry.limits_in_flight &&
         training.schedule.in_flight == 1 && !entry.sends_lists;
}

/// How long modules keep a rank busy as a stage, for a micro-batch.
class RankTimes {
 public:
  explicit RankTimes(const Question& question) {
    if (question.variation) speeds_ = question.variation->speeds;
    of_rank_.resize(static_cast<std::size_t>(question.layout.ranks()));
    if (!question.layout.rank_layouts.empty()) {
      for (int rank = 0; rank < question.layout.ranks(); ++rank) {
        of_rank_[rank] = {times_.size()};
        add(question, *question.layout.rank_layouts[rank].graph, {0, 0, 0, rank});
      }
      return;
    }
    for (const std::optional<Coordinates>& place : places_on_machines(question)) {
      add(question, question.training().graph, place.value_or(Coordinates{}));
    }
    for (int rank = 0; rank < question.layout.ranks(); ++rank) {
      of_rank_[rank] = machines_of(question, rank);
    }
  }

  /// Returns true if it is known where stages lie, and so how long messages() take.
  bool know_messages() const { return messages_.has_value(); }
  const StageMessages& messages() const { return *messages_; }
  /// Returns true if stages wait for the losses of others.
  bool have_loops() const { return !loops_.empty(); }
  /// Returns the stage of the loss that each stage waits for. REQUIRES: have_loops().
  const std::vector<int>& tops() const { return loops_.front().tops; }

  /// Modules [first, last) as `stage`.
  struct Range {
    int stage, first, last;
  };
  /// Returns the time of `range` on the slowest device of `rank`, with or without its casts of
  /// messages.
  Seconds on(int rank, const Range& range, bool casts) const {
    const auto [stage, first, last] = range;
    Seconds slowest(0);
    for (const std::size_t one : of_rank_[rank]) {
      Seconds time = times_[one](stage, first, last);
      if (casts && casts_[one]) time += casts_[one](stage, first, last);
      slowest = std::max(slowest, time);
    }
    return speeds_.empty() ? slowest : slowest / speeds_[rank];
  }
  /// Returns what `range` on `rank` adds to the loop of the stage `loop`, the message from the
  /// stage below and back included.
  Seconds in_loop(int loop, int rank, const Range& range) const {
    const auto [stage, first, last] = range;
    Seconds slowest(0);
    for (const std::size_t one : of_rank_[rank]) {
      slowest = std::max(slowest, loops_[one].time(loop, stage, first, last));
    }
    if (!speeds_.empty()) slowest = slowest / speeds_[rank];
    if (stage > loop) slowest += messages().round_trip(stage, first) / gradient_every_;
    return slowest;
  }

 private:
  void add(const Question& question, const ModelGraph& graph, const Coordinates& at) {
    const Training& training = question.training();
    const bool list = training.schedule.kind->sends_lists;
    const auto roles = make_roles(training.strategy, question.layout.stages, list);
    const ModulePrices modules = priced_modules(question, graph, at);
    times_.push_back(
        busy_with(training.stage_recompute, *modules,
                  busy_time(*modules, training.strategy, roles, training.schedule.update_every)));
    const std::vector<int> ranks = known_ranks(question.layout);
    const PriceInputs prices = price_inputs(question, at);
    casts_.push_back(cast_time(question, prices, *modules, ranks));
    const int stages = question.layout.stages;
    if (ranks.empty() || parts_of(training.strategy, stages) != stages) return;
    if (!messages_) messages_ = stage_messages(question, *modules, ranks);
    if (!waits_alone(training)) return;
    const SchedulePolicy& schedule = training.schedule;
    loops_.push_back(stage_loops(*modules, training.strategy, roles,
                                 {schedule.update_every, schedule.split_backward}));
    gradient_every_ = training.strategy.gradient_every;
  }

  std::vector<StageTime> times_, casts_;  // of machines, or of ranks with layouts of their own
  std::vector<StageLoops> loops_;         // likewise; none if stages do not wait in loops
  std::optional<StageMessages> messages_;
  int gradient_every_ = 1;
  std::vector<std::vector<std::size_t>> of_rank_;
  std::vector<double> speeds_;
};

/// Returns the busy time of stages on the ranks that hold them, the slower one where a stage lies
/// on two; where no rank is known, on the first, as in a ring, all of whose ranks run each stage.
/// Without casts it grows as a stage begins earlier.
StageTime stage_time(const Question& question, const RankTimes& times, bool casts) {
  const StageLayout laid = question.training().schedule.kind->layout;
  const bool mirrored = has_mirror(laid), ring = laid == StageLayout::Ring;
  return
      [&layout = question.layout, &times, mirrored, ring, casts](int stage, int first, int last) {
        const RankTimes::Range range = {stage, first, last};
        const bool known = !layout.placement.empty() && !ring;
        // The last part of overlapping blocks belongs to no stage of its own.
        const int held = std::min(stage, layout.stages - 1);
        const int rank = known ? layout.placement[held] : 0;
        const Seconds time = times.on(rank, range, casts);
        if (!known || !mirrored) return time;
        return std::max(time, times.on(layout.ranks() - 1 - rank, range, casts));
      };
}

/// Returns `cut`, of least busy stages by `time` and `least`, see balanced_partition(); or, if a
/// message occupies a link for longer than any stage is busy, another: of those whose messages and
/// stages take as little as they can, the one of least busy stages.
Partition within_links(Partition cut, const RankTimes& times, const StageTime& time,
                       const StageTime& least) {
  constexpr double kSame = 1 + 1e-9;
  const auto& occupied = times.messages().occupied;
  const auto longest_of = [&](const Partition& one) {
    std::pair<Seconds, Seconds> longest;  // of stages, and of messages
    for (int stage = 0; stage < one.stages(); ++stage) {
      const int first = one.boundaries[stage], last = one.boundaries[stage + 1];
      longest.first = std::max(longest.first, time(stage, first, last));
      longest.second = std::max(longest.second, occupied(stage, last));
    }
    return longest;
  };
  const auto [busiest, message] = longest_of(cut);
  if (message <= busiest) return cut;
  const int modules = cut.boundaries.back();
  const StageTime& grows = least ? least : time;
  const StageTime both = [&](int stage, int first, int last) {
    return std::max(time(stage, first, last), occupied(stage, last));
  };
  const auto [stages, messages] =
      longest_of(balanced_partition(modules, cut.stages(), both, grows));
  const Seconds most = std::max(stages, messages) * kSame;
  const StageTime allowed = [&](int stage, int first, int last) {
    return occupied(stage, last) > most ? Seconds(kInfinity) : time(stage, first, last);
  };
  return balanced_partition(modules, cut.stages(), allowed, grows);
}

/// Returns the cut of least busy stages by `time` and `least`, see balanced_partition(), links
/// counted. Where stages wait for others in loops, that of the shortest ones.
Partition cut_by(const Question& question, int parts, const RankTimes& times, const StageTime& time,
                 const StageTime& least) {
  const int modules = static_cast<int>(question.training().graph.modules.size());
  const Partition cut = balanced_partition(modules, parts, time, least);
  if (!times.know_messages()) return cut;
  const Partition within = within_links(cut, times, time, least);
  if (!times.have_loops()) return within;
  const std::vector<int> ranks = known_ranks(question.layout);
  const auto in_loop = [&](int loop, int stage, int first, int last) {
    return times.in_loop(loop, ranks[stage], {stage, first, last});
  };
  const auto both = [&](int stage, int first, int last) {
    return std::max(time(stage, first, last), times.messages().occupied(stage, last));
  };
  return looped_partition(within, both, {times.tops(), in_loop});
}

/// Returns contiguous blocks of stages, one for each rank, whose busiest is as little busy as
/// possible.
std::vector<int> contiguous_ranks(int ranks, int stages, const RankTimes& times) {
  std::vector<std::vector<Seconds>> sums;  // by rank: of the stages below each one
  for (int rank = 0; rank < ranks; ++rank) {
    sums.emplace_back(1);
    for (int stage = 0; stage < stages; ++stage) {
      sums[rank].push_back(sums[rank].back() + times.on(rank, {stage, stage, stage + 1}, false));
    }
  }
  const Partition blocks = balanced_partition(stages, ranks, [&](int rank, int first, int last) {
    return sums[rank][last] - sums[rank][first];
  });
  std::vector<int> rank_of_stage;
  for (int rank = 0; rank < ranks; ++rank) {
    const int length = blocks.boundaries[rank + 1] - blocks.boundaries[rank];
    rank_of_stage.insert(rank_of_stage.end(), length, rank);
  }
  return rank_of_stage;
}

/// Bytes that stages take on their ranks, by what the ranks of plans were seen to take. A module
/// keeps its state, and its stash as many times as its rank keeps that of its stages; the rest of a
/// rank's peak (heads, messages, workspace) is known where it was seen.
class StageBytes {
 public:
  explicit StageBytes(const Plan& plan) : plan_(plan) {
    const Question& question = plan.question;
    const Training& training = question.training();
    const Layout& layout = question.layout;
    const bool keeps = plan.schedule.stash == StashMode::Kept;
    const ModulePrices modules = priced_modules(question, training.graph);
    const std::vector<Mesh> layers = layout.layers();
    for (StageCost module : *modules) {
      apply_zero(layout.data_parallel, layers, 1, module);
      apply_offload(training.offload, layout.data_parallel, layers, module);
      const double held = training.framework.held();
      const Bytes stash = keeps ? module.stash - module.host_stash : Bytes(0);
      states_.push_back(states_.back() + held * module.state.total());
      stashes_.push_back(stashes_.back() + held * stash);
    }
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const Bytes limit = plan.schedule.memory;
      Bytes least = limit > Bytes(0) ? limit : Bytes(kInfinity);
      for (const std::size_t machine : machines_of(question, rank)) {
        least = std::min(least, question.cluster.machines[machine].device.memory);
      }
      ranks_.push_back({.capacity = least});
    }
  }

  /// Notes the peaks of `devices` under `partition`. Returns true if all fit.
  bool observe(const Partition& partition, const std::vector<DeviceMetrics>& devices) {
    observed_ = partition;
    for (Rank& rank : ranks_) rank = {.capacity = rank.capacity};
    for (int stage = 0; stage < partition.stages(); ++stage) {
      const int first = partition.boundaries[stage], last = partition.boundaries[stage + 1];
      for (const int number : ranks_of(stage)) {
        Rank& rank = ranks_[number];
        ++rank.stages;
        rank.state += states_[last] - states_[first];
        rank.stash += stashes_[last] - stashes_[first];
      }
    }
    bool fits = true;
    for (const DeviceMetrics& device : devices) {
      Rank& rank = ranks_.at(device.rank);
      rank.peak = device.peak_memory;
      rank.times = rank.stash > Bytes(0) ? device.peak_stash / rank.stash : 0;
      rank.rest = rank.peak - rank.state - rank.stash * rank.times;
      fits = fits && rank.peak <= rank.capacity;
    }
    for (int stage = 0; stage < partition.stages(); ++stage) {
      for (const int number : ranks_of(stage)) {
        const Rank& rank = ranks_[number];
        if (rank.stages > 1 || rank.peak <= rank.capacity) continue;
        misfits_.push_back({stage, partition.boundaries[stage], partition.boundaries[stage + 1]});
      }
    }
    return fits;
  }

  /// Says that modules [first, last) may have room as `stage` on each of its ranks: all of a
  /// device's memory, or the part of it that the stage had of the rank's peak when it was observed.
  /// `careful`: with as much beside them as the rank had then.
  bool fit(int stage, int first, int last, bool careful) const {
    for (const Misfit& misfit : misfits_) {
      if (misfit.stage == stage && first <= misfit.first && misfit.last <= last) return false;
    }
    for (const int number : ranks_of(stage)) {
      const Rank& rank = ranks_[number];
      const Bytes rest = careful || rank.stages > 1 ? rank.rest / rank.stages : Bytes(0);
      const Bytes bytes = own_bytes(rank, first, last) + rest;
      const int* cuts = &observed_.boundaries[stage];
      const Bytes seen = own_bytes(rank, cuts[0], cuts[1]) + rank.rest / rank.stages;
      const double share = rank.stages > 1 ? seen / rank.peak : 1;
      if (bytes > rank.capacity * share) return false;
    }
    return true;
  }

 private:
  struct Rank {
    Bytes capacity, peak, state, stash, rest;
    double times = 0;  // that the stash of its stages is kept
    int stages = 0;
  };
  /// A stage that was seen to have no room, alone on its rank.
  struct Misfit {
    int stage, first, last;
  };
  Bytes own_bytes(const Rank& rank, int first, int last) const {
    return states_[last] - states_[first] + (stashes_[last] - stashes_[first]) * rank.times;
  }
  /// Returns the ranks that hold `stage`, of all copies of the model.
  std::vector<int> ranks_of(int stage) const {
    std::vector<int> ranks;
    const int stages = plan_.question.layout.stages;
    ranks.reserve(static_cast<std::size_t>(plan_.copies));
    for (int copy = 0; copy < plan_.copies; ++copy) {
      ranks.push_back(plan_.rank_of_stage[copy * stages + std::min(stage, stages - 1)]);
    }
    return ranks;
  }

  const Plan& plan_;
  std::vector<Bytes> states_ = {Bytes(0)}, stashes_ = {Bytes(0)};  // of the modules below each
  std::vector<Rank> ranks_;
  Partition observed_;
  std::vector<Misfit> misfits_;
};

}  // namespace

CutModel cut_model(const Question& question) {
  const Layout& layout = question.layout;
  const PartitionRule& rule = layout.partition;
  const int modules = static_cast<int>(question.training().graph.modules.size());
  const int parts = parts_of(question.training().strategy, layout.stages);
  const bool cuts =
      rule.kind == PartitionRule::Kind::Balanced || rule.kind == PartitionRule::Kind::Auto;
  const bool search = cuts && parts < modules;
  CutModel cut{.partition = {}, .rank_of_stage = layout.placement};
  if (rule.kind == PartitionRule::Kind::Explicit) {
    cut.partition = explicit_partition(rule.modules);
  } else if (!search) {
    cut.partition = uniform_partition(modules, parts);
  }
  Partition* const known = search ? known_cut(question, parts) : nullptr;
  if (known) cut.partition = *known;
  const bool cut_already = !cut.partition.boundaries.empty();
  if (cut_already && !cut.rank_of_stage.empty()) return cut;
  const RankTimes times(question);
  if (!cut_already) {
    const bool casts = casts_messages(question.training().strategy);
    cut.partition = cut_by(question, parts, times, stage_time(question, times, casts),
                           casts ? stage_time(question, times, false) : StageTime());
    if (known) *known = cut.partition;
  }
  if (cut.rank_of_stage.empty()) {
    cut.rank_of_stage = contiguous_ranks(layout.ranks(), layout.stages, times);
  }
  return cut;
}

Partition fitting_partition(Plan plan) {
  constexpr int kLooks = 40, kHopefulLooks = 32;
  Partition by_time = plan.partition;
  const Question& question = plan.question;
  if (plan.schedule.is_sought()) {
    // The order is found later; one that keeps no more than 1F1B does always exists.
    const bool has_one = question.training().strategy.kind == StrategyKind::Global &&
                         question.layout.stages == question.layout.ranks();
    if (!has_one) return by_time;
    plan.schedule.kind = &schedule_named("1f1b");
  }
  const RankTimes times(question);
  StageBytes bytes(plan);
  for (int look = 0; look < kLooks; ++look) {
    const StepEstimate step = estimate_step(plan, Grade::Look);
    if (bytes.observe(plan.partition, step.metrics.devices)) return plan.partition;
    const bool careful = look >= kHopefulLooks;
    const auto fitting = [&](bool casts) -> StageTime {
      return [&, time = stage_time(question, times, casts)](int stage, int first, int last) {
        const bool fits = bytes.fit(stage, first, last, careful);
        return fits ? time(stage, first, last) : Seconds(kInfinity);
      };
    };
    const bool casts = casts_messages(question.training().strategy);
    plan.partition = cut_by(question, by_time.stages(), times, fitting(casts),
                            casts ? fitting(false) : StageTime());
    for (int stage = 0; stage < by_time.stages(); ++stage) {
      const std::vector<int>& cuts = plan.partition.boundaries;
      if (!bytes.fit(stage, cuts[stage], cuts[stage + 1], careful)) return by_time;
    }
  }
  return by_time;
}

}  // namespace interlock
