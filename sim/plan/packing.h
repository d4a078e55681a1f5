// Packing: samples filled with documents, whose lengths are drawn.
// SPDX-License-Identifier: Apache-2.0
//
// A sample of 8192 tokens begins with a document, the next one follows it, and so on; the last one
// is cut where the sample ends. Tokens see those of their own document alone, so that a sample of
// many short ones takes less attention than one long one, and no less of anything else.
//
// Example: documents of 6000 tokens make {6000, 2192}, so 40.8 M pairs of tokens in place of 67.1.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "models/layers/model_graph.h"

namespace interlock {

/// Lengths in tokens.
struct DocumentLengths {
  std::vector<double> known;    // each as likely; empty: log-normal
  double mean = 1, spread = 0;  // spread: standard deviation over mean
};

/// Names a micro-batch: one of those that groups of replicas read at the same time, and its number
/// in the run.
struct PackedBatch {
  int group = 0, micro_batch = 0;
};

class DocumentDraws {
 public:
  /// REQUIRES: tokens, samples > 0.
  DocumentDraws(DocumentLengths lengths, int tokens, int samples);

  /// Returns the documents of the samples of `batch` under `seed`, counted for one sample.
  Documents of(std::uint64_t seed, const PackedBatch& batch) const;
  /// Returns what samples have on average: a thousand of them, or as many as 300,000 documents
  /// fill.
  Documents mean(std::uint64_t seed) const;

 private:
  double drawn_length(Random& random) const;
  /// Adds the lengths of a sample.
  void add(std::uint64_t seed, std::uint64_t stream, std::vector<int>& lengths) const;

  DocumentLengths lengths_;
  int tokens_ = 1, samples_ = 1;
  double deviation_ = 0, shift_ = 0;  // of a length's logarithm
};

/// Returns the pairs of tokens that see each other or would but for a mask, of one sample.
double pairs_of(const Documents& documents);

/// Returns `graph` for samples of `documents`. REQUIRES: it can be packed.
ModelGraph packed_graph(const ModelGraph& graph, const Documents& documents);

}  // namespace interlock
