// Operators: the kernels of one layer with their work, parameters and saved bytes.
// SPDX-License-Identifier: Apache-2.0
//
// A builder writes each module as a list of operators; make_module adds them up. Conventions:
// a multiply-add is 2 flops; only matrix products, convolutions and attention have flops (the
// convention behind MFU); bytes count every tensor that the kernel reads or writes once, at the
// element size of the precision. An operator saves what its own backward needs and no other
// operator saves already: a ReLU saves nothing, because its output is the input that the next
// operator (or the next module) saves.
//
// Example: linear({8, 4, 6, true}, 2), 8 rows of 4 inputs to 6 outputs at two bytes: 384 flops in
// each of its three products, 208 bytes moved forward, 30 parameters, a stash of 64 bytes: its
// input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/model_graph.h"

namespace interlock {

/// One operator of a module and micro-batch. Work without launches is absent; exchanges belong to
/// it.
struct Operator {
  Work forward = {.launches = 0};
  Work input_gradient = {.launches = 0};
  Work weight_gradient = {.launches = 0};
  std::vector<Exchange> forward_exchanges, input_exchanges, weight_exchanges;
  std::int64_t parameters = 0, table = 0;   // table: elements of one of which it looks up rows
  std::vector<WeightMatrix> matrices = {};  // of the parameters
  bool expert = false, frozen = false;      // its parameters: divided by experts, not trained
  bool activation = false;                  // of an MLP: its input may be kept in 8 bits
  std::optional<LinearName> linear = {};    // its name, if it may have an adapter
  /// Keeps its input as products with names do; has a backward for weights of its own alone.
  bool keeps_narrow = false, learns_alone = false;
  int fused = 1;  // products of the same input that it does in one
  // Further kernels that it takes where the framework routes tokens in small steps. Bytes beside
  // its stash: that these kernels keep; that scores of experts' activations need.
  int forward_steps = 0, backward_steps = 0;
  Bytes stash_of_steps, stash_of_scores;
  double softmaxes = 0;  // of a softmax: equal ones, a head of a sample each; 0: it is none
  int keeper = 0;        // operators back to one that saves its input for it
  Bytes stash;           // saved from forward to backward: inputs
  Bytes shared_stash;    // of a product: its input, which another operator saves for it
  Bytes inner_stash;     // saved, too, but made by the operator itself
  Bytes output_read;     // by its own backward: what it made, which the next product saves for it
  Bytes gradients;       // of its input and output together, live while its backward runs
  Bytes waiting;         // gradients of others that are live meanwhile, see wait_beside
  bool reads_module_input = false;  // its input gradient is needed by the module before only
  LayerParts parts;                 // that run it again, and then drop its inner stash
  LayerParts remade;                // that make its stash again
  KernelPlace place = KernelPlace::Around;       // of its kernels
  bool replayed = false, counts_tokens = false;  // in a CUDA graph; for the host, which waits
  /// Bytes that each of its products makes, in the order in which they run one by one, or its fused
  /// attention; nothing: it makes no tensor that Recompute::Alternate keeps.
  std::vector<Bytes> outputs = {};
};

/// Lets another operator save the input of `op` for it.
void share_input(Operator& op);
/// y = x W + b. Shapes: x (rows, inputs), W (inputs, outputs).
struct Linear {
  double rows = 1;
  std::int64_t inputs = 1, outputs = 1;
  bool bias = true;
};
Operator linear(const Linear& shape, double element);
/// Gives a product a bias of `width`: its own kernel adds it to `outputs` elements; its gradient is
/// one more pass over theirs.
void add_bias(Operator& op, std::int64_t width, double outputs, double element);

/// Positions are pixels of all images, one channel. Images make these from their sizes.
struct Convolution {
  double read = 1, made = 1;  // positions of the input, of the output
  std::int64_t inputs = 1, outputs = 1;
  int kernel = 3;
  bool bias = false;
};
Operator convolution(const Convolution& shape, double element);

/// A kernel that only moves data, in elements.
struct Elementwise {
  double forward = 0;    // read and written
  double backward = 0;   // read and written
  double stash = 0;      // saved
  double gradients = 0;  // of its input and output
  OpVariant variant = OpVariant::Plain;
};
Operator elementwise(const Elementwise& touched, double element);

/// Bytes that kernels read and write, and how many they are. They run where the framework takes
/// small steps; elsewhere they are part of the kernels beside them.
struct SmallSteps {
  double forward_bytes = 0, backward_bytes = 0;
  int forward = 0, backward = 0;
};
Operator small_steps(const SmallSteps& steps);
/// Returns a maximum over windows of 3x3 or 2x2, stride 2. Keeps its input, which is the ReLU's
/// output too, and a 64-bit index for each output.
Operator max_pool(double inputs, double outputs, double element);
Operator relu(double elements, double element);
/// Returns a sum: x + y forward; backward, the sum of the two gradients that meet where the paths
/// part.
Operator residual(double elements, double element);
/// Returns a dropout, whose mask takes one byte an element.
Operator dropout(double elements, double element);
/// Returns a layer, RMS or batch normalisation; statistics are too few to count.
Operator normalisation(double elements, std::int64_t parameters, double element);
/// Returns the mean over the positions of each channel. Saves its input, on behalf of the ReLU
/// before it.
Operator global_average_pool(double elements, double pooled, double element);
/// Returns softmax and cross-entropy. Logits are kept in fp32 (Korthikanti et al., arXiv
/// 2205.05198, 4.3).
Operator cross_entropy(double rows, std::int64_t classes, double element);

/// The facts about a module that its operators do not tell.
struct ModuleFrame {
  std::string name;
  Bytes input;
  Bytes output;
  Bytes later;  // of its stash: read by later slices of a sequence, so that it is always kept
  bool recomputable = true;    // the last module's backward follows its forward at once: not there
  bool layers = recomputable;  // its matrices are those of layers, not of a readout
};
Module make_module(const ModuleFrame& frame, const std::vector<Operator>& operators,
                   const BuildOptions& options);

/// Adds `more`, which runs behind `module` forward and before it backward.
void append_module(Module& module, const Module& more);

/// Adds `gradients` to what waits while operators [first, end) go back: that of a sum, which the
/// path around a branch still needs, or of an operator's further outputs. The last operator of a
/// branch has the sum's gradient as its own output's, so that `end` is that operator.
void wait_beside(std::vector<Operator>& operators, std::size_t first, std::size_t end,
                 Bytes gradients);

/// Makes operators from `first` a part of the layer, at whose input the first of them begins; what
/// the others keep is made inside.
void mark_part(std::vector<Operator>& operators, std::size_t first, LayerPart part);

/// Adds exchanges to a list; equal ones are counted together.
void append_exchanges(std::vector<Exchange>& list, const std::vector<Exchange>& more);

/// Returns the options for the recomputable module of this index: see
/// BuildOptions::recompute_layers.
BuildOptions options_of_layer(const BuildOptions& options, std::size_t layer);

}  // namespace interlock
