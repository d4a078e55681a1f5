// Attention reader: the keys of a transformer that say how its tokens see each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/transformer/transformer.h"

namespace interlock {

/// REQUIRES: layers, hidden_size and sequence_length of `shape` are read.
void read_attention(Section& reader, Transformer& shape);
/// A diagnostic for each key that does not go with the others. REQUIRES: each is right by itself.
void check_attention(Section& reader, const Transformer& shape);

}  // namespace interlock
