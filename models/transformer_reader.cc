// Transformer: reads decoder-only models and checks that their sizes fit each other.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "models/required_count.h"
#include "models/transformer.h"

namespace interlock {
namespace {

constexpr int kMostTokens = 100'000'000;

void check_divides(ObjectReader& reader, std::string_view key, int part, const std::string& whole,
                   int size) {
  if (size % part == 0) return;
  report(reader.diagnostics(), reader.node().value->find(key) ? *reader.get(key) : reader.node(),
         std::string(key) + " " + std::to_string(part) + " does not divide " + whole + " " +
             std::to_string(size) + "; expected a divisor of it");
}

/// Keys that only retention, or only attention, has a use for.
void check_retention(ObjectReader& reader, const Transformer& t) {
  const bool retains = t.attention == Transformer::Attention::Retention;
  if (const auto chunk = reader.get("chunk_size"); chunk && !retains) {
    report(reader.diagnostics(), *chunk,
           "attention has no chunks; expected it with \"attention\": \"retention\"");
  } else if (chunk && t.chunk_size > t.sequence_length) {
    report(reader.diagnostics(), *chunk,
           std::to_string(t.chunk_size) + " tokens of a sequence of " +
               std::to_string(t.sequence_length) + "; expected at most all of them");
  }
  if (const auto heads = reader.get("kv_heads"); heads && retains) {
    report(reader.diagnostics(), *heads,
           "retention has a key head for each head; expected no \"kv_heads\"");
  }
}

/// What each number may be depends on the others; looked at once each is right by itself.
void check_shape(ObjectReader& reader, const Transformer& t) {
  check_retention(reader, t);
  check_divides(reader, "attention_heads", t.attention_heads, "hidden_size", t.hidden_size);
  check_divides(reader, "kv_heads", t.kv_heads, "attention_heads", t.attention_heads);
  if (t.positions == Transformer::Positions::Learned && t.max_positions < t.sequence_length) {
    report(reader.diagnostics(), *reader.get("max_positions"),
           std::to_string(t.max_positions) + " positions for a sequence_length of " +
               std::to_string(t.sequence_length) + "; expected at least as many");
  }
  const int head_size = t.hidden_size / t.attention_heads;
  if (t.positions == Transformer::Positions::Rotary && head_size % 2 != 0) {
    report(reader.diagnostics(), *reader.get("positions"),
           "rotary positions turn pairs, and hidden_size " + std::to_string(t.hidden_size) +
               " / attention_heads " + std::to_string(t.attention_heads) + " is " +
               std::to_string(head_size) + "; expected an even head size");
  }
}

void read_attention(ObjectReader& reader, Transformer& t) {
  constexpr int kMostHeads = 100'000;
  t.attention_heads = required_count(reader, "attention_heads", "a number of heads", kMostHeads);
  t.attention = static_cast<Transformer::Attention>(
      reader.choice("attention", {"materialised", "fused", "retention"}, 0));
  t.kv_heads = reader.count("kv_heads", t.attention_heads, 1, kMostHeads);
  t.chunk_size = reader.count("chunk_size", std::min(512, t.sequence_length), 1, kMostTokens);
  t.causal_flops = reader.choice("attention_flops", {"full", "causal"}, 0) == 1;
  t.positions = static_cast<Transformer::Positions>(
      reader.choice("positions", {"learned", "rotary", "none"}, 0));
  t.max_positions = reader.count("max_positions", t.sequence_length, 1, kMostTokens);
}

/// Keys that only experts have a use for.
void refuse_expert_keys(ObjectReader& reader) {
  for (const char* key : {"experts_per_token", "shared_experts", "expert_ffn_hidden_size",
                          "capacity_factor", "dense_layers"}) {
    if (const auto node = reader.get(key)) {
      report(reader.diagnostics(), *node, "no experts; expected it with \"experts\"");
    }
  }
}

void check_experts(ObjectReader& reader, const Transformer& t) {
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

void read_experts(ObjectReader& reader, Transformer& t) {
  constexpr int kMostExperts = 100'000;
  const auto count = reader.get("experts");
  if (!count) return refuse_expert_keys(reader);
  Transformer::Experts& experts = t.experts;
  experts.count = read_count(*count, 1, kMostExperts, reader.diagnostics()).value_or(1);
  experts.per_token = reader.count("experts_per_token", 1, 1, kMostExperts);
  experts.shared = reader.count("shared_experts", 0, 0, 1000);
  experts.ffn_hidden_size =
      reader.count("expert_ffn_hidden_size", t.ffn_hidden_size, 1, 10'000'000);
  if (const auto capacity = reader.get("capacity_factor")) {
    experts.capacity_factor = read_number(*capacity, 0.01, 1000, reader.diagnostics());
  }
  experts.dense_layers = reader.count("dense_layers", 0, 0, kMostModules);
  if (reader.diagnostics().empty()) check_experts(reader, t);
}

}  // namespace

Transformer read_transformer(ObjectReader& reader) {
  Transformer t;
  t.layers = required_count(reader, "layers", "a number of blocks", kMostModules - 2);
  t.hidden_size = required_count(reader, "hidden_size", "a width", 1'000'000);
  t.vocab_size = required_count(reader, "vocab_size", "a number of tokens", 100'000'000);
  t.sequence_length = required_count(reader, "sequence_length", "tokens of a sample", kMostTokens);
  t.ffn_hidden_size = reader.count("ffn_hidden_size", 4 * t.hidden_size, 1, 10'000'000);
  read_attention(reader, t);
  read_experts(reader, t);
  t.gated_mlp = reader.boolean("gated_mlp", false);
  t.rms_norm = reader.choice("norm", {"layernorm", "rmsnorm"}, 0) == 1;
  t.bias = reader.boolean("bias", true);
  t.tied_embeddings = reader.boolean("tied_embeddings", true);
  t.dropout = reader.number("dropout", 0, 0, 1);
  if (const auto head = reader.get("head")) {
    t.head = read_head(*head, SiteKind::Sequence, reader.diagnostics());
  }
  if (reader.diagnostics().empty()) check_shape(reader, t);
  return t;
}

}  // namespace interlock
