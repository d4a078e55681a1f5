// Closed forms: what a training run must cost, worked out by hand, to judge the simulator by.
// SPDX-License-Identifier: Apache-2.0
#include "tests/formulas/closed_form.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

/// The stage whose loss trains `stage`.
int furthest_loss(int stages, int n_wise, int stage) {
  return std::min(stage + n_wise - 1, stages);
}

/// k_i: gradients pushed through `stage` when every stage has a head.
int gradients_through(int stages, int n_wise, int stage) {
  return std::min(n_wise, stages - stage + 1);
}

/// K(f + B) + bi * sum (k_i - 1) + o: the list form without its transfers.
Seconds list_work(const EqualChain& chain, int n_wise) {
  CHECK(n_wise >= 2, "the list form passes gradients on");
  const StageTimes& s = chain.stage;
  Seconds sum = chain.stages * (s.forward + s.backward()) + s.update;
  for (int i = 1; i < chain.stages; ++i) {
    sum += (gradients_through(chain.stages, n_wise, i) - 1) * s.backward_input;
  }
  return sum;
}

}  // namespace

Seconds StageTimes::work(bool has_head, int extra_traversals) const {
  return forward + (has_head ? head : Seconds()) + extra_traversals * backward_input + backward() +
         update;
}

Seconds naive_period(const EqualChain& chain) {
  const StageTimes& s = chain.stage;
  return chain.stages * (s.forward + s.backward()) + s.update +
         2 * (chain.stages - 1) * chain.transfer;
}

Seconds naive_split_period(const EqualChain& chain) {
  const StageTimes& s = chain.stage;
  return chain.stages * s.forward + (chain.stages - 1) * s.backward_input + s.backward() +
         s.update + 2 * (chain.stages - 1) * chain.transfer;
}

Seconds flushed_step(const EqualChain& chain, int micro_batches) {
  const StageTimes& s = chain.stage;
  return (micro_batches + chain.stages - 1) * (s.forward + s.backward()) + s.update +
         2 * (chain.stages - 1) * chain.transfer;
}

double flushed_bubble_fraction(int stages, int micro_batches) {
  return (stages - 1.0) / (micro_batches + stages - 1.0);
}

Seconds local_period(const EqualChain& chain, bool copies_block_compute) {
  CHECK(chain.stages >= 2, "a single stage has no head");
  const int copies = copies_block_compute ? std::min(chain.stages - 1, 2) : 0;
  return std::max(chain.stage.work(true, 0) + copies * chain.transfer, chain.transfer);
}

Seconds eager_period(const EqualChain& chain, int n_wise) {
  CHECK(n_wise >= 1 && n_wise <= chain.stages, "a loss trains between 1 and all stages");
  if (n_wise == chain.stages) return naive_split_period(chain);
  if (n_wise == 1) return local_period(chain, false);
  const StageTimes& s = chain.stage;
  return n_wise * s.forward + s.head + (n_wise - 1) * s.backward_input + s.backward() + s.update +
         2 * (n_wise - 1) * chain.transfer;
}

Seconds shipped_pairwise_period(const EqualChain& chain) {
  CHECK(chain.stages >= 2, "pairs need two stages");
  const StageTimes& s = chain.stage;
  const Seconds last = 2 * s.forward + 2 * s.backward() + s.update + 2 * chain.transfer;
  if (chain.stages == 2) return std::max(last, s.work(true, 0));
  return std::max(last, last - s.backward() + s.head + s.backward_input);
}

Seconds list_period(const EqualChain& chain, int n_wise) {
  return list_work(chain, n_wise) + 2 * (chain.stages - 1) * chain.transfer;
}

Seconds list_period_with_bandwidth(const EqualChain& chain, int n_wise, Seconds latency,
                                   Seconds occupancy) {
  Seconds sum = list_work(chain, n_wise) + (chain.stages - 1) * (latency + occupancy);
  for (int i = 2; i <= chain.stages; ++i) {
    sum += latency + shipped_gradient_tensors(chain.stages, n_wise, i) * occupancy;
  }
  return sum;
}

Seconds accumulated_step(Seconds period, Seconds update, int micro_batches) {
  return micro_batches * (period - update) + update;
}

Seconds loop_bound(const std::vector<StageTimes>& stages, const std::vector<Seconds>& transfers,
                   int n_wise) {
  const int count = static_cast<int>(stages.size());
  std::vector<int> losses;
  for (int i = 1; i <= count; ++i) losses.push_back(furthest_loss(count, n_wise, i));
  return loop_bound(stages, transfers, losses);
}

Seconds loop_bound(const std::vector<StageTimes>& stages, const std::vector<Seconds>& transfers,
                   const std::vector<int>& losses) {
  const int count = static_cast<int>(stages.size());
  CHECK(transfers.size() + 1 == stages.size(), "one transfer for each boundary");
  Seconds bound;
  for (int i = 1; i <= count; ++i) {
    const int loss = losses[i - 1];
    Seconds loop = stages[i - 1].backward_weight + stages[i - 1].update;
    if (loss < count) loop += stages[loss - 1].head;
    for (int m = i; m <= loss; ++m) loop += stages[m - 1].forward + stages[m - 1].backward_input;
    for (int m = i; m < loss; ++m) loop += 2 * transfers[m - 1];
    bound = std::max(bound, loop);
  }
  return bound;
}

Seconds busiest_stage(const std::vector<StageTimes>& stages, int n_wise) {
  const int count = static_cast<int>(stages.size());
  Seconds busiest;
  for (int i = 1; i <= count; ++i) {
    busiest = std::max(busiest, stages[i - 1].work(needs_head(count, n_wise, i),
                                                   extra_traversals(count, n_wise, i)));
  }
  return busiest;
}

bool needs_head(int stages, int n_wise, int stage) { return n_wise <= stage && stage < stages; }

int extra_traversals(int stages, int n_wise, int stage) {
  int extra = 0;
  for (int loss = stage; loss < furthest_loss(stages, n_wise, stage); ++loss) {
    extra += needs_head(stages, n_wise, loss) ? 1 : 0;
  }
  return extra;
}

int gradient_tensors(int stages, int n_wise, int stage) {
  int tensors = 0;
  for (int loss = stage; loss <= std::min(stage + n_wise - 2, stages); ++loss) {
    tensors += loss == stages || needs_head(stages, n_wise, loss) ? 1 : 0;
  }
  return tensors;
}

int shipped_gradient_tensors(int stages, int n_wise, int stage) {
  return std::min(n_wise - 1, gradients_through(stages, n_wise, stage));
}

int gpipe_stash(int micro_batches) { return micro_batches; }

int one_f_one_b_stash(int stages, int micro_batches, int stage) {
  return std::min(stages - stage + 1, micro_batches);
}

double eager_busy(const EqualChain& chain, int n_wise) {
  return chain.stage.work(true, n_wise - 1) / eager_period(chain, n_wise);
}

double eager_useful(const EqualChain& chain, int n_wise) {
  return (chain.stage.forward + chain.stage.backward()) / eager_period(chain, n_wise);
}

}  // namespace interlock
