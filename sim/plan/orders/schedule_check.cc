// Checks an order: counts its ops, then runs all ranks side by side until none can go on.
// SPDX-License-Identifier: Apache-2.0
//
// The run is the proof. An op needs at most one op of another stage, and once that is done it stays
// done; so if the ranks, advanced in any way, come to the end, they do in every way. If they stop,
// each waits for an op that is further back on a rank which waits itself: a circle.
#include "sim/plan/orders/schedule_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace interlock {

namespace {

constexpr int kNone = -1;

/// The place of an op in its order.
struct Place {
  int rank = kNone, index = kNone;
  bool known() const { return rank != kNone; }
};

/// The ops of a micro-batch on a stage.
struct Visit {
  Place forward, input, weight, full;
  const Place& backward() const { return full.known() ? full : input; }
};

class Checker {
 public:
  explicit Checker(const StepOrder& order) : order_(order), next_(order.ranks.size(), 0) {}

  std::optional<OrderMistake> check() {
    if (auto mistake = place_ops()) return mistake;
    if (auto mistake = check_visits()) return mistake;
    if (auto mistake = run_ranks()) return mistake;
    if (auto mistake = check_messages(true)) return mistake;
    return check_messages(false);
  }

 private:
  using Found = std::optional<OrderMistake>;

  const Op& at(const Place& place) const { return order_.ranks[place.rank][place.index]; }
  std::string name(const Place& place) const { return name_of(at(place), order_); }
  int stages_of_copy() const { return order_.stages / order_.copies; }

  static Found blame(const Place& place, const std::string& message) {
    return OrderMistake{place.rank, place.index, message};
  }

  Place* place_in(Visit& visit, OpKind kind) {
    switch (kind) {
      case OpKind::F:
        return &visit.forward;
      case OpKind::I:
        return &visit.input;
      case OpKind::W:
        return &visit.weight;
      case OpKind::B:
        return &visit.full;
      default:
        return nullptr;
    }
  }

  /// Finds every op once, on the rank of its stage.
  Found place_ops() {
    for (int rank = 0; rank < static_cast<int>(order_.ranks.size()); ++rank) {
      const auto& ops = order_.ranks[rank];
      for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
        const Op& op = ops[index];
        if (op.kind == OpKind::U) continue;
        const Place here = {rank, index};
        Place* place = place_in(visits_[{op.stage, op.micro_batch}], op.kind);
        if (!place) return blame(here, "is no op of global training; expected F, B, I or W");
        if (place->known()) {
          return blame(here, "is run a second time; expected every op once");
        }
        *place = here;
        if (order_.rank_of_stage[op.stage] != rank) {
          return blame(here, "is on rank " + std::to_string(rank) + "; expected it on rank " +
                                 std::to_string(order_.rank_of_stage[op.stage]) +
                                 ", which runs its forward");
        }
      }
    }
    return std::nullopt;
  }

  Found check_visits() {
    std::vector<bool> run(order_.micro_batches, false);
    for (const auto& [key, visit] : visits_) {
      if (auto mistake = check_visit(visit)) return mistake;
      const auto& [stage, micro_batch] = key;
      run[micro_batch] = true;
      const int first = stage - stage % stages_of_copy();
      for (const int other : {stage - 1, stage + 1}) {
        if (other < first || other >= first + stages_of_copy()) continue;
        if (visits_.count({other, micro_batch})) continue;
        return blame(visit.forward, "is of a micro-batch that stage " +
                                        std::to_string(other % stages_of_copy()) +
                                        " never runs; expected it on every stage");
      }
    }
    const auto idle = std::find(run.begin(), run.end(), false);
    if (idle == run.end()) return std::nullopt;
    return blame({0, 0}, "begins a step that never runs micro-batch " +
                             std::to_string(idle - run.begin()) + "; expected 0 to " +
                             std::to_string(order_.micro_batches - 1));
  }

  /// Returns a forward, then a whole backward: B, or I and later W.
  Found check_visit(const Visit& visit) const {
    const Place& any = visit.full.known()    ? visit.full
                       : visit.input.known() ? visit.input
                                             : visit.weight;
    if (!visit.forward.known()) return blame(any, "has no forward; expected its F before it");
    if (visit.full.known() && (visit.input.known() || visit.weight.known())) {
      const Place& half = visit.input.known() ? visit.input : visit.weight;
      return blame(half, "is half of a backward that " + name(visit.full) +
                             " makes whole; expected one or the other");
    }
    if (!any.known()) {
      return blame(visit.forward, "has no backward; expected a B, or an I and a W, after it");
    }
    if (visit.full.known()) return std::nullopt;
    if (!visit.input.known()) return blame(visit.weight, "has no I; expected it before the W");
    if (!visit.weight.known()) return blame(visit.input, "has no W; expected it after the I");
    return std::nullopt;
  }

  /// Returns the ops that must come before `op`, on other ranks or earlier on its own: at most two.
  std::array<Place, 2> needs(const Op& op) const {
    const auto of = [&](int stage) -> const Visit& {
      return visits_.find({stage, op.micro_batch})->second;
    };
    switch (op.kind) {
      case OpKind::F:
        if (op.stage % stages_of_copy() == 0) return {};
        return {of(op.stage - 1).forward, {}};
      case OpKind::I:
      case OpKind::B:
        if ((op.stage + 1) % stages_of_copy() == 0) return {of(op.stage).forward, {}};
        return {of(op.stage).forward, of(op.stage + 1).backward()};
      case OpKind::W:
        return {of(op.stage).input, {}};
      default:
        return {};
    }
  }

  bool done(const Place& place) const { return place.index < next_[place.rank]; }

  /// Returns the op that the next op of `rank` still waits for, if there is one. A pair waits for
  /// both.
  Place missing(int rank) const {
    const auto& ops = order_.ranks[rank];
    for (std::size_t i = next_[rank]; i < ops.size(); ++i) {
      for (const Place& need : needs(ops[i])) {
        if (need.known() && !done(need)) return need;
      }
      if (!ops[i].overlaps_next) break;
    }
    return {};
  }

  bool finished(int rank) const {
    return next_[rank] >= static_cast<int>(order_.ranks[rank].size());
  }

  void advance(int rank) {
    const auto& ops = order_.ranks[rank];
    while (ops[next_[rank]].overlaps_next && next_[rank] + 1 < static_cast<int>(ops.size())) {
      ++next_[rank];
    }
    ++next_[rank];
  }

  Found run_ranks() {
    const int ranks = static_cast<int>(order_.ranks.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < ranks; ++rank) {
        while (!finished(rank) && !missing(rank).known()) {
          advance(rank);
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (!finished(rank)) return explain_stop(rank);
    }
    return std::nullopt;
  }

  /// Returns for each stage the places that make its activations, or else its gradients, in order.
  std::vector<std::vector<Place>> makers(bool forward) const {
    std::vector<std::vector<Place>> of_stage(order_.stages);
    for (int rank = 0; rank < static_cast<int>(order_.ranks.size()); ++rank) {
      for (int index = 0; index < static_cast<int>(order_.ranks[rank].size()); ++index) {
        const Op& op = order_.ranks[rank][index];
        const bool backward = op.kind == OpKind::I || op.kind == OpKind::B;
        if (forward ? op.kind == OpKind::F : backward) of_stage[op.stage].push_back({rank, index});
      }
    }
    return of_stage;
  }

  /// Messages of neighbours are first in, first out: those of activations, or else of gradients.
  Found check_messages(bool forward) const {
    const std::vector<std::vector<Place>> of_stage = makers(forward);
    for (int stage = 1; stage < order_.stages; ++stage) {
      if (stage % stages_of_copy() == 0) continue;
      const auto& sent = of_stage[forward ? stage - 1 : stage];
      const auto& taken = of_stage[forward ? stage : stage - 1];
      for (std::size_t i = 0; i < taken.size(); ++i) {
        if (at(taken[i]).micro_batch == at(sent[i]).micro_batch) continue;
        return blame(taken[i], "overtakes the message of " + name(sent[i]) +
                                   ", which is sent first; expected neighbouring stages to take "
                                   "micro-batches in one order");
      }
    }
    return std::nullopt;
  }

  /// Follows who waits for whom until a rank comes again, and tells that circle.
  Found explain_stop(int rank) const {
    std::vector<bool> seen(order_.ranks.size(), false);
    while (!seen[rank]) {
      seen[rank] = true;
      rank = missing(rank).rank;
    }
    const Place first = {rank, next_[rank]};
    std::string message = waits(rank);
    for (int next = missing(rank).rank; next != rank; next = missing(next).rank) {
      message += "; on rank " + std::to_string(next) + ", " + name({next, next_[next]}) + " " +
                 waits(next);
    }
    return blame(first, message + "; expected an order in which a rank can go on");
  }

  std::string waits(int rank) const {
    const Place need = missing(rank);
    return "waits for " + name(need) + ", which comes later on rank " + std::to_string(need.rank);
  }

  const StepOrder& order_;
  std::vector<int> next_;  // (ranks) ops done
  std::map<std::pair<int, int>, Visit> visits_;
};

}  // namespace

std::optional<OrderMistake> find_mistake(const StepOrder& order) { return Checker(order).check(); }

std::string name_of(const Op& op, const StepOrder& order) {
  return std::to_string(op.stage % (order.stages / order.copies)) + letter(op.kind) +
         std::to_string(op.micro_batch);
}

}  // namespace interlock
