// VariationConditions: what a scenario says about devices and links that are not all alike.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "stragglers": [{"rank": 1, "slowdown": 1.5, "from_step": 2, "to_step": 3}] is the
// Straggler {{Rank, 1, 1.5}, 2, 3}; with "jitter": {"spread": 0.05} steps differ, and there is no
// steady state.
#pragma once

#include <optional>
#include <vector>

#include "base/json/json.h"
#include "hardware/networks/cluster.h"
#include "sim/lower/slow_devices.h"
#include "sim/plan/packing.h"
#include "sim/program/variation.h"

namespace interlock {

struct ParallelKeys;
struct Question;

/// variation.stragglers: slow for the whole run, or in measured steps [first, last], the first
/// being 1.
struct Straggler {
  SlowDevices devices;
  std::optional<int> first_step, last_step;
  bool always() const { return !first_step && !last_step; }
};

/// variation.slow_links: the narrowest links on the way between two devices of the machine.
struct SlowWay {
  int from = 0, to = 0;
  double slowdown = 1;
};

struct VariationConditions {
  std::vector<Straggler> stragglers;
  Jitter jitter, link_jitter;
  std::vector<SlowWay> slow_links;
  std::vector<double> speeds;  // by pipeline rank, of the cluster's device; empty: all 1
  std::optional<DocumentLengths> documents;  // that samples are packed from; nothing: one each
  int seeds = 20;
  bool jitters() const { return jitter.spread > 0 || link_jitter.spread > 0; }
  bool random() const { return jitters() || documents; }
  /// Returns whether steps differ, so that there is no steady state.
  bool varies() const;
  /// Returns what is slow all the time: stragglers, and ranks of other speeds.
  std::vector<SlowDevices> always_slow() const;
};

/// Reads "variation", if it is there; nothing after a mistake.
std::optional<VariationConditions> read_variation(const std::optional<JsonNode>& node,
                                                  Diagnostics& diagnostics);
/// Finds what of it does not fit the rest of `question`, whose layout is known, or the cluster.
void check_variation(const Question& question, const ParallelKeys& parallel,
                     const std::optional<Cluster>& cluster, const JsonNode& document,
                     Diagnostics& diagnostics);
/// Returns `graph` for samples of as many documents as they have on average. Reports a model that
/// takes them as one. REQUIRES: it has tokens.
ModelGraph with_documents(ModelGraph graph, const Question& question, const JsonNode& document,
                          Diagnostics& diagnostics);
/// Returns the draws of the documents of `question`. REQUIRES: it has some; its graph is known.
DocumentDraws draws_of(const Question& question, const ModelGraph& graph);
/// Returns `cluster` with the slow links of `variation`.
Cluster with_slow_links(Cluster cluster, const std::optional<VariationConditions>& variation);

}  // namespace interlock
