// Sharding check: whether a model can be divided as asked, in sentences with the numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json/json.h"
#include "models/networks/mlp.h"
#include "models/transformer/transformer.h"

namespace interlock {

/// Adds a diagnostic unless the number at `key` has `parts` equal parts; `among` says who gets
/// them, e.g. "4 tensor devices". It stands at the key, or at the model where that has a default.
void check_parts(Section& reader, std::string_view key, std::int64_t value, std::int64_t parts,
                 const std::string& among);

/// Checks what every model with divided tensors needs: a square or cube where the layout is one.
/// Returns true if the rest can be checked.
bool check_layout(Section& reader, const Sharding& sharding);

/// Adds a diagnostic if a layout that divides rows cannot divide the samples of a micro-batch.
void check_samples(Section& reader, const BuildOptions& options);

/// Gives blocks of which `options` leave out every layer that has their form one that any devices
/// can divide, with the same output.
void replace_left_out(Transformer& shape, const BuildOptions& options);
/// Reports every size of `shape` that cannot be divided, and what its operators cannot have.
void check_sharding(Section& reader, const Transformer& shape, const BuildOptions& options);
/// Makes a vocabulary that tensor devices cannot share longer, to a multiple of 128 tokens for
/// each, as Megatron-LM does by itself (50257 among 8: 51200).
void pad_vocabulary(Transformer& shape, const Sharding& sharding);
void check_sharding(Section& reader, const Mlp& shape, const BuildOptions& options);

/// Checks that square images of `side` pixels have a pixel for each part in front of and behind
/// each of `windows`, which follow one another, and halos that reach no further than the next part.
void check_images(Section& reader, int side, const std::vector<Window>& windows,
                  const Sharding& sharding);

/// Adds a diagnostic for each kind of sharding that `model`, e.g. "a ResNet", cannot have.
void refuse_tensor(Section& reader, const Sharding& sharding, const std::string& model);
void refuse_context(Section& reader, const Sharding& sharding, const std::string& model);
void refuse_images(Section& reader, const Sharding& sharding, const std::string& model);
void refuse_experts(Section& reader, const Sharding& sharding, const std::string& model);
void refuse_split_brain(Section& reader, const Sharding& sharding, const std::string& model);

}  // namespace interlock
