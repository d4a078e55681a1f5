// Schedule: the order in which each rank computes. Compute only; lowering adds communication.
// SPDX-License-Identifier: Apache-2.0
//
// A rank has one sequence (a fixed order) or several, of which it runs, whenever it is free, the
// first that is ready by priority: F, H, R, I, B, W, U, then the nearer loss, then the older
// micro-batch. Sequences are written as runs: a short body repeated while the micro-batch advances,
// so that a schedule of millions of ops takes a few lines of memory. Micro-batches are numbered
// through the whole run; step n holds [n * M, (n + 1) * M).
//
// Example: 1F1B of two stages and M = 4 micro-batches. Rank 0 has one sequence, repeats = steps and
// stride 4, of the runs 1 x { F0 }, 3 x { F1 B0 }, 1 x { B3 }, 1 x { U3 }: in the first step
// F0 F1 B0 F2 B1 F3 B2 B3 U3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace interlock {

/// Op letters: PyTorch's F, B (full backward), I (input half), W (weight half), R (recompute), and
/// ours: H (auxiliary head), U (optimiser update). The order is the order of priority. Where the
/// vocabulary is divided, see VocabularySplit: S and T of the readout; E and G, the forward of the
/// embedding and its gradients. Their stage is one of the rank that runs them.
enum class OpKind : std::uint8_t { F, H, R, I, B, W, U, S, T, E, G };
inline constexpr int kOpKinds = 11;
char letter(OpKind kind);
inline bool of_vocabulary(OpKind kind) { return kind >= OpKind::S; }

/// Says who holds the vocabulary. Whole: the first stage the embedding, the last the readout. Else
/// every pipeline rank holds an equal part of both. Of a micro-batch, S makes logits of the part
/// when the last stage has broadcast its output. TwoBarriers: their largest and their sum are
/// reduced among ranks, then T makes gradients of input and weights, and the first of these is
/// reduced for the last stage's backward. OneBarrier: S makes the gradient of the input, too, which
/// is reduced and corrected with the sums, so that T is needed by no backward.
/// Source: Yeung et al., arXiv 2411.05288, algorithms 1 and 2.
enum class VocabularySplit : std::uint8_t { Whole, TwoBarriers, OneBarrier };

/// Says how a rank starts its messages. Free: each leaves as soon as it is made. Rank: sends and
/// receives stand in one line, and each begins when the one before it is done, as on the one stream
/// of a communicator; Pair: likewise, with a line for each other rank. A transfer needs both ends.
/// Batched: those of a line that stand side by side begin together. Late: a receive stands before
/// the op that reads it; early: behind what its rank has done when the message is made, see
/// sim/plan/orders/message_order.h.
/// Source: torch/distributed/pipelining/schedules.py (PyTorch), p2p_communication.py (Megatron).
struct MessageOrder {
  enum class Lines { Free, Rank, Pair };
  Lines lines = Lines::Free;
  bool batched = false, late = false;
  bool operator==(const MessageOrder&) const = default;
};

/// Says which attention the rank of an op makes for another op: that of the other's tokens to
/// `slices` of the slices before them. Negative: the other makes as much for this one. `stage` and
/// `micro_batch` are those of the other op less those of this one. See sliced/slim_pipe.cc.
/// Example: {-1, 3, -3} of 0F7: 3F4 makes the attention of slice 7 on stage 0 to one slice.
struct ContextTrade {
  int slices = 0, stage = 0, micro_batch = 0;
  auto operator<=>(const ContextTrade&) const = default;
};

/// One compute op: `kind` of `stage` for `micro_batch`, by the gradient of `loss`.
struct Op {
  OpKind kind = OpKind::F;
  int stage = 0;
  int micro_batch = 0;
  int loss = 0;                // I, B and W: the loss whose gradient is used; else the stage itself
  bool overlaps_next = false;  // runs as one with the op that follows it in its run
  bool completes = false;      // the gradients of its stage are complete with it, see below
  bool defers = false;         // a B without the readout's weight gradients; a W with these alone
  ContextTrade trade = {};
  bool operator==(const Op&) const = default;
};

/// `ops`, then the same with every micro-batch `stride` later, `repeats` times in all.
struct Run {
  std::vector<Op> ops;
  int repeats = 1;
  int stride = 1;
};

/// Runs in order. Those between the first `lead` and the last `tail` are a loop of `repeats` turns,
/// each with micro-batches `stride` later; lead and tail run once, with micro-batches as written.
struct Sequence {
  std::vector<Run> runs;
  int repeats = 1;
  int stride = 0;
  int lead = 0, tail = 0;
};

/// How a schedule lays stages on ranks. Any: as the scenario says. Loop: 0, 1, 2, 0, 1, 2, ...; V:
/// 0, 1, 2, 2, 1, 0, ...; Mirrored, MirroredV: one each, or a V, and a second copy in reverse;
/// Ring: a copy of all stages on each rank, whose weights come by; Helix: see helixpipe.cc.
enum class StageLayout { Any, OneEach, Loop, V, Mirrored, MirroredV, Ring, Helix };
constexpr bool has_copies(StageLayout of) { return of >= StageLayout::Mirrored; }
constexpr bool has_mirror(StageLayout of) { return has_copies(of) && of < StageLayout::Ring; }
constexpr bool has_v(StageLayout of) {
  return of == StageLayout::V || of == StageLayout::MirroredV;
}

/// Replicas that are simulated one by one have stages and ranks of their own, as copies have.
/// Stages are counted over all copies of the model: copy c of a model of S stages has stages
/// [c * S, (c + 1) * S), and a micro-batch goes through one copy. With token slices a micro-batch
/// of this schedule is one slice: number b is slice b % slices of its sequence. Where the
/// micro-batches of a step differ in size (`slice_counts`), slices are those of the whole step.
struct Schedule {
  int stages = 1;
  int copies = 1;                 // of one replica; divides stages
  int replicas = 1;               // divides stages and ranks
  int slices = 1;                 // divides micro_batches
  int micro_batches = 1;          // M, of one step
  std::vector<int> slice_counts;  // slices of each micro-batch, where they differ
  int steps = 1;
  int pattern = 1;      // micro-batches after which the order of work repeats
  int version_lag = 0;  // updates that weights are behind, whatever the order
  int ahead = 0;        // forwards that may come before an earlier backward, across steps
  std::vector<int> rank_of_stage;            // (stages)
  std::vector<int> weight_versions;          // (stages) kept besides the newest; empty: none
  std::vector<std::vector<Sequence>> ranks;  // (ranks, sequences)
};

/// Sets `completes` of the last op before each update that makes gradients of its stage, in its own
/// sequence. Runs are parted where only their last turn is meant.
void mark_last_backwards(Schedule& schedule);

/// Takes the weight gradients of the readout out of the backwards of the last stage that belong to
/// the first `micro_batches` of each step, and makes them in W ops before the update of that rank.
/// REQUIRES: global training, of a policy without deferral_problem().
///
/// Example: F0 B0 F1 B1 F2 B2 U2 of the last of some stages, 2 micro-batches: B0 and B1 are
/// shorter, and the order is F0 B0 F1 B1 F2 B2 W0 W1 U2.
void defer_readout(Schedule& schedule, int micro_batches);
struct SchedulePolicy;
/// Says why no readout can be put off under `policy`, as "...; expected ..."; empty if one can.
std::string deferral_problem(const SchedulePolicy& policy);
/// Says likewise why no vocabulary can be divided among ranks.
std::string vocabulary_problem(const SchedulePolicy& policy);
/// Say likewise why messages of ranks cannot stand in lines, and why their receives cannot be late.
std::string message_problem(const SchedulePolicy& policy);
std::string late_problem(const SchedulePolicy& policy);

/// Splits run `run` of `sequence` into its first `turns` turns and the others. REQUIRES: 0 < turns
/// < its repeats.
void split_turns(Sequence& sequence, std::size_t run, int turns);

/// Returns the ops of `sequence` in order, expanded. For text, checks and tests, not for engines.
std::vector<Op> expand(const Sequence& sequence);

}  // namespace interlock
