// The scenario contract: "model", which models/ reads.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract_types.h"

namespace interlock::contract {
namespace {

ContractType head_kind() { return one_of({"convolution", "linear", "mlp", "lm", "later-layers"}); }

/// Returns a model with the keys that every kind has, and `keys`.
ContractObject model(const std::string& kind, const std::string& meaning,
                     const std::vector<ContractKey>& keys) {
  ContractObject model = {
      .name = "model." + kind,
      .meaning = meaning,
      .keys = {{"kind", one_of({kind}), "required", "The kind of this model."},
               {"name", text(), "the kind", "Name in results."},
               {"source", text(), "", "Where the sizes come from; not used."},
               {"notes", list(text()), "", "Sentences about the model, told when it is loaded."}}};
  model.keys.insert(model.keys.end(), keys.begin(), keys.end());
  return model;
}

ContractKey head_key(const std::string& otherwise) {
  return {"head", head_type(), otherwise,
          "Auxiliary head of each stage that is trained by a loss of its own."};
}

std::vector<ContractKey> transformer_sizes() {
  return {
      {"layers", whole(1), "required", "Transformer blocks."},
      {"hidden_size", whole(1), "required", "Width of the residual stream."},
      {"vocab_size", whole(1), "required without `patches`", "Tokens in the vocabulary."},
      {"sequence_length", whole(1), "required without `patches`", "Tokens of one sample."},
      {"patches", object("model.transformer.patches"), "tokens",
       "Square images instead of tokens, without `vocab_size` and `sequence_length`: a token for "
       "each patch, and one more."}};
}

/// Keys that an item of the layer pattern may have too.
std::vector<ContractKey> attention_keys() {
  return {
      {"attention",
       one_of({"materialised", "fused", "retention", "mamba", "mamba2", "gated-delta", "none"}),
       "materialised",
       "What lets tokens see each other. `materialised`: stores the score matrix. `fused`: one "
       "kernel that never does (FlashAttention). `retention`: of a retentive network (Sun et al., "
       "arXiv 2307.08621), chunk by chunk, with a state that is handed on. `mamba`, `mamba2`: "
       "selective states (arXiv 2312.00752, 2405.21060). `gated-delta`: the gated delta rule "
       "(arXiv 2412.06464). `none`: an MLP alone."},
      {"attention_heads", whole(1), "required with attention",
       "Query heads; divides `hidden_size`, if `head_size` does not say how wide they are."},
      {"kv_heads", whole(1), "`attention_heads`",
       "Key and value heads; divides `attention_heads`. Fewer is grouped-query attention."},
      {"head_size", whole(1), "`hidden_size` / `attention_heads`", "Elements of a head."},
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
      {"sliding_window", whole(1), "all",
       "Tokens that a token sees, itself and those before it. Saves work in fused attention only."},
      {"attention_chunk", whole(1), "all",
       "Parts of this many tokens see themselves alone (Llama 4). Saves work in fused attention "
       "only."},
      {"positions", one_of({"learned", "rotary", "none"}), "learned", "Position embedding."},
      {"rotary_share", number(0, 1), "1", "`rotary`: share of a head's elements that are turned."},
      {"chunk_size", whole(1), "512, or the sequence where that is shorter",
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
      {"ffn_hidden_size", whole(1), "4 x `hidden_size`", "Width inside the MLP."}};
}

/// Returns the keys of an item of the layer pattern: null takes the model's key away.
std::vector<ContractKey> pattern_keys() {
  std::vector<ContractKey> keys = {{"repeat", whole(1), "1", "Layers of this form in a row."}};
  for (ContractKey key : attention_keys()) {
    key.type = either({key.type, nothing()});
    key.otherwise = "the model's";
    keys.push_back(key);
  }
  return keys;
}

std::vector<ContractObject> mixers() {
  const ContractKey conv = {"conv_width", whole(1, 1000), "4", "Tokens that a convolution reads."};
  return {
      {.name = "model.transformer.mamba",
       .meaning = "Selective states, version 1.",
       .keys = {{"state_size", whole(1), "16", "Numbers of a channel's state."},
                conv,
                {"expand", whole(1, 1000), "2", "Inner channels over `hidden_size`."},
                {"dt_rank", whole(1), "`hidden_size` / 16, rounded up",
                 "Numbers that the step sizes are made of."},
                {"norms", boolean(), "false",
                 "RMS norms of these numbers and of what reads and writes the states (Jamba)."}}},
      {.name = "model.transformer.mamba2",
       .meaning = "Selective states, version 2.",
       .keys = {{"heads", whole(1), "required", "Heads."},
                {"head_size", whole(1), "64", "Channels of a head."},
                {"state_size", whole(1), "128", "Numbers of a channel's state."},
                {"groups", whole(1), "1",
                 "Heads of a group share what reads and writes their states; divides `heads`."},
                conv,
                {"chunk_size", whole(1), "256", "Tokens of a chunk."}}},
      {.name = "model.transformer.gated_delta",
       .meaning = "The gated delta rule.",
       .keys = {{"value_heads", whole(1), "required", "Heads of values."},
                {"key_heads", whole(1), "`value_heads`",
                 "Heads of queries and of keys; divides `value_heads`."},
                {"key_head_size", whole(1), "128", "Elements of a head's queries and keys."},
                {"value_head_size", whole(1), "128", "Elements of a head's values."},
                conv,
                {"chunk_size", whole(1), "64", "Tokens of a chunk."}}}};
}

std::vector<ContractKey> block_keys() {
  return {
      {"gated_mlp", boolean(), "false", "Gate and up projections instead of one (SwiGLU)."},
      {"norm", one_of({"layernorm", "rmsnorm"}), "layernorm", "Kind of normalisation."},
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
      {"max_positions", whole(1), "`sequence_length`", "`learned`: rows of the position table."},
      {"token_types", whole(0), "0", "Rows of a further table that is added to the embedding."},
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
      {"dropout", number(0, 1), "0", "Dropout probability; only whether there is any matters."},
      {"readout", one_of({"lm", "masked-lm", "classes"}), "`lm`; with `patches` `classes`",
       "What is predicted. `lm`: each next token. `masked-lm`: each token, behind one more layer, "
       "as BERT. `classes`: one class, from the first token."},
      {"classes", whole(1), "2; with `patches` 1000", "Readout `classes`: how many."},
      {"pooler", boolean(), "false", "Readout `classes`: one more layer before them."}};
}

std::vector<ContractKey> expert_keys() {
  return {
      {"experts", whole(1), "none",
       "Number of experts of the mixture, with a router, in the place of each MLP. The keys below "
       "need it. Experts have biases with `mlp_bias`."},
      {"experts_per_token", whole(1), "1", "Experts that a token is sent to."},
      {"shared_experts", whole(0), "0", "Further experts, that every token goes through."},
      {"expert_ffn_hidden_size", whole(1), "`ffn_hidden_size`", "Width inside an expert."},
      {"shared_expert_ffn_hidden_size", whole(1), "`expert_ffn_hidden_size`",
       "Width inside each shared expert."},
      {"capacity_factor", number(0.01, 1000), "every token is served",
       "Buffers of fixed size: rows of an expert over the mean, full or not; tokens beyond are "
       "dropped."},
      {"dense_layers", whole(0), "0", "First layers, which have an MLP and no experts."},
      {"expert_interval", whole(1), "1",
       "Layers, behind the dense ones, whose number it divides have experts."},
      {"shared_expert_gate", boolean(), "false",
       "The output of shared experts is multiplied by a gate."},
      {"router_bias", boolean(), "false",
       "The router adds a bias to the score of each expert (DeepSeek-V3, gpt-oss)."},
      head_key("`lm`; with classes `linear`")};
}

std::vector<ContractObject> transformer() {
  std::vector<ContractKey> keys = transformer_sizes();
  for (const auto& more : {attention_keys(), block_keys(), expert_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  ContractObject whole_model =
      model("transformer",
            "A transformer: a language model, an encoder, or one of image patches. Modules: "
            "embedding, each block, readout.",
            keys);
  whole_model.needs = {{"vocab_size", "sequence_length"}, {"patches"}};
  std::vector<ContractObject> all = {
      whole_model,
      {.name = "model.transformer.layer_pattern",
       .meaning = "The form of some layers. `null` takes the model's key away.",
       .keys = pattern_keys()},
      {.name = "model.transformer.multi_token_prediction",
       .meaning = "Blocks that predict the tokens behind the next one.",
       .keys = {{"layers", whole(1, 64), "1", "Such blocks, one for each further token."}}},
      {.name = "model.transformer.latent_attention",
       .meaning = "Attention whose queries, keys and values are made of latents.",
       .keys = {{"query_rank", whole(1), "none: queries are made of the tokens",
                 "Width of the latent of queries."},
                {"kv_rank", whole(1), "required", "Width of the latent of keys and values."},
                {"head_size", whole(1), "required",
                 "Elements of a head's queries and keys, without those of positions."},
                {"rotary_head_size", whole(1), "required",
                 "Further elements, which have rotary positions; all heads' keys share them."},
                {"value_head_size", whole(1), "required", "Elements of a head's values."}}},
      {.name = "model.transformer.patches",
       .meaning = "Patches of square images.",
       .keys = {{"image_size", whole(1), "required", "Pixels on a side."},
                {"patch_size", whole(1), "required",
                 "Pixels on a side of a patch; divides `image_size`."},
                {"channels", whole(1), "3", "Numbers of a pixel."}}}};
  for (const ContractObject& mixer : mixers()) all.push_back(mixer);
  return all;
}

ContractObject resnet() {
  return model(
      "resnet", "A residual network of convolutions. Modules: stem, each residual block, readout.",
      {{"block", one_of({"basic", "bottleneck"}), "required",
        "`basic`: 3x3, 3x3. `bottleneck`: 1x1, 3x3, 1x1 to four times the width."},
       {"blocks", list(whole(1, 10'000), 1, 8), "required",
        "Residual blocks of each group; each group halves the side and doubles the width."},
       {"stem", one_of({"cifar", "imagenet"}), "cifar",
        "`cifar`: 3x3 stride 1. `imagenet`: 7x7 stride 2, and 3x3 pooling stride 2."},
       {"image_size", whole(1, 65'536), "224 with the imagenet stem, else 32", "Pixels on a side."},
       {"classes", whole(1), "1000 with the imagenet stem, else 10", "Classes."},
       {"base_width", whole(1, 4096), "64", "Channels of the stem."},
       head_key("convolution")});
}

ContractObject vgg() {
  ContractType side = whole(32, 65'536);
  side.multiple = 32;
  return model(
      "vgg",
      "A VGG network. Modules: each 3x3 convolution, with the pooling behind it, then three fully "
      "connected layers.",
      {{"layers", one_of_numbers({11, 13, 16, 19}), "required", "Layers with weights."},
       {"image_size", side, "224", "Pixels on a side, a multiple of 32."},
       {"classes", whole(1, 1e8), "1000", "Classes."},
       {"hidden_size", whole(1, 1e6), "4096", "Width of the fully connected layers."},
       head_key("linear")});
}

std::vector<ContractObject> fully_connected() {
  return {
      model(
          "mlp", "Fully connected layers. Modules: each hidden layer, readout.",
          {{"input_size", whole(1), "required", "Numbers of a sample."},
           {"hidden_sizes", list(whole(1), 1), "",
            "Widths of the hidden layers; instead of `layers` and `hidden_size`."},
           {"layers", whole(1), "required without `hidden_sizes`", "Hidden layers of equal width."},
           {"hidden_size", whole(1), "required without `hidden_sizes`",
            "Width of each hidden layer."},
           {"classes", whole(1), "required", "Outputs."},
           head_key("linear")}),
      model("residual-mlp",
            "Fully connected blocks, each added to its input: layer norm, linear, GELU, linear. "
            "Modules: input, each block, readout.",
            {{"input_size", whole(1), "required", "Numbers of a sample."},
             {"layers", whole(1), "required", "Residual blocks."},
             {"hidden_size", whole(1), "required", "Width between blocks."},
             {"ffn_hidden_size", whole(1), "4 x `hidden_size`",
              "Width inside a block, or inside each of the two branches of a reversible one."},
             {"classes", whole(1), "required", "Outputs."},
             {"reversible", boolean(), "false",
              "Blocks couple two halves of `hidden_size`, so that their input can be computed from "
              "their output (RevNet, arXiv 1707.04585): y1 = x1 + F(x2), y2 = x2 + G(y1)."},
             head_key("linear")}),
      model("sparse-mlp",
            "Layers of neurons divided among tensor devices, each of which needs some neurons of "
            "the others (RePurpose, arXiv 2008.08289). For the strategy `inference`.",
            {{"input_size", whole(1), "required", "Numbers of a sample."},
             {"layers", list(object("model.sparse-mlp.layers"), 1), "required",
              "The layers in order."}}),
      {.name = "model.sparse-mlp.layers",
       .meaning = "One layer of neurons.",
       .keys = {{"size", whole(1), "required", "Neurons."},
                {"density", number(0, 1), "required without `needed`",
                 "Share of each other device's neurons of the layer before that a device needs."},
                {"needed", list(list(whole(0))), "",
                 "Instead of `density`, a list for each device i: how many neurons of i device 0, "
                 "1, ... needs."}}}};
}

std::vector<ContractKey> module_keys() {
  return {
      {"name", text(), "its number", "Name of the module."},
      {"repeat", whole(1, 100'000), "1", "Number of equal modules in a row."},
      {"forward", time(), "0 s", "Time of the forward."},
      {"backward_input", time(), "0 s", "Time of the backward for the input."},
      {"backward_weight", time(), "0 s", "Time of the backward for the weights."},
      {"update", time(), "0 s", "Time of the optimiser's step."},
      {"head", time(), "0 s",
       "Time of the auxiliary head: forward, loss, and backward to the module's output. A stage "
       "uses that of its last module; the last stage's is ignored."},
      {"output", size(), "0 B",
       "Tensor sent to the next stage; its gradient has the same size. A stage uses that of its "
       "last module."},
      {"stash", size(), "0 B", "What is kept from forward to backward."},
      {"parameters", size(), "0 B", "Weights, in the scenario's precision."},
      {"skips", list(object("model.profile.modules.skips")), "none",
       "Tensors that modules behind the next one read; those between hand them on, and their "
       "gradients back."}};
}

std::vector<ContractObject> profile() {
  return {
      model("profile",
            "Measured modules: times and bytes for one micro-batch, so that changing the batch "
            "does not change them.",
            {{"measured", anything(), "", "What `interlock import` made the modules of; not used."},
             {"modules", list(object("model.profile.modules"), 1), "required",
              "The modules in order. A stage adds up its modules, but uses the head and the "
              "output of its last one."}}),
      {.name = "model.profile.modules", .meaning = "One module.", .keys = module_keys()},
      {.name = "model.profile.modules.skips",
       .meaning = "A tensor for a module further down.",
       .keys = {{"to", whole(0), "required", "Number of the module that reads it, from 0."},
                {"bytes", size(), "required", "Its size; its gradient has the same."}}}};
}

std::vector<ContractObject> heads() {
  return {
      {.name = "model.head",
       .meaning = "Auxiliary head of a stage that is trained by a loss of its own. The strategy's "
                  "overrides the model's; a profile's heads are measured and take `weights` only.",
       .keys = {{"kind", head_kind(), "the model's",
                 "Form of the head. `convolution`: two 3x3 convolutions to 128 and 64 channels, "
                 "mean, linear. `linear`: a linear layer. `mlp`: one hidden layer. `lm`: norm and "
                 "vocabulary projection. `later-layers`: copies of the next modules and the last."},
                {"hidden_size",
                 whole(1, 1e7),
                 "the width of what it reads",
                 "Width of its hidden layer.",
                 {"mlp"}},
                {"layers",
                 whole(1, 64),
                 "1",
                 "How many of the next modules are copied, before the last one.",
                 {"later-layers"}},
                {"weights",
                 either({one_of({"private", "shared-frozen"}), object("model.head.weights")}),
                 "private",
                 "`private`: trained with its stage. `shared-frozen`: never trained. Or an object: "
                 "copies of the last stage's readout."}}},
      {.name = "model.head.weights",
       .meaning = "Copies of the last stage's readout, broadcast now and then.",
       .keys = {{"stale_every", whole(1, 1e9), "required",
                 "Steps between two broadcasts of the readout."}}}};
}

}  // namespace

ContractType head_type() { return either({head_kind(), object("model.head")}); }

std::vector<ContractObject> model_objects() {
  std::vector<ContractObject> all = {
      {.name = "model.config",
       .meaning = "A `config.json` of Hugging Face; see [models](models.md).",
       .keys = {{"model_type", anything(), "required",
                 "Its class: one that [models](models.md) lists, or another that is read by its "
                 "fields."}},
       .others = map(anything())},
      {.name = "model.base",
       .meaning = "Another model, with the keys of this object in the place of its own; `null` "
                  "takes a key away.",
       .keys = {{"base", anything(), "required",
                 "A name, the path of a model file or `config.json`, or an object."}},
       .others = map(anything())},
      resnet(),
      vgg()};
  for (const auto& more : {transformer(), fully_connected(), profile(), heads()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace interlock::contract
