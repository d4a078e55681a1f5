// Transformer readout: from the last block to the loss of tokens, of hidden tokens, or of a class.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/block.h"

namespace interlock {
namespace {

/// Elements of the tokens where norms are, of which every tensor device has its own part or all.
double rows_of(const StreamSizes& z) { return z.tokens / outer_parts(z.sharding).rows; }

/// A layer between the last block and the vocabulary, whole on every tensor device. Every token is
/// predicted, hidden or not, as frameworks do.
/// Source: Devlin et al., BERT, arXiv 1810.04805, section 3.1, and its published code.
void append_transform(const Transformer& t, const StreamSizes& z,
                      std::vector<Operator>& operators) {
  const double elements = rows_of(z) * t.stream.hidden_size;
  operators.push_back(
      linear({rows_of(z), t.stream.hidden_size, t.stream.hidden_size, true}, z.element));
  keep_wide(operators.back());
  operators.push_back(elementwise({.forward = 2 * elements,
                                   .backward = 3 * elements,
                                   .stash = elements,
                                   .gradients = 2 * elements,
                                   .variant = OpVariant::Gelu},
                                  z.element));
  operators.push_back(norm_of(t.stream, z));
}

/// The first token of each sample, through one more layer if there is a pooler.
void append_pooling(const Transformer& t, const StreamSizes& z, double samples,
                    std::vector<Operator>& operators) {
  const double elements = samples * t.stream.hidden_size;
  operators.push_back(elementwise(
      {.forward = 2 * elements, .backward = elements + z.residual, .gradients = z.residual},
      z.element));
  if (!t.pooler) return;
  operators.push_back(
      linear({samples, t.stream.hidden_size, t.stream.hidden_size, true}, z.element));
  keep_wide(operators.back());
  operators.push_back(elementwise(
      {.forward = 2 * elements, .backward = 3 * elements, .gradients = 2 * elements}, z.element));
}

/// Products that lead to the vocabulary or to classes, and the loss. Their first has the weights
/// that an embedding may share.
std::vector<Operator> projection(const Transformer& t, const BuildOptions& options, bool bias) {
  return readout(site_of(t, options), bias, element_bytes(options.precision));
}

}  // namespace

HeadSite site_of(const Transformer& t, const BuildOptions& options) {
  HeadSite site = {
      .kind = site_kind(t),
      .samples = static_cast<double>(options.micro_batch_size),
      .positions = static_cast<double>(part_of(t.stream).length) / options.sharding.context,
      .width = t.stream.hidden_size,
      .classes = t.vocab_size,
      .norm_parameters = norm_parameters(t.stream),
      .sharding = options.sharding,
      .gathers = options.framework.gathers_vocabulary};
  if (t.readout != Transformer::Readout::Classes) return site;
  site.classes = t.classes;
  site.sharding = {};  // one vector a sample is the work of every device that has it
  return site;
}

Module readout_module(const Transformer& t, const StreamSizes& z, const BuildOptions& options) {
  using enum Transformer::Readout;
  std::vector<Operator> operators;
  if (z.streams > 1) append_stream_end(stream_rows(t.stream, z), z.element, operators);
  if (t.stream.norm_position != NormPosition::Post) operators.push_back(norm_of(t.stream, z));
  if (t.readout == MaskedLm) append_transform(t, z, operators);
  if (t.readout == Classes) append_pooling(t, z, options.micro_batch_size, operators);
  const std::size_t weights = operators.size();
  for (const Operator& op : projection(t, options, t.readout_bias)) operators.push_back(op);
  operators.front().reads_module_input = true;
  const bool tied = t.tied_embeddings && t.readout != Classes;
  const std::int64_t shared = projection(t, options, false).front().parameters;
  std::vector<WeightMatrix> tied_matrices;
  if (tied) {
    operators[weights].parameters -= shared;
    std::swap(tied_matrices, operators[weights].matrices);
    for (WeightMatrix& matrix : tied_matrices) matrix.hidden = false;
  }
  Module last = make_module({.name = "readout", .input = crossing(z), .recomputable = false},
                            operators, options);
  if (tied) last.tied_parameters = shared;
  last.tied_matrices = tied_matrices;
  last.tied_frozen = options.adapters.rank > 0;
  return last;
}

}  // namespace interlock
