// ModelGraph: a network as a chain of modules, each with the work and bytes of one micro-batch.
// SPDX-License-Identifier: Apache-2.0
//
// A Module is the smallest unit that a partition may cut between. It says what must be computed,
// never how fast: hardware/ prices its Work. Modules form a chain; each reads the output of the one
// before it. The last module holds the network's true loss inside its forward and backward. Each
// has the auxiliary head that a stage ending there may have; the strategy says whether it is used.
//
// Example: an MLP of 784, 1024 and 1024 widths and 10 classes, 32 samples in fp32: 3 modules
//   layer0    803,840 parameters  output 131,072 bytes (32 x 1024 x 4)  stash 100,352: its input
//   layer1  1,049,600             output 131,072                        stash 131,072
//   readout    10,250             no output: it holds the loss          stash 132,352
// The forward of layer0 is a product of 51.4 Mflop (2 x 32 x 784 x 1024) and a ReLU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/exchange.h"
#include "base/framework.h"
#include "base/json/json.h"
#include "base/work.h"
#include "models/layers/footprint.h"
#include "models/layers/layer_parts.h"
#include "models/layers/sample_documents.h"
#include "models/layers/sharding.h"
#include "models/layers/shared_list.h"
#include "models/layers/token_slice.h"

namespace interlock {

/// Auxiliary head: forward, loss and backward down to the gradient at its module's output.
struct Head {
  std::vector<Work> work;           // all of the above, one micro-batch
  std::vector<Work> update;         // optimiser step of the head's parameters
  std::vector<Exchange> exchanges;  // between the devices that share it, in all of `work`
  std::int64_t parameters = 0;      // held by the stage, frozen or not
  bool trainable = true;            // frozen heads have neither gradients nor optimiser state
  Bytes memory;                     // live while the head runs, its copy of the input included
};

/// Smallest unit of the network that a partition may cut between.
struct Module {
  std::string name;
  std::vector<Work> forward;
  std::vector<Work> backward_input;        // gradient of the input, all operators
  std::vector<Work> first_backward_input;  // the part of it that only the module's input needs
  std::vector<Work> backward_weight;       // gradients of the weights
  std::vector<Work> recompute;             // run again before the backward, if BuildOptions asks
  std::vector<Work> update;                // optimiser step
  // Exchanges between the devices that share the module, in each pass, see Sharding.
  std::vector<Exchange> forward_exchanges, backward_input_exchanges, first_backward_input_exchanges,
      backward_weight_exchanges, recompute_exchanges;
  std::int64_t parameters = 0;
  std::int64_t expert_parameters = 0;  // of these, what is divided by experts
  // Weights of module `tied_to` that this one uses too (tied embeddings). A stage without that one
  // keeps its own copy, gradients and states. Of several, each is tied to the one before it.
  std::int64_t tied_parameters = 0;
  int tied_to = 0;                                    // number of a module before this one
  std::vector<WeightMatrix> matrices, tied_matrices;  // trained ones of the (tied) parameters
  WeightCount frozen, frozen_experts;      // of `parameters` and `expert_parameters`: not trained
  std::vector<WeightShape> shapes;         // of trained weights of products
  bool tied_frozen = false, wide = false;  // wide: products in 16 bits, where others have fewer
  Bytes output;                            // the tensor that crosses to the next module
  Bytes stash;      // kept from forward to backward, the module's input included
  Bytes carried;    // kept too, once by all modules of a stage: a tensor that each of them reads
  Bytes workspace;  // live only while one of its operators runs
  Bytes remade;     // of the workspace: what `recompute` brings back
  Bytes relaid;     // live at another time: while its input is laid anew, see layer_layouts.h
  Bytes scores;     // that its attention stores, of all heads at once
  SliceContext context;
  LayerParts parts;      // that its backward could compute again by themselves
  int layout = 0;        // its degrees, where layers have some of their own; see layer_layouts.h
  bool attends = false;  // attention by itself, without weights; see PartedAttention
  Head head;
};

/// Returns what optimisers tell apart of the trained weights of `module`; of its experts alone.
WeightCount weights_of(const Module& module);
WeightCount expert_weights_of(const Module& module);

struct ModelGraph {
  std::string name;
  SharedList<Module> modules;
  std::optional<double> samples_per_micro_batch;  // nothing where unknown (profiles)
  std::optional<double> tokens_per_sample;        // language models only
  int experts = 0;                                // of a layer that has some
  std::string attention_flops = "none";           // what MFU counts: full, causal, chosen, none
  std::vector<std::string> notes;                 // what was assumed of the model, for people
  /// The model for one slice of its sequences, without auxiliary heads; nothing where a sample is
  /// no sequence. Slices of a whole have its counted flops, and its stash but for stored scores, of
  /// which they have fewer; each reads the weights, and the keys and values before it, again.
  std::function<ModelGraph(const TokenSlice&)> slice;
  /// The model for samples packed from documents whose tokens see their own document alone, without
  /// auxiliary heads; nothing where no kernel of it takes less time then.
  std::function<ModelGraph(const Documents&)> packed;
};

/// Names what a backward computes again. A forward keeps everything (None), all but the scores of
/// attention (Selective), only the input of each module (Full), that and the outputs of fused
/// attention and of every second product (Alternate), or all but what some parts of it make
/// (Parts). Example of Alternate: of queries, keys, values, projection, gate, up and down of a
/// Llama block those of queries, values, gate and down are kept.
/// Source of Alternate: pytorch/torchtitan 9dec370, parallelisms/parallelize_llama.py, _save_list.
enum class Recompute { None, Selective, Full, Alternate, Parts };

/// Products of a layer that may have adapters, as Megatron-Bridge names them.
enum class LinearName { Qkv, Projection, First, Second };
inline constexpr int kLinearNames = 4;
inline const std::vector<std::string>& linear_names() {
  static const std::vector<std::string> names = {"linear_qkv", "linear_proj", "linear_fc1",
                                                 "linear_fc2"};
  return names;
}

/// Low-rank adapters, see adapters.h.
struct Adapters {
  int rank = 0;  // 0: none; all weights are trained
  std::array<bool, kLinearNames> of = {true, true, true, true};
  bool fused = true;  // one for queries, keys and values together, and for gate and up
  bool has(LinearName name) const { return of[static_cast<std::size_t>(name)]; }
  bool operator==(const Adapters&) const = default;
};

/// Everything outside the architecture that changes the work of one micro-batch.
struct BuildOptions {
  int micro_batch_size = 1;
  Precision precision = Precision::Bf16;
  OptimizerRule optimizer;
  Recompute recompute = Recompute::None;
  LayerParts recompute_parts;       // Parts: those; Full: of layers beyond the number below
  bool narrow_activations = false;  // of MLPs: their inputs are kept in 8 bits
  WideLayers wide_layers;           // blocks of a decoder
  bool wide = false;                // this module is of one of them: `precision` has 16 bits
  Adapters adapters = {};
  int frozen_modules = 0;  // the first of the model; no gradient passes them
  PartedAttention parted = PartedAttention::None;  // where layers may be parted
  std::optional<int> recompute_layers;  // only this many modules, the first of those that may
  Framework framework;
  Sharding sharding;
  std::vector<bool> left_out;    // by module: it is not asked for; empty: all modules are
  std::optional<JsonNode> head;  // the strategy's "head", which overrides the model's
  bool operator==(const BuildOptions&) const = default;
};

}  // namespace interlock
