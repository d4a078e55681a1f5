// The table of the scenario contract.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract.h"

#include "sim/plan/schedules/catalogue.h"

namespace interlock {
namespace {

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedule_catalogue()) names.push_back(entry.name);
  return names;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = {
      "global",          "local",    "interlocking", "greedy",   "chunked",  "overlapping",
      "forward-forward", "backlink", "tree",         "pairwise", "inference"};
  return names;
}

/// "run" and what is in it.
std::vector<ContractObject> run_contract() {
  return {
      {"run",
       {{"steps"},
        {"samples"},
        {"tokens"},
        {"further_steps"},
        {"checkpoint"},
        {"failures"},
        {"on_failure", {"restart", "drop_replica", "wait"}},
        {"detection"},
        {"reload"},
        {"regroup"},
        {"spares"},
        {"seeds"}}},
      {"run.checkpoint",
       {{"interval", {"optimal", "young", "daly"}},
        {"write"},
        {"bytes"},
        {"bandwidth"},
        {"asynchronous"},
        {"stall"}}},
      {"run.failures",
       {{"device_mtbf"},
        {"link_mtbf"},
        {"node_mtbf"},
        {"distribution", {"exponential", "weibull"}},
        {"shape"},
        {"replacement", {"never"}},
        {"trace"}}},
  };
}

/// "swarm" and what is in it.
std::vector<ContractObject> swarm_contract() {
  return {
      {"swarm",
       {{"peers"},
        {"speed"},
        {"up"},
        {"down"},
        {"latency"},
        {"routing", {"weighted", "random", "round_robin"}},
        {"rebalance_every"},
        {"compression", {"none", "int8"}},
        {"in_flight"},
        {"delayed_update"},
        {"lost_gradients", {"redone", "dropped"}},
        {"failures"},
        {"detection"},
        {"duration"},
        {"warm_up"},
        {"seeds"}}},
      {"swarm.failures",
       {{"device_mtbf"},
        {"distribution", {"exponential", "weibull"}},
        {"shape"},
        {"replacement", {"never"}},
        {"trace"}}},
  };
}

/// "variation" and what is in it.
std::vector<ContractObject> variation_contract() {
  return {
      {"variation",
       {{"stragglers"}, {"jitter"}, {"link_jitter"}, {"slow_links"}, {"speeds"}, {"seeds"}}},
      {"variation.stragglers", {{"rank"}, {"device"}, {"slowdown"}, {"from_step"}, {"to_step"}}},
      {"variation.jitter",
       {{"distribution", {"lognormal", "normal", "gamma", "uniform"}},
        {"per", {"op", "step", "device"}},
        {"spread"}}},
      {"variation.link_jitter",
       {{"distribution", {"lognormal", "normal", "gamma", "uniform"}},
        {"per", {"message", "step", "link"}},
        {"spread"}}},
      {"variation.slow_links", {{"from"}, {"to"}, {"slowdown"}}},
  };
}

/// "training.framework" and what is in it.
ContractObject framework_contract() {
  return {"training.framework",
          {{"kernel_issue"},
           {"backward_issue"},
           {"exchange_issue"},
           {"product_speed"},
           {"attention_speed"},
           {"loss_traffic"},
           {"softmax_traffic"},
           {"gradients", {"training", "fp32"}},
           {"gradient_reduction", {"step", "micro_batch"}},
           {"gradient_passes"},
           {"overlaps_sums"},
           {"waits_for_sends"},
           {"divides_messages"},
           {"message_copies"},
           {"collective_sms"},
           {"origin"}}};
}

/// "training" and what is in it.
std::vector<ContractObject> training_contract() {
  return {
      {"training",
       {{"strategy", strategy_names()},
        {"schedule", schedule_names()},
        {"global_batch_size"},
        {"micro_batch_size", {"balanced"}},
        {"micro_batches"},
        {"precision", {"fp32", "tf32", "fp16", "bf16", "fp8"}},
        {"optimizer", {"sgd", "sgd-momentum", "adam", "adamw"}},
        {"recompute", {"none", "selective", "full"}},
        {"offload"},
        {"framework"},
        {"steps"}}},
      framework_contract(),
      {"training.recompute", {{"full_layers"}}},
      {"training.offload", {{"activations"}, {"optimizer"}}},
      {"training.strategy",
       {{"kind", strategy_names()},
        {"n_wise"},
        {"gradient", {"furthest", "sum", "mean"}},
        {"heads", {"minimal", "all"}},
        {"unneeded_input_gradients", {"computed", "skipped"}},
        {"chunks"},
        {"modules"},
        {"arity"},
        {"forward", {"shared", "recomputed"}},
        {"head"}}},
      {"training.schedule",
       {{"kind", schedule_names()},
        {"backward", {"fused", "split"}},
        {"queue", {"rendezvous", "unlimited"}},
        {"copies", {"overlapped", "compute_stream"}},
        {"in_flight"},
        {"update_every"},
        {"optimizer_sync", {"per_stage", "barrier"}},
        {"execution", {"futures", "bulk_synchronous"}},
        {"chunks"},
        {"overlap"},
        {"memory"},
        {"evaluations"},
        {"slices", {"balanced"}},
        {"file"}}},
      {"training.schedule.queue", {{"buffered"}}},
  };
}

/// "parallel" and what is in it.
std::vector<ContractObject> parallel_contract() {
  return {
      {"parallel",
       {{"pipeline"},
        {"stages"},
        {"placement", {"loop", "v"}},
        {"tensor"},
        {"data"},
        {"context"},
        {"expert"},
        {"split_brain"},
        {"zero_stage"},
        {"shard"},
        {"sequence_parallel"},
        {"tensor_layout", {"1d", "2d", "2.5d", "3d"}},
        {"tensor_depth"},
        {"context_layout", {"ring", "all_to_all"}},
        {"spatial"},
        {"expert_imbalance"},
        {"overlap_gradients"},
        {"overlap_weights"},
        {"gradient_density"},
        {"gradient_reduction", {"step", "micro_batch"}},
        {"bucket"},
        {"prefetch"},
        {"order"},
        {"stage_layouts"},
        {"resharding", {"point_to_point", "local_all_gather", "broadcast"}},
        {"sender_balancing"}}},
      {"parallel.stage_layouts", {{"tensor"}, {"data"}}},
  };
}

// The order of names is the order of the enumerators they stand for.
std::vector<ContractObject> make_contract() {
  return {
      {"",
       {{"$schema"},
        {"name"},
        {"model"},
        {"cluster"},
        {"parallel"},
        {"partition", {"balanced", "uniform"}},
        {"training"},
        {"simulate"},
        {"variation"},
        {"run"},
        {"swarm"},
        {"goal"},
        {"quality"},
        {"sweep"},
        {"search"},
        {"workload"}}},
      {"search",
       {{"minimize", {"time", "memory", "cost", "energy"}},
        {"limits"},
        {"worth"},
        {"devices"},
        {"tensor"},
        {"pipeline"},
        {"data"},
        {"zero_stage"},
        {"micro_batch_size"},
        {"chunks"},
        {"strategy"},
        {"schedule"},
        {"recompute"},
        {"partition"}}},
      {"search.limits", {{"memory"}, {"time"}, {"cost"}, {"power"}}},
      {"goal", {{"steps"}, {"samples"}, {"tokens"}, {"further_steps"}, {"strategies"}}},
      {"goal.strategies", {{"steps"}, {"samples"}, {"tokens"}, {"further_steps"}}},
      {"quality", {{"measure"}, {"value"}, {"source"}}},
      {"workload", {{"chakra"}, {"precision", {"fp32", "tf32", "fp16", "bf16", "fp8"}}}},
      {"simulate",
       {{"engine", {"auto", "simgrid", "native"}},
        {"seed"},
        {"skip_periods"},
        {"memory_contention"},
        {"fold", {"auto", "none"}}}},
  };
}

}  // namespace

const std::vector<ContractObject>& scenario_contract() {
  static const std::vector<ContractObject> contract = [] {
    std::vector<ContractObject> all = make_contract();
    for (const auto& part : {parallel_contract(), training_contract(), variation_contract(),
                             run_contract(), swarm_contract()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return contract;
}

}  // namespace interlock
