// The scenario contract: "parallel".
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/network_size.h"
#include "scenarios/contract/contract_parts.h"
#include "scenarios/contract/limits.h"
#include "sim/plan/mesh.h"

namespace interlock::contract {
namespace {

constexpr double kMostBands = 1000, kMostPrefetched = 1000, kMostImbalance = 1e6,
                 kMostModules = 1e6, kMostOuterSteps = 1e6, kMostFragments = 1000;

/// Lists the degrees of the mesh.
std::vector<ContractKey> degree_keys() {
  const ContractType degree = whole(1, kMostDevices);
  return {
      {"pipeline", degree, "the cluster's devices over the other degrees",
       "Ranks that the stages are spread over. A rank is one device, or the devices that divide "
       "its "
       "tensors, its sequences and its batch between them."},
      {"stages", degree,
       "`pipeline`; greedy: the model's modules; chunked: `pipeline` or `chunks`, whichever is "
       "more",
       "Stages that the model is cut into: at least one for each rank, at most its modules."},
      {"placement", either({one_of({"loop", "v", "auto"}), list(whole(0), 1)}),
       "`loop`; greedy: contiguous blocks of stages, balanced over the ranks",
       "Rank of each stage. `loop`: 0, 1, 2, 0, 1, 2; `v`: 0, 1, 2, 2, 1, 0; or a list. Every rank "
       "holds a stage. `auto`: searched, as of `partition`; schedules that lay stages themselves "
       "keep their way."},
      {"tensor", degree, "1",
       "Devices that divide every layer between them. Heads and widths must be multiples; a "
       "vocabulary that is none is padded to a multiple of 128 tokens for each."},
      {"data", degree, "1",
       "Replicas of the model, each with its part of the global batch, which must be a multiple."},
      {"context", degree, "1", "Devices that divide every sequence between them."},
      {"expert", degree, "1",
       "Devices that share the experts of a layer between them. `expert` x `expert_tensor` divides "
       "tensor x context x data; what is left are devices that hold equal experts."},
      {"expert_tensor", degree, "`tensor`",
       "Devices that divide each expert between them. Another number than `tensor` folds experts "
       "otherwise than attention over the same devices (Megatron-Core's "
       "`--expert-tensor-parallel-size`); tensor devices then need `sequence_parallel`."},
      {"split_brain", degree, "1",
       "VGGs: data devices that divide the fully connected layers between them (SplitBrain, arXiv "
       "2112.15317); divides `data`. Convolutions are whole on each."},
      {"spatial", either({whole(1, kMostBands), list(whole(1, kMostBands), 2, 2)}), "1",
       "ResNets and VGGs, instead of `context`: devices that have a band of rows each of every "
       "image, or a grid of `[rows, columns]`. Neighbours exchange halos."}};
}

/// Lists the ways to divide layers and sequences.
std::vector<ContractKey> layout_keys() {
  ContractType order = list(one_of(dimension_names()), 4, 4);
  order.distinct = true;
  return {
      {"tensor_layout", one_of({"1d", "2d", "2.5d", "3d"}), "1d",
       "How tensors are divided. `1d`: by columns, then by rows (Megatron-LM); for transformers "
       "and "
       "MLPs also `2d`: on a square of devices, `2.5d`: on `tensor_depth` squares, `3d`: on a cube "
       "(Colossal-AI)."},
      {"tensor_depth", whole(1, kMostDevices), "1",
       "`2.5d`: squares; `tensor` = `tensor_depth` x side x side."},
      {"sequence_parallel", boolean(), "false",
       "`1d`: norms, residuals and dropout are divided by sequence among the tensor devices, "
       "instead of held by each."},
      {"context_layout", one_of({"ring", "all_to_all", "hybrid"}), "ring",
       "How attention sees the whole sequence. `ring`: keys and values go round a ring beside the "
       "kernels. `all_to_all`: parts of sequences become parts of heads, and turn back (Ulysses). "
       "`hybrid`: neighbours turn heads, whose keys go round rings of one device of each group "
       "(Megatron-Core's `a2a+p2p`; arXiv 2405.07719)."},
      {"context_all_to_all", whole(2, 1e6), "required with hybrid",
       "`hybrid`: neighbours of the context devices that turn parts of sequences into parts of "
       "heads. Divides `context`, and is less; `context` / `context_all_to_all` make a ring."},
      {"order", order, R"(["tensor", "context", "data", "pipeline"])",
       "Which coordinate changes first from one device of the machine to the next, the innermost "
       "first. With 8 devices a node and `tensor` 8, the default keeps a tensor group inside a "
       "node."}};
}

/// Lists how tokens reach their experts, and what runs meanwhile.
std::vector<ContractKey> token_keys() {
  return {
      {"expert_imbalance", number(1, kMostImbalance), "1",
       "Tokens of the busiest holder of experts over the mean, where the model has no "
       "`capacity_factor`."},
      {"expert_load", list(number(0, kMostLoad), 1), "alike",
       "Instead of `expert_imbalance`: tokens of each expert of a layer, in any unit, as measured. "
       "Devices hold experts in this order; the busiest sets the pace."},
      {"expert_dispatch", one_of({"all_to_all", "deepep"}), "all_to_all",
       "How tokens reach their experts. `all_to_all`: a copy for each expert (NCCL). `deepep`: one "
       "for each node that holds any of them, over the card, and from there one for each device "
       "(DeepEP)."},
      {"dispatch_format", one_of({"training", "bf16", "fp8"}), "training",
       "Format of what goes to the holders of experts: tokens, and gradients of what experts made. "
       "`fp8`: with a scale for every 128 elements. DeepSeek-V3 dispatches in `fp8` and combines "
       "in `bf16`."},
      {"combine_format", one_of({"training", "bf16", "fp8"}), "training",
       "Format of what comes back from them: what experts made, and gradients of their tokens."},
      {"dispatch_sms", number(0, 0.9), "`deepep`: 20 of the device's; else `collective_sms`",
       "Share of the multiprocessors that tokens on their way take from the kernels beside them: "
       "DeepSeek-V3 gives them 20 of 132."},
      {"expert_overlap", one_of({"none", "shared_experts", "micro_batches"}), "none",
       "What runs while tokens are on their way to experts and back, if `expert` is above 1. "
       "`shared_experts`: the experts "
       "of all tokens (Megatron-Core's `--moe-shared-expert-overlap`). `micro_batches`: forwards "
       "and backwards of different micro-batches in pairs (`--overlap-moe-expert-parallel-comm`), "
       "with `1f1b` on one stage, `interleaved` with several chunks, `dualpipe`, `dualpipe-v`, or "
       "pairs of an order in a file."},
      {"delay_weight_gradients", boolean(), "false",
       "`micro_batches`: in a pair weight gradients come behind the gradients that messages wait "
       "for (`--delay-wgrad-compute`; DeepSeek's DualPipe does)."}};
}

/// Lists the keys of exchanges and states among devices of equal weights.
std::vector<ContractKey> state_keys() {
  return {
      {"zero_stage", whole(0, 3), "0",
       "What devices of equal weights (data x context) divide between them. 1: optimiser states; "
       "2: "
       "gradients too; 3: weights too (FSDP), which are gathered for each module's forward and "
       "backward."},
      {"shard", whole(1, kMostDevices), "all of them",
       "ZeRO: devices that share one copy of the states (hybrid sharding); divides data x context. "
       "Shards add up their gradients among each other."},
      {"overlap_gradients", boolean(), "true",
       "Gradients leave in buckets beside the last backward of a step, not after it."},
      {"overlap_weights", boolean(), "false",
       "ZeRO 1 and 2: weights are gathered beside the first forward of a step, not before it."},
      {"gradient_density", number(0, 1), "1",
       "Share of the gradients that are exchanged: of weights that a fixed sparse mask keeps, as "
       "values without places. Kernels, states and memory stay those of dense weights."},
      {"gradient_reduction", one_of({"step", "micro_batch"}), "the framework's",
       "When devices of equal weights reduce their gradients. `step`: once for each update, after "
       "adding up those of its micro-batches, as Megatron-LM and PyTorch's pipelines do. "
       "`micro_batch`: after every backward, as DeepSpeed does under ZeRO 2 and 3; a device then "
       "keeps its own part and two buckets."},
      {"bucket", size(), "as `overlap_gradients` says",
       "Gradients that are exchanged together: 25 MiB beside a backward, all of them after it."},
      {"prefetch", whole(0, kMostPrefetched), "1",
       "ZeRO 3: modules whose weights are gathered ahead of the one that runs."},
      {"outer", object("parallel.outer"), "gradients are reduced in every step",
       "Replicas that train apart, and exchange weights every `every` steps."}};
}

/// Returns the object of outer steps.
ContractObject outer_object() {
  return {
      .name = "parallel.outer",
      .meaning =
          "Outer steps (DiLoCo): workers, which are replicas or groups of them, exchange nothing "
          "in "
          "a step. Every `every` steps they exchange how far their weights have moved and take an "
          "outer step of Nesterov momentum.",
      .keys = {
          {"every", whole(1, kMostOuterSteps), "required",
           "Steps between two exchanges of the same weights."},
          {"workers", whole(2, kMostDevices), "`data`",
           "Groups of replicas that train apart; divides `data`. Replicas of a worker reduce "
           "gradients in every step, and divide its states under ZeRO."},
          {"fragments", whole(1, kMostFragments), "1",
           "Parts of the weights, exchanged one after the other at equal distances (Streaming "
           "DiLoCo). At most `every`."},
          {"format", one_of({"fp32", "bf16", "fp8", "fp4"}), "fp32",
           "Format in which outer gradients are exchanged; all else of outer steps is fp32."},
          {"overlap", whole(0, kMostOuterSteps), "0",
           "Steps for which training goes on before it waits for an exchange. At most `every`: "
           "eager updates."},
          {"network_share", number(0, 1), "0",
           "Share of the time of `every` steps that exchanges are to take: as many as fit, at "
           "least one of each fragment, at most one a step, and none of a fragment that is on its "
           "way; of those that have changed most (CoCoDC's adaptive transmission). 0: each "
           "fragment goes once. With `overlap`."},
          {"delay_compensation", boolean(), "false",
           "A fragment that comes back is corrected for how its weights have moved meanwhile "
           "(CoCoDC). With `overlap`."}}};
}

/// Returns the key of layers with degrees of their own, and the object of an entry.
ContractKey layer_layouts_key() {
  return {"layer_layouts", list(object("parallel.layer_layouts"), 1), "all as `tensor` and `data`",
          "Layers that divide the tensor x data devices of their stage otherwise than the others: "
          "each entry some modules, and their degrees. Tensors are laid anew where these change."};
}

ContractObject layer_layouts_object() {
  return {.name = "parallel.layer_layouts",
          .meaning =
              "Degrees of some layers. The samples of a micro-batch of all data devices of "
              "the run are divided among the data devices of each layer.",
          .keys = {{"modules", list(whole(0, kMostModules), 2, 2), "required",
                    "The first module, and the one behind the last, counted from 0 as `partition` "
                    "counts them. Of a transformer 0 is the embedding, 1 the first block."},
                   {"tensor", whole(1, kMostDevices), "what `data` leaves",
                    "Devices that divide each of these layers. Of any two tensor degrees of a run "
                    "one divides the other."},
                   {"data", whole(1, kMostDevices), "what `tensor` leaves",
                    "Devices that divide the samples; tensor x data is that of the run. One of "
                    "the two may be left out."}}};
}

/// Lists the keys of pipeline ranks with layouts of their own.
std::vector<ContractKey> stage_layout_keys() {
  return {
      {"stage_layouts", list(object("parallel.stage_layouts"), 1), "all alike",
       "The layout of each pipeline rank, where they differ; tensor x data is the same for all. "
       "Instead of `tensor`, `data`, `order` and their like."},
      {"resharding", one_of({"point_to_point", "local_all_gather", "broadcast"}), "broadcast",
       "`stage_layouts`: how a tensor gets from one layout to the next. `point_to_point`: a copy "
       "for each receiver. `local_all_gather`: a copy for each node, in parts that its receivers "
       "gather. `broadcast`: a chain through all receivers."},
      {"sender_balancing", boolean(), "true",
       "`stage_layouts`: chooses senders among the holders of a slice, and the order of slices, so "
       "that the last slice is there soonest; else the first holder sends."}};
}

}  // namespace

std::vector<ContractObject> parallel_objects() {
  ContractObject parallel = {
      .name = "parallel",
      .meaning =
          "How the work is spread over devices. The model is a chain of modules, cut into "
          "stages; each pipeline rank runs one stage or more. The devices are a mesh of "
          "pipeline x data x context x tensor, all of which are used; `pipeline` alone may "
          "leave some of the cluster's devices idle.",
      .keys = degree_keys()};
  for (const auto& keys : {layout_keys(), token_keys(), state_keys(), stage_layout_keys()}) {
    parallel.keys.insert(parallel.keys.end(), keys.begin(), keys.end());
  }
  parallel.keys.push_back(layer_layouts_key());
  return {parallel,
          outer_object(),
          layer_layouts_object(),
          {.name = "parallel.stage_layouts",
           .meaning = "The layout of one pipeline rank.",
           .keys = {{"tensor", whole(1, kMostDevices), "1",
                     "Devices that divide the work of the rank's stages."},
                    {"data", whole(1, kMostDevices), "1",
                     "Devices that divide the samples of a micro-batch."}}}};
}

}  // namespace interlock::contract
