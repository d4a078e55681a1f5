// The scenario contract: "training", with schedules and frameworks.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/device.h"
#include "models/layers/layer_parts.h"
#include "models/layers/model_graph.h"
#include "scenarios/contract/contract_parts.h"
#include "sim/plan/schedules/catalogue.h"

namespace interlock::contract {
namespace {

constexpr double kLargestBatch = 1e9, kMostTraffic = 100;

const std::vector<std::string>& optimizer_kinds() {
  static const std::vector<std::string> kinds = {"sgd",       "sgd-momentum", "adam",
                                                 "adamw",     "adam-8bit",    "lion",
                                                 "adafactor", "muon",         "basis-rotation"};
  return kinds;
}

ContractType optimizer_type() {
  return either({one_of(optimizer_kinds()), object("training.optimizer")});
}

ContractType schedule_kind() {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedule_catalogue()) names.push_back(entry.name);
  return one_of(names);
}

/// Returns the keys that say what a step computes, and in which order.
std::vector<ContractKey> training_work() {
  const ContractType samples = whole(1, kLargestBatch);
  return {
      {"strategy", strategy_type(), "required, here or in the sweep",
       "Which loss trains which stage: the `kind` of a strategy, or an object."},
      {"schedule", schedule_type(),
       "`naive` (one micro-batch) or `1f1b` for global training, else `eager`",
       "The order of work: the `kind` of a schedule, or an object."},
      {"global_batch_size", samples, "required, unless the model is a profile",
       "Samples of one step."},
      {"micro_batch_size", either({samples, one_of({"balanced"})}), "the global batch",
       "Samples of one micro-batch; divides the global batch. `balanced`: `terapipe` and "
       "`seq1f1b` choose it together with their token slices, and may mix sizes."},
      {"micro_batches", samples, "1",
       "Micro-batches M of one step, instead of `micro_batch_size`."},
      {"replica_micro_batches", either({one_of({"equal", "by_speed"}), list(samples, 1)}), "equal",
       "Micro-batches of each replica (`parallel.data`) in a step. `by_speed`: where machines "
       "differ, the last replica is done as soon as can be. Or a list, a number for each "
       "replica, with `global_batch_size` / `micro_batch_size` in all. For schedules that "
       "update once, at the end of a step; gradients are then exchanged as ever."}};
}

/// Returns the keys of weights: their formats and states, and which of them are trained.
std::vector<ContractKey> training_weights() {
  return {
      {"precision", one_of(precision_names()), "bf16",
       "Number format of the main computation; the device must support it. `fp8`, with any kind of "
       "scales (MXFP8 too), and `fp4` (NVFP4, MXFP4): products of linear layers and convolutions "
       "only; readouts, routers of experts, attention and all tensors are in 16 bits."},
      {"optimizer", optimizer_type(), "sgd-momentum",
       "Decides the optimiser's states and the time of an update: the `kind` of an optimiser, "
       "or an object."},
      {"weights", one_of({"training", "fp8", "mxfp8", "nvfp4"}), "training",
       "Format in which the matrices of layers are stored, with its scales; products take the "
       "time of `precision`, which is then `fp8`, or `fp4` with `nvfp4`. Embeddings, "
       "readouts, norms and biases stay in 16 bits."},
      {"weight_copies", whole(1, 2), "2",
       "Copies of weights in another format than the training's: one is read by rows, one by "
       "columns. Blackwell reads `fp8` both ways (1)."},
      {"lora", object("training.lora"), "all weights are trained",
       "Low-rank adapters beside the products of every layer; all other weights are frozen: "
       "no "
       "gradient, no state, no exchange. Transformers under global training."},
      {"frozen_modules", whole(0, 1e6), "0",
       "Modules of the model, from its start (the embedding is one), whose weights are "
       "frozen, "
       "and which no gradient passes: they keep nothing. Global training."}};
}

/// Returns the keys of what a forward keeps and where, of the framework, and of what is measured.
std::vector<ContractKey> training_rest() {
  return {{"recompute", recompute_type(), "none",
           "What a forward keeps for the backward. `none`: everything. `selective`: all but "
           "attention's inner tensors. `full`: each module's input. `alternate`: that, and the "
           "outputs of fused attention and of every second product (torchtitan's selective "
           "checkpointing of operations). Or an object, for parts of a layer or some layers only. "
           "Every gradient that passes a stage makes again what it reads."},
          {"bf16_layers", object("training.bf16_layers"), "none",
           "Layers at the ends of a transformer whose products are in bf16 where `precision` is "
           "`fp8` or `fp4` (`first_last_layers_bf16` of Megatron-Core)."},
          {"activation_inputs", one_of({"training", "fp8"}), "training",
           "Format in which the inputs of the activations of MLPs and experts are kept for the "
           "backward (`activation_func_fp8_input_store` of Megatron-Core). Transformers."},
          {"cuda_graphs",
           either({one_of({"none", "step"}), list(one_of({"attention", "router"}), 1)}), "none",
           "Kernels that are replayed as CUDA graphs, so that the host issues none of them: of "
           "attention, with the norm before it and the sum behind, or of routers, with the norm "
           "before and all that is done before tokens move (`cuda_graph_scope` of Megatron-Core); "
           "`step`: all. Their collectives are issued still. Of use with a framework's "
           "`kernel_issue`. Transformers."},
          {"fused_routing", list(one_of({"router", "permutation"}), 1), "nothing",
           "What single kernels do of routing, where the framework's `routing` is `steps`: scores, "
           "choices and the loss that balances them (`moe_router_fusion` of Megatron-Core), and "
           "moves of tokens (`moe_permute_fusion`)."},
          {"blocking_launches", boolean(), "false",
           "The host waits for each kernel before it issues the next "
           "(`CUDA_LAUNCH_BLOCKING=1`), so that its time hides behind nothing. Of use with a "
           "framework's `kernel_issue`; what else overlaps is for other keys to say."},
          {"offload", object("training.offload"), "nothing is offloaded",
           "What waits in the memory of each device's host; needs a machine with a `host`."},
          {"framework",
           either({named([] { return catalogue_entries("scenarios/frameworks"); }),
                   object("training.framework"), object("training.framework.base")}),
           "nothing is added",
           "What the training framework adds to kernels and rates: a name (`interlock list "
           "frameworks`), the path of a file, or an object."},
          {"steps", whole(1, 1'000'000), "8",
           "Steps to measure, after those that fill the pipeline; with 1 there is no fill, and "
           "the run is measured whole. Steps that show no repeat are measured over the last "
           "quarter to half of a longer run."}};
}

ContractObject training() {
  return {.name = "training",
          .meaning = "What is trained, and how.",
          .keys = joined({training_work(), training_weights(), training_rest()}),
          .apart = {{"micro_batch_size", "micro_batches"}}};
}

/// Lists the keys of an order, its ops and its messages.
std::vector<ContractKey> order_keys() {
  return {
      {"kind", schedule_kind(), "by the strategy; `file` beside `file` and `order`",
       "The order's name, see [schedules](schedules.md). `auto` searches; `file` is an order of "
       "your own; `eager` and `list` are for local and interlocking training, `dgl` and `ppll` "
       "where no gradient crosses a boundary, all others for global training."},
      {"file", text("order.csv"), "required with the kind file, if there is no `order`",
       "Path of the order of a step, as CSV in the form of PyTorch's "
       "`torch.distributed.pipelining`: a row for each rank. See [orders in "
       "files](orders.md#orders-in-files)."},
      {"order", list(text("0F0,0F1,0B0,0B1"), 1), "none",
       "The order itself, in place of a file: the row of each rank."},
      {"backward", one_of({"fused", "split"}),
       "`split` for eager, naive-split and the zero-bubble schedules, else `fused`",
       "Input and weight gradients of a stage are one op, or two; a split backward sends the input "
       "gradient first."},
      {"queue", either({one_of({"rendezvous", "unlimited"}), object("training.schedule.queue")}),
       R"(`unlimited` for global training, `{"buffered": 4}` for dgl and ppll, else )"
       R"(`{"buffered": 1}`)",
       "Room of a channel between two stages. An object: a sender waits while that number of "
       "messages are untaken. `rendezvous`: it waits for as long as its message waits at the "
       "receiver. `unlimited`: it never waits."},
      {"copies", one_of({"overlapped", "compute_stream"}), "overlapped",
       "Transfers run beside compute, or block both devices; the latter needs one stage a device "
       "and `in_flight` 1."},
      {"in_flight", whole(1, 1024), "1",
       "`eager`, `auto`: micro-batches that a stage may have begun and not updated on. Above 1 "
       "weights are stale, and further versions of weights and gradients take memory."},
      {"update_every", whole(1, 1e9), "the micro-batches of a step",
       "Micro-batches between two updates of a stage; divides those of a step. Schedules that "
       "flush update once for each step."},
      {"optimizer_sync", one_of({"per_stage", "barrier"}), "per_stage",
       "`barrier`: no stage updates before every stage has its gradients."},
      {"early_recompute", boolean(), "false",
       "What a backward computes again is computed before its gradient has come, in what would be "
       "a bubble (Mario). Ranks that choose their order compute it when the gradient is there."},
      {"deferred_readout", either({one_of({"all"}), whole(1, 1e9)}), "none",
       "Micro-batches of each step, the first ones or `all`, whose weight gradients of the readout "
       "are made at the end of the step, when other ranks still go back (Megatron-LM's "
       "`--defer-embedding-wgrad-compute` and `--wgrad-deferral-limit`). Until then the last stage "
       "keeps the gradients of their logits and the inputs of the readout."},
      {"vocabulary", one_of({"whole", "vocab-1", "vocab-2"}), "whole",
       "`vocab-1`, `vocab-2`: every pipeline rank holds an equal part of the embedding and of the "
       "readout, and works on every micro-batch; algorithms 1 and 2 of arXiv 2411.05288, with two "
       "reductions between the last forward and the last stage's backward, or one. With `1f1b` and "
       "`v-half`; `slimpipe` takes `vocab-1`."},
      {"message_order", one_of({"free", "rank", "pair"}), "free",
       "`free`: messages leave as soon as they are made. `rank`: sends and receives of a rank "
       "begin one after the other, each when the one before it is done, as on a communicator of "
       "NCCL; `pair`: likewise, in a line for each other rank. A transfer needs both ranks."},
      {"batched_messages", boolean(), "false",
       "Those of a line that stand side by side begin together, and are done together (`BATCH_P2P` "
       "of PyTorch, Megatron-LM without `--overlap-p2p-communication`)."},
      {"receives", one_of({"early", "late"}), "early",
       "Where a receive stands in line. `early`: where its rank is when the message is made, if "
       "every op takes a turn (PyTorch). `late`: before the op that reads it, with `1f1b` and "
       "`gpipe` (Megatron-LM)."},
      {"execution", one_of({"futures", "bulk_synchronous"}), "futures",
       "`futures`: an op starts when its rank is free and its inputs are there. "
       "`bulk_synchronous`: all ranks wait for each other after every row of the schedule "
       "(Phylanx, arXiv 2010.03012)."}};
}

/// Lists the keys that only some schedules use.
std::vector<ContractKey> special_keys() {
  return {
      {"chunks", whole(1, 1e6), "the schedule's",
       "Stages of each rank, for schedules that lay stages on ranks themselves."},
      {"round", whole(1, 1e6), "as many as ranks",
       "`interleaved`, `interleaved-zb`: micro-batches that pass a stage of a rank before its next "
       "stage has them (Megatron-LM's `--microbatch-group-size-per-virtual-pipeline-stage`), from "
       "the number of ranks to that of the micro-batches. More than the ranks leave messages time "
       "to arrive, and stash more. The last round may be shorter, down to the ranks."},
      {"folds", whole(1, 1e6), "2",
       "`helixpipe`: micro-batches that a rank takes one behind the other, so that messages of one "
       "travel beside kernels of another."},
      {"transfer_weights", boolean(), "true",
       "`helixpipe`: ranks that attend make queries, keys and values themselves, of weights that "
       "travel with the input; else these three travel. A full recomputation then makes them "
       "again, and attention alone is run once."},
      {"overlap", number(0, 1), "0",
       "Share of the shorter of two overlapped ops that costs no time, for schedules that run a "
       "forward and a backward as one: F + B - `overlap` x min(F, B). Where tokens pass to experts "
       "beside other micro-batches (`parallel.expert_overlap`), their kernels and messages say it "
       "instead."},
      {"memory", size(), "the device's memory", "`auto`: bytes of each device at most."},
      {"evaluations", whole(1, 1e6), "up to 1000, fewer where a step is long",
       "`auto`: orders that the search looks at."},
      {"slices", either({one_of({"balanced"}), whole(1, 65'536), list(whole(1), 1)}), "balanced",
       "`terapipe`, `seq1f1b`, `slimpipe`: token slices of each sequence. `balanced`: those that "
       "the search of TeraPipe's paper finds. A number of equal slices, the only form for a "
       "profile "
       "and for `slimpipe`, whose default is four a rank, or as few more as divide the tokens. Or "
       "a "
       "list with the tokens of each."},
      {"equal_in", one_of({"tokens", "time"}), "tokens",
       "What a number of equal `slices` have in common. `time`: late slices, whose attention reads "
       "more, have fewer tokens; the longest takes as little time as can be."},
      {"context_exchange", boolean(), "true",
       "`slimpipe`: ranks behind a long context leave half of what they attend to more to those "
       "behind a short one, which run a slice at the same time. Without effect on profiles and on "
       "layers that see a window or a document alone."}};
}

ContractObject schedule() {
  ContractObject schedule = {
      .name = "training.schedule", .meaning = "The order of work.", .keys = order_keys()};
  for (ContractKey& key : special_keys()) schedule.keys.push_back(std::move(key));
  return schedule;
}

/// Lists the speeds and traffic of a framework's kernels, and the host's time to issue them.
std::vector<ContractKey> kernel_keys() {
  return {
      {"kernel_issue", time(), "0 s",
       "The host's time to issue one kernel. A module's kernels take at least that, each; where "
       "they take longer, the host runs ahead and its time does not show."},
      {"backward_issue", time(), "`kernel_issue`",
       "The host's time to issue one kernel of gradients, which autograd may do faster than the "
       "model's own code."},
      {"expert_issue", time(), "0 s",
       "The host's time to issue the product of each expert beyond the first of those that a "
       "device holds, and as long for the cast before it: products of experts count as one kernel "
       "otherwise."},
      {"exchange_issue", time(), "0 s", "The host's time to issue one collective inside a module."},
      {"product_speed", number(0.01, 1), "1",
       "Speed of its matrix products, over the device's `efficiency` of `gemm`."},
      {"wide_product_speed", number(0.01, 1), "`product_speed`",
       "The same of products that stay in 16 bits where `precision` is `fp8` or `fp4`: of "
       "readouts, routers of experts, layers of `bf16_layers`, and scores of attention that are "
       "stored."},
      {"attention_speed", number(0.01, 1), "1",
       "Speed of its attention, over the device's `efficiency` of `attention`."},
      {"attention_speeds", map(number(0.01, 1)), "",
       "The same on devices of an architecture (`NVIDIA Blackwell`) where other kernels run, in "
       "the "
       "place of `attention_speed`."},
      {"odd_product_speed", number(0.01, 1), "1",
       "Speed of products of 16 bits one of whose sizes is odd, over others: of a readout whose "
       "vocabulary is not padded, no row of logits begins where several elements load at once."},
      {"loss_traffic", number(1, kMostTraffic), "1",
       "Bytes that the loss moves, over those of a loss in one kernel each way."},
      {"loss_stash", number(0, 100), "4",
       "Bytes of each logit that the loss keeps from its forward to its backward: 4 for one copy "
       "in fp32."},
      {"loss_gradients", number(0, 100), "those of an element",
       "Bytes of each logit that the loss's backward makes beside what it kept."},
      {"fp8_inputs", one_of({"training", "fp8"}), "training",
       "Format in which products of a layer keep their inputs for the backward where `precision` "
       "is `fp8` or `fp4`: as they come, in 16 bits, or (`fp8`) in the 8 or 4 bits that they "
       "read. Not beside `lora`."},
      {"softmax_traffic", number(1, kMostTraffic), "1",
       "Bytes that the softmax over stored attention scores moves, over those of one kernel that "
       "also scales and masks them."},
      {"softmax_group", number(0, 1024), "0",
       "Heads of samples that the fused kernel of that softmax takes at once. Where the heads of a "
       "device times the samples of a micro-batch are no multiple of it, five kernels cast, scale, "
       "mask, take the softmax and cast back. 0: the kernel is always there."}};
}

/// Lists the ways of a framework to keep, sum and send.
std::vector<ContractKey> exchange_keys() {
  return {
      {"gradients", one_of({"training", "fp32", "both", "fp32_for_updates"}), "training",
       "Format in which weight gradients are kept, added up and exchanged: the training "
       "precision's, or `fp32`. `both`: in `fp32`, while those of the training's precision, which "
       "each backward makes, keep memory of their own. `fp32_for_updates`: the training "
       "precision's, of which each update makes copies in `fp32` that stay until the next step "
       "begins."},
      {"gradient_reduction", one_of({"step", "micro_batch"}), "step",
       "ZeRO 2 and 3: `gradient_reduction` of `parallel`, where that is not written."},
      {"gradient_passes", number(0, 100), "0",
       "Passes over the weights' gradients that adding a micro-batch's (or a slice's) to those "
       "before it takes: 3 where a kernel of its own reads both and writes the sum, 0 where the "
       "product itself adds."},
      {"table_gradients", one_of({"rows", "dense", "dense_added"}), "rows",
       "Gradients of an embedding's table. `rows`: the rows of a micro-batch's tokens are added to "
       "those kept. `dense`: each micro-batch makes a whole table, zeros first (PyTorch), which "
       "`gradient_passes` adds as it adds others. `dense_added`: where these are 0, as products "
       "add by themselves, a kernel of its own adds that table (Megatron-LM)."},
      {"gradient_sweeps", number(0, 100), "0",
       "Passes over the gradients that a device holds, at each update and beside the optimiser's "
       "own reading: 1 to set them to zero, 2 to divide them by the number of devices that sum "
       "them, 1 to look for what is no number."},
      {"update_bytes", number(0, 1000), "0",
       "Bytes that an update moves for each parameter that a device updates, beside those of the "
       "optimiser: casts of gradients, unscaling, their norm, clipping, masters read again to be "
       "cast."},
      {"update_buffers", number(0, 1000), "0",
       "Bytes of each parameter that a device updates, for what the optimiser makes anew at each "
       "update, e.g. gradients in fp32, where the allocator keeps them beside all else until the "
       "next one."},
      {"recompute_until", one_of({"output", "last_read"}), "output",
       "Where recomputation of layers ends: with their output (Megatron's and DeepSpeed's "
       "checkpoints), or with what the backward reads last, before the second product of an MLP "
       "(checkpoints of PyTorch that are not reentrant, compilers)."},
      {"recompute_steps", whole(0, 1000), "0",
       "Small kernels that a layer, or a part of one, takes beside its own to run again, e.g. to "
       "save and restore the states of random numbers."},
      {"overlaps_sums", boolean(), "false",
       "Sums of input gradients over tensor devices run beside the weight gradients of their "
       "layer."},
      {"gather_copies", boolean(), "false",
       "Activations that tensor devices gather, and those whose sums they scatter, take a further "
       "copy each, but for what weight gradients gather again (PyTorch's DTensor, which joins and "
       "cuts along another dimension than the first)."},
      {"waits_for_sends", boolean(), "false",
       "A device stands still until what it sends to the next or the last stage has left, where "
       "queues have no bound."},
      {"divides_messages", boolean(), "false",
       "Each tensor device sends a part of an output that all of them hold (`1d`, without "
       "`sequence_parallel`); receivers gather the parts."},
      {"message_copies", bandwidth(), "they leave and arrive beside the kernels",
       "Rate at which the kernels' own queue copies messages between ranks to and from the host, "
       "one copy when a message leaves and one when it is used."},
      {"collective_sms", number(0, 0.9), "0",
       "Share of the multiprocessors that its communication library takes from the kernels beside "
       "each collective under way, where the device does not say."},
      {"vocabulary", one_of({"divided", "gathered"}), "divided",
       "`gathered`: every tensor device holds the whole embedding, and gathers the logits, of "
       "which each makes a part, for a loss of its own (`1d`)."},
      {"reserve", number(0, 1), "0",
       "Memory that its allocator holds beyond what it has handed out, over that. Peaks have it."},
      {"routing", one_of({"fused", "steps"}), "fused",
       "`steps`: scores, choices, counts and moves of tokens among experts take a kernel for each "
       "small step: 49 more in a layer's forward, 27 more in its backward. Biases of experts, "
       "`clamped_mlp` and `scaled_rotation` take kernels of their own."},
      {"expert_scores", one_of({"outputs", "activations"}), "outputs",
       "What the scores of experts multiply: the `outputs` of experts, which are kept for that, or "
       "those of their `activations`, which are kept only where the MLP is not gated "
       "(Megatron-Core since 2025)."},
      {"library_memory", either({size(), map(size())}), "0 B",
       "Memory that its libraries keep on each device beside all tensors, e.g. workspaces of "
       "matrix products; or one size for each architecture of devices, `other` for those not "
       "named."},
      {"expert_library_memory", either({size(), map(size())}), "0 B",
       "Memory that libraries keep beyond `library_memory` on devices that hold experts, e.g. "
       "workspaces of the streams that products of experts run in; one size, or one for each "
       "architecture."},
      {"dummy_weight_gradients", one_of({"none", "dense", "all"}), "none",
       "Products, all but those of experts (`dense`) or `all`, that add the gradients of their "
       "weights to those kept and give back an empty gradient: one for each shape of weights that "
       "a device holds, never freed (Transformer Engine since 2.3; of experts since 2.10)."},
      {"attention_scores_buffer", boolean(), "false",
       "Scores of `materialised` attention are made in a buffer, as large as the most that a layer "
       "of the device makes, which is never given back."},
      {"context_memory", size(), "0.4 GB",
       "Memory of a process's context on a GPU, kernels included. `used_memory_bytes` has it, "
       "peaks do not. The default is that of CUDA 11.7 and later, which load kernels when they are "
       "first used."},
      {"origin", map(anything()), "", "Where each number comes from; not used."}};
}

ContractObject framework() {
  ContractObject framework = {
      .name = "training.framework",
      .meaning =
          "What the training framework adds: how often kernels stand still because the host "
          "has not issued the next one, or how many passes over the logits a loss takes.",
      .keys = kernel_keys()};
  for (ContractKey& key : exchange_keys()) framework.keys.push_back(std::move(key));
  return framework;
}

ContractObject framework_on_base() {
  return {.name = "training.framework.base",
          .meaning =
              "Another framework, with the keys of this object in the place of its own; "
              "`null` takes a key away.",
          .keys = {{"base", anything(), "required",
                    "A name of `interlock list frameworks`, the path of a file, or an object."}},
          .others = map(anything())};
}

ContractObject optimizer() {
  const ContractType moment = one_of({"fp32", "fp16", "bf16", "fp8", "int8"});
  return {
      .name = "training.optimizer",
      .meaning = "An optimiser whose states have formats of their own.",
      .keys = {
          {"kind", one_of(optimizer_kinds()), "required",
           "`sgd` has no state. `sgd-momentum` and `lion` have one moment, `adam` and `adamw` two, "
           "`adam-8bit` two in `int8`. `adafactor`: a second moment of a number for each row and "
           "column of a matrix, and no first (arXiv 1804.04235). `muon`: one moment of matrices of "
           "layers, which five steps of Newton and Schulz make orthogonal at every update; adam "
           "for all other weights. `basis-rotation`: adam in the eigenvectors of the gradients' "
           "covariance (SOAP, arXiv 2409.11321; arXiv 2602.03515 against stale gradients), of "
           "matrices of layers, with a moving average and a basis for each side of a matrix; adam "
           "for all other weights. Under ZeRO each device does either for its share of the "
           "matrices."},
          {"masters", one_of({"fp32", "fp16", "bf16", "none"}), "fp32",
           "Format of the copy of the weights that updates are added to, beside weights of 16 or "
           "8 bits."},
          {"first_moment", moment, "fp32; with adam-8bit int8",
           "Format of the first moment, or the only one. `int8`: a scale for each 256 numbers."},
          {"second_moment", moment, "fp32; with adam-8bit int8", "Format of the second moment."},
          {"sides", one_of({"both", "shorter"}), "both",
           "`basis-rotation`: sides of a matrix that have a basis, both or its shorter one."},
          {"basis_every", whole(1, 1e6), "10",
           "`basis-rotation`: updates from a basis to the next. The time of a new one (a power "
           "iteration and a QR factorisation) is spread over them."},
          {"predictions", whole(0, 2), "0",
           "Copies of the weights that each update makes beside the newest, moved on along the "
           "first moment: 1 is what forwards read (PipeOptim, arXiv 2312.00839), 2 what forwards "
           "and backwards read (SpecTrain, arXiv 1809.02839). For schedules that do not flush, "
           "without ZeRO."},
          {"error_feedback", one_of({"none", "fp32", "fp16", "bf16", "fp8", "int8"}), "none",
           "Format of a number for each weight that an update keeps, and the next one reads, to "
           "correct what a stale gradient has missed (error feedback, arXiv 2606.30634; that it is "
           "one number is assumed, as its text was not at hand). For schedules that do not "
           "flush."}}};
}

ContractObject wide_layers() {
  const ContractType layers = whole(0, 100'000);
  return {.name = "training.bf16_layers",
          .meaning = "Layers whose products are in bf16; their weights are stored in 16 bits.",
          .keys = {{"first", layers, "0", "Number of layers, from the first on."},
                   {"last", layers, "0", "Number of layers, up to the last."}}};
}

ContractObject lora() {
  ContractType modules = list(one_of(linear_names()), 1, kLinearNames);
  modules.distinct = true;
  return {
      .name = "training.lora",
      .meaning = "Low-rank adapters (LoRA, arXiv 2106.09685; QLoRA, arXiv 2305.14314).",
      .keys = {
          {"rank", whole(1, 65'536), "required",
           "Columns of A, and rows of B, in y = x W + x A B."},
          {"modules", modules, "all four",
           "Products with adapters, as Megatron-Bridge names them. `linear_qkv`: queries, keys and "
           "values, or all that makes them of latents. `linear_proj`: attention's output. "
           "Retention, Mamba and gated delta rules: the first product and the last. `linear_fc1`, "
           "`linear_fc2`: of the MLP, and of every expert."},
          {"fused", boolean(), "true",
           "One adapter for queries, keys and values together, and one for gate and up "
           "(Megatron-Bridge's LoRA). `false`: one for each (PEFT)."},
          {"base", one_of({"training", "int8", "fp8", "nf4"}), "training",
           "Format in which the frozen products' weights are stored. `training`: that of "
           "`training.weights`. Of the others kernels make 16 bits before each product that reads "
           "them. `nf4`: QLoRA's 4 bits, with quantised scales."}}};
}

ContractObject recompute() {
  ContractType modules = list(one_of(layer_part_names()), 1, kLayerParts);
  modules.distinct = true;
  return {
      .name = "training.recompute",
      .meaning = "Recompute of parts of a layer, or of some layers only.",
      .keys =
          {{"modules", modules, "all of a layer is kept, or nothing but its input",
            "Parts of every layer that are computed again, as Megatron-Core names them "
            "(`--recompute-modules`). `core_attn`: attention without its projections. "
            "`layernorm`: the norms before attention and before the MLP or experts, whose outputs "
            "are dropped. `mla_up_proj`: queries, keys and values made of latents, which are "
            "dropped. `mlp`: the MLP of layers without experts. `moe`: router, experts and their "
            "sum. `shared_experts`. `moe_act`: the activation of routed experts, whose output is "
            "dropped. The model must have each of them."},
           {"full_layers", whole(0, 1e6), "",
            "Layers of the model, from its start, that keep their input only; all others keep "
            "everything, or what `modules` leaves."},
           {"stage_layers", whole(0, 1e6), "",
            "Layers of each stage, from its start, that keep their input only; all others keep "
            "everything (Megatron-LM's `--recompute-method block`). The layers of "
            "`multi_token_prediction` are always computed again. Global training."},
           {"group", whole(1, 1e6), "1",
            "Layers in a row of a stage that are computed again together: only the first keeps "
            "its input, and all of them come back at once (Megatron-LM's `uniform`). Global "
            "training."}},
      .needs = {{"modules"}, {"full_layers"}, {"stage_layers"}, {"group"}},
      .apart = {{"modules", "stage_layers"},
                {"modules", "group"},
                {"full_layers", "stage_layers"},
                {"full_layers", "group"}}};
}

ContractObject offload() {
  return {.name = "training.offload",
          .meaning = "Shares that wait in the memory of each device's host.",
          .keys = {{"activations", number(0, 1), "0",
                    "Share of the stash that leaves after its forward and comes back before its "
                    "backward; layer by layer where that comes next "
                    "(`cpu_offloading_num_layers` of Megatron-Core: layers over all)."},
                   {"selection", one_of({"equal", "lifetime"}), "equal",
                    "Stashes of which `activations` leave: as much of every stage, or all of those "
                    "stages of a device whose stash lives longest, until they are that share "
                    "(PipeOffload: 0.5 is half offload)."},
                   {"optimizer", number(0, 1), "0",
                    "Share of the optimiser's states that the host keeps and updates: at each "
                    "update gradients of as many weights go to the host, and weights come back."}}};
}

}  // namespace

ContractType schedule_type() { return either({schedule_kind(), object("training.schedule")}); }

ContractType recompute_type() {
  return either({one_of({"none", "selective", "full", "alternate"}), object("training.recompute")});
}

std::vector<ContractObject> training_objects() {
  return {
      training(),
      strategy_object(),
      schedule(),
      {.name = "training.schedule.queue",
       .meaning = "A queue of some messages.",
       .keys = {{"buffered", whole(1, 1e6), "required", "Messages that may wait to be taken."}}},
      optimizer(),
      wide_layers(),
      lora(),
      recompute(),
      offload(),
      framework(),
      framework_on_base()};
}

}  // namespace interlock::contract
