// When every op of a fixed order runs, by the rules of a pipeline alone.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/order_times.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace interlock {

namespace {

/// The name of a message: for which stage to take, A of an activation, G of a gradient, C of a
/// copy's.
using MessageName = std::tuple<char, int, int, int>;  // what, taker, micro-batch, loss or sender

class Walk {
 public:
  explicit Walk(const TestChain& chain)
      : chain_(chain),
        roles_(roles_of(chain)),
        stages_(static_cast<int>(chain.rank_of_stage.size())),
        of_copy_(stages_ / chain.copies),
        helix_(chain.policy.kind->layout == StageLayout::Helix) {
    for (const auto& rank : schedule_of(chain).ranks) {
      orders_.push_back(rank.empty() ? std::vector<Op>{} : expand(rank.front()));
    }
    now_.assign(orders_.size(), 0);
    next_.assign(orders_.size(), 0);
    updates_said_.assign(orders_.size(), 0);
  }

  std::map<OpName, OpTimes> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
        while (next_[rank] < orders_[rank].size() && step(rank)) moved = true;
      }
    }
    return std::move(times_);
  }

 private:
  const StageCost& cost(const Op& op) const {
    return chain_.costs[op.micro_batch % chain_.slices * stages_ + op.stage];
  }
  /// Stages of the model around one, -1 for none; in a tree, children of a stage read it.
  int before(int stage) const {
    const int own = stage % of_copy_, first = stage - own;
    if (own == 0 || chain_.strategy.kind == StrategyKind::Independent) return -1;
    const bool tree = chain_.strategy.kind == StrategyKind::Tree;
    return first + (tree ? (own - 1) / chain_.strategy.arity : own - 1);
  }
  std::vector<int> after(int stage) const {
    std::vector<int> found;
    for (int other = 0; other < stages_; ++other) {
      if (before(other) == stage) found.push_back(other);
    }
    return found;
  }
  const Traversal& traversal(const Op& op) const {
    const auto& all = roles_[op.stage].traversals;
    return *std::find_if(all.begin(), all.end(),
                         [&](const Traversal& t) { return t.loss == op.loss; });
  }

  /// Seconds of an op, and of what it first computes again.
  std::pair<double, double> seconds(const Op& op) const {
    const StageCost& stage = cost(op);
    const double sums = roles_[op.stage].summed_gradients * stage.gradient_addition.value();
    if (op.kind == OpKind::F) return {stage.forward.time.value(), 0};
    if (op.kind == OpKind::H) return {stage.head.time.value(), 0};
    if (op.kind == OpKind::R) return {stage.next_forward.time.value(), 0};
    if (op.kind == OpKind::U)
      return {stage.update.time.value() + stage.head_update.time.value(), 0};
    const double deferrable = op.defers ? stage.deferrable.time.value() : 0;
    if (op.kind == OpKind::W && op.defers) return {deferrable, 0};
    if (op.kind == OpKind::W) return {stage.backward_weight.time.value() + sums, 0};
    const Traversal& t = traversal(op);
    double time = (t.partial ? stage.link.backward_input : stage.backward_input).time.value();
    if (!t.to_previous && chain_.strategy.skip_unneeded_input_gradients) {
      const auto& left_out =
          t.partial ? stage.link.first_backward_input : stage.first_backward_input;
      time -= left_out.time.value();
    }
    if (op.kind == OpKind::B) {
      time += sums + (t.partial ? stage.link.backward_weight : stage.backward_weight).time.value();
      time -= deferrable;
    }
    return {time, (t.partial ? stage.link.recompute : stage.recompute).time.value()};
  }

  /// The messages that an op takes.
  std::vector<MessageName> takes(const Op& op) const {
    std::vector<MessageName> names;
    const StageRole& role = roles_[op.stage];
    if (op.kind == OpKind::F && before(op.stage) >= 0) {
      names.emplace_back('A', op.stage, op.micro_batch, 0);
    }
    if (op.kind == OpKind::I || op.kind == OpKind::B) {
      if (op.loss > op.stage) names.emplace_back('G', op.stage, op.micro_batch, op.loss);
      for (const int loss : role.only_added) {
        // Messages come in the order of their losses: with the first traversal of a further one.
        const auto taker =
            std::find_if(role.traversals.begin(), role.traversals.end(),
                         [&](const Traversal& traversal) { return traversal.loss > loss; });
        if (loss > op.stage && taker->loss == op.loss) {
          names.emplace_back('G', op.stage, op.micro_batch, loss);
        }
      }
    }
    for (int other = op.stage % of_copy_; op.kind == OpKind::U && other < stages_ && !helix_;
         other += of_copy_) {
      if (other != op.stage) names.emplace_back('C', op.stage, op.micro_batch, other);
    }
    return names;
  }

  void send(int from, int to, double bytes, double at, const MessageName& name) {
    const int here = chain_.rank_of_stage[from], there = chain_.rank_of_stage[to];
    if (here != there) {
      double& free = wire_free_[{here, there}];
      free = std::max(free, at) + bytes / chain_.cluster.machines.front().port_bandwidth.value();
      at = free + chain_.cluster.machines.front().port_latency.value();
    }
    arrivals_[name] = at;
  }

  void send_results(const Op& op, double at) {
    const int b = op.micro_batch;
    if (op.kind == OpKind::F) {
      for (const int reader : after(op.stage)) {
        send(op.stage, reader, cost(op).output.value(), at, {'A', reader, b, 0});
      }
    }
    if ((op.kind != OpKind::I && op.kind != OpKind::B) || !traversal(op).to_previous) return;
    Op below = op;
    below.stage = before(op.stage);
    const double bytes = cost(below).output.value() + cost(below).returned.value();
    send(op.stage, below.stage, bytes, at, {'G', below.stage, b, op.loss});
  }

  /// Says, once, that the updates from here on are due; nothing until all stages have said so.
  std::optional<double> pass_barrier(std::size_t rank, const Op& op) {
    const int window = op.micro_batch / update_every(chain_);
    auto& due = due_[window];
    for (std::size_t i = std::max(next_[rank], updates_said_[rank]);
         i < orders_[rank].size() && orders_[rank][i].kind == OpKind::U; ++i) {
      due.push_back(now_[rank]);
      updates_said_[rank] = i + 1;
    }
    const int updated = helix_ ? of_copy_ / 2 + 1 : stages_;
    if (static_cast<int>(due.size()) < updated) return std::nullopt;
    return *std::max_element(due.begin(), due.end());
  }

  bool step(std::size_t rank) {
    std::vector<Op> ops = {orders_[rank][next_[rank]]};
    if (ops[0].overlaps_next) ops.push_back(orders_[rank][next_[rank] + 1]);
    double start = now_[rank];
    if (ops[0].kind == OpKind::U && !begin_update(rank, ops[0], start)) return false;
    double whole = 0, shortest = std::numeric_limits<double>::infinity();
    for (const Op& op : ops) {
      for (const MessageName& name : takes(op)) {
        const auto arrival = arrivals_.find(name);
        if (arrival == arrivals_.end()) return false;
        start = std::max(start, arrival->second);
      }
      const double time = seconds(op).first + seconds(op).second;
      shortest = std::min(shortest, time);
      whole += time;
    }
    const bool pair = ops.size() == 2 && whole > 0;
    const double share = pair ? 1 - chain_.policy.overlap * shortest / whole : 1;
    for (const Op& op : ops) {
      start += seconds(op).second * share;
      const double end = start + seconds(op).first * share;
      if (op.kind != OpKind::R) {
        times_[{op.kind, op.stage, op.micro_batch, op.loss}] = {start, end};
      }
      start = end;
    }
    now_[rank] = start;
    for (const Op& op : ops) send_results(op, start);
    next_[rank] += ops.size();
    return true;
  }

  bool begin_update(std::size_t rank, const Op& op, double& start) {
    if (chain_.policy.barrier) {
      const std::optional<double> passed = pass_barrier(rank, op);
      if (!passed) return false;
      start = std::max(start, *passed);
    }
    for (int on = of_copy_; on < stages_ && !helix_; on += of_copy_) {
      const int other = (op.stage + on) % stages_;
      const MessageName name = {'C', other, op.micro_batch, op.stage};
      const double bytes = cost(op).state.gradients.value();
      if (!arrivals_.contains(name)) send(op.stage, other, bytes, start, name);
    }
    return true;
  }

  const TestChain& chain_;
  std::vector<StageRole> roles_;
  int stages_, of_copy_;
  bool helix_;  // every second stage of the first copy is updated, and no copy has a sum of its own
  std::vector<std::vector<Op>> orders_;  // (ranks, ops)
  std::vector<std::size_t> next_, updates_said_;
  std::vector<double> now_;  // (ranks) end of what was done
  std::map<MessageName, double> arrivals_;
  std::map<std::pair<int, int>, double> wire_free_;
  std::map<int, std::vector<double>> due_;  // by window
  std::map<OpName, OpTimes> times_;
};

}  // namespace

bool has_plain_rules(const TestChain& chain) {
  const SchedulePolicy& policy = chain.policy;
  const Schedule schedule = schedule_of(chain);
  const bool fixed = std::all_of(schedule.ranks.begin(), schedule.ranks.end(),
                                 [](const auto& rank) { return rank.size() <= 1; });
  return fixed && policy.queue.kind == QueuePolicy::Kind::Unlimited &&
         !policy.copies_on_compute_stream && policy.in_flight == 1 && !policy.replays &&
         policy.kind->name != "list" && policy.kind->layout != StageLayout::Ring &&
         chain.strategy.readout_every == 0 && policy.vocabulary == VocabularySplit::Whole;
}

std::map<OpName, OpTimes> order_times(const TestChain& chain) { return Walk(chain).run(); }

}  // namespace interlock
