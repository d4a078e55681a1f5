// Transformer: writes out the operators of decoder-only models.
// SPDX-License-Identifier: Apache-2.0
//
// What a block keeps for its backward, in 16-bit elements with dropout, is the list of Korthikanti
// et al., arXiv 2205.05198, section 4.1 (letters: s sequence, b micro-batch, h hidden, a heads):
// inputs of both norms 4sbh, of the query-key-value product 2sbh, queries and keys 4sbh, values
// 2sbh, softmax 2as^2b with its mask as^2b and dropped output 2as^2b, input of the projection 2sbh
// and its mask sbh, inputs of the MLP's two products 2sbh and 8sbh, of the activation 8sbh, and the
// last mask sbh: sbh(34 + 5as/h). Without dropout the masks and the dropped softmax are not there.
//
// A slice of a sequence: l tokens that attend to themselves and to the c before them. The s^2
// scores of a whole sequence hold every pair of tokens twice, one of the two masked; a slice has
// its tokens' pairs, (c + l)^2 - c^2 of them, so that the slices of a sequence add up to the whole.
#include "models/transformer.h"

#include "models/retention.h"

namespace interlock {
namespace {

/// Sizes of one micro-batch that the operators share.
struct Sizes {
  double tokens;     // b s, or b l of a slice
  double attended;   // columns of the scores, a token: s, or 2 c + l of a slice
  double hidden;     // elements of (tokens, hidden_size)
  double keys;       // elements of (tokens, kv_heads, head size); as many values
  double keys_read;  // those of the tokens before a slice included
  double ffn;        // elements of (tokens, ffn_hidden_size)
  double scores;     // elements of (b, heads, s, s)
  double element;    // bytes
};

/// The tokens of a sample that the operators work on, and those before and after them.
TokenSlice part_of(const Transformer& t) {
  return t.slice.value_or(TokenSlice{t.sequence_length, 0, t.sequence_length});
}

Sizes sizes_of(const Transformer& t, const BuildOptions& options) {
  const TokenSlice part = part_of(t);
  const double tokens = static_cast<double>(options.micro_batch_size) * part.length;
  const double before = static_cast<double>(options.micro_batch_size) * part.context;
  const double attended = 2.0 * part.context + part.length;
  const double key_width = static_cast<double>(t.hidden_size) / t.attention_heads * t.kv_heads;
  return {.tokens = tokens,
          .attended = attended,
          .hidden = tokens * t.hidden_size,
          .keys = tokens * key_width,
          .keys_read = (before + tokens) * key_width,
          .ffn = tokens * t.ffn_hidden_size,
          .scores = tokens * attended * t.attention_heads,
          .element = element_bytes(options.precision)};
}

std::int64_t norm_parameters(const Transformer& t) {
  return static_cast<std::int64_t>(t.rms_norm ? 1 : 2) * t.hidden_size;
}

Bytes boundary(const Sizes& z) { return Bytes(z.hidden * z.element); }

/// `products` attention products of (tokens, attended, hidden) multiply-adds, touching `elements`;
/// the backward of each is two of the same size.
Operator attention_product(const Transformer& t, const Sizes& z, int products, double elements) {
  const double share = t.causal_flops ? 0.5 : 1;
  const Work forward = {.op_class = OpClass::Attention,
                        .flops = Flops(products * share * 2 * z.hidden * z.attended),
                        .bytes = Bytes(elements * z.element)};
  Work backward = {.op_class = OpClass::Attention,
                   .flops = forward.flops * 2,
                   .bytes = forward.bytes * 2,
                   .launches = 2};
  return {.forward = forward,
          .input_gradient = backward,
          .gradients = Bytes(elements * z.element),
          .attention_core = true};
}

/// One kernel that stores queries, keys, values and a sum in fp32 for each row of the scores. What
/// its backward computes again inside is no model flop and is not counted.
/// Source: FlashAttention, arXiv 2205.14135.
Operator fused_attention(const Transformer& t, const Sizes& z) {
  Operator op = attention_product(t, z, 2, 2 * z.hidden + 2 * z.keys_read);
  op.input_gradient.launches = 1;
  op.stash = Bytes((z.hidden + 2 * z.keys) * z.element + z.tokens * t.attention_heads * 4);
  return op;
}

std::vector<Operator> materialised_attention(const Transformer& t, const Sizes& z) {
  Operator scores = attention_product(t, z, 1, z.hidden + z.keys_read + z.scores);
  scores.stash = Bytes((z.hidden + z.keys) * z.element);
  Operator softmax = elementwise(
      {.forward = 2 * z.scores, .backward = 3 * z.scores, .gradients = 2 * z.scores}, z.element);
  softmax.inner_stash = Bytes(z.scores * z.element);
  softmax.attention_core = true;
  Operator values = attention_product(t, z, 1, z.scores + z.keys_read + z.hidden);
  values.stash = Bytes(z.keys * z.element);
  if (t.dropout == 0) return {scores, softmax, values};
  Operator drop = dropout(z.scores, z.element);
  drop.inner_stash = drop.stash + Bytes(z.scores * z.element);  // the mask and the dropped output
  drop.stash = Bytes(0);
  drop.attention_core = true;
  return {scores, softmax, drop, values};
}

Retention retention_of(const Transformer& t, const Sizes& z) {
  return {.tokens = z.tokens,
          .hidden_size = t.hidden_size,
          .heads = t.attention_heads,
          .chunk = t.chunk_size,
          .causal_flops = t.causal_flops,
          .rotary = t.positions == Transformer::Positions::Rotary,
          .bias = t.bias};
}

void append_attention(const Transformer& t, const Sizes& z, std::vector<Operator>& block) {
  if (t.attention == Transformer::Attention::Retention) {
    for (const Operator& op : retention(retention_of(t, z), z.element)) block.push_back(op);
    return;
  }
  const std::int64_t head_size = t.hidden_size / t.attention_heads;
  const std::int64_t keys = head_size * t.kv_heads;
  block.push_back(linear({z.tokens, t.hidden_size, t.hidden_size + 2 * keys, t.bias}, z.element));
  if (t.positions == Transformer::Positions::Rotary) {
    const double turned = z.hidden + z.keys;
    block.push_back(elementwise(
        {.forward = 2 * turned, .backward = 2 * turned, .gradients = 2 * turned}, z.element));
  }
  if (t.attention == Transformer::Attention::Fused) {
    block.push_back(fused_attention(t, z));
  } else {
    for (const Operator& op : materialised_attention(t, z)) block.push_back(op);
  }
  block.push_back(linear({z.tokens, t.hidden_size, t.hidden_size, t.bias}, z.element));
}

/// Gated: gate and up projections in one product, their activation in one kernel that keeps both.
void append_mlp(const Transformer& t, const Sizes& z, std::vector<Operator>& block) {
  const int parts = t.gated_mlp ? 2 : 1;
  const std::int64_t width = static_cast<std::int64_t>(parts) * t.ffn_hidden_size;
  block.push_back(linear({z.tokens, t.hidden_size, width, t.bias}, z.element));
  block.push_back(elementwise({.forward = (parts + 1) * z.ffn,
                               .backward = (2 * parts + 1) * z.ffn,
                               .stash = parts * z.ffn,
                               .gradients = (parts + 1) * z.ffn},
                              z.element));
  block.push_back(linear({z.tokens, t.ffn_hidden_size, t.hidden_size, t.bias}, z.element));
}

std::vector<Operator> block_operators(const Transformer& t, const Sizes& z) {
  const Operator norm = normalisation(z.hidden, norm_parameters(t), z.element);
  const Operator add = residual(z.hidden, z.element);
  std::vector<Operator> block = {norm};
  append_attention(t, z, block);
  if (t.dropout > 0) block.push_back(dropout(z.hidden, z.element));
  block.push_back(add);
  // Below the first norm only the module before is waiting: for its gradient and the residual's.
  block.front().reads_module_input = true;
  block.back().reads_module_input = true;
  block.push_back(norm);
  append_mlp(t, z, block);
  if (t.dropout > 0) block.push_back(dropout(z.hidden, z.element));
  block.push_back(add);
  return block;
}

/// Rows looked up and written; backward, rows of the gradient added to.
Operator lookup(const Transformer& t, const Sizes& z) {
  const Work forward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 2};
  const Work backward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 3};
  return {.forward = forward,
          .weight_gradient = backward,
          .parameters = static_cast<std::int64_t>(t.vocab_size) * t.hidden_size,
          .stash = Bytes(z.tokens * 8),  // token ids are 64-bit
          .gradients = boundary(z)};
}

Operator position_table(const Transformer& t, const Sizes& z) {
  const Bytes rows(static_cast<double>(part_of(t).length) * t.hidden_size * z.element);
  return {.forward = {.op_class = OpClass::Embedding, .bytes = boundary(z) * 2 + rows},
          .weight_gradient = {.op_class = OpClass::Embedding, .bytes = boundary(z) + rows},
          .parameters = static_cast<std::int64_t>(t.max_positions) * t.hidden_size,
          .gradients = boundary(z)};
}

std::vector<Operator> embedding_operators(const Transformer& t, const Sizes& z) {
  std::vector<Operator> operators = {lookup(t, z)};
  if (t.positions == Transformer::Positions::Learned) operators.push_back(position_table(t, z));
  if (t.dropout > 0) operators.push_back(dropout(z.hidden, z.element));
  return operators;
}

HeadSite site_of(const Transformer& t, const BuildOptions& options) {
  return {.kind = SiteKind::Sequence,
          .samples = static_cast<double>(options.micro_batch_size),
          .positions = part_of(t).length,
          .width = t.hidden_size,
          .classes = t.vocab_size,
          .norm_parameters = norm_parameters(t)};
}

Module readout_module(const Transformer& t, const Sizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = {normalisation(z.hidden, norm_parameters(t), z.element)};
  operators.front().reads_module_input = true;
  for (const Operator& op : readout(site_of(t, options), false, z.element)) {
    operators.push_back(op);
  }
  if (t.tied_embeddings) operators[1].parameters = 0;
  Module last = make_module({.name = "readout", .input = boundary(z), .recomputable = false},
                            operators, options);
  if (t.tied_embeddings) {
    last.tied_parameters = static_cast<std::int64_t>(t.vocab_size) * t.hidden_size;
  }
  return last;
}

/// What slices after this one read of it, whatever is recomputed: keys and values, or the states.
Bytes kept_for_later(const Transformer& t, const Sizes& z, const BuildOptions& options) {
  const TokenSlice part = part_of(t);
  if (part.context + part.length >= part.of) return Bytes(0);
  if (t.attention != Transformer::Attention::Retention) return Bytes(2 * z.keys * z.element);
  return retention_state(retention_of(t, z)) * options.micro_batch_size;
}

void attach_heads(const Transformer& t, const BuildOptions& options, std::vector<Module>& modules) {
  HeadSpec head = t.head;
  if (!head.kind) head.kind = HeadKind::Lm;
  if (head.kind == HeadKind::LaterLayers) return attach_later_layers(head, options, modules);
  const Head made = make_head(head, site_of(t, options), options);
  for (std::size_t i = 0; i + 1 < modules.size(); ++i) modules[i].head = made;
}

std::function<ModelGraph(const TokenSlice&)> slicer(const Transformer& shape,
                                                    const BuildOptions& options) {
  // Without the head, whose document need not outlive the graph.
  const BuildOptions kept = {.micro_batch_size = options.micro_batch_size,
                             .precision = options.precision,
                             .optimizer = options.optimizer,
                             .recompute = options.recompute};
  return [=](const TokenSlice& slice) {
    Transformer part = shape;
    part.slice = slice;
    return build_transformer(part, kept);
  };
}

}  // namespace

ModelGraph build_transformer(const Transformer& shape, const BuildOptions& options) {
  const Sizes z = sizes_of(shape, options);
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size,
                      .tokens_per_sample = part_of(shape).length,
                      .attention_flops = shape.causal_flops ? "causal" : "full"};
  graph.modules.push_back(
      make_module({.name = "embedding", .output = boundary(z), .recomputable = false},
                  embedding_operators(shape, z), options));
  const Module block =
      make_module({.input = boundary(z) + kept_for_later(shape, z, options), .output = boundary(z)},
                  block_operators(shape, z), options);
  for (int i = 0; i < shape.layers; ++i) {
    graph.modules.push_back(block);
    graph.modules.back().name = "block" + std::to_string(i);
  }
  graph.modules.push_back(readout_module(shape, z, options));
  if (!shape.slice) {
    attach_heads(shape, options, graph.modules);
    graph.slice = slicer(shape, options);
  }
  return graph;
}

}  // namespace interlock
