// Transformer: reads descriptions of models and checks that their sizes fit each other.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "models/transformer/attention_reader.h"
#include "models/transformer/transformer.h"

namespace interlock {
namespace {

/// Checks the numbers against each other, once each is right by itself.
void check_shape(Section& reader, const Transformer& t) {
  check_attention(reader, t);
  if (t.positions == Transformer::Positions::Learned && t.max_positions < t.sequence_length) {
    report(reader.diagnostics(), reader.get("max_positions").value_or(reader.node()),
           std::to_string(t.max_positions) + " positions for a sequence_length of " +
               std::to_string(t.sequence_length) + "; expected at least as many");
  }
  if (t.parallel_residual && t.post_norm) {
    report(reader.diagnostics(), *reader.get("parallel_residual"),
           "attention and MLP side by side have norms before them; expected \"norm_position\": "
           "\"pre\"");
  }
  if (t.bidirectional && t.readout == Transformer::Readout::Lm) {
    report(reader.diagnostics(), *reader.get("bidirectional"),
           "a token that is seen cannot be predicted; expected \"readout\": \"masked-lm\" or "
           "\"classes\"");
  }
}

/// Keys that only experts have a use for.
void refuse_expert_keys(Section& reader) {
  for (const char* key :
       {"experts_per_token", "shared_experts", "expert_ffn_hidden_size", "capacity_factor",
        "dense_layers", "expert_interval", "shared_expert_gate", "router_bias"}) {
    if (const auto node = reader.get(key)) {
      report(reader.diagnostics(), *node, "no experts; expected it with \"experts\"");
    }
  }
}

void check_experts(Section& reader, const Transformer& t) {
  const Transformer::Experts& experts = t.experts;
  if (experts.per_token > experts.count) {
    report(reader.diagnostics(), *reader.get("experts_per_token"),
           std::to_string(experts.per_token) + " experts for a token, of " +
               std::to_string(experts.count) + "; expected at most all of them");
  }
  if (experts.dense_layers >= t.layers) {
    report(reader.diagnostics(), *reader.get("dense_layers"),
           std::to_string(experts.dense_layers) + " layers without experts, of " +
               std::to_string(t.layers) + "; expected fewer, or no \"experts\"");
  }
  constexpr double kMostWeights = 1e15;  // far beyond any model; sums of them stay exact
  const double weights = 3.0 * t.layers * t.hidden_size * experts.ffn_hidden_size *
                         (static_cast<double>(experts.count) + experts.shared);
  if (weights > kMostWeights) {
    report(reader.diagnostics(), *reader.get("experts"),
           "experts of " + format_number(weights) + " weights in all; expected at most " +
               format_number(kMostWeights));
  }
}

void read_experts(Section& reader, Transformer& t) {
  if (!reader.get("experts")) return refuse_expert_keys(reader);
  Transformer::Experts& experts = t.experts;
  experts.count = reader.count("experts", 1);
  experts.per_token = reader.count("experts_per_token");
  experts.shared = reader.count("shared_experts");
  experts.ffn_hidden_size = reader.count("expert_ffn_hidden_size", t.ffn_hidden_size);
  experts.capacity_factor = reader.written_number("capacity_factor");
  experts.dense_layers = reader.count("dense_layers");
  experts.interval = reader.count("expert_interval");
  experts.shared_gate = reader.boolean("shared_expert_gate");
  experts.router_bias = reader.boolean("router_bias");
  if (reader.diagnostics().empty()) check_experts(reader, t);
}

/// Patches instead of tokens: the model reads images, and how many tokens those are.
void read_patches(const JsonNode& node, Section& whole, Transformer& t) {
  Section reader(contract_object(transformer_contract(), "model.transformer.patches"), node,
                 whole.diagnostics());
  Transformer::Patches& patches = t.patches;
  patches.image_size = reader.required_count("image_size", "pixels on a side");
  patches.size = reader.required_count("patch_size", "pixels on a side");
  patches.channels = reader.count("channels");
  reader.finish();
  if (patches.image_size % patches.size != 0) {
    report(reader.diagnostics(), *reader.get("patch_size"),
           std::to_string(patches.size) + " pixels of " + std::to_string(patches.image_size) +
               "; expected a divisor");
    patches.size = patches.image_size;
  }
  for (const char* key : {"vocab_size", "sequence_length"}) {
    if (const auto given = whole.get(key)) {
      report(whole.diagnostics(), *given,
             "the model reads images; expected it without \"patches\"");
    }
  }
  t.sequence_length = patches.tokens();
}

void read_inputs(Section& reader, Transformer& t) {
  if (const auto node = reader.get("patches")) {
    read_patches(*node, reader, t);
  } else {
    t.vocab_size = reader.required_count("vocab_size", "a number of tokens");
    t.sequence_length = reader.required_count("sequence_length", "tokens of a sample");
  }
  t.token_types = reader.count("token_types");
  t.embedding_norm = reader.boolean("embedding_norm");
}

void read_readout(Section& reader, Transformer& t) {
  using enum Transformer::Readout;
  const bool images = t.patches.image_size > 0;
  t.readout = static_cast<Transformer::Readout>(reader.choice("readout", images ? 2 : 0));
  if (images && t.readout != Classes) {
    report(reader.diagnostics(), *reader.get("readout"),
           "images have no words; expected \"classes\", the default with \"patches\"");
  }
  const auto classes = reader.get("classes"), pooler = reader.get("pooler");
  for (const auto& node : {classes, pooler}) {
    if (node && t.readout != Classes) {
      report(reader.diagnostics(), *node, "no classes; expected it with \"readout\": \"classes\"");
    }
  }
  t.classes = reader.count("classes", images ? 1000 : 2);
  t.pooler = reader.boolean("pooler");
  t.tied_embeddings = reader.boolean("tied_embeddings");
}

void read_block(Section& reader, Transformer& t) {
  t.ffn_hidden_size = reader.count("ffn_hidden_size", 4 * t.hidden_size);
  t.gated_mlp = reader.boolean("gated_mlp");
  t.rms_norm = reader.choice("norm") == 1;
  t.post_norm = reader.choice("norm_position") == 1;
  const bool bias = reader.boolean("bias");
  t.bias = {.qkv = reader.boolean("qkv_bias", bias),
            .projection = reader.boolean("projection_bias", bias),
            .mlp = reader.boolean("mlp_bias", bias)};
  t.parallel_residual = reader.boolean("parallel_residual");
  t.dropout = reader.number("dropout");
}

}  // namespace

Transformer read_transformer(Section& reader) {
  Transformer t;
  t.layers = reader.required_count("layers", "a number of blocks");
  t.hidden_size = reader.required_count("hidden_size", "a width");
  read_inputs(reader, t);
  read_block(reader, t);
  read_attention(reader, t);
  read_experts(reader, t);
  read_readout(reader, t);
  if (const auto head = reader.get("head")) {
    t.head = read_head(*head, site_kind(t), reader.diagnostics());
  }
  if (reader.diagnostics().empty()) check_shape(reader, t);
  return t;
}

}  // namespace interlock
