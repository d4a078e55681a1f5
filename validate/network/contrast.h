// Contrast: what forward-forward trains modules by: true samples beside false ones.
// SPDX-License-Identifier: Apache-2.0
//
// Every module but the last ends in a layer Goodness. The goodness of a row is its mean square; the
// module learns to have more than a threshold of it in true samples, and less in false ones, by a
// logistic loss. What it hands on has a mean square of 1 in each row, so that the next module does
// not find the answer there. Source: Hinton, The Forward-Forward Algorithm, arXiv 2212.13345; the
// differences are told in docs/training.md.
//
// Example: micro-batches of 8 samples become such of 16. Sample 8 is sample 0, in which about half
// of the tokens are others that occur in the micro-batch, and has no targets.
#pragma once

#include <cstdint>

#include "validate/network/job.h"
#include "validate/network/network.h"

namespace interlock {

inline constexpr double kGoodnessThreshold = 2;
inline constexpr std::int32_t kNoTarget = -1;  // of a row that no cross-entropy is made of

/// Returns `network` with the goodness of its modules, and as many false samples as true ones.
NeuralNetwork contrasted(NeuralNetwork network);

/// Returns why forward-forward cannot train `job`; empty if it can.
std::string why_no_contrast(const Job& job);

/// Appends as many false samples to the true ones of micro-batch `number`. REQUIRES: tokens.
void append_false_samples(Batch& batch, std::uint64_t seed, int number);

}  // namespace interlock
