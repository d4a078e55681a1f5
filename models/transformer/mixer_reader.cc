// Mixer reader: sizes of what stands in for attention, and checks that they fit each other.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "models/transformer/block_reader.h"

namespace interlock {
namespace {

/// Reports `key` unless its `part` divides `whole`, of `of`.
void check_shares(Section& reader, std::string_view key, int part, int whole,
                  const std::string& of) {
  if (whole % part == 0) return;
  report(reader.diagnostics(), *reader.get(key),
         std::to_string(part) + " do not divide " + of + " " + std::to_string(whole) +
             "; expected a divisor of it");
}

/// A chunk is no longer than the sequence.
int read_chunk(Section& reader, const BlockForm& b) {
  return std::min(reader.count("chunk_size"), b.stream.sequence_length);
}

void read_mamba(Section& reader, BlockForm& b) {
  Mamba& m = b.mamba;
  m.state_size = reader.count("state_size");
  m.conv_width = reader.count("conv_width");
  m.expand = reader.count("expand");
  m.dt_rank = reader.count("dt_rank", (b.stream.hidden_size + 15) / 16);
  m.norms = reader.boolean("norms");
}

void read_mamba2(Section& reader, BlockForm& b) {
  Mamba2& m = b.mamba2;
  m.heads = reader.required_count("heads", "a number of heads");
  m.head_size = reader.count("head_size");
  m.state_size = reader.count("state_size");
  m.groups = reader.count("groups");
  m.conv_width = reader.count("conv_width");
  m.chunk_size = read_chunk(reader, b);
  if (reader.get("groups")) check_shares(reader, "groups", m.groups, m.heads, "heads");
}

void read_gated_delta(Section& reader, BlockForm& b) {
  GatedDelta& d = b.gated_delta;
  d.value_heads = reader.required_count("value_heads", "a number of heads");
  d.key_heads = reader.count("key_heads", d.value_heads);
  d.key_head_size = reader.count("key_head_size");
  d.value_head_size = reader.count("value_head_size");
  d.conv_width = reader.count("conv_width");
  d.chunk_size = read_chunk(reader, b);
  if (reader.get("key_heads")) {
    check_shares(reader, "key_heads", d.key_heads, d.value_heads, "value_heads");
  }
}

/// A mixer that has an object of sizes: its value of `attention`, and the key of the object.
struct SizedMixer {
  Mixer mixer = Mixer::None;
  std::string_view name, key;
  void (*read)(Section&, BlockForm&) = nullptr;
};
constexpr SizedMixer kSizedMixers[] = {
    {Mixer::Mamba, "mamba", "mamba", read_mamba},
    {Mixer::Mamba2, "mamba2", "mamba2", read_mamba2},
    {Mixer::GatedDelta, "gated-delta", "gated_delta", read_gated_delta}};

}  // namespace

void read_mixer(BlockReader& reader, BlockForm& b) {
  b.mixer = static_cast<Mixer>(reader.choice("attention", 1));
  if (attends(b.mixer) || b.mixer == Mixer::Retention) return read_attention(reader, b);
  for (const SizedMixer& one : kSizedMixers) {
    if (one.mixer != b.mixer) continue;
    if (const auto node = reader.get(one.key)) {
      const std::string rows = "model.transformer." + std::string(one.key);
      Section sizes(contract_object(transformer_contract(), rows), *node, reader.diagnostics());
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
