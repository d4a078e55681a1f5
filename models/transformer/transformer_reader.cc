// Transformer: reads descriptions of models and checks that their sizes fit each other.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "models/layers/required_count.h"
#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

/// Checks the numbers against each other, once each is right by itself.
void check_shape(ObjectReader& reader, const Transformer& t) {
  const int tokens = t.stream.sequence_length;
  if (t.max_positions > 0 && t.max_positions < tokens) {
    report(reader.diagnostics(), reader.get("max_positions").value_or(reader.node()),
           std::to_string(t.max_positions) + " positions for a sequence_length of " +
               std::to_string(tokens) + "; expected at least as many");
  }
  if (t.stream.bidirectional && t.readout == Transformer::Readout::Lm) {
    report(reader.diagnostics(), *reader.get("bidirectional"),
           "a token that is seen cannot be predicted; expected \"readout\": \"masked-lm\" or "
           "\"classes\"");
  }
  if (t.later_tokens > 0 && t.readout != Transformer::Readout::Lm) {
    report(reader.diagnostics(), *reader.get("multi_token_prediction"),
           "no next tokens are predicted; expected \"readout\": \"lm\"");
  }
}

/// Keys that only experts have a use for.
void refuse_expert_keys(ObjectReader& reader) {
  for (const char* key : {"experts_per_token", "shared_experts", "expert_ffn_hidden_size",
                          "shared_expert_ffn_hidden_size", "capacity_factor", "dense_layers",
                          "expert_interval", "shared_expert_gate", "router_bias"}) {
    if (const auto node = reader.get(key)) {
      report(reader.diagnostics(), *node, "no experts; expected it with \"experts\"");
    }
  }
}

void check_experts(ObjectReader& reader, const BlockForm& b) {
  const Experts& experts = b.experts;
  if (experts.per_token > experts.count) {
    report(reader.diagnostics(), *reader.get("experts_per_token"),
           std::to_string(experts.per_token) + " experts for a token, of " +
               std::to_string(experts.count) + "; expected at most all of them");
  }
  const int layers = reader.count("layers", 1, 1, kMostModules);
  const int dense_layers = reader.count("dense_layers", 0, 0, kMostModules);
  if (dense_layers >= layers) {
    report(reader.diagnostics(), *reader.get("dense_layers"),
           std::to_string(dense_layers) + " layers without experts, of " + std::to_string(layers) +
               "; expected fewer, or no \"experts\"");
  }
  constexpr double kMostWeights = 1e15;  // far beyond any model; sums of them stay exact
  const double widths = static_cast<double>(experts.count) * experts.ffn_hidden_size +
                        static_cast<double>(experts.shared) * experts.shared_ffn_hidden_size;
  const double weights = 3.0 * layers * b.stream.hidden_size * widths;
  if (weights > kMostWeights) {
    report(reader.diagnostics(), *reader.get("experts"),
           "experts of " + format_number(weights) + " weights in all; expected at most " +
               format_number(kMostWeights));
  }
}

/// Returns the width that experts have if no other is written: that of the layers' MLPs, which
/// report their own mistakes.
int usual_width(ObjectReader& reader, const BlockForm& b) {
  Diagnostics unheard;
  const auto node = reader.get("ffn_hidden_size");
  const auto width = node ? read_count(*node, 1, 10'000'000, unheard) : std::nullopt;
  return width.value_or(4 * b.stream.hidden_size);
}

void read_experts(ObjectReader& reader, BlockForm& b) {
  constexpr int kMostExperts = 100'000;
  const auto count = reader.get("experts");
  if (!count) return refuse_expert_keys(reader);
  Experts& experts = b.experts;
  experts.count = read_count(*count, 1, kMostExperts, reader.diagnostics()).value_or(1);
  experts.per_token = reader.count("experts_per_token", 1, 1, kMostExperts);
  experts.shared = reader.count("shared_experts", 0, 0, 1000);
  experts.ffn_hidden_size =
      reader.count("expert_ffn_hidden_size", usual_width(reader, b), 1, 10'000'000);
  experts.shared_ffn_hidden_size =
      reader.count("shared_expert_ffn_hidden_size", experts.ffn_hidden_size, 1, 10'000'000);
  if (const auto capacity = reader.get("capacity_factor")) {
    experts.capacity_factor = read_number(*capacity, 0.01, 1000, reader.diagnostics());
  }
  experts.shared_gate = reader.boolean("shared_expert_gate", false);
  experts.router_bias = reader.boolean("router_bias", false);
  if (const auto width = reader.get("shared_expert_ffn_hidden_size");
      width && experts.shared == 0) {
    report(reader.diagnostics(), *width, "no shared experts; expected \"shared_experts\" too");
  }
  if (reader.diagnostics().empty()) check_experts(reader, b);
}

/// Patches instead of tokens: the model reads images, and how many tokens those are.
void read_patches(const JsonNode& node, ObjectReader& whole, Transformer& t) {
  ObjectReader reader(node, whole.diagnostics());
  Transformer::Patches& patches = t.patches;
  patches.image_size = required_count(reader, "image_size", "pixels on a side", 65'536);
  patches.size = required_count(reader, "patch_size", "pixels on a side", 65'536);
  patches.channels = reader.count("channels", 3, 1, 100'000);
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
  t.stream.sequence_length = patches.tokens();
}

void read_inputs(ObjectReader& reader, Transformer& t) {
  if (const auto node = reader.get("patches")) {
    read_patches(*node, reader, t);
  } else {
    t.vocab_size = required_count(reader, "vocab_size", "a number of tokens", 100'000'000);
    t.stream.sequence_length =
        required_count(reader, "sequence_length", "tokens of a sample", kMostTokens);
  }
  t.token_types = reader.count("token_types", 0, 0, 1'000'000);
  t.embedding_norm = reader.boolean("embedding_norm", false);
}

void read_readout(ObjectReader& reader, Transformer& t) {
  using enum Transformer::Readout;
  const bool images = t.patches.image_size > 0;
  t.readout = static_cast<Transformer::Readout>(
      reader.choice("readout", {"lm", "masked-lm", "classes"}, images ? 2 : 0));
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
  t.classes = reader.count("classes", images ? 1000 : 2, 1, 100'000'000);
  t.pooler = reader.boolean("pooler", false);
  t.tied_embeddings = reader.boolean("tied_embeddings", !images);
  t.readout_bias = reader.boolean("readout_bias", t.readout != Lm);
}

void read_stream(ObjectReader& reader, Transformer& t) {
  ResidualStream& stream = t.stream;
  const bool images = t.patches.image_size > 0;
  stream.rms_norm = reader.choice("norm", {"layernorm", "rmsnorm"}, 0) == 1;
  stream.norm_position = static_cast<NormPosition>(
      reader.choice("norm_position", {"pre", "post", "both", "branch"}, 0));
  stream.dropout = reader.number("dropout", 0, 0, 1);
  stream.bidirectional = reader.boolean("bidirectional", images);
  stream.causal_flops = reader.choice("attention_flops", {"full", "causal"}, 0) == 1;
  const int positions = reader.count("max_positions", stream.sequence_length, 1, kMostTokens);
  const auto kind = reader.get("positions");
  if (!kind || kind->value->text == "learned") t.max_positions = positions;
}

/// Reads what all blocks have alike.
BlockForm read_common(ObjectReader& reader, const ResidualStream& stream) {
  BlockForm b = {.stream = stream};
  b.gated_mlp = reader.boolean("gated_mlp", false);
  const bool bias = reader.boolean("bias", true);
  b.bias = {.qkv = reader.boolean("qkv_bias", bias),
            .projection = reader.boolean("projection_bias", bias),
            .mlp = reader.boolean("mlp_bias", bias)};
  b.parallel_residual = reader.boolean("parallel_residual", false);
  b.shared_norm = reader.boolean("shared_norm", false);
  if (b.shared_norm && !b.parallel_residual) {
    report(reader.diagnostics(), *reader.get("shared_norm"),
           "one behind the other have a norm each; expected it with \"parallel_residual\"");
  }
  read_experts(reader, b);
  return b;
}

void read_later_tokens(ObjectReader& reader, Transformer& t) {
  const auto node = reader.get("multi_token_prediction");
  if (!node) return;
  ObjectReader own(*node, reader.diagnostics());
  t.later_tokens = own.count("layers", 1, 1, 64);
  own.finish();
}

}  // namespace

Transformer read_transformer(ObjectReader& reader) {
  Transformer t;
  t.stream.hidden_size = required_count(reader, "hidden_size", "a width", 1'000'000);
  read_inputs(reader, t);
  read_stream(reader, t);
  read_layers(reader, read_common(reader, t.stream), t);
  read_readout(reader, t);
  read_later_tokens(reader, t);
  if (const auto head = reader.get("head")) {
    t.head = read_head(*head, site_kind(t), reader.diagnostics());
  }
  if (reader.diagnostics().empty()) check_shape(reader, t);
  return t;
}

}  // namespace interlock
