// Attention reader: heads, positions, latents, windows, and what goes with what.
// SPDX-License-Identifier: Apache-2.0
#include "models/transformer/attention_reader.h"

#include <algorithm>

namespace interlock {
namespace {

void check_divides(Section& reader, std::string_view key, int part, const std::string& whole,
                   int size) {
  if (size % part == 0) return;
  report(reader.diagnostics(), reader.node().value->find(key) ? *reader.get(key) : reader.node(),
         std::string(key) + " " + std::to_string(part) + " does not divide " + whole + " " +
             std::to_string(size) + "; expected a divisor of it");
}

/// Reports `key` if it is written, though `other` leaves no use for it.
void refuse_key(Section& reader, std::string_view key, const std::string& message) {
  if (const auto node = reader.get(key)) report(reader.diagnostics(), *node, message);
}

/// Keys that only retention, or only attention, has a use for.
void check_retention(Section& reader, const Transformer& t) {
  if (t.attention != Transformer::Attention::Retention) {
    refuse_key(reader, "chunk_size",
               "attention has no chunks; expected it with \"attention\": \"retention\"");
    return;
  }
  if (const auto chunk = reader.get("chunk_size"); chunk && t.chunk_size > t.sequence_length) {
    report(reader.diagnostics(), *chunk,
           std::to_string(t.chunk_size) + " tokens of a sequence of " +
               std::to_string(t.sequence_length) + "; expected at most all of them");
  }
  refuse_key(reader, "kv_heads",
             "retention has a key head for each head; expected no \"kv_heads\"");
  for (const char* key : {"head_size", "qkv_bias", "projection_bias", "qk_norm", "sliding_window",
                          "bidirectional", "latent_attention"}) {
    refuse_key(reader, key, "not with retention; expected it with attention");
  }
}

void check_rotary(Section& reader, const Transformer& t) {
  const bool latent = t.latents.kv_rank > 0;
  const int turned = latent ? t.latents.rotary_head_size : t.head_size;
  if (t.positions != Transformer::Positions::Rotary || turned % 2 == 0) return;
  const std::string head = latent || reader.get("head_size")
                               ? "a head has " + std::to_string(turned) + " elements"
                               : "hidden_size " + std::to_string(t.hidden_size) +
                                     " / attention_heads " + std::to_string(t.attention_heads) +
                                     " is " + std::to_string(turned);
  report(reader.diagnostics(), reader.get("positions").value_or(reader.node()),
         "rotary positions turn pairs, and " + head + "; expected an even head size");
}

void check_mask(Section& reader, const Transformer& t) {
  if (!t.bidirectional) return;
  refuse_key(reader, "sliding_window", "a window ends at its token; expected no \"bidirectional\"");
  if (t.causal_flops) {
    report(reader.diagnostics(), *reader.get("attention_flops"),
           "every token sees all; expected \"full\", or no \"bidirectional\"");
  }
}

/// Keys and queries of a rank of their own, which replace the usual head sizes.
void read_latents(const JsonNode& node, Section& whole, Transformer& t) {
  Section reader(contract_object(transformer_contract(), "model.transformer.latent_attention"),
                 node, whole.diagnostics());
  t.latents.query_rank = reader.count("query_rank", 0);
  t.latents.kv_rank = reader.required_count("kv_rank", "a width");
  t.latents.rotary_head_size = reader.required_count("rotary_head_size", "elements of a head");
  t.head_size = reader.required_count("head_size", "elements of a head, without rotary ones") +
                t.latents.rotary_head_size;
  t.value_head_size = reader.required_count("value_head_size", "elements of a head");
  reader.finish();
  for (const char* key : {"kv_heads", "head_size", "qk_norm", "rotary_share"}) {
    refuse_key(whole, key, "latents say what heads are; expected it without \"latent_attention\"");
  }
  if (t.positions != Transformer::Positions::Rotary) {
    report(whole.diagnostics(), node,
           "a part of every head has rotary positions; expected \"positions\": \"rotary\"");
  }
}

void read_positions(Section& reader, Transformer& t) {
  const bool images = t.patches.image_size > 0;
  t.positions = static_cast<Transformer::Positions>(reader.choice("positions"));
  t.max_positions = reader.count("max_positions", t.sequence_length);
  t.rotary_share = reader.number("rotary_share");
  t.bidirectional = reader.boolean("bidirectional", images);
}

void read_heads(Section& reader, Transformer& t) {
  t.attention_heads = reader.required_count("attention_heads", "a number of heads");
  t.kv_heads = reader.count("kv_heads", t.attention_heads);
  t.head_size = reader.count("head_size", std::max(t.hidden_size / t.attention_heads, 1));
  t.value_head_size = t.head_size;
  t.qk_norm = reader.boolean("qk_norm");
  if (const auto node = reader.get("latent_attention")) {
    read_latents(*node, reader, t);
    t.kv_heads = t.attention_heads;
  }
}

}  // namespace

void read_attention(Section& reader, Transformer& t) {
  t.attention = static_cast<Transformer::Attention>(reader.choice("attention"));
  read_positions(reader, t);
  read_heads(reader, t);
  t.chunk_size = reader.count("chunk_size", std::min(512, t.sequence_length));
  t.window = reader.written_count("sliding_window");
  t.causal_flops = reader.choice("attention_flops") == 1;
}

void check_attention(Section& reader, const Transformer& t) {
  check_retention(reader, t);
  check_mask(reader, t);
  if (t.latents.kv_rank == 0 && !reader.get("head_size")) {
    check_divides(reader, "attention_heads", t.attention_heads, "hidden_size", t.hidden_size);
  }
  check_divides(reader, "kv_heads", t.kv_heads, "attention_heads", t.attention_heads);
  check_rotary(reader, t);
}

}  // namespace interlock
