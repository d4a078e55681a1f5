// The scenario contract: "run", "swarm" and "variation".
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/contract_parts.h"
#include "scenarios/contract/limits.h"

namespace interlock::contract {
namespace {

constexpr double kMostNumber = 1e6, kMostSlowdown = 1000;

ContractType life_distribution() { return one_of({"exponential", "weibull"}); }

ContractKey shape_key() {
  return {"shape", number(0.1, 100), "required with `weibull`",
          "Of the Weibull distribution: below 1, what has just come back fails soonest."};
}

ContractObject checkpoint() {
  return {
      .name = "run.checkpoint",
      .meaning = "When checkpoints are written, and how long that takes.",
      .keys = {
          {"interval",
           either({one_of({"optimal", "young", "daly"}), time(), whole(1, kMostRunSteps)}),
           "optimal",
           "Training between two checkpoints: a time, rounded to whole steps, or a number of "
           "steps; "
           "or by the rate of failures: `optimal`, the least expected time of Daly's complete cost "
           "function, or the formulas `young` and `daly`. These three need `on_failure` "
           "`restart`."},
          {"write", time(), "`bytes` / `bandwidth`",
           "Time until a checkpoint is safe; training stands meanwhile."},
          {"bytes", size(), "weights and optimiser states of the device that has most",
           "What each device writes."},
          {"bandwidth", bandwidth(), "required without `write`",
           "Of each device to where checkpoints are."},
          {"asynchronous", boolean(), "false",
           "Training goes on while a checkpoint is written. A failure ends a write that is under "
           "way; the next one waits for the one before."},
          {"stall", time(), "0 s",
           "`asynchronous`: time for which training stands all the same."}}};
}

ContractObject run_failures() {
  return {
      .name = "run.failures",
      .meaning = "What fails, and when.",
      .keys = {
          {"device_mtbf", time(), "none fails", "Mean time between failures of one device."},
          {"link_mtbf", time(), "none fails",
           "Mean time between failures of one device's link, without which the device is of no "
           "use."},
          {"node_mtbf", time(), "none fails",
           "Mean time between failures of one node, which takes all its devices down."},
          {"distribution", life_distribution(), "exponential",
           "Distribution of the times between failures. At the start everything is in the middle "
           "of "
           "its life."},
          shape_key(),
          {"replacement", either({one_of({"never"}), time()}), "0 s",
           "Time until a failed device is repaired or replaced."},
          {"trace", text("outages.csv"), "",
           "Path of a CSV file of further outages: a head `time_s,device,event`, then a line for "
           "each event, `down` or `up`. Devices are numbered from 0, spares last; one whose first "
           "event is `up` is not there before."}}};
}

}  // namespace

std::vector<ContractObject> run_objects() {
  ContractObject run = {
      .name = "run",
      .meaning =
          "A whole training run of many such steps, with failures, checkpoints and "
          "preemption. The step is simulated once, then the run under several seeds.",
      .keys = length_keys()};
  const std::vector<ContractKey> keys = {
      {"checkpoint", object("run.checkpoint"), "none is written",
       "When checkpoints are written, and how long that takes."},
      {"failures", object("run.failures"), "nothing fails", "What fails, and when."},
      {"on_failure", one_of({"restart", "drop_replica", "wait"}), "restart",
       "What happens when a device goes down that takes part; the step under way is always lost. "
       "`restart`: all go back to the last checkpoint. `drop_replica`: the other replicas go on at "
       "once and share the batch. `wait`: they keep their state and wait until it is back."},
      {"detection", time(), "0 s", "Time from a failure until training is stopped."},
      {"reload", time(), "as long as a write", "Time to load a checkpoint, by all devices."},
      {"regroup", time(), "0 s",
       "`drop_replica`, `wait`: time to form replicas anew and copy the state to newcomers."},
      {"spares", whole(0, 1e6), "0",
       "Devices that stand by, and take the places of those that are down."},
      {"seeds", whole(1, kMostSeeds), "20",
       "Runs, under `simulate.seed` and the seeds after it; one run if nothing is drawn."}};
  run.keys.insert(run.keys.end(), keys.begin(), keys.end());
  return {run, checkpoint(), run_failures()};
}

namespace {

/// Lists the keys of one peer and its link.
std::vector<ContractKey> peer_keys() {
  const ContractType speed = number(kLeastRelativeSpeed, kMostRelativeSpeed);
  return {
      {"peers", either({whole(1, kMostPeers), list(whole(0, kMostPeers), 1)}),
       "required, here or in the sweep", "Peers of every stage, or a list of those of each stage."},
      {"speed", one_or_more(speed), "1",
       "Speed of a peer, the cluster's device being 1. Here and in the next three a list is "
       "taken in turn: first peer, first value."},
      {"up", one_or_more(bandwidth()), "required, here or in the sweep",
       "Bandwidth of a peer's link for what it sends."},
      {"down", one_or_more(bandwidth()), "as `up`",
       "Bandwidth of a peer's link for what it receives."},
      {"latency", one_or_more(time()), "0 s",
       "Latency of a peer's link; a message takes that of both ends."}};
}

std::vector<ContractKey> swarm_keys() {
  return {
      {"routing", one_of({"weighted", "random", "round_robin"}), "weighted",
       "How requests are dealt. `weighted`: to the peer with the least assigned time, which then "
       "grows by the measured service time. `random`: by measured speed. `round_robin`: in turn."},
      {"rebalance_every", time(), "none moves",
       "Time between moves of a peer from the least to the most loaded stage, where that gains "
       "more "
       "than it costs."},
      {"compression", one_of({"none", "int8"}), "none",
       "Of activations and their gradients between stages. `int8`: a byte for each element, and 4 "
       "bytes for each 4096."},
      {"in_flight", whole(1, 1e6), "as many as keep the slowest stage or its links busy, twice",
       "Micro-batches on their way at a time."},
      {"delayed_update", boolean(), "true",
       "The next step begins while this one's gradients are averaged, with weights one step old."},
      {"lost_gradients", one_of({"redone", "dropped"}), "redone",
       "What happens to micro-batches whose gradients died with a peer: they go through again, or "
       "the stage's step goes without them."},
      {"failures", object("swarm.failures"), "never", "When peers fail and come back."},
      {"detection", time(), "10 s", "Time from a failure until the others notice."},
      {"duration", time(), "1 h", "How long the swarm is simulated."},
      {"warm_up", time(), "a tenth", "Part of the `duration` that is not measured."},
      {"seeds", whole(1, kMostSeeds), "5",
       "Simulations, under `simulate.seed` and the seeds after it."}};
}

ContractObject swarm_failures() {
  return {.name = "swarm.failures",
          .meaning = "When peers fail and come back.",
          .keys = {{"device_mtbf", time(), "none fails", "Mean time between failures of one peer."},
                   {"distribution", life_distribution(), "exponential",
                    "Distribution of the times between failures."},
                   shape_key(),
                   {"replacement", either({one_of({"never"}), time()}), "0 s",
                    "Time until a peer, or another in its place, comes back and joins."},
                   {"trace", text("outages.csv"), "",
                    "Path of a CSV file of further outages, as in `run.failures`. Devices are "
                    "peers, those of the first stage first."}}};
}

}  // namespace

std::vector<ContractObject> swarm_objects() {
  ContractObject swarm = {
      .name = "swarm",
      .meaning =
          "The same stages trained by a swarm: several peers for each stage, on slow links of "
          "their own, that fail, join and change stages (Ryabinin et al., SWARM Parallelism, "
          "arXiv 2301.11913).",
      .keys = peer_keys()};
  for (ContractKey& key : swarm_keys()) swarm.keys.push_back(std::move(key));
  return {swarm, swarm_failures()};
}

namespace {

ContractObject jitter(const std::string& name, const std::string& meaning,
                      const std::vector<std::string>& scopes, const std::string& scope_meaning) {
  return {.name = name,
          .meaning = meaning,
          .keys = {{"distribution", one_of({"lognormal", "normal", "gamma", "uniform"}),
                    "lognormal", "Distribution of the factors; `normal` takes none below 0."},
                   {"spread", number(0, 1), "required",
                    "Standard deviation over mean: at most 1, 0.25 (`normal`) or 0.577 "
                    "(`uniform`)."},
                   {"per", one_of(scopes), scopes.front(), scope_meaning}}};
}

ContractObject straggler() {
  return {.name = "variation.stragglers",
          .meaning = "One device, or rank, that computes slower than it should.",
          .keys = {{"rank", whole(0, kMostNumber), "",
                    "A pipeline rank, with all its devices. Either this or `device`."},
                   {"device", whole(0, kMostNumber), "",
                    "One device of the machine. Either this or `rank`."},
                   {"slowdown", number(1, kMostSlowdown), "required",
                    "How many times longer its kernels take."},
                   {"from_step", whole(1, kMostNumber), "the first, or always without `to_step`",
                    "First of the measured steps in which it is slow."},
                   {"to_step", whole(1, kMostNumber), "the last",
                    "Last of the measured steps in which it is slow."}}};
}

ContractObject slow_link() {
  return {
      .name = "variation.slow_links",
      .meaning = "A way between two devices with less bandwidth than it should have.",
      .keys = {{"from", whole(0, kMostNumber), "required", "The device of the machine that sends."},
               {"to", whole(0, kMostNumber), "required", "The device that receives."},
               {"slowdown", number(1, kMostSlowdown), "required",
                "By how much the bandwidth of its narrowest links is divided, for all that "
                "uses them."}}};
}

}  // namespace

std::vector<ContractObject> variation_objects() {
  return {
      {.name = "variation",
       .meaning =
           "Devices and links that are not all alike, and times that vary at random. Without "
           "it every device is as fast as its kind, and equal ops take equal times.",
       .keys = {{"stragglers", list(object("variation.stragglers")), "none",
                 "Devices that compute slower than they should; the partition does not know."},
                {"jitter", object("variation.jitter"), "none",
                 "Random factors of mean 1 on the times of ops."},
                {"link_jitter", object("variation.link_jitter"), "none",
                 "Random factors of mean 1 on the times of messages and collectives."},
                {"slow_links", list(object("variation.slow_links")), "none",
                 "Ways between devices that have less bandwidth than they should."},
                {"speeds", list(number(kLeastRelativeSpeed, kMostRelativeSpeed), 1), "all 1",
                 "Speeds of the devices of each pipeline rank, the cluster's devices being 1. A "
                 "balanced partition knows them, and MFU counts the peak of what is there."},
                {"documents", object("variation.documents"), "one a sample",
                 "Documents that samples are packed from. Tokens see their own document alone, so "
                 "that each micro-batch takes attention by its own documents; memory is that of "
                 "whole samples."},
                {"seeds", whole(1, kMostSeeds), "20",
                 "Runs with jitter or documents, under `simulate.seed` and the seeds after it."}}},
      straggler(),
      slow_link(),
      {.name = "variation.documents",
       .meaning =
           "Lengths of documents. A sample is filled with documents that are drawn one after "
           "the other, and the last one is cut where it ends.",
       .keys = {{"lengths", either({list(number(1, kMostNumber), 1), text("lengths.txt")}), "",
                 "Tokens, each length as likely; or a text file with a number a line. Either this "
                 "or `mean`."},
                {"mean", number(1, kMostNumber), "", "Mean of a log-normal distribution, tokens."},
                {"spread", number(0, 10), "1", "Its standard deviation over its mean."}}},
      jitter("variation.jitter", "Random factors on the times of ops.", {"op", "step", "device"},
             "What has one factor: an op; a device in a step; a device all the time."),
      jitter("variation.link_jitter", "Random factors on the times of messages and collectives.",
             {"message", "step", "link"},
             "What has one factor: a message or collective; the way between two ranks in a step; "
             "that way all the time.")};
}

}  // namespace interlock::contract
