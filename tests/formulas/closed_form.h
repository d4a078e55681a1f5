// Closed forms: what a training run must cost, worked out by hand, to judge the simulator by.
// SPDX-License-Identifier: Apache-2.0
//
// An oracle must not share code with what it judges, so nothing here knows sim/: stages are
// numbered 1..K as in the papers and a chain of them is described by its durations alone. Letters:
// f forward, bi and bw input and weight half of the backward, B = bi + bw, a auxiliary head
// (forward, loss and backward to the stage's output), o optimiser update, c one transfer over a
// boundary, N how many stages a loss trains (N = 1 is local training), M micro-batches, S bytes of
// a boundary tensor. "Period" is the time between two batches of the steady state, one micro-batch
// a batch and one batch in flight on a stage. Derivations assume that unneeded input
// gradients are computed; subtract bi from B of the stage that saves one.
//
// Queues: unless a row says more it holds for queues of one message, of several and of any number.
// In a rendezvous the sender stands for as long as its message would wait at the receiver, so far
// as the receiver knows when it will come: it knows that when it begins its row of computations
// before the take. Where a row of the table is said to hold in a rendezvous for c up to some work,
// that work is such a row, the one before a stage takes its next activation: a sender that has c of
// warning is let go in time. Beyond it, inner stages hold each other up and the period is longer.
#pragma once

#include <vector>

#include "base/units.h"

namespace interlock {

/// Durations of one stage for one micro-batch.
struct StageTimes {
  Seconds forward, backward_input, backward_weight, head, update;
  Seconds backward() const { return backward_input + backward_weight; }
  /// Everything the stage computes when it trains itself and pushes `extra` more gradients down.
  Seconds work(bool has_head, int extra_traversals) const;
};

/// K equal stages in a row, joined by equal transfers of constant duration.
struct EqualChain {
  int stages = 1;
  StageTimes stage;
  Seconds transfer;
};

// Global training

/// K(f + B) + o + 2(K - 1)c. One chain of dependencies runs up through all stages and down again.
Seconds naive_period(const EqualChain& chain);

/// K f + (K - 1) bi + B + o + 2(K - 1)c. As naive, but each stage above the first sends its input
/// gradient before it makes its weight gradients, which then hide behind the stages below.
Seconds naive_split_period(const EqualChain& chain);

/// (M + K - 1)(f + B) + o, for GPipe and for 1F1B with a flush, when c = 0. GPipe with transfers
/// adds 2(K - 1)c as long as a tensor leaves the wire before the next one is made
/// (occupancy <= min(f, B)); the last stage then never waits between micro-batches.
/// Source: GPipe (arXiv 1811.06965), section 2.3; PipeDream-Flush (arXiv 2104.04473), section 2.2.
Seconds flushed_step(const EqualChain& chain, int micro_batches);

/// (K - 1) / (M + K - 1): the idle share of flushed_step when c = o = 0.
double flushed_bubble_fraction(int stages, int micro_batches);

// Local and interlocking training

/// f + a + B + o for K >= 2: a stage waits for no stage above it, so the dearest stage, one with a
/// head, sets the pace. A queue of one message carries no more than one per c, as one on the way is
/// untaken, so there the period is no less than c (longer queues have no such bound). Holds in a
/// rendezvous for c <= a + B + o. Copies that need the compute streams of both sides add 2c: an
/// inner stage is party to the copy into it and to the copy out of it (with K = 2 no stage is, and
/// c is added).
Seconds local_period(const EqualChain& chain, bool copies_block_compute);

/// N f + a + (N - 1) bi + B + o + 2(N - 1)c for 1 <= N < K; naive_split_period for N = K, where
/// the only loss is the true one. Stage i cannot start a batch before it has updated on the last;
/// that update waits for forward through the stages up to loss i + N - 1, its head, and the input
/// gradients on the way down. N = 1 is local_period. Holds in a rendezvous for c <= B + o or
/// N >= K - 1, with minimal heads.
Seconds eager_period(const EqualChain& chain, int n_wise);

/// Pairwise training as its authors shipped it: fused backward, a head on every stage but the last.
/// K >= 3: 2f + max(a + bi, B) + B + o + 2c, where the B in the maximum is the last stage's, which
/// cannot send before its fused backward ends. K = 2: the last stage's loop, 2f + 2B + o + 2c, as
/// long as a <= f + B + 2c; else the first one's own, f + a + B + o, whose head trains no other
/// stage. Holds in a rendezvous for K <= 3 and for c <= max(B, 2B - a - bi) + o. Source:
/// github.com/oscarkey/interlocking-backprop, components.py.
Seconds shipped_pairwise_period(const EqualChain& chain);

/// K(f + B) + bi * sum over i < K of (k_i - 1) + o + 2(K - 1)c with k_i = min(N, K - i + 1), the
/// number of gradients pushed through stage i: a stage waits for the whole list of the one above
/// before it starts on its own, so all stages stand in one row. Holds for N >= 2 and
/// a <= f + B + 2c, where the heads hide in the wait for the list; in a rendezvous for any c.
/// Source: github.com/oscarkey/interlocking-backprop, components.py, the N-wise class.
Seconds list_period(const EqualChain& chain, int n_wise);

/// list_period where a message of n tensors takes latency + n * occupancy:
/// transfers (K - 1)(latency + occupancy) + sum over i = 2..K of latency + min(N - 1, k_i) *
/// occupancy in place of 2(K - 1)c. `chain.transfer` is not used.
Seconds list_period_with_bandwidth(const EqualChain& chain, int n_wise, Seconds latency,
                                   Seconds occupancy);

/// M(P - o) + o: M micro-batches one at a time, updated once at the end, where `period` is P.
Seconds accumulated_step(Seconds period, Seconds update, int micro_batches);

/// max over i of sum_{m=i..J} f_m + a_J [J < K] + sum_{m=i+1..J} bi_m + B_i + o_i + 2(J - i)c with
/// J = min(i + N - 1, K): no eager run of unequal stages has a shorter period, for each stage's
/// batch must go round its own loop. Equal stages meet it; unequal ones may not, as loops disturb
/// each other's devices. `transfers[i]` joins stages i + 1 and i + 2 in the numbering above.
Seconds loop_bound(const std::vector<StageTimes>& stages, const std::vector<Seconds>& transfers,
                   int n_wise);
/// Returns the same where stage i waits for the loss of stage losses[i - 1].
Seconds loop_bound(const std::vector<StageTimes>& stages, const std::vector<Seconds>& transfers,
                   const std::vector<int>& losses);

/// The busiest stage's work per batch, minimal heads: a bound however many batches are in flight.
/// Equal stages with two in flight meet it with N = 1, and in most cases with N = 2, but not in
/// all: of random costs the worst took 1.15 times it without transfers, 1.32 times with.
Seconds busiest_stage(const std::vector<StageTimes>& stages, int n_wise);

// Who does what, minimal form: only heads and gradients that train main weights

/// Returns whether stage `stage` owns a head that is used: N <= stage < K.
bool needs_head(int stages, int n_wise, int stage);
/// Gradients that stage `stage` pushes down before the one that trains it. In all stages together
/// (K - N)(N - 1).
int extra_traversals(int stages, int n_wise, int stage);
/// Tensors that stage `stage` >= 2 sends down per batch: losses j >= stage, j <= K that train a
/// stage below, so stage <= j <= stage + N - 2, and j >= N unless j = K.
int gradient_tensors(int stages, int n_wise, int stage);
/// Returns the number with a head on every stage, unused gradients included: min(N - 1, k_i).
int shipped_gradient_tensors(int stages, int n_wise, int stage);

// Memory: micro-batches whose activations stage `stage` holds at its peak

int gpipe_stash(int micro_batches);                               // M
int one_f_one_b_stash(int stages, int micro_batches, int stage);  // min(K - i + 1, M)
inline constexpr int kOneAtATimeStash = 1;  // naive, local, interlocking with one in flight

// Utilisation of an inner stage of an eager run, o = c = 0

/// (f + a + (N - 1) bi + B) / P.
double eager_busy(const EqualChain& chain, int n_wise);
/// (f + B) / P: no heads, no gradients for others.
double eager_useful(const EqualChain& chain, int n_wise);

}  // namespace interlock
