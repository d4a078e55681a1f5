// Sparse MLP: layers of neurons divided among workers that need some of each other's outputs.
// SPDX-License-Identifier: Apache-2.0
//
// Every worker (tensor device) holds an equal part of the neurons of each layer. needed[i][j]:
// neurons of the layer before, of worker i, that some neuron of worker j has a weight for; of those
// all neurons of j have one. A density says the same of all pairs of different workers; a worker
// needs all of its own. Before a layer runs, its inputs travel, those that are needed and no more.
// Source: RePurpose, arXiv 2008.08289, which permutes and prunes neurons to make them few.
//
// The worker with most to compute and the one with most to send or receive stand for all, so that
// a layer takes as long as its slowest worker where these are one. What links carry is exact where
// workers are balanced, as RePurpose makes them, and an upper bound elsewhere. There is no loss.
//
// Example: two workers and a layer of 4 neurons before this one. needed {{2, 1}, {0, 2}}: worker 0
// needs its own two neurons alone; worker 1 its own two and one of worker 0, which is sent.
#pragma once

#include <vector>

#include "base/contract/section.h"
#include "models/layers/model_graph.h"

namespace interlock {

struct SparseLayer {
  int size = 1;                          // neurons
  double density = 1;                    // of other workers' neurons; without `needed`
  std::vector<std::vector<int>> needed;  // (workers, workers)
};

struct SparseMlp {
  int input_size = 1;
  std::vector<SparseLayer> layers;
};

const std::vector<ContractObject>& sparse_mlp_contract();
/// Reads the keys; adds a diagnostic for each mistake, also where `workers` cannot divide the
/// neurons.
SparseMlp read_sparse_mlp(Section& reader, int workers);
ModelGraph build_sparse_mlp(const SparseMlp& shape, const BuildOptions& options);

}  // namespace interlock
