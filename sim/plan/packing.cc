// Draws documents until a sample is full.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/packing.h"

#include <algorithm>
#include <cmath>

#include "base/draws.h"
#include "base/error.h"

namespace interlock {
namespace {

constexpr int kSamplesOfMean = 1000, kDocumentsOfMean = 300'000;  // at most, whichever is first
constexpr std::uint64_t kBatchStream = 0x7ac6ed, kMeanStream = 0x3ea4;  // of random numbers

/// Puts documents of one length together; each of `lengths` counts `weight`.
Documents merged(std::vector<int> lengths, double weight) {
  std::ranges::sort(lengths);
  Documents all;
  for (const int tokens : lengths) {
    if (all.empty() || all.back().tokens != tokens) all.push_back({tokens, 0});
    all.back().count += weight;
  }
  return all;
}

}  // namespace

DocumentDraws::DocumentDraws(DocumentLengths lengths, int tokens, int samples)
    : lengths_(std::move(lengths)), tokens_(tokens), samples_(samples) {
  const double variance = std::log1p(lengths_.spread * lengths_.spread);
  deviation_ = std::sqrt(variance);
  shift_ = variance / 2;
}

double DocumentDraws::drawn_length(Random& random) const {
  if (!lengths_.known.empty()) {
    const int last = static_cast<int>(lengths_.known.size()) - 1;
    return lengths_.known[static_cast<std::size_t>(random.integer(0, last))];
  }
  return lengths_.mean * std::exp(deviation_ * draw_normal(random) - shift_);
}

void DocumentDraws::add(std::uint64_t seed, std::uint64_t stream, std::vector<int>& lengths) const {
  Random random(seed, stream);
  for (int left = tokens_; left > 0;) {
    const double length = std::round(drawn_length(random));
    lengths.push_back(static_cast<int>(std::clamp<double>(length, 1, left)));
    left -= lengths.back();
  }
}

Documents DocumentDraws::of(std::uint64_t seed, const PackedBatch& batch) const {
  std::vector<int> lengths;
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t group = mix64(kBatchStream ^ number(batch.group));
  for (int sample = 0; sample < samples_; ++sample) {
    const std::uint64_t stream = mix64(mix64(group ^ number(batch.micro_batch)) ^ number(sample));
    add(seed, stream, lengths);
  }
  return merged(std::move(lengths), 1.0 / samples_);
}

Documents DocumentDraws::mean(std::uint64_t seed) const {
  std::vector<int> lengths;
  int samples = 0;
  while (samples < kSamplesOfMean && lengths.size() < kDocumentsOfMean) {
    add(seed, mix64(kMeanStream ^ static_cast<std::uint64_t>(samples)), lengths);
    ++samples;
  }
  return merged(std::move(lengths), 1.0 / samples);
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
