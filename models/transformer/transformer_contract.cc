// Transformer: the rows of its keys.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "models/layers/model_contract.h"
#include "models/transformer/transformer.h"

namespace interlock::contract {
namespace {

constexpr int kMostTokens = 100'000'000;  // of a sample, or of the vocabulary
constexpr int kMostHeads = 100'000;
constexpr int kMostExperts = 100'000;
constexpr int kWidestMlp = 10'000'000;
constexpr int kMostProducts = 8;  // of a connector

std::vector<ContractKey> transformer_sizes() {
  return {
      {"layers", whole(1, kMostModules - 2), "required", "Transformer blocks."},
      {"hidden_size", whole(1, kMostWidth), "required", "Width of the residual stream."},
      {"vocab_size", whole(1, kMostTokens), "required without `patches`",
       "Tokens in the vocabulary."},
      {"sequence_length", whole(1, kMostTokens), "required without `patches`",
       "Tokens of one sample."},
      {"patches", object("model.transformer.patches"), "tokens",
       "Square images instead of tokens, without `vocab_size` and `sequence_length`: a token for "
       "each patch, and one more."},
      {"encoder", object("model.transformer.encoder"), "none",
       "A transformer in front of the embedding: of images, whose tokens stand in the sequence and "
       "are counted by `sequence_length`; or of words that every block reads (T5)."}};
}

/// Keys that an item of the layer pattern may have too.
std::vector<ContractKey> attention_keys() {
  return {
      {"attention",
       one_of({"materialised", "fused", "retention", "mamba", "mamba2", "gated-delta", "none"}),
       "fused",
       "What lets tokens see each other. `materialised`: stores the score matrix. `fused`: one "
       "kernel that never does (FlashAttention). `retention`: of a retentive network (Sun et al., "
       "arXiv 2307.08621), chunk by chunk, with a state that is handed on. `mamba`, `mamba2`: "
       "selective states (arXiv 2312.00752, 2405.21060). `gated-delta`: the gated delta rule "
       "(arXiv 2412.06464). `none`: an MLP alone."},
      {"attention_heads", whole(1, kMostHeads), "required with attention",
       "Query heads; divides `hidden_size`, if `head_size` does not say how wide they are."},
      {"kv_heads", whole(1, kMostHeads), "`attention_heads`",
       "Key and value heads; divides `attention_heads`. Fewer is grouped-query attention."},
      {"head_size", whole(1, kMostWidth), "`hidden_size` / `attention_heads`",
       "Elements of a head."},
      {"qk_norm", either({boolean(), one_of({"heads", "whole"})}), "false",
       "RMS norms of queries and keys: `heads` or `true`, of each head; `whole`, of all heads "
       "together (OLMo 2)."},
      {"attention_gate", boolean(), "false",
       "What attention puts out is multiplied by a gate, which makes the query projection twice "
       "as wide (Qwen3-Next)."},
      {"attention_sinks", boolean(), "false",
       "A number for each head joins its softmax (gpt-oss)."},
      {"latent_attention", object("model.transformer.latent_attention"), "none",
       "Queries, keys and values made of latents of low rank (DeepSeek-V2's MLA, arXiv "
       "2405.04434). Needs rotary positions."},
      {"compressed_attention", object("model.transformer.compressed_attention"), "none",
       "One key, which is its value, for each token, and one for each entry of several tokens; all "
       "heads share them (DeepSeek-V4). A token sees those of `sliding_window`, and the entries "
       "before. With `fused` attention, rotary positions, whole sequences and one document in "
       "each."},
      {"sliding_window", whole(1, kMostTokens), "all",
       "Tokens that a token sees, itself and those before it. Saves work in fused attention only."},
      {"attention_chunk", whole(1, kMostTokens), "all",
       "Parts of this many tokens see themselves alone (Llama 4; windows of an encoder's patches). "
       "Saves work in fused attention only."},
      {"positions", one_of({"learned", "rotary", "none", "both", "relative"}), "learned",
       "Position embedding. `both`: a table, and heads are turned. `relative`: a number for each "
       "head and distance is added to scores (T5)."},
      {"rotary_share", number(0, 1), "1",
       "`rotary` or `both`: share of a head's elements that are turned."},
      {"scaled_rotation", boolean(), "false",
       "`rotary` or `both`: what is turned is multiplied by a factor, too (YaRN, arXiv 2309.00071; "
       "gpt-oss). A framework with `routing` `steps` has no one kernel for that."},
      {"chunk_size", whole(1, kMostTokens), "512, or the sequence where that is shorter",
       "`retention`: tokens of a chunk."},
      {"mamba", object("model.transformer.mamba"), "none",
       "Sizes, for `\"attention\": \"mamba\"`."},
      {"mamba2", object("model.transformer.mamba2"), "none",
       "Sizes, for `\"attention\": \"mamba2\"`."},
      {"gated_delta", object("model.transformer.gated_delta"), "none",
       "Sizes, for `\"attention\": \"gated-delta\"`."},
      {"ffn", one_of({"dense", "experts", "none"}),
       "`experts` where the keys of experts say so, else `dense`",
       "What stands behind attention: an MLP, a mixture of experts, or nothing."},
      {"ffn_hidden_size", whole(1, kWidestMlp), "4 x `hidden_size`", "Width inside the MLP."}};
}

/// Returns the keys of an item of the layer pattern: null takes the model's key away.
std::vector<ContractKey> pattern_keys() {
  std::vector<ContractKey> keys = {
      {"repeat", whole(1, kMostModules), "1", "Layers of this form in a row."}};
  for (ContractKey key : attention_keys()) {
    key.type = either({key.type, nothing()});
    key.otherwise = "the model's";
    key.value.reset();
    keys.push_back(key);
  }
  return keys;
}

std::vector<ContractObject> mixers() {
  const ContractKey conv = {"conv_width", whole(1, 1000), "4", "Tokens that a convolution reads."};
  return {
      {.name = "model.transformer.mamba",
       .meaning = "Selective states, version 1.",
       .keys = {{"state_size", whole(1, 100'000), "16", "Numbers of a channel's state."},
                conv,
                {"expand", whole(1, 1000), "2", "Inner channels over `hidden_size`."},
                {"dt_rank", whole(1, kMostWidth), "`hidden_size` / 16, rounded up",
                 "Numbers that the step sizes are made of."},
                {"norms", boolean(), "false",
                 "RMS norms of these numbers and of what reads and writes the states (Jamba)."}}},
      {.name = "model.transformer.mamba2",
       .meaning = "Selective states, version 2.",
       .keys = {{"heads", whole(1, kMostHeads), "required", "Heads."},
                {"head_size", whole(1, kMostWidth), "64", "Channels of a head."},
                {"state_size", whole(1, 100'000), "128", "Numbers of a channel's state."},
                {"groups", whole(1, kMostHeads), "1",
                 "Heads of a group share what reads and writes their states; divides `heads`."},
                conv,
                {"chunk_size", whole(1, kMostTokens), "256", "Tokens of a chunk."}}},
      {.name = "model.transformer.gated_delta",
       .meaning = "The gated delta rule.",
       .keys = {
           {"value_heads", whole(1, kMostHeads), "required", "Heads of values."},
           {"key_heads", whole(1, kMostHeads), "`value_heads`",
            "Heads of queries and of keys; divides `value_heads`."},
           {"key_head_size", whole(1, kMostWidth), "128", "Elements of a head's queries and keys."},
           {"value_head_size", whole(1, kMostWidth), "128", "Elements of a head's values."},
           conv,
           {"chunk_size", whole(1, kMostTokens), "64", "Tokens of a chunk."}}}};
}

std::vector<ContractKey> block_keys() {
  return {
      {"gated_mlp", boolean(), "false", "Gate and up projections instead of one (SwiGLU)."},
      {"norm", one_of({"layernorm", "rmsnorm"}), "layernorm", "Kind of normalisation."},
      {"norm_bias", boolean(), "true", "A layer norm has biases beside its scales (Cohere: none)."},
      {"norm_position", one_of({"pre", "post", "both", "branch"}), "pre",
       "Norms before attention and MLP; behind the sums (and none before the readout); before and "
       "behind attention and MLP, in front of the sums (Gemma 2); or behind them alone (OLMo 2)."},
      {"parallel_residual", boolean(), "false",
       "Attention and MLP read the same, each behind a norm, and are added together (GPT-NeoX, "
       "arXiv 2204.06745)."},
      {"shared_norm", boolean(), "false",
       "With `parallel_residual`: both read behind one norm (GPT-J, Falcon-7B)."},
      {"bias", boolean(), "true", "The blocks' linear layers have a bias."},
      {"qkv_bias", boolean(), "`bias`", "Queries, keys and values have a bias."},
      {"projection_bias", boolean(), "`bias`", "The layer behind attention has a bias."},
      {"mlp_bias", boolean(), "`bias`", "The MLP has biases."},
      {"clamped_mlp", boolean(), "false",
       "With `gated_mlp`: what the activation reads is clamped (gpt-oss). With `routing` `steps` "
       "experts have kernels of their own for that."},
      {"max_positions", whole(1, kMostTokens), "`sequence_length`",
       "`learned` or `both`: rows of the position table."},
      {"position_buckets", whole(1, kMostTokens), "32",
       "`relative`: buckets of distances, each with a number for each head."},
      {"token_types", whole(0, 1e6), "0",
       "Rows of a further table that is added to the embedding."},
      {"embedding_norm", boolean(), "false", "A norm behind the embedding."},
      {"readout_bias", boolean(), "false with `readout` `lm`",
       "The layer that leads to the vocabulary, or to classes, has a bias (GPT-J)."},
      {"tied_embeddings", boolean(), "true", "The readout shares the embedding's weights."},
      {"attention_flops", one_of({"full", "causal"}), "full",
       "What MFU counts of attention: the whole score matrix, or the half that a causal mask "
       "keeps. Changes no time, no memory and no HFU."},
      {"bidirectional", boolean(), "`false`; with `patches` `true`",
       "Tokens see those behind them too: an encoder, which has no token slices."},
      {"layer_pattern", list(object("model.transformer.layer_pattern"), 1), "all layers are alike",
       "The forms that layers have in turn, from the first again until all have one. Each item "
       "has the model's keys but for those that it writes; `null` takes one away."},
      {"multi_token_prediction", object("model.transformer.multi_token_prediction"), "none",
       "Further blocks behind the last, which predict the tokens behind the next one "
       "(DeepSeek-V3, arXiv 2412.19437). They are part of the last module."},
      {"hyper_connections", object("model.transformer.hyper_connections"), "one stream",
       "Several residual streams, which attention and MLP read as a weighed sum and write by a "
       "number each, while a doubly stochastic matrix mixes them (mHC; DeepSeek-V4). Auxiliary "
       "heads read one stream. Needs `norm_position` `pre`, no `parallel_residual` and no "
       "`encoder`."},
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
       "need it. Experts have biases with `mlp_bias`."},
      {"experts_per_token", whole(1, kMostExperts), "1", "Experts that a token is sent to."},
      {"expert_groups", whole(1, kMostExperts), "1",
       "Equal groups of experts; divides `experts`. A token's lie in few of them, so that it goes "
       "to few nodes (DeepSeek-V3)."},
      {"expert_groups_per_token", whole(1, kMostExperts), "`expert_groups`",
       "Groups that a token's experts may lie in."},
      {"shared_experts", whole(0, 1000), "0", "Further experts, that every token goes through."},
      {"expert_ffn_hidden_size", whole(1, kWidestMlp), "`ffn_hidden_size`",
       "Width inside an expert."},
      {"shared_expert_ffn_hidden_size", whole(1, kWidestMlp), "`expert_ffn_hidden_size`",
       "Width inside each shared expert."},
      {"expert_latent_size", whole(1, kWidestMlp), "`hidden_size`",
       "Width of what experts read and make, but for the shared ones: a product makes latents of "
       "tokens before they are sent, another makes tokens of latents after they return, each whole "
       "on every tensor device (LatentMoE: Nemotron 3 Super, `--moe-latent-size` of "
       "Megatron-Core)."},
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
       "The router adds a bias to the score of each expert (DeepSeek-V3, gpt-oss)."},
      {"hash_layers", whole(0, kMostModules), "0",
       "First layers, whose tokens have the experts of a table by their words, so that no router "
       "has a bias there; scores still weigh them (DeepSeek-V4)."},
      head_key("`lm`; with classes `linear`")};
}

/// Returns the keys of an encoder, of images or words: those of a transformer but for its inputs
/// and readout.
std::vector<ContractKey> encoder_keys() {
  std::vector<ContractKey> keys = {
      {"patches", object("model.transformer.patches"), "words", "Images, in patches."},
      {"sequence_length", whole(1, kMostTokens), "the model's",
       "Without `patches`: tokens of a source, which every block of the model reads by "
       "cross-attention. They are looked up in the model's table."},
      {"layers", whole(1, kMostModules - 2), "required", "Transformer blocks."},
      {"hidden_size", whole(1, kMostWidth), "required with `patches`; else the model's",
       "Width of the residual stream."},
      {"images", whole(0, 1e6), "1", "Images of one sample; 0: text alone, without the encoder."},
      {"final_norm", boolean(), "`false` with `norm_position` `post`, else `true`",
       "A norm behind the last block."},
      {"connector", object("model.transformer.encoder.connector"), "one product",
       "The way to the decoder's width."}};
  const std::set<std::string> of_decoders = {
      "tied_embeddings",        "readout", "readout_bias",      "classes",    "pooler",
      "multi_token_prediction", "head",    "hyper_connections", "hash_layers"};
  for (const auto& more : {attention_keys(), block_keys(), expert_keys()}) {
    for (const ContractKey& key : more) {
      if (!of_decoders.contains(key.key)) keys.push_back(key);
    }
  }
  return keys;
}

std::vector<ContractObject> encoder() {
  return {
      {.name = "model.transformer.encoder",
       .meaning = "A transformer of images, or of the words of a source, in front of the model. "
                  "Its modules "
                  "come first.",
       .keys = encoder_keys()},
      {.name = "model.transformer.encoder.connector",
       .meaning = "From the patches of an encoder to tokens of the decoder.",
       .keys = {{"merge", whole(1, 65'536), "1",
                 "Patches on a side of the square that becomes one token."},
                {"merge_by", one_of({"concatenation", "mean", "product"}), "concatenation",
                 "`concatenation`: all numbers of a square side by side. `mean`: their mean. "
                 "`product`: a product makes them as wide as a patch, without an activation behind "
                 "it (Mistral 3)."},
                {"norm", one_of({"none", "layernorm", "rmsnorm"}), "none",
                 "A norm of each patch before it is merged, or of each mean."},
                {"norm_of", one_of({"patch", "square"}), "patch",
                 "`square`: the norm is of all numbers of a square together (InternVL)."},
                {"hidden_size",
                 either({whole(1, kMostWidth), list(whole(1, kMostWidth), 1, kMostProducts)}),
                 "one product alone",
                 "Width between two products, with an activation there; a list for more."},
                {"bias", boolean(), "true", "Its products have a bias."},
                {"deepstack", list(whole(0, kMostModules)), "none",
                 "Layers, from 0, whose patches go through a connector of their own too, with a "
                 "layer norm of each square. The tokens of the first are added behind the "
                 "decoder's first block, and so on (DeepStack, arXiv 2406.04334; Qwen3-VL)."}}}};
}

std::vector<ContractObject> transformer_objects() {
  ContractObject whole_model =
      model_object("transformer",
                   "A transformer: a language model, an encoder, or one of image patches. Modules: "
                   "embedding, each block, readout.",
                   joined({transformer_sizes(), attention_keys(), block_keys(), expert_keys()}));
  whole_model.needs = {{"vocab_size", "sequence_length"}, {"patches"}};
  std::vector<ContractObject> all = {
      whole_model,
      {.name = "model.transformer.layer_pattern",
       .meaning = "The form of some layers. `null` takes the model's key away.",
       .keys = pattern_keys()},
      {.name = "model.transformer.multi_token_prediction",
       .meaning = "Blocks that predict the tokens behind the next one.",
       .keys = {{"layers", whole(1, 64), "1", "Such blocks, one for each further token."},
                {"form", object("model.transformer.layer_pattern"), "the last layer's",
                 "The form of these blocks: the model's keys but for those that it writes."}}},
      {.name = "model.transformer.hyper_connections",
       .meaning = "Several residual streams.",
       .keys = {{"streams", whole(2, 64), "required", "Streams of `hidden_size` numbers."}}},
      {.name = "model.transformer.compressed_attention",
       .meaning = "Attention to a window of tokens and to entries, each of several tokens.",
       .keys = {{"query_rank", whole(1, kMostWidth), "required",
                 "Width of the latent of queries. A head has `head_size` elements."},
                {"rotary_head_size", whole(1, kMostWidth), "required",
                 "Elements of a head, of these, that are turned by place."},
                {"ratio", whole(1, kMostTokens), "no entries: the window alone",
                 "Tokens between two entries. An entry is a sum of its tokens' values, number by "
                 "number, by a softmax over them."},
                {"overlap", boolean(), "false",
                 "An entry is of twice as many tokens: those of the entry before too, which have "
                 "further values and weights for that."},
                {"output_groups", whole(1, kMostHeads), "1",
                 "Equal groups of heads, each projected to `output_rank`; divides "
                 "`attention_heads`."},
                {"output_rank", whole(1, kMostWidth), "required",
                 "Numbers that are made of a group of heads."},
                {"selection", object("model.transformer.compressed_attention.selection"),
                 "all entries before a token are seen", "A token chooses the entries it sees."}}},
      {.name = "model.transformer.compressed_attention.selection",
       .meaning = "An indexer that scores all entries before a token by narrow entries of its own. "
                  "It learns from attention's weights, beside the model.",
       .keys = {{"entries", whole(1, 100'000'000), "required",
                 "Entries that a token sees at most."},
                {"index_heads", whole(1, 100'000), "required", "Heads of the indexer."},
                {"index_head_size", whole(1, kMostWidth), "required",
                 "Elements of its heads' queries, and of its entries, which all heads share."}}},
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
                 "Elements of a head's values."},
                {"selection", object("model.transformer.latent_attention.selection"),
                 "every token is seen",
                 "A token chooses those that it sees (DeepSeek-V3.2, arXiv 2512.02556), and all "
                 "heads read latents. With `fused` attention, whole sequences and one document in "
                 "each."}}},
      {.name = "model.transformer.latent_attention.selection",
       .meaning =
           "An indexer that scores all pairs of tokens, for attention to the best. It learns "
           "from attention's weights, beside the model.",
       .keys = {{"tokens", whole(1, 100'000'000), "required", "Tokens that a token sees at most."},
                {"index_heads", whole(1, 100'000), "required", "Heads of the indexer."},
                {"index_head_size", whole(1, kMostWidth), "required",
                 "Elements of its heads' queries, and of its keys, which all heads share."}}},
      {.name = "model.transformer.patches",
       .meaning = "Patches of square images.",
       .keys = {{"image_size", whole(1, 65'536), "required", "Pixels on a side."},
                {"patch_size", whole(1, 65'536), "required",
                 "Pixels on a side of a patch; divides `image_size`."},
                {"channels", whole(1, 100'000), "3", "Numbers of a pixel."},
                {"class_token", boolean(), "true", "One more token, for the whole image."},
                {"bias", boolean(), "true", "The product that reads pixels has a bias."}}}};
  for (const auto& more : {mixers(), encoder()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace
}  // namespace interlock::contract

namespace interlock {

const std::vector<ContractObject>& transformer_contract() {
  static const std::vector<ContractObject> objects = contract::transformer_objects();
  return objects;
}

}  // namespace interlock
