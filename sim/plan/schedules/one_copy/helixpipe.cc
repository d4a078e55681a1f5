// HelixPipe: attention, which has no weights, goes to a rank of its own for each micro-batch.
// SPDX-License-Identifier: Apache-2.0
//
// A model of L layers is cut into 2L + 1 stages. Even ones, P(k), have the weights: what follows
// the attention of layer k - 1, and what comes before that of layer k. They lie on ranks in a loop,
// P(k) on rank k mod p. Odd ones, A(k), are the attention of layer k alone. Of p micro-batches that
// pass together, that at place d has A(k) on rank (k + d + 1) mod p, so that p ranks make the
// attention of p micro-batches at a time. In the schedule each place is a copy of the model; only
// the first copy keeps the weights of an even stage, as all copies have it on one rank.
//
// A place may hold several micro-batches (`folds`), which a rank takes one behind the other, so
// that messages of one travel beside the kernels of another. p * folds micro-batches are a round.
// All rounds go forward before the first goes back, and backwards are the forwards in reverse:
// first in, last out.
//
// Example: 2 ranks, 1 fold, 2 layers, 2 micro-batches; digits are stages, then micro-batches (and
// their places):
//   rank 0: 0F0 0F1 1F1 3F0 4F0 4F1  4B1 4B0 3B0 1B1 0B1 0B0  0U 4U
//   rank 1: 1F0 2F0 2F1 3F1  3B1 2B1 2B0 1B0  2U
// Rank 1 begins when the first rank has made what comes before the attention. Of one fold, ranks
// wait for p - 1 stages with weights of one layer, where 1F1B's wait for p - 1 times all layers of
// a rank, attention included; of f folds, for up to f times that.
//
// Source: Zhang et al., HelixPipe, arXiv 2507.00394, and the authors' attn_pipe_schedule.py
// (code-tunnel/Megatron-LM, branch dev).
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

/// Writes the forwards of one rank, in order.
class HelixForwards {
 public:
  HelixForwards(const ScheduleInputs& inputs, int ranks, int rank)
      : inputs_(inputs),
        ranks_(ranks),
        rank_(rank),
        stages_(inputs.stages / ranks),
        turns_((stages_ - 1) / 2 / ranks),
        rounds_(inputs.micro_batches / (ranks * inputs.policy.folds)) {}

  std::vector<Op> take() {
    if (ranks_ == 1) {  // attention is where it would be anyway
      for (int micro_batch = 0; micro_batch < inputs_.micro_batches; ++micro_batch) {
        for (int stage = 0; stage < stages_; ++stage) {
          ops_.push_back(global_op(inputs_, OpKind::F, stage, micro_batch));
        }
      }
      return std::move(ops_);
    }
    if (rank_ == 0) add_weighted(0, 0, 0);
    for (int round = 0; round < rounds_; ++round) {
      for (int turn = 0; turn <= turns_; ++turn) add_turn(round, turn);
    }
    for (int place = 1; rank_ == 0 && place < ranks_; ++place) {
      add_weighted(rounds_ - 1, last_layer(), place);
    }
    return std::move(ops_);
  }

 private:
  int last_layer() const { return turns_ * ranks_; }

  /// Adds the attention that a turn of the rank begins with, of the micro-batches that came first
  /// at last, then its stage with weights. The last turn has no such stage but on the first rank.
  void add_turn(int round, int turn) {
    const int weighted = turn * ranks_ + rank_;
    for (int place = ranks_ - 2; place >= 0; --place) {
      const int layer = weighted - 1 - place;
      if (layer < 0 || layer >= last_layer()) continue;
      for (int fold = 0; fold < inputs_.policy.folds; ++fold) {
        add(round, 2 * layer + 1, place, fold);
        if (place == 0 && weighted <= last_layer()) add(round, 2 * weighted, place, fold);
        if (weighted == last_layer() && place == 0 && round + 1 < rounds_)
          add(round + 1, 0, place, fold);
      }
    }
    if (weighted >= last_layer()) return;
    for (int place = 1; place < ranks_; ++place) {
      for (int fold = 0; fold < inputs_.policy.folds; ++fold) {
        if (weighted == 0 && round > 0) add(round - 1, 2 * last_layer(), place, fold);
        add(round, 2 * weighted, place, fold);
        if (place == ranks_ - 1) add(round, 2 * weighted + 1, place, fold);
      }
    }
  }

  void add_weighted(int round, int layer, int place) {
    for (int fold = 0; fold < inputs_.policy.folds; ++fold) add(round, 2 * layer, place, fold);
  }

  void add(int round, int stage, int place, int fold) {
    const int micro_batch = (round * ranks_ + place) * inputs_.policy.folds + fold;
    ops_.push_back(global_op(inputs_, OpKind::F, place * stages_ + stage, micro_batch));
  }

  const ScheduleInputs& inputs_;
  int ranks_, rank_, stages_, turns_, rounds_;
  std::vector<Op> ops_;
};

Schedule make_helixpipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const int ranks = rank_count(inputs), stages = inputs.stages / inputs.copies;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Op> forwards = HelixForwards(inputs, ranks, rank).take();
    Run step{.ops = forwards};
    for (auto op = forwards.rbegin(); op != forwards.rend(); ++op) {
      append_backward(step.ops, inputs, op->stage, op->micro_batch);
    }
    for (int stage = 2 * rank; stage < stages; stage += 2 * ranks) {
      step.ops.push_back(global_op(inputs, OpKind::U, stage, inputs.micro_batches - 1));
    }
    schedule.ranks[rank] = {{{step}, inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

/// Returns the idle share of one fold, where half of the time is attention: p - 1 stages with
/// weights, of a layer each, are idle in either direction.
constexpr double helix_bubble(const PipelineShape& shape) {
  return formulas::share((shape.devices - 1) / 2.0, shape.micro_batches);
}

std::string helixpipe_problem(const ScheduleShape& shape) {
  const int layers = (shape.stages - 1) / 2;
  if (layers % shape.ranks != 0) {
    return "gives each rank equally many layers; expected a multiple of " +
           std::to_string(shape.ranks) + " layers, got " + std::to_string(layers);
  }
  const int round = shape.ranks * shape.folds;
  if (shape.micro_batches % round == 0) return "";
  return "takes micro-batches in rounds of " + std::to_string(shape.folds) +
         " for each rank; expected a multiple of " + std::to_string(round) +
         " micro-batches, or other \"folds\", got " + std::to_string(shape.micro_batches);
}

}  // namespace

ScheduleEntry schedules::helixpipe() {
  return {.name = "helixpipe",
          .flushes = true,
          .layout = StageLayout::Helix,
          .summary = "attention of each micro-batch on a rank of its own, first in, last out",
          .source = "Zhang et al., HelixPipe, arXiv 2507.00394",
          .make = make_helixpipe,
          .problem = helixpipe_problem,
          .bubble = {"(p - 1) / (2m + p - 1), of 1 fold", helix_bubble},
          .stashed = formulas::kAll};
}

}  // namespace interlock
