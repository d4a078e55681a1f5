// The scenario contract: "sweep" and "search", which stand for many scenarios.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device.h"
#include "hardware/networks/network_size.h"
#include "scenarios/contract/contract_parts.h"
#include "scenarios/contract/limits.h"

namespace interlock::contract {
namespace {

constexpr double kMost = 1e9, kMostCost = 1e18;

/// Returns the type of an object from paths of keys to the values that each takes.
ContractType swept(double least) {
  ContractType axes = map(either({list(anything(), 1), object("sweep.range")}), least);
  axes.paths = true;
  return axes;
}

ContractObject sweep() {
  return {
      .name = "sweep",
      .meaning =
          "Dotted paths, and the list of values that each takes; the file stands for the "
          "product of all lists. Several paths with commas between them are set together: all "
          "to one value, or each to its own of a list. An object is merged over one of the "
          "same kind at its path, and `null` removes a key; paths later in the sweep win. The name "
          "of each scenario gets ` | key=value` for each path, or the `name` of a value that is an "
          "object; sweeping `name` replaces the name. All that is required may come from the "
          "sweep.",
      .keys =
          {{"grid", swept(0), "", "Further paths and values, as beside it."},
           {"zip", one_or_more(swept(1)), "",
            "Paths whose lists, of one length, go along together; a list of such objects: the "
            "product of several."},
           {"exclude", list(map(anything(), 1)), "",
            "Combinations that are left out: swept paths, and the value of each or a list of "
            "values."},
           {"sample", object("sweep.sample"), "all are run",
            "Number of scenarios that are drawn from the rest at random, none twice, in order."}},
      .others = swept(0)};
}

ContractObject range() {
  const ContractType end = either({number(), text("25 GB/s")});
  return {.name = "sweep.range",
          .meaning = "A range in place of a list of values, both ends included.",
          .keys = {{"from", end, "required", "The first number or quantity."},
                   {"to", end, "required", "The last, if a step leads there."},
                   {"step", end, "1, without `times`", "Distance of neighbours."},
                   {"times", above(1), "", "Each value over the one before; above 1."}}};
}

ContractObject limits() {
  return {.name = "search.limits",
          .meaning = "What a plan may take at most.",
          .keys = {{"memory", size(), "what `reserve` leaves", "Memory of each device."},
                   {"reserve", either({number(0, kMostReserve), size()}), "priced",
                    "Memory of each device that tensors leave free, or the share of it: for "
                    "contexts, communicators, libraries and what an allocator cannot hand out. "
                    "[Its price](search.md#room-beside-the-tensors) depends on the plan."},
                   {"time", time(), "", "Time of the goal, or else of a step."},
                   {"cost", number(0, kMostCost), "",
                    "Cost of the goal, or else of a step, in the currency of the price."},
                   {"power", power(), "", "Power of all devices, on average over a step."}}};
}

/// Returns the keys of "search" that say how many devices take part, and in which way.
std::vector<ContractKey> search_degrees() {
  const ContractType devices = one_or_more(whole(1, kMostDevices));
  return {{"devices", devices, "all of the cluster", "Numbers of devices to use."},
          {"tensor", devices, "divisors of the devices that lie inside a node", "Tensor degrees."},
          {"pipeline", devices, "divisors of the devices", "Pipeline degrees."},
          {"data", devices, "whatever is left", "Data-parallel degrees."},
          {"context", devices, "1, and divisors that leave each device 4,096 tokens or more",
           "Context degrees."},
          {"context_layout", one_or_more(one_of({"ring", "all_to_all", "hybrid"})),
           "both where sequences are divided; `hybrid`, too, where beyond a node",
           "How attention sees whole sequences. `hybrid`: neighbours in a node turn heads, as many "
           "as divide them."},
          {"expert", devices, "divisors of the model's experts, as far as there are devices",
           "Expert degrees."},
          {"expert_tensor", devices, "`tensor`, and 1 where `parallel` has `sequence_parallel`",
           "Devices that divide each expert."}};
}

/// Returns the keys of "search" for everything but degrees and limits.
std::vector<ContractKey> search_choices() {
  const ContractType devices = one_or_more(whole(1, kMostDevices));
  return {
      {"zero_stage", one_or_more(whole(0, 3)), "all that data parallelism allows",
       "Stages of ZeRO."},
      {"micro_batch_size", one_or_more(whole(1, kMost)),
       "divisors of a replica's batch: powers of two, and the largest between those that are none",
       "Samples of a micro-batch."},
      {"chunks", devices, "of 2, 3, 4, 6 and 8 those that make the longest stage shorter",
       "Stages of a rank under schedules that lay several in loops."},
      {"strategy", one_or_more(strategy_type()), "that of training",
       "Strategies, as in `training`."},
      {"schedule", one_or_more(schedule_type()),
       "1f1b, interleaved, zb-h1 and zb-v under global training",
       "Schedules, as in "
       "`training`."},
      {"recompute", one_or_more(recompute_type()),
       "`none`, `full`; modules that are cheap to compute again; these with `mlp`; where no "
       "kernel fuses attention `selective`, and `core_attn` with the modules",
       "What forwards keep, as in `training`."},
      {"partition", one_or_more(partition_type()), "balanced", "Partitions, as of the scenario."},
      {"sequence_parallel", one_or_more(boolean()),
       "`true` where tensors are divided in `1d` and `parallel` does not say",
       "Whether tensor devices divide sequences between the layers."},
      {"shard", devices, "all; and those of a node under ZeRO 3, if `parallel` does not say",
       "ZeRO: devices that share one copy of the states."},
      {"gradient_reduction", one_or_more(one_of({"step", "micro_batch"})),
       "as `parallel` says; without a pipeline, and for another program (`--to`), also "
       "`micro_batch`",
       "ZeRO 2 and 3: when gradients are reduced."},
      {"overlap_gradients", one_or_more(boolean()), "as `parallel` says",
       "Whether gradients leave beside the last backward."},
      {"overlap_weights", one_or_more(boolean()),
       "`true` under ZeRO 1 and 2, if `parallel` does not say",
       "Whether weights are gathered beside the first forward."},
      {"expert_overlap", one_or_more(one_of({"none", "shared_experts", "micro_batches"})),
       "the experts of all tokens or none, and other micro-batches, if `parallel` does not say",
       "What runs while tokens are on their way to experts, if `expert` is above 1."},
      {"offload", one_or_more(object("training.offload")),
       "as `training` says; where a plan lacks memory without and there is a `host`, none or all "
       "of the optimiser's states with none, half or all of the stash",
       "What waits in the memory of hosts."},
      {"precision", one_or_more(one_of(precision_names())), "as `training` says",
       "Precisions, as in `training`; a device without rates for one has no plan of it."},
      {"machine_order", one_of({"all", "as_written"}), "all",
       "Orders of `cluster.machines` that are tried: the first machines hold the first stages. "
       "`all`: of up to four, if no `network` says where each of them is."}};
}

ContractObject search() {
  ContractObject search = {
      .name = "search",
      .meaning =
          "Plans that `interlock search` chooses from, one value or a list of each, and what "
          "they may take; see [search](search.md).",
      .keys = {
          {"minimize", one_of({"time", "memory", "cost", "energy"}), "time",
           "What the best plan has least of: time, cost and energy of the goal, or else of a step; "
           "memory of the fullest device."},
          {"limits", object("search.limits"), "none", "What a plan may take at most."},
          {"worth", number(0, 1), "0.01",
           "Share by which a plan must be better than every one before it, in time, memory, cost "
           "or "
           "energy, to be worth having."}}};
  for (const auto& keys : {search_degrees(), search_choices()}) {
    search.keys.insert(search.keys.end(), keys.begin(), keys.end());
  }
  return search;
}

}  // namespace

std::vector<ContractObject> sweep_objects() {
  return {sweep(),
          {.name = "sweep.sample",
           .meaning = "A random part of a sweep.",
           .keys = {{"count", whole(1, kMost), "required", "Scenarios to draw."},
                    {"seed", whole(0, kMost), "1", "Other seeds draw other scenarios."}}},
          range(),
          search(),
          limits()};
}

}  // namespace interlock::contract
