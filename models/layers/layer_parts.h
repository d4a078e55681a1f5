// LayerParts: the parts of a layer that a backward can compute again by themselves.
// SPDX-License-Identifier: Apache-2.0
//
// Names and bounds are Megatron-Core's `recompute_modules`. Some parts drop what they make inside,
// some drop their output, whose readers would keep it:
//   core_attn        inside: scores, their softmax and its mask, or a fused kernel's row sums
//   layernorm        output: of the norms that attention, the MLP or the experts begin with
//   mla_up_proj      output: queries, keys and values that are made of latents, turned by place
//   mlp              inside: of the MLP of a layer without experts
//   moe              inside: from the router to the sum of the experts, the shared ones included
//   shared_experts   inside: of the MLP that all tokens go through, its gate included
//   moe_act          output: of the activation between the two products of the routed experts
// A part inside another one that is computed again too is computed again twice.
// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (recompute_modules),
// and attention.py, transformer_layer.py, multi_latent_attention.py, moe/experts.py,
// moe/moe_layer.py beside it, commit d98e8a64ddf34856e74b24714e3bedb2f5a39553.
#pragma once

#include <string>
#include <vector>

namespace interlock {

/// One part, in the order of the names above.
enum class LayerPart {
  CoreAttention,
  Norms,
  LatentProjections,
  Mlp,
  Experts,
  SharedExperts,
  ExpertActivation
};
inline constexpr int kLayerParts = 7;

/// Returns the name of each part, in their order.
inline const std::vector<std::string>& layer_part_names() {
  static const std::vector<std::string> names = {
      "core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "moe_act"};
  return names;
}

/// A set of parts. Example: LayerPart::Mlp, then |= LayerPart::Norms: has(Mlp) and has(Norms) are
/// true, has(Experts) is not.
class LayerParts {
 public:
  constexpr LayerParts() = default;
  constexpr LayerParts(LayerPart part) : bits_(1U << static_cast<unsigned>(part)) {}
  constexpr bool has(LayerPart part) const { return (bits_ & LayerParts(part).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr LayerParts& operator|=(LayerParts more) {
    bits_ |= more.bits_;
    return *this;
  }
  constexpr bool operator==(const LayerParts&) const = default;

 private:
  unsigned bits_ = 0;
};

/// Says what of a decoder's layer is a module of its own: nothing; attention, which reads queries,
/// keys and values; attention with the products that make these, whose weights come with its input
/// and whose gradients go back with that's.
enum class PartedAttention { None, Alone, WithProjections };

/// Layers at the ends of a model whose products are in 16 bits, where the training has fewer.
struct WideLayers {
  int first = 0, last = 0;
  bool operator==(const WideLayers&) const = default;
};

}  // namespace interlock
