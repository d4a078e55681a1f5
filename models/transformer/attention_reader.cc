// Attention reader: heads, positions, latents, windows, and what goes with what.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

void check_divides(BlockReader& reader, std::string_view key, int part, const std::string& whole,
                   int size) {
  if (size % part == 0) return;
  report(reader.diagnostics(), reader.place_of(key),
         std::string(key) + " " + std::to_string(part) + " does not divide " + whole + " " +
             std::to_string(size) + "; expected a divisor of it");
}

void check_retention(BlockReader& reader, const BlockForm& b) {
  if (b.mixer != Mixer::Retention) return;
  const int tokens = b.stream.sequence_length;
  if (const auto chunk = reader.get("chunk_size"); chunk && b.chunk_size > tokens) {
    report(reader.diagnostics(), *chunk,
           std::to_string(b.chunk_size) + " tokens of a sequence of " + std::to_string(tokens) +
               "; expected at most all of them");
  }
}

void check_rotary(BlockReader& reader, const BlockForm& b) {
  const bool compressed = b.compression.query_rank > 0;
  const bool latent = b.latents.kv_rank > 0 || compressed;
  const int of_latents = compressed ? b.compression.rotary_head_size : b.latents.rotary_head_size;
  const int turned = latent ? of_latents : b.head_size;
  if (!b.rotary || turned % 2 == 0) return;
  const std::string head = latent || reader.get("head_size")
                               ? "a head has " + std::to_string(turned) + " elements"
                               : "hidden_size " + std::to_string(b.stream.hidden_size) +
                                     " / attention_heads " + std::to_string(b.attention_heads) +
                                     " is " + std::to_string(turned);
  report(reader.diagnostics(), reader.place_of("positions"),
         "rotary positions turn pairs, and " + head + "; expected an even head size");
}

void check_mask(BlockReader& reader, const BlockForm& b) {
  if (b.window && b.attention_chunk) {
    report(reader.diagnostics(), reader.place_of("attention_chunk"),
           "tokens see a window or a part of the sequence; expected no \"sliding_window\"");
  }
  if (!b.stream.bidirectional) return;
  if (const auto node = reader.get("sliding_window")) {
    report(reader.diagnostics(), *node,
           "a window ends at its token; expected no \"bidirectional\"");
  }
  if (b.stream.causal_flops) {
    report(reader.diagnostics(), *reader.get("attention_flops"),
           "every token sees all; expected \"full\", or no \"bidirectional\"");
  }
}

/// Tokens that are chosen, and what does not go with that.
void read_selection(const JsonNode& node, BlockReader& whole, BlockForm& b) {
  Section reader(
      contract_object(transformer_contract(), "model.transformer.latent_attention.selection"), node,
      whole.diagnostics());
  Selection& selection = b.latents.selection;
  selection.tokens = reader.required_count("tokens", "tokens that a token sees at most");
  selection.heads = reader.required_count("index_heads", "a number of heads");
  selection.head_size = reader.required_count("index_head_size", "elements of a head");
  reader.finish();
  const auto refuse = [&](bool wrong, const std::string& why) {
    if (wrong) report(whole.diagnostics(), node, "tokens are chosen among all before; " + why);
  };
  refuse(b.mixer != Mixer::Fused, "expected \"attention\": \"fused\"");
  refuse(b.stream.bidirectional, "expected no \"bidirectional\"");
  refuse(b.sinks, "expected no \"attention_sinks\"");
  refuse(b.stream.causal_flops, "what was chosen is counted, expected no \"attention_flops\"");
  refuse(whole.get("sliding_window").has_value(), "expected no \"sliding_window\"");
  refuse(whole.get("attention_chunk").has_value(), "expected no \"attention_chunk\"");
}

/// Keys and queries of a rank of their own, which replace the usual head sizes.
void read_latents(const JsonNode& node, BlockReader& whole, BlockForm& b) {
  Section reader(contract_object(transformer_contract(), "model.transformer.latent_attention"),
                 node, whole.diagnostics());
  b.latents.query_rank = reader.count("query_rank", 0);
  b.latents.kv_rank = reader.required_count("kv_rank", "a width");
  b.latents.rotary_head_size = reader.required_count("rotary_head_size", "elements of a head");
  b.head_size = reader.required_count("head_size", "elements of a head, without rotary ones") +
                b.latents.rotary_head_size;
  b.value_head_size = reader.required_count("value_head_size", "elements of a head");
  b.kv_heads = b.attention_heads;
  if (const auto selection = reader.get("selection")) {
    read_selection(*selection, whole, b);
  }
  reader.finish();
  if (!b.rotary) {
    report(whole.diagnostics(), node,
           "a part of every head has rotary positions; expected \"positions\": \"rotary\"");
  }
}

/// Entries that a token chooses.
void read_entry_selection(const JsonNode& node, BlockReader& whole, BlockForm& b) {
  Section reader(
      contract_object(transformer_contract(), "model.transformer.compressed_attention.selection"),
      node, whole.diagnostics());
  Selection& selection = b.compression.selection;
  selection.tokens = reader.required_count("entries", "entries that a token sees at most");
  selection.heads = reader.required_count("index_heads", "a number of heads");
  selection.head_size = reader.required_count("index_head_size", "elements of a head");
  reader.finish();
}

/// Keys that are values, of tokens and of entries.
void read_compression(const JsonNode& node, BlockReader& whole, BlockForm& b) {
  Section reader(contract_object(transformer_contract(), "model.transformer.compressed_attention"),
                 node, whole.diagnostics());
  Compression& c = b.compression;
  c.query_rank = reader.required_count("query_rank", "a width");
  c.rotary_head_size = reader.required_count("rotary_head_size", "elements of a head");
  c.output_groups = reader.count("output_groups");
  c.output_rank = reader.required_count("output_rank", "a width");
  const auto ratio = reader.get("ratio"), overlap = reader.get("overlap");
  const auto selection = reader.get("selection");
  if (ratio) c.ratio = reader.count("ratio", 1);
  c.overlap = reader.boolean("overlap");
  if (selection) read_entry_selection(*selection, whole, b);
  reader.finish();
  b.kv_heads = 1;
  Diagnostics& diagnostics = whole.diagnostics();
  for (const auto& key : {overlap, selection}) {
    if (key && !ratio) report(diagnostics, *key, "no entries; expected it with \"ratio\"");
  }
  if (c.rotary_head_size > b.head_size) {
    report(diagnostics, *reader.get("rotary_head_size"),
           std::to_string(c.rotary_head_size) + " elements of a head of " +
               std::to_string(b.head_size) + "; expected at most all of them");
  }
  if (b.attention_heads % c.output_groups != 0) {
    report(diagnostics, *reader.get("output_groups"),
           std::to_string(b.attention_heads) + " heads are not in " +
               std::to_string(c.output_groups) + " equal groups; expected a divisor of them");
  }
  const auto refuse = [&](bool wrong, const std::string& why) {
    if (wrong) report(diagnostics, node, "tokens and entries before a token are seen; " + why);
  };
  refuse(b.mixer != Mixer::Fused, "expected \"attention\": \"fused\"");
  refuse(!b.rotary, "a part of every head has places, expected \"positions\": \"rotary\"");
  refuse(b.stream.bidirectional, "expected no \"bidirectional\"");
  refuse(b.stream.causal_flops, "what is seen is counted, expected no \"attention_flops\"");
  refuse(whole.get("attention_chunk").has_value(), "expected no \"attention_chunk\"");
}

QkNorm read_qk_norm(BlockReader& reader) {
  const auto node = reader.get("qk_norm");
  if (!node) return QkNorm::None;
  if (node->value->kind != JsonValue::Kind::String) {
    return read_boolean(*node, reader.diagnostics()).value_or(false) ? QkNorm::Heads : QkNorm::None;
  }
  const bool whole = reader.choice("qk_norm", 0) == 1;
  return whole ? QkNorm::Whole : QkNorm::Heads;
}

void read_positions(BlockReader& reader, BlockForm& b) {
  const int positions = reader.choice("positions", 0);
  const bool table = positions == 0 || positions >= 3;
  b.relative = positions == 4;
  b.rotary = positions == 1 || positions == 3;
  b.rotary_share = reader.number("rotary_share", 1);
  b.scaled_rotation = reader.boolean("scaled_rotation", false);
  if (b.scaled_rotation && (!b.rotary || b.rotary_share == 0)) {
    report(reader.diagnostics(), reader.place_of("scaled_rotation"),
           "nothing is turned; expected it with \"positions\": \"rotary\"");
  }
  if (table && reader.in_item("positions")) {
    report(reader.diagnostics(), reader.place_of("positions"),
           "a table of positions is added to the embedding, for all layers; expected \"rotary\" or "
           "\"none\"");
  }
}

void read_heads(BlockReader& reader, BlockForm& b) {
  b.attention_heads = reader.required_count("attention_heads", "a number of heads");
  b.kv_heads = reader.count("kv_heads", b.attention_heads);
  const int width = std::max(b.stream.hidden_size / b.attention_heads, 1);
  b.head_size = reader.count("head_size", width);
  b.value_head_size = b.head_size;
  if (b.mixer == Mixer::Retention) return;
  b.qk_norm = read_qk_norm(reader);
  b.gate = reader.boolean("attention_gate", false);
  b.sinks = reader.boolean("attention_sinks", false);
  const auto latents = reader.get("latent_attention"), entries = reader.get("compressed_attention");
  if (latents && entries) {
    report(reader.diagnostics(), *entries,
           "keys are made of latents, or of tokens; expected no \"latent_attention\"");
    return;
  }
  if (latents) read_latents(*latents, reader, b);
  if (entries) read_compression(*entries, reader, b);
}

}  // namespace

void read_attention(BlockReader& reader, BlockForm& b) {
  read_positions(reader, b);
  read_heads(reader, b);
  const int tokens = b.stream.sequence_length;
  b.chunk_size = reader.count("chunk_size", std::min(512, tokens));
  b.window = reader.written_count("sliding_window");
  b.attention_chunk = reader.written_count("attention_chunk");
}

void append_unused_attention_keys(BlockReader& reader, const BlockForm& b,
                                  std::vector<UnusedKey>& unused) {
  if (b.mixer == Mixer::Retention) {
    append_unused(reader, {"kv_heads"},
                  "retention has a key head for each head; expected no \"kv_heads\"", unused);
    append_unused(reader,
                  {"head_size", "qkv_bias", "projection_bias", "qk_norm", "sliding_window",
                   "bidirectional", "latent_attention", "compressed_attention", "attention_chunk",
                   "attention_gate", "attention_sinks", "scaled_rotation"},
                  "not with retention; expected it with attention", unused);
    return;
  }
  append_unused(reader, {"chunk_size"},
                "attention has no chunks; expected it with \"attention\": \"retention\"", unused);
  if (!attends(b.mixer)) {
    const std::string reason = "no attention in these layers; expected it with attention";
    append_unused(reader,
                  {"attention_heads", "kv_heads", "head_size", "qk_norm", "sliding_window",
                   "latent_attention", "compressed_attention", "attention_chunk", "attention_gate",
                   "attention_sinks", "rotary_share", "scaled_rotation"},
                  reason, unused);
    // The model's are the embedding's too.
    if (reader.in_item("positions")) append_unused(reader, {"positions"}, reason, unused);
  }
  if (b.compression.query_rank > 0) {
    append_unused(reader,
                  {"kv_heads", "qk_norm", "rotary_share", "attention_gate", "scaled_rotation"},
                  "all heads share one key; expected it without \"compressed_attention\"", unused);
  }
  if (b.latents.kv_rank == 0) return;
  append_unused(
      reader,
      {"kv_heads", "head_size", "qk_norm", "rotary_share", "attention_gate", "scaled_rotation"},
      "latents say what heads are; expected it without \"latent_attention\"", unused);
}

void check_attention(BlockReader& reader, const BlockForm& b) {
  check_retention(reader, b);
  check_mask(reader, b);
  if (b.latents.kv_rank == 0 && !reader.get("head_size")) {
    check_divides(reader, "attention_heads", b.attention_heads, "hidden_size",
                  b.stream.hidden_size);
  }
  check_divides(reader, "kv_heads", b.kv_heads, "attention_heads", b.attention_heads);
  check_rotary(reader, b);
}

}  // namespace interlock
