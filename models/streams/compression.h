// Compression: sizes of attention to a window of tokens and to entries, each made of several.
// SPDX-License-Identifier: Apache-2.0
//
// Example: DeepSeek-V4 Flash has entries of 4 tokens, which overlap, of which a token chooses 512,
// or entries of 128 tokens, all of which it sees; and windows of 128 tokens alone.
#pragma once

namespace interlock {

/// Selection by scores of small heads of what a token sees: tokens (latent_attention.cc), or
/// entries of several (compressed_attention.cc).
struct Selection {
  int tokens = 0;  // that a token sees at most; 0: nothing is chosen
  int heads = 1, head_size = 1;
  bool operator==(const Selection&) const = default;
};

struct Compression {
  int query_rank = 0;  // of the latent of queries; 0: no such attention
  int rotary_head_size = 1;
  int ratio = 0;         // tokens between two entries; 0: there are none
  bool overlap = false;  // an entry is made of twice as many tokens
  int output_groups = 1, output_rank = 1;
  Selection selection = {};  // of entries; of 0: a token sees all that end before it, or with it
  bool operator==(const Compression&) const = default;
};

}  // namespace interlock
