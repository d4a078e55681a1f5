// Transformer: the rows of its keys.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/model_contract.h"
#include "models/transformer/transformer.h"

namespace interlock::contract {
namespace {

constexpr int kMostTokens = 100'000'000;  // of a sample, or of the vocabulary
constexpr int kMostHeads = 100'000;
constexpr int kMostExperts = 100'000;
constexpr int kWidestMlp = 10'000'000;

std::vector<ContractKey> transformer_sizes() {
  return {
      {"layers", whole(1, kMostModules - 2), "required", "Transformer blocks."},
      {"hidden_size", whole(1, kMostWidth), "required", "Width of the residual stream."},
      {"attention_heads", whole(1, kMostHeads), "required",
       "Query heads; divides `hidden_size`, if `head_size` does not say how wide they are."},
      {"kv_heads", whole(1, kMostHeads), "`attention_heads`",
       "Key and value heads; divides `attention_heads`. Fewer is grouped-query attention."},
      {"head_size", whole(1, kMostWidth), "`hidden_size` / `attention_heads`",
       "Elements of a head."},
      {"ffn_hidden_size", whole(1, kWidestMlp), "4 x `hidden_size`", "Width inside the MLP."},
      {"vocab_size", whole(1, kMostTokens), "required without `patches`",
       "Tokens in the vocabulary."},
      {"sequence_length", whole(1, kMostTokens), "required without `patches`",
       "Tokens of one sample."},
      {"patches", object("model.transformer.patches"), "tokens",
       "Square images instead of tokens, without `vocab_size` and `sequence_length`: a token for "
       "each patch, and one more."}};
}

std::vector<ContractKey> attention_keys() {
  return {
      {"attention", one_of({"materialised", "fused", "retention"}), "materialised",
       "`materialised`: stores the score matrix. `fused`: one kernel that never does "
       "(FlashAttention). `retention`: of a retentive network (Sun et al., arXiv 2307.08621), "
       "chunk "
       "by chunk, with a state that is handed on."},
      {"chunk_size", whole(1, kMostTokens), "512, or the sequence where that is shorter",
       "`retention`: tokens of a chunk."},
      {"attention_flops", one_of({"full", "causal"}), "full",
       "What MFU counts of attention: the whole score matrix, or the half that a causal mask "
       "keeps. "
       "Changes no time, no memory and no HFU."},
      {"latent_attention", object("model.transformer.latent_attention"), "none",
       "Queries, keys and values made of latents of low rank (DeepSeek-V2's MLA, arXiv "
       "2405.04434). "
       "Needs rotary positions."},
      {"qk_norm", boolean(), "false", "RMS norms of each head's queries and keys."},
      {"sliding_window", whole(1, kMostTokens), "all",
       "Tokens that a token sees, itself and those before it. Saves work in fused attention only."},
      {"bidirectional", boolean(), "`false`; with `patches` `true`",
       "Tokens see those behind them too: an encoder, which has no token slices."}};
}

std::vector<ContractKey> block_keys() {
  return {
      {"gated_mlp", boolean(), "false", "Gate and up projections instead of one (SwiGLU)."},
      {"norm", one_of({"layernorm", "rmsnorm"}), "layernorm", "Kind of normalisation."},
      {"norm_position", one_of({"pre", "post"}), "pre",
       "Norms before attention and MLP, or behind the sums (and none before the readout)."},
      {"parallel_residual", boolean(), "false",
       "Attention and MLP read the same, each behind a norm, and are added together (GPT-NeoX, "
       "arXiv 2204.06745)."},
      {"bias", boolean(), "true", "The blocks' linear layers have a bias."},
      {"qkv_bias", boolean(), "`bias`", "Queries, keys and values have a bias."},
      {"projection_bias", boolean(), "`bias`", "The layer behind attention has a bias."},
      {"mlp_bias", boolean(), "`bias`", "The MLP has biases."},
      {"positions", one_of({"learned", "rotary", "none"}), "learned", "Position embedding."},
      {"rotary_share", number(0, 1), "1", "`rotary`: share of a head's elements that are turned."},
      {"max_positions", whole(1, kMostTokens), "`sequence_length`",
       "`learned`: rows of the position table."},
      {"token_types", whole(0, 1e6), "0",
       "Rows of a further table that is added to the embedding."},
      {"embedding_norm", boolean(), "false", "A norm behind the embedding."},
      {"tied_embeddings", boolean(), "true", "The readout shares the embedding's weights."},
      {"dropout", number(0, 1), "0", "Dropout probability; only whether there is any matters."},
      {"readout", one_of({"lm", "masked-lm", "classes"}), "`lm`; with `patches` `classes`",
       "What is predicted. `lm`: each next token. `masked-lm`: each token, behind one more layer, "
       "as BERT. `classes`: one class, from the first token."},
      {"classes", whole(1, 1e8), "2; with `patches` 1000", "Readout `classes`: how many."},
      {"pooler", boolean(), "false", "Readout `classes`: one more layer before them."}};
}

std::vector<ContractKey> expert_keys() {
  return {
      {"experts", whole(1, kMostExperts), "none",
       "Number of experts of the mixture, with a router, in the place of each MLP. The keys below "
       "need it."},
      {"experts_per_token", whole(1, kMostExperts), "1", "Experts that a token is sent to."},
      {"shared_experts", whole(0, 1000), "0", "Further experts, that every token goes through."},
      {"expert_ffn_hidden_size", whole(1, kWidestMlp), "`ffn_hidden_size`",
       "Width inside an expert."},
      {"capacity_factor", number(0.01, 1000), "every token is served",
       "Buffers of fixed size: rows of an expert over the mean, full or not; tokens beyond are "
       "dropped."},
      {"dense_layers", whole(0, kMostModules), "0",
       "First layers, which have an MLP and no experts."},
      {"expert_interval", whole(1, kMostModules), "1",
       "Layers, behind the dense ones, whose number it divides have experts."},
      {"shared_expert_gate", boolean(), "false",
       "The output of shared experts is multiplied by a gate."},
      {"router_bias", boolean(), "false",
       "The router adds a bias to the score of each expert (DeepSeek-V3)."},
      head_key("`lm`; with classes `linear`")};
}

std::vector<ContractObject> transformer_objects() {
  ContractObject whole_model =
      model_object("transformer",
                   "A transformer: a language model, an encoder, or one of image patches. Modules: "
                   "embedding, each block, readout.",
                   joined({transformer_sizes(), attention_keys(), block_keys(), expert_keys()}));
  whole_model.needs = {{"vocab_size", "sequence_length"}, {"patches"}};
  return {whole_model,
          {.name = "model.transformer.latent_attention",
           .meaning = "Attention whose queries, keys and values are made of latents.",
           .keys = {{"query_rank", whole(1, kMostWidth), "none: queries are made of the tokens",
                     "Width of the latent of queries."},
                    {"kv_rank", whole(1, kMostWidth), "required",
                     "Width of the latent of keys and values."},
                    {"head_size", whole(1, kMostWidth), "required",
                     "Elements of a head's queries and keys, without those of positions."},
                    {"rotary_head_size", whole(1, kMostWidth), "required",
                     "Further elements, which have rotary positions; all heads' keys share them."},
                    {"value_head_size", whole(1, kMostWidth), "required",
                     "Elements of a head's values."}}},
          {.name = "model.transformer.patches",
           .meaning = "Patches of square images.",
           .keys = {{"image_size", whole(1, 65'536), "required", "Pixels on a side."},
                    {"patch_size", whole(1, 65'536), "required",
                     "Pixels on a side of a patch; divides `image_size`."},
                    {"channels", whole(1, 100'000), "3", "Numbers of a pixel."}}}};
}

}  // namespace
}  // namespace interlock::contract

namespace interlock {

const std::vector<ContractObject>& transformer_contract() {
  static const std::vector<ContractObject> objects = contract::transformer_objects();
  return objects;
}

}  // namespace interlock
