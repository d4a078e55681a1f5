// Strategy: which loss trains which stage, and which gradients therefore cross boundaries.
// SPDX-License-Identifier: Apache-2.0
//
// Stages are numbered 0..S-1; loss j is the loss at the output of stage j, and S-1 is the network's
// true loss. Weights of stage i are trained by its furthest reachable loss: S-1 for global
// training, i for local, min(i + N - 1, S - 1) for N-wise interlocking. Losses may each have an N
// of their own: the gradient of loss j crosses N_j - 1 boundaries. Modules of several stages have
// one loss each, at their end, and N counts modules. A gradient that only passes through a stage on
// its way down is a traversal without weight gradients. Source: Gomez et al., Interlocking
// Backpropagation, JMLR 23(171), 2022; Laskin et al., arXiv 2012.03837.
//
// Example: four stages, 2-wise. Stages 1 and 2 have heads. Stage 0 is trained by loss 1, stage 2 by
// loss 3; stage 1 takes two traversals, of its own loss 1 without weights, sent on to stage 0, and
// of loss 2 with weights. Loss 3, the network's own, trains stages 3 and 2. With N of 1, 2, 1 and 2
// for the losses 0 to 3, loss 1 trains stages 0 and 1, loss 3 stages 2 and 3; others have no head.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace interlock {

enum class StrategyKind {
  Global,
  Local,
  Interlocking,
  Greedy,
  Chunked,
  Overlapping,
  ForwardForward,
  BackLink,
  Tree,
  Independent,  // as Local, but every stage reads the batch itself and hands nothing on
  Inference,    // forward only: no loss is sent back, nothing is kept for it, no weight changes
};
/// How the gradients of several reachable losses become one.
enum class GradientMode { Furthest, Sum, Mean };

/// Bounds a search for the N of each loss, "n_wise": "auto".
struct SoughtReach {
  int least = 1;        // stages that each loss reaches at least, where there are as many
  double slowdown = 0;  // share by which a step may be longer than the shortest
  auto operator<=>(const SoughtReach&) const = default;
};

/// Formats of tensors that pass between ranks: as they are computed, or cast, with a scale of 4
/// bytes for each 128 elements (8-bit integers: each 4096).
enum class SentFormat { Computed, Fp8, Int8, Int4 };

/// How much noise lies over the target of each independent stage: see validate/network/denoising.h.
enum class NoiseSchedule { LogNormal, Cosine };

struct Strategy {
  StrategyKind kind = StrategyKind::Global;
  int n_wise = 2;         // Interlocking: modules that a loss reaches
  int module_stages = 1;  // Interlocking: stages of a module, whose last one has its loss
  GradientMode gradient = GradientMode::Furthest;  // Interlocking, Overlapping
  bool all_heads = false;                          // also heads that train no main weights
  bool skip_unneeded_input_gradients = false;
  int chunks = 1;                         // Chunked
  int arity = 2;                          // Tree: stages that read the output of one
  int linked_modules = 1;                 // BackLink: that the error of the stage above goes down
  bool recompute_shared_forward = false;  // Overlapping: both blocks run the shared layer
  int readout_every = 0;  // steps between broadcasts of the last stage's readout; 0: heads are own
  std::vector<int> n_of_losses;       // (stages) Interlocking; empty: n_wise for all
  std::optional<SoughtReach> sought;  // Interlocking: each N is yet to be chosen
  SentFormat activation_format = SentFormat::Computed, gradient_format = SentFormat::Computed;
  int gradient_every = 1;  // Interlocking, Chunked: micro-batches of which the last one's gradients
                           // cross boundaries; by others stages train for their own loss
  NoiseSchedule noise = NoiseSchedule::LogNormal;  // Independent
  bool module_gradients = false;  // ForwardForward: go back through a module to its first operator

  auto operator<=>(const Strategy&) const = default;
};

/// One gradient pushed backward through one stage.
struct Traversal {
  int loss = 0;
  bool weights = false;      // makes weight gradients: the last traversal of a stage, or all
  bool to_previous = false;  // its input gradient is needed by the stage below
  bool partial = false;      // goes through the last modules of the stage only (BackLink)
  bool operator==(const Traversal&) const = default;
};

/// The work of one stage on one micro-batch besides its forward.
struct StageRole {
  bool head = false;                  // owns an auxiliary head and runs it
  bool runs_next_part = false;        // also runs the forward of the part above (Overlapping)
  std::vector<Traversal> traversals;  // nearest loss first; none of Inference
  int summed_gradients = 0;           // tensor additions before the weight gradients (sum, mean)
  std::vector<int> only_added;        // losses whose gradient is added but passes no further
  int gradient_every = 1;             // see Strategy
  std::vector<StageRole> alone = {};  // one: for micro-batches whose gradients cross no boundary
  bool operator==(const StageRole&) const = default;

  /// Returns the role for `micro_batch`, counted through the run.
  const StageRole& of(int micro_batch) const {
    return (micro_batch + 1) % gradient_every == 0 ? *this : alone.front();
  }
};

/// Sets N of each loss of `strategy`, none more than reaches the first stage; `n_wise` alone if
/// that says the same. REQUIRES: a number of at least 1 for each stage.
void set_reach(Strategy& strategy, std::vector<int> n_of_losses);

/// Returns how many stages the loss of `stage` reaches under Interlocking, its own and those below;
/// 0 if the stage has none, as it does not end a module.
int reach_of(const Strategy& strategy, int stage);

/// Returns the furthest loss whose gradient trains each stage. REQUIRES: stages >= 1.
std::vector<int> furthest_losses(const Strategy& strategy, int stages);

/// Returns the role of every stage. `list_form` keeps the gradients that the authors' N-wise class
/// pushes through the first stages although nothing consumes them. REQUIRES: stages >= 1.
std::vector<StageRole> make_roles(const Strategy& strategy, int stages, bool list_form);

/// Returns the losses whose gradients come to `stage` right before that of `loss`, in the order of
/// the losses, and are only added there.
std::vector<int> added_before(const StageRole& role, int stage, int loss);

/// Returns `roles` for each of several copies of the model; losses of copy c are losses of its own
/// stages.
std::vector<StageRole> roles_of_copies(const std::vector<StageRole>& roles, int copies);

/// Returns the stage whose output `stage` reads, -1 for the first and for independent ones: the one
/// below, but in a tree its parent.
int stage_before(const Strategy& strategy, int stage);
/// Returns the stages that read the output of `stage`, in order.
std::vector<int> stages_after(const Strategy& strategy, int stage, int stages);

/// Returns the parts that the model is cut into: one a stage, but one more where neighbouring
/// blocks both run the part that they share.
int parts_of(const Strategy& strategy, int stages);

/// Names the losses that a schedule is made for: the last stage's; those of some stages (local and
/// the like); those that reach N stages; those whose gradients cross no boundary; all of these.
enum class Trains { Global, Partial, NWise, Local, Any };
/// Returns the word for people: "global", "local", "local, interlocking", "all".
const char* name_of(Trains trains);

/// Returns "global", "local", "3-wise", "pairwise of 4-stage modules", "1-2-1-2-wise", ...
std::string name_of(const Strategy& strategy);

/// Returns what follows the name where boundaries are crossed, or targets hidden, in other ways
/// than usual: ", 1 gradient in 4, activations in fp8", ", cosine noise".
std::string crossings_of(const Strategy& strategy);

}  // namespace interlock
