// Data sets: where the micro-batches of a training run come from.
// SPDX-License-Identifier: Apache-2.0
//
// A micro-batch is a function of the seed and its number, so that every strategy sees the same
// samples in the same order, whichever thread asks first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "validate/network/job.h"

namespace interlock {

using BatchSource = std::function<Batch(int micro_batch)>;

/// Returns the bytes of `text` as tokens: each sample is a stretch of it from a random place, its
/// targets the bytes that follow. Throws: Error if `text`, the contents of `file`, is shorter than
/// a sample and its last target, or `network` does not know 256 tokens. REQUIRES: samples are
/// tokens.
BatchSource text_batches(std::string text, const std::string& file, const NeuralNetwork& network,
                         std::uint64_t seed);

/// Returns samples that a classifier can learn. Vectors: standard normal, the class is what a small
/// random network says of them. Images: a pattern of three waves for each class, under as much
/// noise. REQUIRES: samples are vectors or images.
BatchSource generated_batches(const NeuralNetwork& network, std::uint64_t seed);

}  // namespace interlock
