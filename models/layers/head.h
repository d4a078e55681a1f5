// Head: the auxiliary network that gives a stage a loss of its own, described as data.
// SPDX-License-Identifier: Apache-2.0
//
// {"kind": "mlp", "hidden_size": 256, "weights": "private"}, or just "mlp". A convolution head is
// that of Gomez et al., JMLR 23(171), 2022, with batch norm and ReLU. Every form ends in its loss.
// Frozen weights (shared, or stale copies of the readout) have no weight gradients, no update and
// no optimiser state.
//
// Example: {Mlp, hidden_size 4} at a site of Vector, width 7, classes 3 has 7 x 4 + 4 + 4 x 3 + 3 =
// 47 parameters; without hidden_size it has 7 x 7 + 7 + 7 x 3 + 3 = 80.
#pragma once

#include <optional>
#include <vector>

#include "base/contract/section.h"
#include "models/layers/images.h"
#include "models/layers/tensor_layout.h"

namespace interlock {

enum class HeadKind { Convolution, Linear, Mlp, Lm, LaterLayers };

/// A head as a file describes it; nothing stands for what the model's kind decides.
struct HeadSpec {
  std::optional<HeadKind> kind;
  std::optional<int> hidden_size;  // Mlp; else the width of the tensor it reads
  int layers = 1;                  // LaterLayers
  bool trainable = true;
};

/// The kinds of tensors that cross module boundaries.
enum class SiteKind { Vector, Image, Sequence };

/// The place of a head: what it reads, and what it must predict.
struct HeadSite {
  SiteKind kind = SiteKind::Vector;
  double samples = 1;    // one micro-batch
  double positions = 1;  // Sequence: tokens
  Extent rows, columns;  // Image
  std::int64_t width = 1;
  std::int64_t classes = 1;
  std::int64_t norm_parameters = 0;  // Sequence
  Sharding sharding;
  bool inner = false;    // the tensor is one between the two layers of a pair
  bool gathers = false;  // logits, see Framework::gathers_vocabulary
};

const std::vector<ContractObject>& head_contract();
/// Returns the type of a head: the name of a kind, or an object.
ContractType head_type();
/// Returns the row of a model's head, which is `otherwise` where it is left out.
ContractKey head_key(const std::string& otherwise);

/// Reads a head, a name or an object; a diagnostic is added for each mistake, also if a head of
/// that kind cannot read what the model's modules hand on.
HeadSpec read_head(const JsonNode& node, SiteKind site, Diagnostics& diagnostics);

/// Reports every key of a profile's head but "weights": such heads are measured, each module's own.
void check_measured_head(const JsonNode& node, Diagnostics& diagnostics);

/// Lets the products of `op` be in 16 bits where a training has 8 or 4, as those stay that lead to
/// the loss or choose experts. Sources: DeepSeek-V3, arXiv 2412.19437, section 3.3.1; output_layer
/// of megatron/core/models/gpt/gpt_model.py and RouterGatingLinearFunction of
/// megatron/core/transformer/moe/moe_utils.py (NVIDIA/Megatron-LM d98e8a6), none of which is a
/// layer of Transformer Engine.
void keep_wide(Operator& op);

/// Returns the projection of the site's tensor to classes and the loss, with the mean over an image
/// before. The network's own last module ends in the same operators. Classes are divided if they
/// can be.
std::vector<Operator> readout(const HeadSite& site, bool bias, double element);

/// Returns the head at one site. REQUIRES: the kind is not LaterLayers and fits the site.
Head make_head(const HeadSpec& spec, const HeadSite& site, const BuildOptions& options);

/// Gives every module but the last a head made of copies of the modules after it.
void attach_later_layers(const HeadSpec& spec, const BuildOptions& options,
                         std::vector<Module>& modules);

}  // namespace interlock
