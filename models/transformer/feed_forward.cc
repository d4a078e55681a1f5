// Feed-forward: the MLP of a block, and the mixture of experts that may stand in for it.
// SPDX-License-Identifier: Apache-2.0
//
// A router sends each token to `per_token` experts; the devices that share the experts of a layer
// pass the tokens to each other and back. The device looked at is the busiest: it works on
// `expert_imbalance` times the mean. With a capacity factor every expert's buffer has that many
// times the mean, whether it is full or not, and tokens beyond are dropped, so that all devices are
// alike. Source: GShard, arXiv 2006.16668; Switch Transformer, arXiv 2101.03961, section 2.2.
//
// Tokens pass to their holders and back in formats of their own, as a copy for each expert or for
// each node (hardware/collectives/token_routing.h); gradients pass the other way in the same.
//
// Experts may read and make latents, narrower than tokens: a product in front of the way there and
// one behind the way back, whole on every tensor device. The router and the experts of all tokens
// read the tokens. Source: fc1_latent_proj and fc2_latent_proj of
// megatron/core/transformer/moe/moe_layer.py (NVIDIA/Megatron-LM d98e8a6).
//
// Experts may be divided among another number of devices than all other tensors are. Every device
// then has tokens of its own: those that reach the holders of parts of an expert are gathered by
// all of them, and the sums scattered. Source: MoE Parallel Folding, arXiv 2504.14960, section 3.
#include "models/transformer/block.h"

namespace interlock {
namespace {

/// Returns how experts are divided. Those that are divided otherwise than other tensors gather
/// their rows from the devices that have a part of them.
Sharding sharding_of_experts(const Sharding& sharding) {
  Sharding own = sharding;
  own.tensor = sharding.tensor_of_experts();
  own.sequence_parallel = sharding.sequence_parallel || own.tensor != sharding.tensor;
  return own;
}

/// Returns the width of what experts read and make.
std::int64_t expert_width(const BlockForm& t) {
  return t.experts.latent_size > 0 ? t.experts.latent_size : t.stream.hidden_size;
}

/// Returns the elements of all tokens of a device, where each is as wide as experts read it.
double token_elements(const BlockForm& t, const StreamSizes& z) {
  return z.residual * (static_cast<double>(expert_width(t)) / t.stream.hidden_size);
}

/// Tokens on their way through experts: rows of all devices that divide an expert together, and
/// what one has.
struct Routed {
  double rows = 1;
  double elements = 1;  // of (rows, expert_width) where norms and residuals are
};

Routed routed(const BlockForm& t, const StreamSizes& z) {
  const double imbalance = z.sharding.expert > 1 ? z.sharding.expert_imbalance : 1;
  const double rows =
      z.tokens * t.experts.per_token * t.experts.capacity_factor.value_or(imbalance);
  const double parts = double(z.sharding.tensor_of_experts()) / z.sharding.tensor;
  return {
      .rows = rows * parts,
      .elements = rows * static_cast<double>(expert_width(t)) * outer_parts(z.sharding).share()};
}

double activation_elements(double rows, std::int64_t width, const Sharding& sharding) {
  return rows * static_cast<double>(width) * inner_parts(sharding).share();
}

Operator activation(const BlockForm& t, double elements, double element) {
  const int parts = t.gated_mlp ? 2 : 1;
  Operator op = elementwise({.forward = (parts + 1) * elements,
                             .backward = (2 * parts + 1) * elements,
                             .stash = parts * elements,
                             .gradients = (parts + 1) * elements,
                             .variant = OpVariant::Gelu},
                            element);
  op.activation = true;
  return op;
}

/// Returns what clamping both inputs of a gated activation has beside its kernel: two clamps and a
/// copy that puts them together forward, two masks and a copy backward; the copy is kept in the
/// place of what was clamped, which the masks read. `elements`: of one input. Source:
/// weighted_bias_quick_geglu_impl in megatron/core/fusions/fused_bias_geglu.py
/// (NVIDIA/Megatron-LM d98e8a6).
Operator clamp_steps(double elements, double element) {
  Operator op = small_steps({.forward_bytes = 8 * elements * element,
                             .backward_bytes = 10 * elements * element,
                             .forward = 3,
                             .backward = 3});
  op.stash_of_steps = Bytes(2 * elements * element);
  op.parts = op.remade = LayerPart::ExpertActivation;
  return op;
}

/// Returns what the biases of the second product have beside it: of each expert, its bias times the
/// scores of its rows, and their sum with the rows; all put together, and cast back where scores
/// are in fp32, as libraries that send tokens once to each node need them. The loop over experts
/// counts as one kernel: no module stands between its kernels, which is what holds up the host.
/// Source: _apply_bias of TEGroupedMLP in megatron/core/transformer/moe/experts.py, and
/// token_dispatcher.py (NVIDIA/Megatron-LM d98e8a6).
Operator bias_steps(double elements, const StreamSizes& z) {
  const double e = z.element;
  const bool wide = z.sharding.expert_dispatch != ExpertDispatch::AllToAll;
  const double p = wide ? 4 : e;  // bytes of a bias times a score, and of what is made with it
  const double cast = wide ? p + e : 0;                   // from one format to the other
  const double forward = p + (e + p + p) + 2 * p + cast;  // product, sum, copy
  const double backward = 2 * cast + 2 * 3 * p + 2 * e;   // of rows; bias and scores; copy
  const int kernels = wide ? 3 : 2;
  return small_steps({.forward_bytes = elements * forward,
                      .backward_bytes = elements * backward,
                      .forward = kernels,
                      .backward = kernels});
}

/// Returns the copies that let each expert's rows be a multiple of what products in 8 or 4 bits
/// take, where tokens have come as a copy for each expert: of what its first product reads, with
/// their scores, and back of what its second made; likewise of gradients. Kernels that send tokens
/// once to each node pad themselves. `elements`: of the rows. Sources: TEGroupedMLP of
/// megatron/core/transformer/moe/experts.py and skip_routed_expert_padding of moe_utils.py
/// (NVIDIA/Megatron-LM d98e8a6); fp8_padding.py of transformer_engine/pytorch/module
/// (NVIDIA/TransformerEngine d0067d0).
Operator padding_steps(double elements, const StreamSizes& z) {
  const double bytes = 2 * 2 * elements * z.element;  // both read and written
  return small_steps(
      {.forward_bytes = bytes, .backward_bytes = bytes, .forward = 3, .backward = 3});
}

std::int64_t first_width(const BlockForm& t, std::int64_t width) {
  return (t.gated_mlp ? 2 : 1) * width;
}

/// Lets each of `experts` have a product of its own with its part of the rows.
void group(Operator& op, int experts) {
  for (Work* work : {&op.forward, &op.input_gradient}) work->shape.m /= experts;
  op.weight_gradient.shape.k /= experts;
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
    work->shape.batch = experts;
    work->more_issues = experts - 1;
  }
}

/// Products whose rows go to the experts that a device holds: as many sets of weights, each with
/// tiles of its own. Sums over tensor devices wait until the tokens are back, unless they have to
/// be scattered.
Operator of_experts(const Linear& whole, LinearRole role, int experts, const StreamSizes& z) {
  const Sharding sharding = sharding_of_experts(z.sharding);
  Operator op = sharded_linear(whole, role, sharding, z.element);
  const double weights = static_cast<double>(op.parameters) * z.element;
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
    work->bytes += Bytes(weights * (experts - 1));
  }
  group(op, experts);
  op.parameters *= experts;
  for (WeightMatrix& matrix : op.matrices) {
    matrix.count *= experts;
    matrix.parameters *= experts;
  }
  op.expert = true;
  op.outputs.clear();  // they are grouped
  if (!sharding.sequence_parallel) op.forward_exchanges = op.input_exchanges = {};
  if (sharding.tensor == z.sharding.tensor) return op;
  for (auto* exchanges : {&op.forward_exchanges, &op.input_exchanges, &op.weight_exchanges}) {
    for (Exchange& exchange : *exchanges) exchange.axis = MeshAxis::ExpertTensor;
  }
  return op;
}

/// Names the products on both sides of the activation that comes last but one.
void name_products(const BlockForm& t, std::vector<Operator>& block) {
  block[block.size() - 3].linear = LinearName::First;
  block[block.size() - 3].fused = t.gated_mlp ? 2 : 1;
  block.back().linear = LinearName::Second;
}

/// Returns whether something runs while tokens are on their way.
bool passes(const BlockForm& t, const StreamSizes& z) {
  const ExpertOverlap overlap = z.sharding.expert_overlap;
  const bool beside = overlap == ExpertOverlap::MicroBatches ||
                      (overlap == ExpertOverlap::SharedExperts && t.experts.shared > 0);
  return z.sharding.expert > 1 && beside;
}

/// Stands operators [first, end) in `place`.
void stand(std::vector<Operator>& block, std::size_t first, std::size_t end, KernelPlace place) {
  for (std::size_t i = first; i < end; ++i) block[i].place = place;
}

double bytes_of_element(TokenFormat format, const StreamSizes& z) {
  constexpr double kScale = 4, kScaled = 128;  // bytes of a scale, and elements that share it
  if (format == TokenFormat::Training) return z.element;
  return format == TokenFormat::Bf16 ? 2 : 1 + kScale / kScaled;
}

/// Returns the exchange by which tokens, or gradients of what was made of them, come to the holders
/// of experts (`there`), or what those made goes back.
Exchange token_exchange(const BlockForm& t, const StreamSizes& z, bool there) {
  const Sharding& s = z.sharding;
  const double copies = routed(t, z).elements;
  Exchange exchange = {
      .kind = CollectiveKind::AllToAll,
      .axis = MeshAxis::Expert,
      .bytes = Bytes(copies * bytes_of_element(there ? s.dispatch_format : s.combine_format, z))};
  if (s.expert_dispatch == ExpertDispatch::AllToAll) return exchange;
  const Experts& experts = t.experts;
  exchange.bytes = exchange.bytes / experts.per_token;
  exchange.routing = {.experts = experts.count,
                      .per_token = experts.per_token,
                      .groups = experts.groups,
                      .groups_per_token = experts.groups_per_token,
                      .back = !there};
  return exchange;
}

/// Returns the elements that are read and written where tokens come in one piece from each device,
/// or go back so, and lie by expert meanwhile. Source: dispatch_postprocess and combine_preprocess
/// of megatron/core/transformer/moe/token_dispatcher.py (NVIDIA/Megatron-LM 0014f13).
double sorted_elements(const BlockForm& t, const StreamSizes& z) {
  const bool several = t.experts.count > z.sharding.expert;
  const bool pieces = z.sharding.expert_dispatch == ExpertDispatch::AllToAll;
  return several && pieces && z.sharding.expert > 1 ? 2 * routed(t, z).elements : 0;
}

/// Returns the way to the experts or back: `there` on the way to them.
Operator passage(const BlockForm& t, const StreamSizes& z, bool there) {
  const double elements = routed(t, z).elements, tokens = token_elements(t, z);
  const double whole = there ? elements : tokens;  // forward, written
  const double sorted = sorted_elements(t, z);
  Operator op = elementwise({.forward = elements + whole + sorted,
                             .backward = 2 * elements + (there ? 0 : tokens) + sorted,
                             .stash = there ? 0 : elements,  // for the gradients of the weights
                             .gradients = elements + tokens},
                            z.element);
  if (z.sharding.expert > 1) {
    op.forward_exchanges = {token_exchange(t, z, there)};
    op.input_exchanges = {token_exchange(t, z, !there)};
    for (Exchange* one : {&op.forward_exchanges.front(), &op.input_exchanges.front()}) {
      if (passes(t, z)) one->way = there ? TokenWay::There : TokenWay::Back;
    }
  }
  if (z.sharding.tensor > 1 && !z.sharding.sequence_parallel) {
    append_exchanges(there ? op.input_exchanges : op.forward_exchanges,
                     {{.kind = CollectiveKind::AllReduce, .bytes = Bytes(tokens * z.element)}});
  }
  return op;
}

/// One number a token, by which what the shared experts made is multiplied.
void append_gate(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  Operator gate =
      linear({z.tokens / outer_parts(z.sharding).rows, t.stream.hidden_size, 1, false}, z.element);
  keep_wide(gate);
  gate.stash = Bytes(0);  // the router has kept it
  block.push_back(gate);
  block.push_back(elementwise({.forward = 2 * z.residual,
                               .backward = 3 * z.residual,
                               .stash = z.residual,
                               .gradients = 2 * z.residual},
                              z.element));
}

/// Two products with an activation between them; gated: gate and up projections in one product,
/// their activation in one kernel that keeps both.
void append_mlp(const BlockForm& t, std::int64_t width, const StreamSizes& z,
                std::vector<Operator>& block) {
  block.push_back(
      sharded_linear({z.tokens, t.stream.hidden_size, first_width(t, width), t.bias.mlp},
                     LinearRole::Column, z.sharding, z.element));
  block.push_back(activation(t, activation_elements(z.tokens, width, z.sharding), z.element));
  block.push_back(sharded_linear({z.tokens, width, t.stream.hidden_size, t.bias.mlp},
                                 LinearRole::Row, z.sharding, z.element));
  name_products(t, block);
  if (!t.gated_mlp) return;
  std::vector<Bytes>& outputs = block[block.size() - 3].outputs;
  outputs = {outputs.front() / 2, outputs.front() / 2};  // gate and up
}

/// The experts of all tokens, whose sum with those behind `router` comes last. Beside the ways of
/// the others run their first product, with the activation, and their second. Source:
/// megatron/core/transformer/moe/shared_experts.py (NVIDIA/Megatron-LM d98e8a6).
void append_shared(const BlockForm& t, const StreamSizes& z, std::size_t router,
                   std::vector<Operator>& block) {
  const Experts& experts = t.experts;
  const std::size_t first = block.size();
  append_mlp(t, static_cast<std::int64_t>(experts.shared) * experts.shared_ffn_hidden_size, z,
             block);
  share_input(block[first]);                       // the router has kept it
  wait_beside(block, router, first, boundary(z));  // what the shared experts made of their input's
  if (z.sharding.expert_overlap == ExpertOverlap::SharedExperts && passes(t, z)) {
    stand(block, first, block.size() - 1, KernelPlace::BesideThere);
    block.back().place = KernelPlace::BesideBack;
  }
  if (experts.shared_gate) append_gate(t, z, block);
  mark_part(block, first, LayerPart::SharedExperts);
  block.push_back(residual(z.residual, z.element));
}

/// Kernels that a pass takes beside the ones below: forward, and backward.
using Steps = int[2];

/// Kernels of scores and choices and the loss that balances them, of counts of tokens on their way
/// to the host, and of permutations there and back: where nothing is fused, and where single
/// kernels of Transformer Engine do what they can. Estimated by reading router.py, moe_utils.py and
/// token_dispatcher.py of megatron/core/transformer/moe (NVIDIA/Megatron-LM 005742f, 00611e6,
/// 0014f13, d98e8a6); gradients of those that have some.
constexpr Steps kChoosing[] = {{22, 16}, {7, 5}}, kCounting = {12, 0};
constexpr Steps kMovingThere[] = {{9, 6}, {7, 2}}, kMovingBack[] = {{6, 5}, {3, 3}};

void add_steps(Operator& op, const Steps& kernels) {
  op.forward_steps += kernels[0];
  op.backward_steps += kernels[1];
}

/// Returns what a router whose scores are in fp32 has beside its products, backward: its input is
/// cast for the gradient of its weights, which reads that; the gradient of its input is made in
/// fp32, and cast. Libraries that send tokens once to each node need such scores. Source:
/// RouterGatingLinearFunction of megatron/core/transformer/moe/moe_utils.py (NVIDIA/Megatron-LM
/// d98e8a6).
Operator router_casts(const BlockForm& t, double tokens, const StreamSizes& z) {
  const double e = z.element, p = 4;
  const double read = (e + p) + (p - e), made = (p - e) + (p + e);
  Operator op = small_steps(
      {.backward_bytes = tokens * static_cast<double>(t.stream.hidden_size) * (read + made),
       .backward = 2});
  op.replayed = z.graphs.router;
  return op;
}

/// Router, the way to the experts, their products, the way back, and the experts of all tokens.
void append_experts(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  const Experts& experts = t.experts;
  const double tokens = z.tokens / outer_parts(z.sharding).rows;
  const double choices = tokens * experts.count;
  const double rows = routed(t, z).rows;
  const int held = experts.count / z.sharding.expert;
  const std::size_t router = block.size();
  block.push_back(
      linear({tokens, t.stream.hidden_size, experts.count, experts.router_bias}, z.element));
  keep_wide(block.back());
  block.push_back(elementwise(
      {.forward = 2 * choices, .backward = 3 * choices, .stash = choices, .gradients = 2 * choices},
      z.element));
  add_steps(block.back(), kChoosing[z.fused_routing.router]);
  add_steps(block.back(), kCounting);
  block.back().counts_tokens = !experts.capacity_factor;  // buffers of fixed size need no count
  block[router].replayed = block.back().replayed = z.graphs.router;
  if (z.sharding.expert_dispatch != ExpertDispatch::AllToAll && z.element < 4) {
    block.push_back(router_casts(t, tokens, z));
  }
  if (experts.latent_size > 0) {
    block.push_back(linear({tokens, t.stream.hidden_size, expert_width(t), false}, z.element));
    share_input(block.back());  // the router has kept it
    block.back().keeps_narrow = true;
  }
  block.push_back(passage(t, z, true));
  add_steps(block.back(), kMovingThere[z.fused_routing.permutation]);
  const std::int64_t width = experts.ffn_hidden_size;
  const std::size_t first = block.size();
  block.push_back(of_experts({rows, expert_width(t), first_width(t, width), t.bias.mlp},
                             LinearRole::Column, held, z));
  const double activated = activation_elements(rows, width, sharding_of_experts(z.sharding));
  block.push_back(activation(t, activated, z.element));
  // Scores that multiply what it makes have it kept for their gradients; gated ones do both in one
  // kernel. Source: TEGroupedMLP of experts.py (megatron/core/transformer/moe,
  // NVIDIA/Megatron-LM).
  if (!t.gated_mlp) block.back().stash_of_scores = block.back().stash;
  block.back().parts |= LayerPart::ExpertActivation;
  block.push_back(of_experts({rows, width, expert_width(t), t.bias.mlp}, LinearRole::Row, held, z));
  block.back().remade |= LayerPart::ExpertActivation;
  name_products(t, block);
  if (t.clamped_mlp) block.push_back(clamp_steps(activated, z.element));
  const double elements = rows * static_cast<double>(expert_width(t));
  if (t.bias.mlp) block.push_back(bias_steps(elements, z));
  const bool pads = z.narrow && z.sharding.expert_dispatch == ExpertDispatch::AllToAll;
  if (pads && !experts.capacity_factor) block.push_back(padding_steps(elements, z));
  if (passes(t, z)) stand(block, first, block.size(), KernelPlace::Experts);
  block.push_back(passage(t, z, false));
  add_steps(block.back(), kMovingBack[z.fused_routing.permutation]);
  // Scores that have multiplied what the activation made read nothing here for their gradients.
  // Source: combine_postprocess of token_dispatcher.py (megatron/core/transformer/moe,
  // NVIDIA/Megatron-LM 0014f13), whose unpermute() has no scores.
  block.back().stash_of_scores = Bytes(0) - block.back().stash;
  if (experts.latent_size > 0) {
    block.push_back(linear({tokens, expert_width(t), t.stream.hidden_size, false}, z.element));
    block.back().keeps_narrow = true;
  }
  if (experts.shared > 0) append_shared(t, z, router, block);
  mark_part(block, router, LayerPart::Experts);
}

}  // namespace

void append_feed_forward(const BlockForm& t, const StreamSizes& z, std::vector<Operator>& block) {
  if (t.ffn == FeedForward::Experts) return append_experts(t, z, block);
  const std::size_t first = block.size();
  append_mlp(t, t.ffn_hidden_size, z, block);
  mark_part(block, first, LayerPart::Mlp);
}

}  // namespace interlock
