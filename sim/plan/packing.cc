// Draws documents until a sample is full.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/packing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/draws.h"
#include "base/error.h"

namespace interlock {
namespace {

constexpr int kSamplesOfMean = 1000;
constexpr std::uint64_t kBatchStream = 0x7ac6ed, kMeanStream = 0x3ea4;  // of random numbers

double drawn_length(const DocumentLengths& lengths, Random& random) {
  if (!lengths.known.empty()) {
    const int last = static_cast<int>(lengths.known.size()) - 1;
    return lengths.known[static_cast<std::size_t>(random.integer(0, last))];
  }
  const double variance = std::log1p(lengths.spread * lengths.spread);
  return lengths.mean * std::exp(std::sqrt(variance) * draw_normal(random) - variance / 2);
}

/// Puts documents of one length together.
Documents merged(const Documents& documents) {
  std::map<int, double> counts;
  for (const Document& one : documents) counts[one.tokens] += one.count;
  Documents all;
  for (const auto& [tokens, count] : counts) all.push_back({tokens, count});
  return all;
}

}  // namespace

void DocumentDraws::add(std::uint64_t seed, std::uint64_t stream, double weight,
                        Documents& documents) const {
  Random random(seed, stream);
  for (int left = tokens_; left > 0;) {
    const double length = std::round(drawn_length(lengths_, random));
    const int tokens = static_cast<int>(std::clamp<double>(length, 1, left));
    documents.push_back({tokens, weight});
    left -= tokens;
  }
}

Documents DocumentDraws::of(std::uint64_t seed, const PackedBatch& batch) const {
  Documents documents;
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t group = mix64(kBatchStream ^ number(batch.group));
  for (int sample = 0; sample < samples_; ++sample) {
    const std::uint64_t stream = mix64(mix64(group ^ number(batch.micro_batch)) ^ number(sample));
    add(seed, stream, 1.0 / samples_, documents);
  }
  return merged(documents);
}

Documents DocumentDraws::mean(std::uint64_t seed) const {
  Documents documents;
  for (int sample = 0; sample < kSamplesOfMean; ++sample) {
    const auto number = static_cast<std::uint64_t>(sample);
    add(seed, mix64(kMeanStream ^ number), 1.0 / kSamplesOfMean, documents);
  }
  return merged(documents);
}

double pairs_of(const Documents& documents) {
  double pairs = 0;
  for (const Document& one : documents) {
    pairs += one.count * static_cast<double>(one.tokens) * one.tokens;
  }
  return pairs;
}

ModelGraph packed_graph(const ModelGraph& graph, const Documents& documents) {
  CHECK(graph.packed, "samples of the model can be packed");
  ModelGraph made = graph;
  made.modules = graph.packed(documents).modules;
  std::vector<Module>& modules = made.modules.edit();
  for (std::size_t i = 0; i < modules.size(); ++i) modules[i].head = graph.modules[i].head;
  made.slice = nullptr;
  return made;
}

}  // namespace interlock
