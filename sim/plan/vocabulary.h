// The vocabulary of a model, divided among its pipeline ranks.
// SPDX-License-Identifier: Apache-2.0
//
// The embedding and the readout leave the first and the last module: what is left there are norms,
// dropout and tables of positions. Each rank has a part of both, and works on every micro-batch.
// Source: Yeung et al., arXiv 2411.05288.
//
// Example: 32,000 words of 1024 numbers on 4 ranks. Each rank holds 8,000 rows of the embedding and
// of the readout. It looks all tokens up (those of other ranks' words are zeros), makes 8,000
// logits of each, and their gradients.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/plan/stage_cost.h"

namespace interlock {

struct DividedVocabulary {
  ModelGraph rest;  // as many modules as before
  ModelGraph part;  // of one rank: a module of its embedding, one of its readout
};

/// Says why the vocabulary of `graph` cannot be divided among `ranks`, as "...; expected ...";
/// empty if it can.
std::string division_problem(const ModelGraph& graph, int ranks);

/// Divides the vocabulary among `ranks`. REQUIRES: no division_problem().
DividedVocabulary divide_vocabulary(const ModelGraph& graph, int ranks, const PriceInputs& inputs);

/// Returns what one rank computes for a micro-batch of `tokens_per_micro_batch`, and holds between
/// its ops. `part`: the prices of DividedVocabulary::part.
VocabularyCost vocabulary_cost(const std::vector<StageCost>& part, VocabularySplit split,
                               double tokens_per_micro_batch);

/// Adds states and updates of a rank's part of the embedding, or of the readout, to its stage.
void add_vocabulary(const StageCost& part, StageCost& stage);

/// Returns the costs of the ops of a stage that may have exchanges, those of its rank's part of the
/// vocabulary among them; no cost is part of another.
std::array<OpCost*, 8> costs_of_ops(StageCost& stage);
std::array<const OpCost*, 8> costs_of_ops(const StageCost& stage);

}  // namespace interlock
