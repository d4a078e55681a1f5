// Denoising: what the stages of an independent training read, and the loss of the chain of them.
// SPDX-License-Identifier: Apache-2.0
//
// Every stage learns to tell the target from the batch and from a noisy copy of the target: z = e +
// s n, where e is a vector of length 1 for each class, n normal noise and s the level of the stage.
// The first stage has no such copy, as if s were without bound. Run in order, the stages are a
// chain that begins from noise alone and denoises once in each stage. Stages exchange nothing while
// they learn: each makes its z from the true target. Source: DiffusionBlocks, arXiv 2506.14202; the
// differences are told in docs/training.md.
//
// A stage behind the first has no layers that read the batch. The first half of the columns of its
// input is the batch under frozen random weights: a feature times a row of a matrix, or a row for
// the token plus one for its place. The second half is z, scaled to a variance of 1.
//
// Example: four stages have the levels -, 1.62, 1 and 0.62, or by the cosine schedule -, 2.44, 1.01
// and 0.42. A block of width 64 reads 32 columns of the batch, then 32 of z.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/network/job.h"

namespace interlock {

/// Returns the level of noise of a stage of the model, highest first. LogNormal: exp(x), x the
/// median of the stage's share of a normal distribution of mean 0 and deviation 1/2 that is cut
/// into stages - 1 shares of equal probability. Cosine: sqrt(1 / a - 1), where a, the share of the
/// variance that is signal, is f(1 - stage / stages) / f(0), f(x) = cos^2(pi / 2 (x + 0.008) /
/// 1.008). Source: Nichol and Dhariwal, arXiv 2102.09672, which NoProp-DT takes over (arXiv
/// 2503.24322); the offset, which NoProp does not tell, is theirs. REQUIRES: 1 <= stage < stages.
double noise_level(NoiseSchedule schedule, int stage, int stages);

/// Returns why stages of `job` cannot be blocks of a chain; empty if they can.
/// `columns`: of the input of each stage.
std::string why_no_chain(const Job& job, const std::vector<int>& columns);

/// The part of a stage of the model in the chain.
class Denoising {
 public:
  /// `columns`: of the input of every stage but the first.
  Denoising(const Job& job, int stage, int columns);

  /// Returns the input of the stage, row by row, for batch `number`. REQUIRES: stage >= 1.
  std::vector<double> input(const Batch& batch, int number) const;

  /// Returns what the stage adds to the loss of the chain, in nats, given the scores (rows,
  /// classes) of its loss: of the last stage, its cross-entropy; of another, half the growth of 1 /
  /// level^2 up to the next stage times the mean squared distance between e and its expected value.
  /// The sum over stages bounds -log of the probability of the target from above. Source: Kingma
  /// et al., Variational Diffusion Models, arXiv 2107.00630, the bound in discrete time.
  double term(const std::vector<double>& scores, const std::vector<std::int32_t>& targets) const;

  /// Returns the vector e of every class, one after the other.
  const std::vector<double>& targets() const { return targets_; }

 private:
  const Job& job_;
  int stage_, stages_;
  int of_batch_, of_target_;  // columns
  std::vector<double> targets_, batch_, places_;
};

}  // namespace interlock
