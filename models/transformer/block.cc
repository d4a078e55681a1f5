// Block: the operators of a transformer block, and sizes that all of them share.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/block.h"

#include <algorithm>
#include <utility>

#include "models/transformer/mixers.h"

namespace interlock {
namespace {

/// Adds the operators of one part of a block to a list: its mixer, or what comes behind it.
using Half = void (*)(const BlockForm&, const StreamSizes&, std::vector<Operator>&);

Retention retention_of(const BlockForm& b, const StreamSizes& z) {
  return {.tokens = z.tokens,
          .hidden_size = b.stream.hidden_size,
          .heads = b.attention_heads,
          .chunk = b.chunk_size,
          .parallel = b.chunk_size == b.stream.sequence_length && !b.stream.slice,
          .causal_flops = b.stream.causal_flops,
          .rotary = b.rotary,
          .bias = b.bias.qkv,
          .sharding = z.sharding};
}

void append_mixer(const BlockForm& b, const StreamSizes& z, std::vector<Operator>& block) {
  if (b.mixer == Mixer::Mamba) return append_mamba(b, z, block);
  if (b.mixer == Mixer::Mamba2) return append_mamba2(b, z, block);
  if (b.mixer == Mixer::GatedDelta) return append_gated_delta(b, z, block);
  if (attends(b.mixer)) return append_attention(b, z, block);
  for (const Operator& op : retention(retention_of(b, z), z.element)) block.push_back(op);
}

void append_dropout(const BlockForm& b, const StreamSizes& z, std::vector<Operator>& block) {
  if (b.stream.dropout > 0) block.push_back(dropout(z.residual, z.element));
}

/// Lets CUDA graphs have operators from `first` on, or those of a router and its norm.
void capture(const BlockForm& b, const StreamSizes& z, Half half, std::size_t first,
             std::vector<Operator>& block) {
  if (half == append_mixer && attends(b.mixer) && z.graphs.attention) {
    for (std::size_t i = first; i < block.size(); ++i) block[i].replayed = true;
  }
  if (half != append_feed_forward || !z.graphs.router) return;
  for (std::size_t i = first + 1; i < block.size(); ++i) {
    if (block[i].replayed) block[first].replayed = true;  // the router's own, see feed_forward.cc
  }
}

/// Adds the norm that a half begins with, whose output the half's first operator keeps.
void append_normed(const BlockForm& b, const StreamSizes& z, Half half,
                   std::vector<Operator>& block) {
  const std::size_t norm = block.size();
  block.push_back(norm_of(b.stream, z));
  half(b, z, block);
  block[norm].parts |= LayerPart::Norms;
  block[norm + 1].remade |= LayerPart::Norms;
}

/// One half that reads and writes all streams. Returns where the first operator is, below which
/// only the module before is waiting.
std::size_t append_half_of_streams(const BlockForm& b, const StreamSizes& z, Half half,
                                   std::vector<Operator>& block) {
  const std::size_t first = block.size();
  append_stream_read(stream_rows(b.stream, z), z.element, block);
  const std::size_t norm = block.size();
  append_normed(b, z, half, block);
  append_dropout(b, z, block);
  wait_beside(block, first + 1, block.size(), crossing(z));
  block.push_back(stream_write(stream_rows(b.stream, z), z.element));
  capture(b, z, half, norm, block);
  return first;
}

/// One half with its norms. Returns where the sum is.
std::size_t append_half(const BlockForm& b, const StreamSizes& z, Half half,
                        std::vector<Operator>& block) {
  using enum NormPosition;
  const NormPosition norms = b.stream.norm_position;
  if (z.streams > 1) return append_half_of_streams(b, z, half, block);
  const std::size_t first = block.size();
  norms == Pre || norms == Both ? append_normed(b, z, half, block) : half(b, z, block);
  if (norms == Both || norms == Branch) block.push_back(norm_of(b.stream, z));
  append_dropout(b, z, block);
  const std::size_t sum = block.size();
  wait_beside(block, first, sum - 1, boundary(z));
  block.push_back(residual(z.residual, z.element));
  if (norms == Post) block.push_back(norm_of(b.stream, z));
  capture(b, z, half, first, block);
  return sum;
}

/// Both halves read the block's input, each behind its own norm or both behind one, and are added
/// to it together, so that tensor devices add up their parts of both at once. Source: GPT-NeoX-20B,
/// arXiv 2204.06745, section 2.1; one norm: GPT-J and Falcon-7B.
std::vector<Operator> parallel_block(const BlockForm& b, const StreamSizes& z) {
  std::vector<Operator> block;
  append_normed(b, z, append_mixer, block);
  block.front().reads_module_input = true;
  const auto of_tensor = [](const Exchange& one) { return one.axis == MeshAxis::Tensor; };
  std::erase_if(block.back().forward_exchanges, of_tensor);
  std::erase_if(block.back().input_exchanges, of_tensor);
  append_dropout(b, z, block);
  const std::size_t mixer_end = block.size();
  capture(b, z, append_mixer, 0, block);
  if (b.shared_norm) {
    append_feed_forward(b, z, block);
    block[mixer_end].keeper = static_cast<int>(mixer_end) - 1;  // the mixer's first product
  } else {
    append_normed(b, z, append_feed_forward, block);
    block[mixer_end].reads_module_input = true;
  }
  capture(b, z, append_feed_forward, mixer_end, block);
  share_input(block[mixer_end]);  // the first norm, or the first product, has kept the input
  append_dropout(b, z, block);
  wait_beside(block, 0, mixer_end - 1, boundary(z));
  wait_beside(block, mixer_end, block.size() - 1, boundary(z));
  wait_beside(block, 0, mixer_end,
              boundary(z));  // what the second half has made of its input's
  for (int sum = 0; sum < 2; ++sum) {
    block.push_back(residual(z.residual, z.element));
    block.back().reads_module_input = true;
  }
  return block;
}

}  // namespace

void widen(Module& module) {
  module.wide = true;
  for (std::vector<Work>* works :
       {&module.forward, &module.backward_input, &module.first_backward_input,
        &module.backward_weight, &module.recompute}) {
    for (Work& work : *works) work.wide = true;
  }
}

TokenSlice part_of(const ResidualStream& stream) {
  return stream.slice.value_or(TokenSlice{stream.sequence_length, 0, stream.sequence_length});
}

StreamSizes stream_sizes(const ResidualStream& stream, const BuildOptions& options) {
  const double samples = options.micro_batch_size;
  const double tokens = samples * part_of(stream).length / options.sharding.context;
  return {.sharding = options.sharding,
          .element = element_bytes(options.precision),
          .samples = samples,
          .tokens = tokens,
          .residual = tokens * stream.hidden_size * outer_parts(options.sharding).share(),
          .streams = stream.connections.streams,
          .graphs = options.framework.graphs,
          .fused_routing = options.framework.fused_routing,
          .narrow = product_format(options.precision).has_value()};
}

std::int64_t norm_parameters(const ResidualStream& stream) {
  const bool biased = !stream.rms_norm && stream.norm_bias;
  return static_cast<std::int64_t>(biased ? 2 : 1) * stream.hidden_size;
}

Operator norm_of(const ResidualStream& stream, const StreamSizes& z) {
  return sharded_norm({z.tokens, stream.hidden_size, norm_parameters(stream)}, z.sharding,
                      z.element);
}

Bytes boundary(const StreamSizes& z) { return Bytes(z.residual * z.element); }

Bytes crossing(const StreamSizes& z) { return boundary(z) * z.streams; }

StreamRows stream_rows(const ResidualStream& stream, const StreamSizes& z) {
  return {
      .rows = z.residual / stream.hidden_size, .width = stream.hidden_size, .streams = z.streams};
}

Bytes kept_for_later(const BlockForm& b, const StreamSizes& z) {
  const TokenSlice part = part_of(b.stream);
  if (part.context + part.length >= part.of) return Bytes(0);
  if (attends(b.mixer)) return kept_keys(b, z);
  Bytes state;
  if (b.mixer == Mixer::Retention) state = retention_state(retention_of(b, z));
  if (b.mixer == Mixer::Mamba) state = mamba_state(b, z);
  if (b.mixer == Mixer::Mamba2) state = mamba2_state(b, z);
  if (b.mixer == Mixer::GatedDelta) state = gated_delta_state(b, z);
  return state * (z.samples / inner_parts(z.sharding).rows);
}

std::vector<Operator> block_operators(const BlockForm& b, const StreamSizes& z) {
  if (b.parallel_residual) return parallel_block(b, z);
  std::vector<Operator> block;
  for (const Half half : {append_mixer, append_cross_attention, append_feed_forward}) {
    if (half == append_mixer && b.mixer == Mixer::None) continue;
    if (half == append_cross_attention && b.source_tokens == 0) continue;
    if (half == append_feed_forward && b.ffn == FeedForward::None) continue;
    const bool first = block.empty();
    const std::size_t sum = append_half(b, z, half, block);
    // Below its first operator only the module before is waiting: for its gradient and the sum's.
    if (first) block.front().reads_module_input = block[sum].reads_module_input = true;
  }
  return block;
}

Module block_module(const BlockForm& b, const BuildOptions& options) {
  const StreamSizes z = stream_sizes(b.stream, options);
  Module module =
      make_module({.input = crossing(z), .output = crossing(z), .later = kept_for_later(b, z)},
                  block_operators(b, z), options);
  module.carried = source_boundary(b, z);
  module.context = slice_context(b, z);
  if (options.wide) widen(module);
  return module;
}

}  // namespace interlock
