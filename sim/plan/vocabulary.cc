// Modules without their vocabulary, and the parts of it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

bool looks_up(const Work& work) { return work.op_class == OpClass::Embedding; }
bool makes_logits(const Work& work) {
  return work.op_class == OpClass::Gemm || work.op_class == OpClass::Loss;
}

using Passes = std::vector<Work> Module::*;
constexpr std::array kPasses = {&Module::forward, &Module::backward_input,
                                &Module::first_backward_input, &Module::backward_weight};

/// Moves the kernels that `belongs` names from `module` to `part`.
void move_kernels(bool (*belongs)(const Work&), Module& module, Module& part) {
  for (const Passes pass : kPasses) {
    const auto rest = std::stable_partition((module.*pass).begin(), (module.*pass).end(),
                                            [&](const Work& work) { return !belongs(work); });
    (part.*pass).assign(rest, (module.*pass).end());
    (module.*pass).erase(rest, (module.*pass).end());
  }
}

/// Moves what tensor devices exchange: of the words alone, as norms exchange nothing.
void move_exchanges(Module& module, Module& part) {
  for (auto exchanges :
       {&Module::forward_exchanges, &Module::backward_input_exchanges,
        &Module::first_backward_input_exchanges, &Module::backward_weight_exchanges}) {
    part.*exchanges = std::exchange(module.*exchanges, {});
  }
}

const WeightMatrix* largest_of(const std::vector<WeightMatrix>& matrices) {
  const auto largest = std::ranges::max_element(
      matrices, [](const auto& a, const auto& b) { return a.parameters < b.parameters; });
  return largest == matrices.end() ? nullptr : &*largest;
}

/// Moves the largest matrix of `module`, a row for each word, to `part`, divided among `ranks`.
void move_matrix(int ranks, Module& module, Module& part) {
  const WeightMatrix* const found = largest_of(module.matrices);
  if (found == nullptr) return;
  WeightMatrix matrix = *found;
  module.matrices.erase(module.matrices.begin() + (found - module.matrices.data()));
  module.parameters -= matrix.parameters;
  matrix.parameters = (matrix.parameters + ranks - 1) / ranks;
  (matrix.rows >= matrix.columns ? matrix.rows : matrix.columns) /= ranks;
  part.matrices = {matrix};
  part.parameters = matrix.parameters;
}

std::vector<Work> update_of(const Module& module, const PriceInputs& inputs) {
  const WeightCount weights = weights_of(module);
  if (weights.all == 0) return {};
  return update_work(weights, inputs.optimizer, inputs.precision, inputs.framework);
}

/// Divides kernels whose logits are of all words.
void divide_logits(int ranks, Module& part) {
  for (const Passes pass : kPasses) {
    for (Work& work : part.*pass) {
      work.flops = work.flops / ranks;
      work.bytes = work.bytes / ranks;
      if (work.counted) work.counted = *work.counted / ranks;
      if (work.op_class == OpClass::Measured) work.measured = work.measured / ranks;
      const bool summed = work.role == OpRole::InputGradient;  // over words
      (summed ? work.shape.k : work.shape.n) /= ranks;
    }
  }
}

/// Returns the part of a rank of the embedding, and takes the embedding from `first`. Every token
/// is looked up; the words of other ranks make zeros.
Module take_embedding(int ranks, const PriceInputs& inputs, Module& first) {
  Module part = {.name = "embedding", .output = first.output};
  move_kernels(looks_up, first, part);
  move_exchanges(first, part);
  move_matrix(ranks, first, part);
  first.update = update_of(first, inputs);
  part.update = update_of(part, inputs);
  return part;
}

/// Does so with the readout. Both keep an input of `hidden`; logits are divided.
Module take_readout(int ranks, Bytes hidden, const PriceInputs& inputs, Module& last) {
  Module part = {.name = "readout"};
  move_kernels(makes_logits, last, part);
  move_exchanges(last, part);
  divide_logits(ranks, part);
  if (last.tied_parameters == 0) move_matrix(ranks, last, part);
  last.tied_parameters = last.tied_to = 0;
  last.tied_matrices.clear();
  last.update = update_of(last, inputs);
  part.update = update_of(part, inputs);
  const bool norm = !last.forward.empty();
  const Bytes logits = std::max(Bytes(0), last.stash - hidden * (norm ? 2 : 1));
  part.stash = hidden + logits / ranks;
  last.stash = norm ? hidden : Bytes(0);
  part.workspace = hidden + std::max(Bytes(0), last.workspace - hidden) / ranks;
  last.workspace = 2 * hidden;
  return part;
}

int products_of(const Module& module) {
  return static_cast<int>(std::ranges::count_if(
      module.forward, [](const Work& work) { return work.op_class == OpClass::Gemm; }));
}

}  // namespace

std::string division_problem(const ModelGraph& graph) {
  const char* const expected = "; expected a language model whose first module is its embedding";
  if (!graph.tokens_per_sample) return std::string("the model has no words") + expected;
  const Module &first = graph.modules[0], &last = graph.modules[graph.modules.size() - 1];
  if (graph.modules.size() < 3 || !std::ranges::any_of(first.forward, looks_up) ||
      first.matrices.empty()) {
    return std::string("the first module of the model looks up no words") + expected;
  }
  if (products_of(last) != 1 || last.frozen.all != 0) {
    return "the last module of the model makes logits with more than one product, or none; "
           "expected a model that ends in one readout, all of whose weights are trained";
  }
  return "";
}

DividedVocabulary divide_vocabulary(const ModelGraph& graph, int ranks, const PriceInputs& inputs) {
  CHECK(division_problem(graph).empty(), "an embedding and a readout");
  DividedVocabulary divided = {.rest = graph, .part = {.name = graph.name}};
  std::vector<Module>& modules = divided.rest.modules.edit();
  const Bytes hidden = modules[modules.size() - 2].output;
  divided.part.modules.edit() = {take_embedding(ranks, inputs, modules.front()),
                                 take_readout(ranks, hidden, inputs, modules.back())};
  return divided;
}

VocabularyCost vocabulary_cost(const std::vector<StageCost>& part, VocabularySplit split,
                               double tokens_per_micro_batch) {
  constexpr double kStatistics = 3 * 4;  // bytes of a token: three numbers in fp32
  const StageCost &embedding = part[0], &readout = part[1];
  VocabularyCost cost = {.s = readout.forward,
                         .t = readout.backward_weight,
                         .e = embedding.forward,
                         .g = embedding.backward_weight,
                         .hidden = embedding.output,
                         .statistics = Bytes(kStatistics * tokens_per_micro_batch),
                         .kept = readout.stash,
                         .workspace = readout.workspace};
  cost.g += embedding.backward_input;
  (split == VocabularySplit::OneBarrier ? cost.s : cost.t) += readout.backward_input;
  return cost;
}

void add_vocabulary(const std::vector<StageCost>& part, const VocabularyCost& cost,
                    StageCost& stage) {
  stage.vocabulary = cost;
  for (const StageCost& module : part) {
    stage.state += module.state;
    stage.update += module.update;
    stage.sweeps += module.sweeps;
    stage.more_sent += module.more_sent;
  }
}

}  // namespace interlock
