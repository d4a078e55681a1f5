// SlimPipe: even slices of sequences in 1F1B order, whose ranks even out the attention of slices.
// SPDX-License-Identifier: Apache-2.0
//
// With p ranks, n slices of a micro-batch and v stages (chunks) a rank, a group of g slices goes
// through a chunk before the next takes them; g is the least divisor of n from p on. Backwards come
// in exactly the reverse order. Rank r holds n v + 2 (p - r - 1) forwards of a slice and a chunk
// when its first backward begins, then one forward and one backward in turn: the first micro-batch
// is kept whole, and as much of the next one as is needed for each rank to run its forward k in
// turn k + r, and its backward k in turn k + p - 1 - r.
//
// So in each turn p slices that follow each other go forward on the ranks, and p go back; the later
// in its sequence, the more a slice attends to. Of the ranks in a turn in which all of them run,
// the one with the longest context trades with the one with the shortest, and so on inwards: half
// of the difference, in whole slices of keys and values, is sent with the queries, and outputs come
// back; backward, the outputs and their gradient are sent, too, and gradients of queries, keys and
// values come back. Both then attend to as much, but for one slice.
//
// Example: p = 4, v = 1, n = 8. In turn 7 ranks 0 to 3 run forwards of slices 7, 6, 5 and 4, behind
// as many others: rank 0 leaves (7 - 4) / 2 = 1 slice of its attention to rank 3; the two others
// differ by less than two slices and trade nothing.
//
// Parts of a vocabulary that ranks divide (with two barriers) take turns likewise.
//
// Source: Li et al., arXiv 2504.14519, as in the authors' Megatron fork (github.com/kwai/
// Megatron-Kwai, megatron/core/pipeline_parallel/schedules.py: pipelining_with_interleaved_slicing,
// AttnBalancer; megatron/core/kv_cache/attention.py).
#include <algorithm>
#include <array>
#include <tuple>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

/// Returns the slices of a micro-batch that pass a chunk in a row; all of them if there are fewer
/// than ranks.
int group_of(int slices, int ranks) {
  int group = std::min(slices, ranks);
  while (slices % group != 0) ++group;
  return group;
}

/// A forward or a backward in the order of a rank: of a slice in a chunk.
struct Turn {
  int chunk = 0, micro_batch = 0;  // counted in slices, through the step
  int context = 0;                 // slices before it in its sequence
};

class SlimOrder {
 public:
  explicit SlimOrder(const ScheduleInputs& inputs)
      : inputs_(inputs),
        stages_(stages_of_ranks(inputs)),
        ranks_(static_cast<int>(stages_.size())),
        chunks_(static_cast<int>(stages_.front().size())),
        slices_(inputs.slices),
        group_(group_of(slices_, ranks_)),
        count_(inputs.micro_batches * chunks_) {
    if (!inputs.policy.trades_context) return;
    const int round = slices_ * chunks_;
    const int first = (ranks_ / round + 1) * round;  // a turn in which all ranks run
    for (int turn = first; turn < first + round; ++turn) {
      for (const bool back : {false, true}) {
        trades_[back ? 1 : 0].push_back(trades_of_turn(turn, back));
      }
    }
  }

  Sequence of_rank(int rank) const {
    const int round = slices_ * chunks_;
    const int ahead = std::min(round + 2 * (ranks_ - 1 - rank) - 1, count_);
    RunWriter order;
    std::vector<Op> body;
    body.reserve(static_cast<std::size_t>(2 * round));
    for (int k = 0; k < ahead; ++k) add(body, rank, k, false);
    order.append(body);
    // Slices cost differently, so what repeats is whole micro-batches.
    for (int first = 0; first < count_; first += round) {
      body.clear();
      for (int k = first; k < first + round; ++k) {
        if (ahead + k < count_) add(body, rank, ahead + k, false);
        add(body, rank, k, true);
      }
      order.append(body);
    }
    order.append_updates(inputs_, stages_[rank]);
    return {order.take(), inputs_.steps, inputs_.micro_batches};
  }

  /// Writes the order of a rank that also runs its part of the vocabulary. In a turn all ranks run
  /// the embedding of one slice, whose forward begins then; the readout of the slice that ends; the
  /// gradients of the readout of the one that goes back next; and those of the embedding of the one
  /// that is back.
  Sequence with_vocabulary(int rank) const {
    const int stage = stages_[rank].front(), above = ranks_ - 1;
    const int back = slices_ + above - 1;  // the turn of the last rank's first backward
    RunWriter order(slices_);              // few slices may make one look like the one before
    std::vector<Op> body;
    for (int t = 0; t <= back + above + count_ - 1; ++t) {
      const auto add_part = [&](OpKind kind, int k) {
        if (k < 0 || k >= count_) return;
        const bool reversed = kind == OpKind::T || kind == OpKind::G;
        body.push_back({kind, stage, turn(k, reversed).micro_batch, stage});
      };
      const auto add_turn = [&](int k, bool backward) {
        if (k >= 0 && k < count_) add(body, rank, k, backward);
      };
      add_part(OpKind::E, t);
      add_turn(t - rank, false);
      add_part(OpKind::S, t - above);
      add_part(OpKind::T, t - back);
      add_turn(t - back - (above - rank), true);
      add_part(OpKind::G, t - back - above);
      if ((t + 1) % slices_ != 0) continue;
      order.append(body);
      body.clear();
    }
    order.append(body);
    order.append_updates(inputs_, stages_[rank]);
    return {order.take(), inputs_.steps, inputs_.micro_batches};
  }

 private:
  /// Returns forward `k` of every rank, or backward `k`.
  Turn turn(int k, bool back) const {
    const int round = slices_ * chunks_, whole = k / round;
    const int within = back ? round - 1 - k % round : k % round;
    const int slice = within / (chunks_ * group_) * group_ + within % group_;
    return {within / group_ % chunks_, whole * slices_ + slice, slice};
  }
  int stage_of(int rank, const Turn& turn) const { return stages_[rank][turn.chunk]; }

  void add(std::vector<Op>& body, int rank, int k, bool back) const {
    const Turn own = turn(k, back);
    const std::size_t first = body.size();
    if (back) {
      append_backward(body, inputs_, stage_of(rank, own), own.micro_batch);
    } else {
      body.push_back(global_op(inputs_, OpKind::F, stage_of(rank, own), own.micro_batch));
    }
    if (inputs_.policy.trades_context) body[first].trade = trade_of(rank, k, back);
  }

  /// Returns what `rank` trades for its forward or backward `k`: nothing while a rank has no work.
  ContextTrade trade_of(int rank, int k, bool back) const {
    const int turn = k + (back ? ranks_ - 1 - rank : rank);
    if (turn < ranks_ - 1 || turn >= count_) return {};
    return trades_[back ? 1 : 0][turn % (slices_ * chunks_)][rank];
  }

  /// Returns what each rank trades in turn `number`: the longest context with the shortest, and so
  /// on inwards.
  std::vector<ContextTrade> trades_of_turn(int number, bool back) const {
    std::vector<std::tuple<int, int, Turn>> ranks;  // context, rank
    for (int rank = 0; rank < ranks_; ++rank) {
      const Turn its = turn(number - (back ? ranks_ - 1 - rank : rank), back);
      ranks.emplace_back(its.context, rank, its);
    }
    std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<ContextTrade> trades(ranks_);
    for (int place = 0; place < ranks_; ++place) {
      const auto& [own_context, rank, own] = ranks[place];
      const auto& [context, peer, its] = ranks[ranks_ - 1 - place];
      const int slices = (context - own_context) / 2;
      if (slices == 0) continue;
      trades[rank] = {slices, stage_of(peer, its) - stage_of(rank, own),
                      its.micro_batch - own.micro_batch};
    }
    return trades;
  }

  const ScheduleInputs& inputs_;
  std::vector<std::vector<int>> stages_;
  int ranks_, chunks_, slices_, group_;
  int count_;  // forwards of a rank in a step
  /// Forward and backward, of the turns of a micro-batch: others repeat them.
  std::array<std::vector<std::vector<ContextTrade>>, 2> trades_;
};

Schedule make_slim_pipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const SlimOrder order(inputs);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const bool divides = inputs.policy.vocabulary != VocabularySplit::Whole;
    const int number = static_cast<int>(rank);
    schedule.ranks[rank] = {divides ? order.with_vocabulary(number) : order.of_rank(number)};
  }
  return schedule;
}

/// Fewer slices than ranks come back to the first rank before it has sent the last of them.
std::string few_slices_problem(const ScheduleShape& shape) {
  if (shape.stages == shape.ranks || shape.slices >= shape.ranks) return "";
  return "takes slices through its chunks in groups of one for each rank or more; expected from " +
         std::to_string(shape.ranks) + " \"slices\" on, got " + std::to_string(shape.slices);
}

}  // namespace

ScheduleEntry schedules::slim_pipe() {
  return {.name = "slimpipe",
          .flushes = true,
          .slices = true,
          .even_slices = true,
          .layout = StageLayout::Loop,
          .chunks = 1,
          .summary = "1f1b by even slices of a sequence, whose attention ranks even out",
          .source = "Li et al., SlimPipe, arXiv 2504.14519",
          .make = make_slim_pipe,
          .problem = few_slices_problem,
          .bubble = {"(p - 1) / (nm + p - 1), of n = 4p slices",
                     [](const PipelineShape& s) {
                       return formulas::share(s.devices - 1, 4.0 * s.devices * s.micro_batches);
                     }},
          .stashed = {"1 + 2(p - 1)/n, of n = 4p slices", [](const PipelineShape& s) {
                        return 1 + (s.devices - 1) / (2.0 * s.devices);
                      }}};
}

}  // namespace interlock
