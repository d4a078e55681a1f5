// Mixer reader: sizes of what stands in for attention, and checks that they fit each other.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "models/layers/required_count.h"
#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

constexpr int kMostStates = 100'000;
constexpr int kWidestWindow = 1000;

/// Reports `key` unless its `part` divides `whole`, of `of`.
void check_shares(ObjectReader& reader, std::string_view key, int part, int whole,
                  const std::string& of) {
  if (whole % part == 0) return;
  report(reader.diagnostics(), *reader.get(key),
         std::to_string(part) + " do not divide " + of + " " + std::to_string(whole) +
             "; expected a divisor of it");
}

/// A chunk is no longer than the sequence.
int read_chunk(ObjectReader& reader, int otherwise, const BlockForm& b) {
  return std::min(reader.count("chunk_size", otherwise, 1, kMostTokens), b.stream.sequence_length);
}

void read_mamba(ObjectReader& reader, BlockForm& b) {
  Mamba& m = b.mamba;
  m.state_size = reader.count("state_size", m.state_size, 1, kMostStates);
  m.conv_width = reader.count("conv_width", m.conv_width, 1, kWidestWindow);
  m.expand = reader.count("expand", m.expand, 1, 1000);
  m.dt_rank = reader.count("dt_rank", (b.stream.hidden_size + 15) / 16, 1, kWidest);
  m.norms = reader.boolean("norms", false);
}

void read_mamba2(ObjectReader& reader, BlockForm& b) {
  Mamba2& m = b.mamba2;
  m.heads = required_count(reader, "heads", "a number of heads", kMostHeads);
  m.head_size = reader.count("head_size", m.head_size, 1, kWidest);
  m.state_size = reader.count("state_size", m.state_size, 1, kMostStates);
  m.groups = reader.count("groups", m.groups, 1, kMostHeads);
  m.conv_width = reader.count("conv_width", m.conv_width, 1, kWidestWindow);
  m.chunk_size = read_chunk(reader, m.chunk_size, b);
  if (reader.get("groups")) check_shares(reader, "groups", m.groups, m.heads, "heads");
}

void read_gated_delta(ObjectReader& reader, BlockForm& b) {
  GatedDelta& d = b.gated_delta;
  d.value_heads = required_count(reader, "value_heads", "a number of heads", kMostHeads);
  d.key_heads = reader.count("key_heads", d.value_heads, 1, kMostHeads);
  d.key_head_size = reader.count("key_head_size", d.key_head_size, 1, kWidest);
  d.value_head_size = reader.count("value_head_size", d.value_head_size, 1, kWidest);
  d.conv_width = reader.count("conv_width", d.conv_width, 1, kWidestWindow);
  d.chunk_size = read_chunk(reader, d.chunk_size, b);
  if (reader.get("key_heads")) {
    check_shares(reader, "key_heads", d.key_heads, d.value_heads, "value_heads");
  }
}

/// A mixer that has an object of sizes: its value of `attention`, and the key of the object.
struct SizedMixer {
  Mixer mixer = Mixer::None;
  std::string_view name, key;
  void (*read)(ObjectReader&, BlockForm&) = nullptr;
};
constexpr SizedMixer kSizedMixers[] = {
    {Mixer::Mamba, "mamba", "mamba", read_mamba},
    {Mixer::Mamba2, "mamba2", "mamba2", read_mamba2},
    {Mixer::GatedDelta, "gated-delta", "gated_delta", read_gated_delta}};

}  // namespace

void read_mixer(BlockReader& reader, BlockForm& b) {
  const std::vector<std::string> names = {"materialised", "fused",       "retention", "mamba",
                                          "mamba2",       "gated-delta", "none"};
  b.mixer = static_cast<Mixer>(reader.choice("attention", names, 0));
  if (attends(b.mixer) || b.mixer == Mixer::Retention) return read_attention(reader, b);
  for (const SizedMixer& one : kSizedMixers) {
    if (one.mixer != b.mixer) continue;
    if (const auto node = reader.get(one.key)) {
      ObjectReader sizes(*node, reader.diagnostics());
      one.read(sizes, b);
      sizes.finish();
    } else {
      reader.model().require(one.key, "an object with its sizes");
    }
  }
}

void append_unused_mixer_keys(BlockReader& reader, const BlockForm& b,
                              std::vector<UnusedKey>& unused) {
  for (const SizedMixer& one : kSizedMixers) {
    if (one.mixer == b.mixer) continue;
    append_unused(reader, {one.key},
                  "sizes of another mixer; expected it with \"attention\": " + in_quotes(one.name),
                  unused);
  }
  append_unused_attention_keys(reader, b, unused);
}

}  // namespace interlock
