// Transformer: reads descriptions of models and checks that their sizes fit each other.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "models/layers/model_contract.h"
#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

void check_positions(Section& reader, const Transformer& t) {
  const int tokens = t.stream.sequence_length;
  if (t.max_positions == 0 || t.max_positions >= tokens) return;
  report(reader.diagnostics(), reader.get("max_positions").value_or(reader.node()),
         std::to_string(t.max_positions) + " positions for a sequence_length of " +
             std::to_string(tokens) + "; expected at least as many, or --sequence-length " +
             std::to_string(t.max_positions));
}

/// Checks the numbers against each other, once each is right by itself.
void check_shape(Section& reader, const Transformer& t) {
  check_positions(reader, t);
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
void refuse_expert_keys(Section& reader) {
  for (const char* key :
       {"experts_per_token", "expert_groups", "expert_groups_per_token", "shared_experts",
        "expert_ffn_hidden_size", "shared_expert_ffn_hidden_size", "capacity_factor",
        "dense_layers", "expert_interval", "shared_expert_gate", "router_bias",
        "expert_latent_size"}) {
    if (const auto node = reader.get(key)) {
      report(reader.diagnostics(), *node, "no experts; expected it with \"experts\"");
    }
  }
}

/// Checks the groups that experts of a token are chosen from.
void check_groups(Section& reader, const Experts& experts) {
  Diagnostics& diagnostics = reader.diagnostics();
  const std::string count = std::to_string(experts.count), per = std::to_string(experts.per_token);
  if (experts.count % experts.groups != 0) {
    report(diagnostics, *reader.get("expert_groups"),
           "groups are equal; expected a divisor of the " + count + " experts, got " +
               std::to_string(experts.groups));
  } else if (experts.groups_per_token > experts.groups) {
    report(diagnostics, *reader.get("expert_groups_per_token"),
           "expected at most the " + std::to_string(experts.groups) + " groups, got " +
               std::to_string(experts.groups_per_token));
  } else if (experts.count / experts.groups * experts.groups_per_token < experts.per_token) {
    report(diagnostics, *reader.get("expert_groups_per_token"),
           "groups of " + std::to_string(experts.count / experts.groups) +
               " experts have too few for a token; expected enough groups for its " + per);
  }
}

void check_experts(Section& reader, const BlockForm& b) {
  const Experts& experts = b.experts;
  if (experts.per_token > experts.count) {
    report(reader.diagnostics(), *reader.get("experts_per_token"),
           std::to_string(experts.per_token) + " experts for a token, of " +
               std::to_string(experts.count) + "; expected at most all of them");
  } else {
    check_groups(reader, experts);
  }
  const int layers = reader.count("layers", 1);
  const int dense_layers = reader.count("dense_layers");
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
int usual_width(Section& reader, const BlockForm& b) {
  Diagnostics unheard;
  const auto node = reader.get("ffn_hidden_size");
  const auto width = node ? read_count(*node, 1, 10'000'000, unheard) : std::nullopt;
  return width.value_or(4 * b.stream.hidden_size);
}

void read_experts(Section& reader, BlockForm& b) {
  if (!reader.get("experts")) return refuse_expert_keys(reader);
  Experts& experts = b.experts;
  experts.count = reader.count("experts", 1);
  experts.per_token = reader.count("experts_per_token");
  experts.groups = reader.count("expert_groups");
  experts.groups_per_token = reader.count("expert_groups_per_token", experts.groups);
  experts.shared = reader.count("shared_experts");
  experts.ffn_hidden_size = reader.count("expert_ffn_hidden_size", usual_width(reader, b));
  experts.shared_ffn_hidden_size =
      reader.count("shared_expert_ffn_hidden_size", experts.ffn_hidden_size);
  if (const auto capacity = reader.get("capacity_factor")) {
    experts.capacity_factor = read_number(*capacity, 0.01, 1000, reader.diagnostics());
  }
  if (reader.get("expert_latent_size")) experts.latent_size = reader.count("expert_latent_size", 0);
  experts.shared_gate = reader.boolean("shared_expert_gate");
  experts.router_bias = reader.boolean("router_bias");
  if (const auto width = reader.get("shared_expert_ffn_hidden_size");
      width && experts.shared == 0) {
    report(reader.diagnostics(), *width, "no shared experts; expected \"shared_experts\" too");
  }
  if (reader.diagnostics().empty()) check_experts(reader, b);
}

/// Patches instead of tokens: the model reads images, and how many tokens those are.
void read_patches(const JsonNode& node, Section& whole, Transformer& t) {
  Section reader(contract_object(transformer_contract(), "model.transformer.patches"), node,
                 whole.diagnostics());
  Transformer::Patches& patches = t.patches;
  patches.image_size = reader.required_count("image_size", "pixels on a side");
  patches.size = reader.required_count("patch_size", "pixels on a side");
  patches.channels = reader.count("channels");
  patches.class_token = reader.boolean("class_token");
  patches.bias = reader.boolean("bias");
  reader.finish();
  if (patches.image_size % patches.size != 0) {
    report(reader.diagnostics(), *reader.get("patch_size"),
           std::to_string(patches.size) + " pixels of " + std::to_string(patches.image_size) +
               "; expected a divisor");
    patches.size = patches.image_size;
  }
  t.stream.sequence_length = patches.tokens();
}

void read_inputs(Section& reader, Transformer& t) {
  if (const auto node = reader.get("patches")) {
    read_patches(*node, reader, t);
  } else {
    t.vocab_size = reader.required_count("vocab_size", "a number of tokens");
    t.stream.sequence_length = reader.required_count("sequence_length", "tokens of a sample");
  }
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
  t.readout_bias = reader.boolean("readout_bias", t.readout != Lm);
}

/// Reads what all tokens go through; those of images and of a source see all by default.
void read_stream(Section& reader, bool sees_all, Transformer& t) {
  ResidualStream& stream = t.stream;
  stream.rms_norm = reader.choice("norm") == 1;
  stream.norm_bias = reader.boolean("norm_bias");
  if (const auto bias = reader.get("norm_bias"); bias && stream.rms_norm && stream.norm_bias) {
    report(reader.diagnostics(), *bias,
           "an RMS norm has no biases; expected \"norm\": \"layernorm\"");
  }
  stream.norm_position = static_cast<NormPosition>(reader.choice("norm_position"));
  if (stream.connections.streams > 1 && stream.norm_position != NormPosition::Pre) {
    report(reader.diagnostics(), *reader.get("norm_position"),
           "what reads streams has a norm before it; expected \"pre\" with \"hyper_connections\"");
  }
  stream.dropout = reader.number("dropout");
  stream.bidirectional = reader.boolean("bidirectional", sees_all);
  stream.causal_flops = reader.choice("attention_flops") == 1;
  t.token_types = reader.count("token_types");
  t.embedding_norm = reader.boolean("embedding_norm");
  const int positions = reader.count("max_positions", stream.sequence_length);
  const int buckets = reader.count("position_buckets");
  const auto kind = reader.get("positions");
  const bool table = !kind || kind->value->text == "learned" || kind->value->text == "both";
  if (table) t.max_positions = positions;
  if (kind && kind->value->text == "relative") t.position_buckets = buckets;
}

/// Reads what all blocks have alike.
BlockForm read_common(Section& reader, const ResidualStream& stream) {
  BlockForm b = {.stream = stream};
  b.gated_mlp = reader.boolean("gated_mlp");
  const bool bias = reader.boolean("bias");
  b.bias = {.qkv = reader.boolean("qkv_bias", bias),
            .projection = reader.boolean("projection_bias", bias),
            .mlp = reader.boolean("mlp_bias", bias)};
  b.clamped_mlp = reader.boolean("clamped_mlp");
  if (b.clamped_mlp && !b.gated_mlp) {
    report(reader.diagnostics(), *reader.get("clamped_mlp"),
           "an activation without a gate is not clamped; expected it with \"gated_mlp\"");
  }
  b.parallel_residual = reader.boolean("parallel_residual");
  if (b.parallel_residual && stream.connections.streams > 1) {
    report(reader.diagnostics(), *reader.get("parallel_residual"),
           "attention and MLP read and write streams in turn; expected no \"hyper_connections\"");
  }
  b.shared_norm = reader.boolean("shared_norm");
  if (b.shared_norm && !b.parallel_residual) {
    report(reader.diagnostics(), *reader.get("shared_norm"),
           "one behind the other have a norm each; expected it with \"parallel_residual\"");
  }
  read_experts(reader, b);
  return b;
}

void read_later_tokens(Section& reader, Transformer& t) {
  const auto node = reader.get("multi_token_prediction");
  if (!node) return;
  Section own(contract_object(transformer_contract(), "model.transformer.multi_token_prediction"),
              *node, reader.diagnostics());
  t.later_tokens = own.count("layers");
  if (const auto form = own.get("form")) {
    read_later_form(reader, *form, read_common(reader, t.stream), t);
  }
  own.finish();
}

/// Reads what a decoder alone has, and its blocks are read with.
void read_decoder_keys(Section& reader, Transformer& t) {
  if (const auto node = reader.get("hyper_connections")) {
    Section own(contract_object(transformer_contract(), "model.transformer.hyper_connections"),
                *node, reader.diagnostics());
    t.stream.connections.streams = own.required_count("streams", "a number of streams");
    own.finish();
  }
  t.hash_layers = reader.count("hash_layers");
  if (const auto node = reader.get("hash_layers"); node && !reader.get("experts")) {
    report(reader.diagnostics(), *node, "no experts; expected it with \"experts\"");
  }
}

/// Reads what encoders and decoders have alike: all from tokens or patches to the last block.
void read_body(Section& reader, Transformer& t) {
  t.stream.hidden_size = reader.required_count("hidden_size", "a width");
  read_inputs(reader, t);
  read_stream(reader, t.patches.image_size > 0, t);
  read_layers(reader, read_common(reader, t.stream), t);
}

/// Reads one number, or a list of them.
std::vector<int> read_counts(Section& reader, std::string_view key, int least, int most) {
  std::vector<int> counts;
  const auto node = reader.get(key);
  if (!node) return counts;
  const bool list = node->value->kind == JsonValue::Kind::Array;
  const std::size_t items = list ? node->value->items.size() : 1;
  for (std::size_t i = 0; i < items; ++i) {
    const JsonNode one = list ? node->item(i) : *node;
    counts.push_back(read_count(one, least, most, reader.diagnostics()).value_or(1));
  }
  return counts;
}

/// Connectors of single layers add their tokens behind the first blocks of a decoder.
void check_deepstack(Section& reader, const Transformer& encoder, const Transformer& decoder) {
  const Transformer::Connector& c = encoder.connector;
  const auto node = reader.get("deepstack");
  for (std::size_t i = 0; i < c.deepstack.size(); ++i) {
    if (c.deepstack[i] < static_cast<int>(encoder.layers.size())) continue;
    report(reader.diagnostics(), node->item(i),
           std::to_string(c.deepstack[i]) + " is no layer of " +
               std::to_string(encoder.layers.size()) + "; expected the number of one, from 0");
  }
  if (c.deepstack.size() <= decoder.layers.size()) return;
  report(reader.diagnostics(), *node,
         std::to_string(c.deepstack.size()) + " layers for a decoder of " +
             std::to_string(decoder.layers.size()) + "; expected at most as many");
}

void read_connector(const JsonNode& node, const Transformer& decoder, Transformer& encoder,
                    Diagnostics& diagnostics) {
  Section reader(contract_object(transformer_contract(), "model.transformer.encoder.connector"),
                 node, diagnostics);
  Transformer::Connector& c = encoder.connector;
  c.merge = reader.count("merge");
  c.merge_by = static_cast<Transformer::Connector::MergeBy>(reader.choice("merge_by"));
  c.norm = static_cast<Transformer::Connector::Norm>(reader.choice("norm"));
  c.norm_of_square = reader.choice("norm_of") == 1;
  c.widths = read_counts(reader, "hidden_size", 1, kMostWidth);
  c.bias = reader.boolean("bias");
  c.deepstack = read_counts(reader, "deepstack", 0, kMostModules);
  reader.finish();
  check_deepstack(reader, encoder, decoder);
  if (encoder.patches.side() % c.merge == 0) return;
  report(diagnostics, *reader.get("merge"),
         std::to_string(c.merge) + " patches of " + std::to_string(encoder.patches.side()) +
             " on a side; expected a divisor");
}

/// Reports the sizes of words in a model that reads images.
void refuse_words_of_images(Section& reader) {
  for (const char* key : {"vocab_size", "sequence_length"}) {
    const auto given = reader.get(key);
    if (!given || !reader.get("patches")) continue;
    report(reader.diagnostics(), *given, "the model reads images; expected it without \"patches\"");
  }
}

/// Reads an encoder of words, which are those of the decoder.
void read_source(Section& reader, const Transformer& t, Transformer& e) {
  const int width = t.stream.hidden_size;
  e.vocab_size = t.vocab_size;
  e.stream.hidden_size = reader.count("hidden_size", width);
  e.stream.sequence_length = reader.count("sequence_length", t.stream.sequence_length);
  read_stream(reader, true, e);
  read_layers(reader, read_common(reader, e.stream), e);
  for (const char* key : {"images", "connector"}) {
    const auto given = reader.get(key);
    if (!given) continue;
    report(reader.diagnostics(), *given, "no images; expected it with \"patches\"");
  }
  if (e.stream.hidden_size == width) return;
  report(reader.diagnostics(), *reader.get("hidden_size"),
         std::to_string(e.stream.hidden_size) + " for a decoder of " + std::to_string(width) +
             ", which reads the same table; expected the same");
}

/// Lets every block of the decoder read the source.
void add_cross_attention(Section& whole, int tokens, Transformer& t) {
  for (BlockForm& form : t.forms) {
    form.source_tokens = tokens;
    if (attends(form.mixer) && form.latents.kv_rank == 0 && !form.parallel_residual) continue;
    report(whole.diagnostics(), *whole.get("encoder"),
           "its tokens are read by attention behind that of each block; expected \"attention\" "
           "\"fused\" or \"materialised\" in all of them, no latents and no "
           "\"parallel_residual\"");
    return;
  }
}

/// An encoder is read as a model without a readout.
void read_encoder(const JsonNode& node, Section& whole, Transformer& t) {
  Diagnostics& diagnostics = whole.diagnostics();
  Section reader(contract_object(transformer_contract(), "model.transformer.encoder"), node,
                 diagnostics);
  Transformer e;
  const bool words = !reader.get("patches");
  words ? read_source(reader, t, e) : read_body(reader, e);
  e.images = words ? 1 : reader.count("images");
  if (const auto length = reader.get("sequence_length"); length && !words) {
    report(diagnostics, *length, "the encoder reads images; expected it without \"patches\"");
  }
  e.final_norm = reader.boolean("final_norm", e.stream.norm_position != NormPosition::Post);
  if (const auto connector = reader.get("connector"); connector && !words) {
    read_connector(*connector, t, e, diagnostics);
  }
  reader.finish();
  if (words && diagnostics.empty()) {
    check_positions(reader, e);
    add_cross_attention(whole, e.stream.sequence_length, t);
    t.encoder.push_back(std::move(e));
    return;
  }
  if (t.patches.image_size > 0) {
    report(diagnostics, node, "its tokens stand between words; expected no \"patches\" beside it");
  } else if (diagnostics.empty() && e.image_tokens() > t.stream.sequence_length) {
    report(diagnostics, node,
           std::to_string(e.image_tokens()) + " tokens of images in a sequence_length of " +
               std::to_string(t.stream.sequence_length) + "; expected at most all of them");
  }
  if (e.images > 0) t.encoder.push_back(std::move(e));
}

}  // namespace

Transformer read_transformer(Section& reader) {
  Transformer t;
  read_decoder_keys(reader, t);
  read_body(reader, t);
  refuse_words_of_images(reader);
  const auto encoder = reader.get("encoder"), streams = reader.get("hyper_connections");
  if (encoder && streams) {
    report(reader.diagnostics(), *streams, "beside an encoder; expected one of the two");
  } else if (encoder) {
    read_encoder(*encoder, reader, t);
  }
  read_readout(reader, t);
  read_later_tokens(reader, t);
  if (const auto head = reader.get("head")) {
    t.head = read_head(*head, site_kind(t), reader.diagnostics());
  }
  if (reader.diagnostics().empty()) check_shape(reader, t);
  return t;
}

}  // namespace interlock
