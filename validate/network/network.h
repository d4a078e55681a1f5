// NeuralNetwork: a model as the layers that harnesses execute, with the shapes of every parameter.
// SPDX-License-Identifier: Apache-2.0
//
// models/ says what a module costs; this says what it computes. Both are built from one model
// object, module by module, and tests hold them together: parameters, stash and output bytes are
// equal. A tensor is a matrix: one row for each position (a sample; a token of one; a pixel of one,
// row by row), one column for each feature, row-major. Linear layers are y = x W + b, W (inputs,
// outputs). Backwards keep the tensors that models/layers/operators.h names; a layer that it does
// not name (Relu) keeps nothing, because the layer after it keeps the tensor: the reader of a
// Relu's output masks the gradient that it hands back, also where the reader is the next stage, or
// a head. Convolutions have weights (kernel * kernel * inputs, outputs), rows by kernel row, kernel
// column, input; their shortcuts' 1x1 likewise. The first third of Attention's columns are queries,
// then come keys, then values; in each, one head after the other.
//
// Example: Linear 4 -> 8, Relu and Linear 8 -> 2 in module "m" have the parameters m.first.weight
// (4, 8), m.first.bias (1, 8), m.second.weight (8, 2) and m.second.bias (1, 2), if the layers are
// named "first", "relu" and "second".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "models/layers/layer_parts.h"
#include "models/layers/model_graph.h"

namespace interlock {

enum class LayerKind {
  Scale,      // y = x * w, element by element; for tests of gradients by hand
  Embedding,  // token -> row of a table, plus, with `positions` rows, its place's row
  Linear,     // with or without bias
  LayerNorm,  // over a row; gain and shift
  BatchNorm,  // over the rows of a micro-batch; gain and shift
  Gelu,       // tanh form
  Relu,
  Attention,     // (query, key, value) of each token side by side -> weighted values; causal
  Convolution,   // square kernel, zero padding of half its size, no bias unless said
  AveragePool,   // mean over the pixels of a sample
  Residual,      // branch(x) + shortcut(x); an empty shortcut is x
  Coupling,      // the branch reads one half of the columns and is added to the other half
  Goodness,      // rows of a mean square of 1; its loss and gradient are its own: see contrast.h
  CrossEntropy,  // softmax and the mean loss over rows; ends a network or a head
};

/// Returns whether a layer has a loss.
constexpr bool has_loss(LayerKind kind) {
  return kind == LayerKind::CrossEntropy || kind == LayerKind::Goodness;
}

/// One layer. Members that its kind does not use keep their defaults.
struct Layer {
  LayerKind kind = LayerKind::Linear;
  std::string name;  // within its module: "attention.projection"
  int inputs = 1;    // features of a row that it reads; of Embedding, tokens there are
  int outputs = 1;   // features of a row that it makes
  bool bias = true;
  int positions = 0;           // Embedding: rows of the table of places; Attention: tokens a sample
  int heads = 1;               // Attention
  bool fused = false;          // Attention: one kernel, which keeps no probabilities
  int kernel = 1, stride = 1;  // Convolution
  int rows = 1, columns = 1;   // Convolution, AveragePool: pixels of what they read
  std::vector<Layer> branch, shortcut;  // Residual; Coupling has a branch
  bool to_second = false;               // Coupling: the second half is what the branch is added to
  /// The part of a block that makes its output again; of Attention, what it keeps inside.
  LayerParts part = {};
};

struct NetworkModule {
  std::string name;
  std::vector<Layer> layers;
  std::vector<Layer> head;  // that sits on it if it ends a stage with a loss of its own
};

enum class SampleKind { Tokens, Vectors, Images };

struct NeuralNetwork {
  std::string name;
  SampleKind samples = SampleKind::Vectors;
  int samples_per_micro_batch = 1;
  int false_samples = 0;               // of them, the last
  int rows_per_sample = 1;             // of the input: tokens, pixels
  int features = 1;                    // of a row of the input; 1 for tokens
  int classes = 1;                     // that targets are out of
  std::vector<NetworkModule> modules;  // the last ends in CrossEntropy
};

/// Returns whether layers compute their input back from their output.
bool has_couplings(const NeuralNetwork& network);

/// How a parameter begins.
enum class Start { Zeros, Ones, Normal };

struct Parameter {
  std::string name;  // "block0.attention.projection.weight"
  std::int64_t rows = 1, columns = 1;
  Start start = Start::Normal;
  double deviation = 0.02;  // Normal
  bool decays = true;       // under weight decay: matrices
  std::int64_t size() const { return rows * columns; }
};

/// Returns the parameters of `layers` in the order in which every executor keeps them.
std::vector<Parameter> parameters_of(const std::string& module, const std::vector<Layer>& layers);

/// Returns the number of the first parameter of a module, or of its head, in the whole network,
/// where a head's follow its module's. Unused heads count as well.
int first_parameter(const NeuralNetwork& network, int module, bool head);

/// Returns the first value of element `index` of parameter number `parameter` of the whole network
/// under `seed`: equal on every executor.
double first_value(const Parameter& parameter, std::uint64_t seed, int number, std::int64_t index);

/// Builds the network that `model` (a name of the zoo, a path or an object) describes. A diagnostic
/// is added for what is not executable: expected a transformer of GPT's form without dropout,
/// experts, gated MLP, tied embeddings or rotary positions; a residual-mlp or an mlp; a resnet of
/// basic blocks. Heads are of any kind but later-layers, with weights of their own.
NeuralNetwork build_network(const JsonNode& model, const BuildOptions& options,
                            Diagnostics& diagnostics);

}  // namespace interlock
