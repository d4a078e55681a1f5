// Puts the ops of all ranks together, divides what they idle, and replays them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/measured_pipeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/spread.h"

namespace interlock {
namespace {

/// A stage and a phase, whose ops are numbered.
using OpKey = std::pair<int, Phase>;

/// The place of an op: rank and position.
struct OpPlace {
  std::size_t rank = 0, at = 0;
};

bool takes_gradients(Phase phase) {
  return phase == Phase::Backward || phase == Phase::BackwardInput;
}

Seconds seconds_of(std::int64_t nanoseconds) {
  return Seconds(static_cast<double>(nanoseconds) / 1e9);
}

/// Returns the number of "stage 3"; nothing for other names.
std::optional<int> stage_of(const std::string& part) {
  const std::string word = "stage ";
  if (!part.starts_with(word) || part.size() > word.size() + 6) return std::nullopt;
  const std::string digits = part.substr(word.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoi(digits);
}

class PipelineAssembly {
 public:
  explicit PipelineAssembly(MeasuredPipeline& pipeline) : pipeline_(pipeline), shift_(ranks(), 0) {}

  /// Numbers ops and finds their producers. Returns what is wrong; empty: nothing.
  std::string put_together() {
    if (pipeline_.ranks.size() < 2) return "there is one rank";
    std::string wrong = number_stages();
    if (!wrong.empty()) return wrong;
    for (const auto& [kind, places] : places_) {
      const auto other = producer_kind(kind);
      if (!other) continue;
      const auto found = places_.find(*other);
      if (found == places_.end() || found->second.size() != places.size()) {
        return "stages " + std::to_string(kind.first) + " and " + std::to_string(other->first) +
               " have recorded other numbers of ops";
      }
    }
    align_clocks();
    find_late_recompute();
    return "";
  }

  std::size_t ranks() const { return pipeline_.ranks.size(); }
  const MeasuredOp& op(const OpPlace& place) const {
    return pipeline_.ranks[place.rank].ops[place.at];
  }
  const std::vector<MeasuredOp>& ops(std::size_t rank) const { return pipeline_.ranks[rank].ops; }
  const std::map<OpKey, std::vector<OpPlace>>& places() const { return places_; }
  std::int64_t shift(std::size_t rank) const { return shift_[rank]; }

  /// The op of another stage that `one` comes after, if there is one.
  std::optional<OpPlace> producer(const MeasuredOp& one) const {
    const auto kind = producer_kind({one.stage, one.phase});
    if (!kind) return std::nullopt;
    return places_.at(*kind)[static_cast<std::size_t>(one.number)];
  }

 private:
  std::string number_stages() {
    std::vector<std::size_t> order(ranks());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return pipeline_.ranks[a].rank.value_or(0) < pipeline_.ranks[b].rank.value_or(0);
    });
    std::map<int, std::size_t> rank_of;
    for (std::size_t position = 0; position < order.size(); ++position) {
      const std::size_t rank = order[position];
      std::vector<MeasuredOp>& ops = pipeline_.ranks[rank].ops;
      std::stable_sort(ops.begin(), ops.end(),
                       [](const auto& a, const auto& b) { return a.start < b.start; });
      for (std::size_t at = 0; at < ops.size(); ++at) {
        if (ops[at].stage < 0) ops[at].stage = static_cast<int>(position);
        const auto [known, first] = rank_of.emplace(ops[at].stage, rank);
        if (!first && known->second != rank) {
          return "stage " + std::to_string(ops[at].stage) + " was recorded on several ranks";
        }
        std::vector<OpPlace>& places = places_[{ops[at].stage, ops[at].phase}];
        ops[at].number = static_cast<int>(places.size());
        places.push_back({rank, at});
      }
      if (ops.empty()) return "a rank has no named ops";
    }
    if (rank_of.size() < 2) return "there is one stage";
    stages_ = static_cast<int>(rank_of.size());
    if (rank_of.begin()->first != 0 || rank_of.rbegin()->first != stages_ - 1) {
      return "some stages were not recorded";
    }
    return "";
  }

  std::optional<OpKey> producer_kind(const OpKey& kind) const {
    const auto [stage, phase] = kind;
    if (phase == Phase::Forward && stage > 0) return OpKey{stage - 1, phase};
    if (takes_gradients(phase) && stage + 1 < stages_) return OpKey{stage + 1, phase};
    if (phase == Phase::Recompute && late_recompute_.contains(stage)) {
      return OpKey{stage + 1, late_recompute_.at(stage)};
    }
    return std::nullopt;
  }

  /// Finds the stages that compute again only when the gradient of the backward behind it is there:
  /// each of their recomputations starts after that gradient was computed.
  void find_late_recompute() {
    for (int stage = 0; stage + 1 < stages_; ++stage) {
      const auto again = places_.find({stage, Phase::Recompute});
      if (again == places_.end()) continue;
      for (const Phase phase : {Phase::Backward, Phase::BackwardInput}) {
        const auto from = places_.find({stage + 1, phase});
        if (from == places_.end() || from->second.size() != again->second.size()) continue;
        const bool late = std::equal(again->second.begin(), again->second.end(),
                                     from->second.begin(), [&](const auto& a, const auto& b) {
                                       return a.rank != b.rank && op(a).start >= op(b).end;
                                     });
        if (late) late_recompute_.emplace(stage, phase);
      }
    }
  }

  /// Returns the least time from the end of a producer to the start of its op, over all of `kind`.
  std::optional<std::int64_t> least_slack(const OpKey& kind) const {
    const auto found = places_.find(kind);
    if (found == places_.end()) return std::nullopt;
    std::optional<std::int64_t> least;
    for (const OpPlace& place : found->second) {
      const auto from = producer(op(place));
      if (!from || from->rank == place.rank) return std::nullopt;
      const std::int64_t slack = op(place).start - op(*from).end;
      least = std::min(least.value_or(slack), slack);
    }
    return least;
  }

  /// Shifts clocks of ranks on which an op begins before the end of what it takes: by so much that
  /// the quickest message takes as long in both directions.
  void align_clocks() {
    for (int stage = 1; stage < stages_; ++stage) {
      const auto down = least_slack({stage, Phase::Forward});
      auto up = least_slack({stage - 1, Phase::Backward});
      if (!up) up = least_slack({stage - 1, Phase::BackwardInput});
      if (!down || (*down >= 0 && up.value_or(0) >= 0)) continue;
      const std::int64_t shift = up ? (*down - *up) / 2 : *down;
      const std::size_t rank = places_.at({stage, Phase::Forward}).front().rank;
      shift_[rank] += shift;
      MeasuredRank& late = pipeline_.ranks[rank];
      for (MeasuredOp& one : late.ops) {
        one.start -= shift;
        one.end -= shift;
      }
      for (auto& [begin, end] : late.communication) {
        begin -= shift;
        end -= shift;
      }
    }
  }

  MeasuredPipeline& pipeline_;
  std::vector<std::int64_t> shift_;
  std::map<OpKey, std::vector<OpPlace>> places_;
  std::map<int, Phase> late_recompute_;  // whose gradient recomputation of a stage waits for
  int stages_ = 0;
};

/// When steps end: the last end of any op of theirs. Ops of a stage and phase are dealt to steps in
/// equal parts.
class StepEnds {
 public:
  StepEnds(const PipelineAssembly& all, int steps) : ends_(static_cast<std::size_t>(steps), 0) {
    for (const auto& [kind, places] : all.places()) per_step_[kind] = places.size() / ends_.size();
    for (const auto& [kind, places] : all.places()) {
      if (places.size() % ends_.size() != 0) {
        ends_.resize(1);
        per_step_.clear();
        break;
      }
    }
    for (std::size_t rank = 0; rank < all.ranks(); ++rank) {
      for (const MeasuredOp& op : all.ops(rank)) {
        std::int64_t& end = ends_[step_of(op)];
        end = std::max(end, op.end);
      }
    }
  }
  std::size_t step_of(const MeasuredOp& op) const {
    const auto found = per_step_.find({op.stage, op.phase});
    return found == per_step_.end() ? 0 : static_cast<std::size_t>(op.number) / found->second;
  }
  std::int64_t end(std::size_t step) const { return ends_[step]; }
  int steps() const { return static_cast<int>(ends_.size()); }

 private:
  std::vector<std::int64_t> ends_;
  std::map<OpKey, std::size_t> per_step_;
};

/// Divides the time of one rank.
class RankDivision {
 public:
  RankDivision(const MeasuredRank& rank, RankUse& use) : rank_(rank), use_(use) {}

  void add(RankTime part, std::int64_t time) {
    use_.time[static_cast<std::size_t>(part)] += seconds_of(std::max<std::int64_t>(0, time));
  }
  /// Adds idle time in which all that is waited for has been computed. `sent`: by another rank, so
  /// that a message is under way from the start until it ends.
  void add_rest(std::int64_t from, std::int64_t to, bool sent) {
    std::int64_t covered = 0, last = from;
    while (next_ < rank_.communication.size() && rank_.communication[next_].second <= from) {
      ++next_;
    }
    for (std::size_t i = next_; i < rank_.communication.size(); ++i) {
      const auto& [begin, end] = rank_.communication[i];
      if (begin >= to) break;
      last = std::min(end, to);
      covered += last - std::max(begin, from);
    }
    const std::int64_t message = sent ? last - from : covered;
    add(RankTime::Message, message);
    add(RankTime::Host, to - from - message);
  }

 private:
  const MeasuredRank& rank_;
  RankUse& use_;
  std::size_t next_ = 0;  // of communication: what ends before it is over
};

struct TraceWindow {
  std::int64_t begin = 0, end = 0;
};

RankUse divide_rank(const PipelineAssembly& all, const MeasuredRank& rank, const StepEnds& steps,
                    const TraceWindow& window) {
  RankUse use;
  RankDivision division(rank, use);
  std::int64_t at = window.begin;
  std::optional<std::size_t> step;
  std::set<int> stages;
  for (const MeasuredOp& op : rank.ops) {
    stages.insert(op.stage);
    const std::size_t its_step = steps.step_of(op);
    const bool begins = !step || *step != its_step;
    const std::int64_t start = std::max(op.start, at);
    if (begins && step && start > at) {
      const std::int64_t drained = std::clamp(steps.end(*step), at, start);
      division.add(RankTime::Drain, drained - at);
      at = drained;
    }
    const auto producer = all.producer(op);
    if (producer) {
      const std::int64_t ready = std::clamp(all.op(*producer).end, at, start);
      division.add(begins                       ? RankTime::Fill
                   : op.phase == Phase::Forward ? RankTime::Activation
                                                : RankTime::Gradient,
                   ready - at);
      at = ready;
    }
    division.add_rest(at, start, producer.has_value());
    const std::int64_t end = std::max(op.end, start);
    const std::int64_t busy = std::min(op.busy, end - start);
    division.add(RankTime::Busy, busy);
    division.add(RankTime::InsideOps, end - start - busy);
    at = end;
    step = its_step;
  }
  division.add(RankTime::Drain, window.end - at);
  use.stages.assign(stages.begin(), stages.end());
  return use;
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Runs the ops of all ranks again, in their order, with durations that `length` gives.
class PipelineReplay {
 public:
  explicit PipelineReplay(const PipelineAssembly& all) : all_(all) { learn(); }

  using Length = std::function<double(const MeasuredOp&)>;
  /// Returns the time from the first op to the end of the last; below 0 if ranks wait for each
  /// other.
  double run(const Length& length) const {
    Ends ends(all_.ranks());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < all_.ranks(); ++rank) {
        while (run_next(rank, length, ends)) moved = true;
      }
    }
    double last = 0;
    for (std::size_t rank = 0; rank < all_.ranks(); ++rank) {
      if (ends[rank].size() < all_.ops(rank).size()) return -1;
      if (!ends[rank].empty()) last = std::max(last, ends[rank].back());
    }
    return last;
  }

 private:
  using Ends = std::vector<std::vector<double>>;  // of the ops that each rank has run

  /// Runs the next op of `rank`. Returns false if there is none, or if its message is not sent yet.
  bool run_next(std::size_t rank, const Length& length, Ends& ends) const {
    std::vector<double>& own = ends[rank];
    if (own.size() == all_.ops(rank).size()) return false;
    const MeasuredOp& op = all_.ops(rank)[own.size()];
    const OpKey kind{op.stage, op.phase};
    double start = own.empty() ? 0 : own.back() + gap_.at(kind);
    if (const auto from = all_.producer(op)) {
      if (ends[from->rank].size() <= from->at) return false;
      start = std::max(start, ends[from->rank][from->at] + latency_.at(kind));
    }
    own.push_back(start + length(op));
    return true;
  }

  /// Learns how long messages take, from ops that waited for one, and what passes between ops of a
  /// rank that waited for none.
  void learn() {
    std::map<OpKey, std::vector<std::int64_t>> latencies, gaps;
    for (std::size_t rank = 0; rank < all_.ranks(); ++rank) {
      for (std::size_t at = 0; at < all_.ops(rank).size(); ++at) {
        const MeasuredOp& op = all_.ops(rank)[at];
        const std::int64_t before = at == 0 ? op.start : all_.ops(rank)[at - 1].end;
        const auto from = all_.producer(op);
        const bool waited = from && (at == 0 || all_.op(*from).end > before);
        const OpKey kind{op.stage, op.phase};
        if (waited)
          latencies[kind].push_back(std::max<std::int64_t>(0, op.start - all_.op(*from).end));
        if (!waited && at > 0) gaps[kind].push_back(std::max<std::int64_t>(0, op.start - before));
      }
    }
    for (const auto& [kind, places] : all_.places()) {
      latency_[kind] = static_cast<double>(median_of(latencies[kind]));
      gap_[kind] = static_cast<double>(median_of(gaps[kind]));
    }
  }

  const PipelineAssembly& all_;
  std::map<OpKey, double> latency_, gap_;
};

/// The median length of each kind of op, and the mean of these over the stages of a phase.
struct OpLengths {
  std::map<OpKey, double> of_stage;
  std::map<Phase, double> of_phase;
  std::map<Phase, int> stages;

  explicit OpLengths(const PipelineAssembly& all) {
    for (const auto& [kind, places] : all.places()) {
      std::vector<std::int64_t> lengths;
      for (const OpPlace& place : places)
        lengths.push_back(all.op(place).end - all.op(place).start);
      of_stage[kind] = static_cast<double>(median_of(lengths));
      of_phase[kind.second] += of_stage[kind];
      ++stages[kind.second];
    }
    for (auto& [phase, sum] : of_phase) sum /= stages[phase];
  }
  /// The mean over the other stages.
  double of_others(const OpKey& kind) const {
    const int count = stages.at(kind.second);
    if (count < 2) return of_stage.at(kind);
    return (of_phase.at(kind.second) * count - of_stage.at(kind)) / (count - 1);
  }
};

StragglerCost straggler_cost(const PipelineAssembly& all, const TraceWindow& window, int steps,
                             int stages) {
  const PipelineReplay replay(all);
  const OpLengths lengths(all);
  const auto step = [&](const PipelineReplay::Length& length) {
    return Seconds(replay.run(length) / 1e9 / steps);
  };
  const auto even = [&](const MeasuredOp& op) { return lengths.of_stage.at({op.stage, op.phase}); };
  StragglerCost cost{
      .measured = seconds_of(window.end - window.begin) / steps,
      .replayed = step([](const MeasuredOp& op) { return static_cast<double>(op.end - op.start); }),
      .even = step(even),
      .equal = step([&](const MeasuredOp& op) { return lengths.of_phase.at(op.phase); })};
  for (int stage = 0; stage < stages; ++stage) {
    cost.stage_gain.push_back(cost.even - step([&](const MeasuredOp& op) {
                                const double own = even(op);
                                if (op.stage != stage) return own;
                                return std::min(own, lengths.of_others({op.stage, op.phase}));
                              }));
  }
  return cost;
}

}  // namespace

void add_rank(MeasuredPipeline& pipeline, const KinetoEvents& events, const OpAttribution& ops) {
  pipeline.steps = std::max(pipeline.steps, events.steps);
  MeasuredRank rank{.file = events.file, .rank = events.rank};
  for (const OpOccurrence& one : ops.occurrences) {
    MeasuredOp op{.phase = one.name.phase, .start = one.start, .end = one.end, .busy = one.busy};
    const auto stage = stage_of(one.name.part);
    if (stage) op.stage = *stage;
    if (!stage && !one.name.part.empty()) {
      pipeline.problem = "ranges name \"" + one.name.part + "\", and no stages";
    }
    rank.ops.push_back(op);
  }
  for (const DeviceActivity& event : events.device) {
    if (event.work != DeviceWork::Communication) continue;
    rank.communication.emplace_back(event.start, event.end);
  }
  std::sort(rank.communication.begin(), rank.communication.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> apart;  // those of several streams as one
  for (const auto& each : rank.communication) {
    if (!apart.empty() && each.first <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, each.second);
    } else {
      apart.push_back(each);
    }
  }
  rank.communication = std::move(apart);
  pipeline.ranks.push_back(std::move(rank));
}

const char* name_of(RankTime part) {
  constexpr std::array kNames{"busy",       "inside_ops", "fill",    "drain",
                              "activation", "gradient",   "message", "host"};
  return kNames[static_cast<std::size_t>(part)];
}

std::optional<PipelineAnswer> analyse(MeasuredPipeline pipeline, std::string& why) {
  why = pipeline.problem;
  if (!why.empty()) return std::nullopt;
  PipelineAssembly all(pipeline);
  why = all.put_together();
  if (!why.empty()) return std::nullopt;
  TraceWindow window{INT64_MAX, INT64_MIN};
  for (const MeasuredRank& rank : pipeline.ranks) {
    for (const MeasuredOp& op : rank.ops) {
      window.begin = std::min(window.begin, op.start);
      window.end = std::max(window.end, op.end);
    }
  }
  const StepEnds steps(all, std::max(1, pipeline.steps));
  PipelineAnswer answer{.window = seconds_of(window.end - window.begin), .steps = steps.steps()};
  int stages = 0;
  for (std::size_t rank = 0; rank < pipeline.ranks.size(); ++rank) {
    answer.ranks.push_back(divide_rank(all, pipeline.ranks[rank], steps, window));
    answer.ranks.back().clock_shift = seconds_of(all.shift(rank));
    stages = std::max(stages, answer.ranks.back().stages.back() + 1);
  }
  answer.cost = straggler_cost(all, window, answer.steps, stages);
  if (answer.cost.replayed < Seconds(0)) {
    why = "ops of the ranks wait for each other in a circle";
    return std::nullopt;
  }
  return answer;
}

}  // namespace interlock
