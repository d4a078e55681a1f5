// Modules without their vocabulary, and the parts of it.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

bool looks_up(const Work& work) { return work.op_class == OpClass::Embedding; }
bool multiplies(const Work& work) { return work.op_class == OpClass::Gemm; }
bool of_norms(const Work& work) { return work.op_class == OpClass::Normalisation; }

using Passes = std::vector<Work> Module::*;
constexpr std::array kPasses = {&Module::forward, &Module::backward_input,
                                &Module::first_backward_input, &Module::backward_weight};

/// A whole number of words, divided among ranks: those of a rank.
struct Words {
  std::int64_t all, part;
  Words(std::int64_t words, int ranks) : all(words), part((words + ranks - 1) / ranks) {}
  double share() const { return static_cast<double>(part) / static_cast<double>(all); }
};

/// Returns the words of the first table of `first`, the rows that a tensor device has.
std::int64_t words_of(const Module& first) {
  const WeightMatrix& table = first.matrices.front();
  return std::llround(static_cast<double>(table.parameters) / table.columns);
}

/// Moves what tensor devices exchange: of the words alone, as norms exchange nothing.
void move_exchanges(Module& module, Module& part) {
  for (auto exchanges :
       {&Module::forward_exchanges, &Module::backward_input_exchanges,
        &Module::first_backward_input_exchanges, &Module::backward_weight_exchanges}) {
    part.*exchanges = std::exchange(module.*exchanges, {});
  }
}

/// Returns whether `work` copies one of `exchanges`, see Framework::copies_gathered.
bool copies(const Work& work, const std::vector<Exchange>& exchanges) {
  return work.op_class == OpClass::Elementwise && std::ranges::any_of(exchanges, [&](auto& one) {
           return work.bytes == 2 * one.bytes * static_cast<double>(one.count);
         });
}

/// Moves the lookup of `words`, and copies of what it exchanges. Tables behind it are looked up by
/// kernels of their own, which stay. Passes over the gradient of the table are over its part.
void move_lookup(const Words& words, Module& first, Module& part) {
  auto end = first.forward.begin() + 1;
  while (end != first.forward.end() && copies(*end, first.forward_exchanges)) ++end;
  part.forward.assign(first.forward.begin(), end);
  first.forward.erase(first.forward.begin(), end);
  std::vector<Work>& weights = first.backward_weight;  // in reverse order
  const auto found = std::find_if(weights.rbegin(), weights.rend(), looks_up);
  if (found == weights.rend()) return;
  const auto own = std::next(found).base();
  part.backward_weight.assign(own, weights.end());
  weights.erase(own, weights.end());
  for (Work& work : part.backward_weight) {
    if (!looks_up(work)) work.bytes *= words.share();
  }
}

/// Moves all kernels but those of the norm.
void move_projection(Module& last, Module& part) {
  for (const Passes pass : kPasses) {
    const auto rest = std::stable_partition((last.*pass).begin(), (last.*pass).end(), of_norms);
    (part.*pass).assign(rest, (last.*pass).end());
    (last.*pass).erase(rest, (last.*pass).end());
  }
}

/// Takes the kernel that adds gradients of all weights of `module` to those before them, if any.
std::optional<Work> take_addition(const Framework& framework, Module& module) {
  std::vector<Work>& works = module.backward_weight;
  if (framework.gradient_passes == 0 || works.empty()) return std::nullopt;
  if (works.back().op_class != OpClass::Elementwise) return std::nullopt;
  const Work addition = works.back();
  works.pop_back();
  return addition;
}

/// Gives back the part of `addition` that is of the weights of `module`, of `all` before.
void give_addition(const std::optional<Work>& addition, std::int64_t all, Module& module) {
  if (!addition || module.parameters == 0) return;
  module.backward_weight.push_back(*addition);
  module.backward_weight.back().bytes *=
      static_cast<double>(module.parameters) / static_cast<double>(all);
}

/// Moves the first matrix of `module` to `part`; `words`, a row or a column for each, are divided.
void move_matrix(const Words& words, double WeightMatrix::*counts, Module& module, Module& part) {
  WeightMatrix matrix = module.matrices.front();
  module.matrices.erase(module.matrices.begin());
  module.parameters -= matrix.parameters;
  matrix.parameters = matrix.parameters / words.all * words.part;
  matrix.*counts = std::ceil(matrix.*counts * words.share());
  part.matrices = {matrix};
  part.parameters += matrix.parameters;
}

std::vector<Work> update_of(const Module& module, const PriceInputs& inputs) {
  const WeightCount weights = weights_of(module);
  if (weights.all == 0) return {};
  return update_work(weights, inputs.optimizer, inputs.precision, inputs.framework);
}

/// Divides a product, one of whose sizes are the words: what it reads or makes without them stays.
void divide_product(const Words& words, double element, Work& work) {
  const bool summed = work.role == OpRole::InputGradient;  // over words
  ProductShape& shape = work.shape;
  const Bytes stays(shape.m * (summed ? shape.n : shape.k) * shape.batch * element);
  work.bytes = stays + (work.bytes - stays) * words.share();
  work.flops = work.flops * words.share();
  if (work.counted) work.counted = *work.counted * words.share();
  (summed ? shape.k : shape.n) = static_cast<double>(words.part);
}

/// Divides kernels whose logits are of all words. Copies of inputs, and casts of them, stay whole;
/// the cast ahead of a product that makes gradients is of logits.
void divide_logits(const Words& words, double element, Module& part) {
  for (const Passes pass : kPasses) {
    bool ahead = true;  // of the product
    for (Work& work : part.*pass) {
      if (multiplies(work)) {
        divide_product(words, element, work);
        ahead = false;
      } else if (work.op_class == OpClass::Loss || (ahead && work.role == OpRole::InputGradient)) {
        work.flops = work.flops * words.share();
        work.bytes = work.bytes * words.share();
      }
    }
  }
}

/// Returns the part of a rank of the embedding, and takes the embedding from `first`. Every token
/// is looked up; the words of other ranks make zeros.
Module take_embedding(int ranks, const PriceInputs& inputs, Module& first) {
  Module part = {.name = "embedding", .output = first.output};
  const std::int64_t all = first.parameters;
  const Words words(words_of(first), ranks);
  const std::optional<Work> addition = take_addition(inputs.framework, first);
  move_lookup(words, first, part);
  move_exchanges(first, part);
  move_matrix(words, &WeightMatrix::rows, first, part);
  give_addition(addition, all, first);
  give_addition(addition, all, part);
  first.update = update_of(first, inputs);
  part.update = update_of(part, inputs);
  return part;
}

const Work* product_of(const std::vector<Work>& works) {
  const auto found = std::ranges::find_if(works, multiplies);
  return found == works.end() ? nullptr : &*found;
}

/// Moves the weights of the projection to words. Of a tied one they are the embedding's. Its bias
/// is a launch more, see add_bias().
void move_weights(const Words& words, Module& last, Module& part) {
  const Work* const weights = product_of(last.backward_weight);
  if (weights != nullptr && weights->launches > 1) {
    last.parameters -= words.all;
    part.parameters = words.part;
  }
  if (last.tied_parameters == 0) move_matrix(words, &WeightMatrix::columns, last, part);
  last.tied_parameters = last.tied_to = 0;
  last.tied_matrices.clear();
}

/// Returns the part of a rank of the readout, and takes the readout from `last`. What is left, if
/// it is a norm, and the part keep an input of `hidden` each; logits are divided.
Module take_readout(int ranks, Bytes hidden, const PriceInputs& inputs, Module& last) {
  Module part = {.name = "readout"};
  const Words words(std::llround(product_of(last.forward)->shape.n), ranks);
  const std::int64_t all = last.parameters;
  const std::optional<Work> addition = take_addition(inputs.framework, last);
  move_weights(words, last, part);
  move_projection(last, part);
  move_exchanges(last, part);
  divide_logits(words, element_bytes(inputs.precision), part);
  give_addition(addition, all, last);
  give_addition(addition, all, part);
  last.update = update_of(last, inputs);
  part.update = update_of(part, inputs);
  const bool norm = !last.forward.empty();
  const Bytes logits = std::max(Bytes(0), last.stash - hidden * (norm ? 2 : 1));
  part.stash = hidden + logits * words.share();
  last.stash = norm ? hidden : Bytes(0);
  part.workspace = hidden + std::max(Bytes(0), last.workspace - hidden) * words.share();
  last.workspace = 2 * hidden;
  return part;
}

/// Says why one of `words` is not looked up, or made logits of, by the first and the last module
/// of `graph` alone.
std::string words_problem(const ModelGraph& graph, int ranks) {
  const Module &first = graph.modules[0], &last = graph.modules[graph.modules.size() - 1];
  const std::int64_t words = words_of(first);
  for (std::size_t i = 1; i + 1 < graph.modules.size(); ++i) {
    const Module& inner = graph.modules[i];
    if (inner.tied_parameters == 0 && !std::ranges::any_of(inner.forward, looks_up)) continue;
    return "module " + std::to_string(i) +
           " of the model looks words up, too; expected a model without an encoder";
  }
  const auto products = std::ranges::count_if(last.forward, multiplies);
  if (products != 1) {
    return "the last module of the model makes logits with " +
           std::string(products == 0 ? "no product" : "more than one product") +
           "; expected a model that ends in one readout";
  }
  const ProductShape& shape = product_of(last.forward)->shape;
  const bool of_samples = shape.m <= graph.samples_per_micro_batch.value_or(0);
  if (std::llround(shape.n) != words || (of_samples && *graph.tokens_per_sample > 1)) {
    return "the last module of the model makes no logits of each word for every token; expected "
           "\"readout\" \"lm\"";
  }
  if (words < ranks) {
    return "each of " + std::to_string(ranks) + " ranks has a part of " + std::to_string(words) +
           " words; expected as many words as ranks, or more";
  }
  return "";
}

template <class Stage>
auto ops_of(Stage& stage) {
  auto& part = stage.vocabulary;
  return std::array{&stage.forward,
                    &stage.backward_input,
                    &stage.backward_weight,
                    &stage.recompute,
                    &part.s,
                    &part.t,
                    &part.e,
                    &part.g};
}

}  // namespace

std::string division_problem(const ModelGraph& graph, int ranks) {
  const char* const expected = "; expected a language model whose first module is its embedding";
  if (!graph.tokens_per_sample) return std::string("the model has no words") + expected;
  const Module &first = graph.modules[0], &last = graph.modules[graph.modules.size() - 1];
  if (graph.modules.size() < 3 || first.forward.empty() || !looks_up(first.forward.front())) {
    return std::string("the first module of the model looks up no words") + expected;
  }
  if (first.frozen.all != 0 || last.frozen.all != 0 || last.tied_frozen || first.matrices.empty()) {
    return "weights of the embedding, or of the readout, are not trained; expected neither frozen "
           "modules nor LoRA";
  }
  return words_problem(graph, ranks);
}

DividedVocabulary divide_vocabulary(const ModelGraph& graph, int ranks, const PriceInputs& inputs) {
  CHECK(division_problem(graph, ranks).empty(), "an embedding and a readout");
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

void add_vocabulary(const StageCost& part, StageCost& stage) {
  stage.state += part.state;
  stage.update += part.update;
  stage.sweeps += part.sweeps;
  stage.more_sent += part.more_sent;
}

std::array<OpCost*, 8> costs_of_ops(StageCost& stage) { return ops_of(stage); }
std::array<const OpCost*, 8> costs_of_ops(const StageCost& stage) { return ops_of(stage); }

}  // namespace interlock
