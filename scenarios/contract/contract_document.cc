// The scenario contract: the document, and its short sections.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device.h"
#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "scenarios/contract/contract_parts.h"
#include "scenarios/contract/limits.h"
#include "sim/plan/mesh.h"

namespace interlock::contract {
namespace {

/// Returns all dimensions of a mesh but the pipeline, whose ranks differ.
std::vector<std::string> foldable() {
  return {dimension_names().begin(), dimension_names().end() - 1};
}

ContractObject document() {
  return {
      .name = "",
      .meaning = "A scenario is one what-if question to interlock. Comments (`//`) are allowed.",
      .keys =
          {{"$schema", text("../scenario.schema.json"), "",
            "Path of the schema, for editors; not used."},
           {"name", text(), "the file's name without `.json`", "Name in tables and results."},
           {"model", model_type(), "required, but beside a `workload` or `jobs`",
            "The network: a name of the zoo (`interlock list models`), the path of a model file or "
            "of a `config.json` of Hugging Face, or an object."},
           {"cluster", cluster_type(), "required",
            "The machine: a name of the catalogue (`interlock list machines`), the path of a "
            "machine file, or an object."},
           {"parallel", object("parallel"), "", "How the work is spread over devices."},
           {"partition", partition_type(), "balanced",
            "Modules of each stage. `balanced`: the busiest stage has as little to do for one "
            "micro-batch as possible, with heads, recompute, every traversal and its share of the "
            "update counted; unless a message occupies a link for longer, which is then made as "
            "short as possible first. N-wise (and chunked, and overlapping) stages with one "
            "micro-batch in flight wait for the "
            "losses of others: the longest of their loops, up to that loss and back, is as short "
            "as possible. `uniform`: equal "
            "numbers, the first stages take the rest. Or a list of numbers that add up to the "
            "model's; overlapping blocks that recompute have one part more than stages. `auto`: "
            "searched by simulated steps, so that each device has room and a step is as short as "
            "can be found, together with `placement` and the schedule where these are `auto`, "
            "too."},
           {"training", object("training"), "required, but beside a `workload` or `jobs`",
            "What is trained, and how."},
           {"simulate", object("simulate"), "", "How the run is simulated."},
           {"variation", object("variation"), "no variation",
            "Devices and links that are not all alike, and times that vary at random."},
           {"run", object("run"), "no run",
            "A whole training run of such steps: failures, checkpoints, goodput."},
           {"goal", object("goal"), "the length of the `run`",
            "How long training goes on until it has done what it is for. Results tell the time, "
            "energy and money of that."},
           {"swarm", object("swarm"), "no swarm",
            "The stages served by interchangeable peers on slow links, which fail, join and change "
            "stages."},
           {"quality", object("quality"), "unknown",
            "How good a network trained in this way is, as it was published. Pictures draw it "
            "beside results; it changes none."},
           {"workload", object("workload"), "none",
            "A run that was recorded, in place of `model`, `training` and all that belongs to "
            "them."},
           {"jobs", list(object("jobs"), 1, 64), "one",
            "Several jobs on the one `cluster`, whose links they share: what each loses. Beside it "
            "stand `cluster`, `name`, `simulate` with its `engine`, and `sweep` only. "
            "`interlock simulate` and `interlock check` take it."},
           {"sweep", object("sweep"), "one scenario",
            "Several scenarios in one file: dotted paths, and the values that each takes."},
           {"search", object("search"), "the usual plans",
            "Plans that `interlock search` chooses from, and what they may take. Other commands "
            "pass over it."}},
      .needs = {{"model", "training"}, {"workload"}, {"jobs"}},
      .apart = {{"workload", "model"},
                {"workload", "training"},
                {"jobs", "model"},
                {"jobs", "training"},
                {"jobs", "workload"}}};
}

ContractObject simulate() {
  return {
      .name = "simulate",
      .meaning = "How the run is simulated.",
      .keys = {
          {"engine", one_of({"auto", "simgrid", "native"}), "auto",
           "What runs the program. `native`: our own engines, with max-min sharing of links. "
           "`simgrid`: the same by SimGrid, the engine of record. `auto`: native where no "
           "link is shared, else simgrid; but native in sweeps, searches and other runs of "
           "many scenarios."},
          {"seed", whole(0, 2'147'483'647), "1",
           "Seed of random numbers, which the search of the schedule `auto`, `variation`, "
           "`run` and `swarm` draw."},
          {"skip_periods", boolean(), "true",
           "Measures a long step whose micro-batches settle into an exact rhythm by two "
           "shorter ones, a period apart. Never with `--report` or `--svg`, nor under half a "
           "million tasks."},
          {"memory_contention", boolean(), "false",
           "Messages, collectives and copies to hosts take memory bandwidth from the kernels "
           "beside them."},
          {"fold", either({one_of({"auto", "none", "nearly"}), list(one_of(foldable()))}), "auto",
           "Dimensions of the mesh of which one device stands for all. `auto`: as many as is "
           "exact, or `nearly` where more than 512 devices would be simulated, or more than "
           "2,048 pairs of a device and one that it sends tokens for experts to. `none`: every "
           "device is simulated. `nearly`: more than is exact; links that equal devices use "
           "more and less, as those of trees beside messages of a pipeline, count as the "
           "busiest of them. Or a list; a folding that is not exact is refused."}}};
}

ContractObject goal() {
  ContractObject goal = {
      .name = "goal",
      .meaning =
          "How long training goes on until it has done what it is for; beside a `run`, with "
          "its failures and restarts.",
      .keys = length_keys()};
  goal.keys.push_back({"strategies", map(object("goal.strategies")), "",
                       "Lengths of strategies that need more or less, by their `kind` or as "
                       "`3-wise`."});
  return goal;
}

ContractObject quality() {
  return {.name = "quality",
          .meaning = "How good a network trained in this way is, as it was published.",
          .keys = {{"measure", text("WikiText perplexity"), "required", "What is measured."},
                   {"value", number(), "required", "Its value, as published."},
                   {"source", text(), "", "Where it was published."}}};
}

ContractObject job() {
  return {
      .name = "jobs",
      .meaning = "One of several jobs on one cluster.",
      .keys = {
          {"scenario", either({text("llama.json"), object("")}), "required",
           "The scenario of the job, complete as if it stood alone: the path of its file, or an "
           "object. Its own `cluster` says how many devices it has, and must be of the machine of "
           "the shared one; the network is the shared one's."},
          {"set", map(anything()), "",
           "Dotted paths in the scenario and the values that they are set to, as by `--set`."},
          {"name", text(), "the scenario's", "Name in tables and results; each has its own."},
          {"placement", either({one_of({"packed", "spread"}), object("jobs.placement")}), "packed",
           "Its devices. `packed`: the first free ones. `spread`: whole free nodes, which are "
           "dealt to the spread jobs in turn. Or those that are named; these are taken first, "
           "then packed jobs are placed in order, then spread ones."},
          {"start", time(), "0 s",
           "When its first step begins. Jobs whose steps are alike stay as far apart in time as "
           "they "
           "begin, which decides how much of their traffic meets."}}};
}

ContractObject job_placement() {
  return {.name = "jobs.placement",
          .meaning =
              "Where a job lies; one of the two. Its devices are numbered in this order, so "
              "that neighbours of its mesh are neighbours in the list.",
          .keys = {{"nodes", list(whole(0), 1), "",
                    "Nodes, each of which has as many of its devices: the first free ones."},
                   {"devices", list(whole(0), 1), "", "Devices, by their numbers in the cluster."}},
          .needs = {{"nodes"}, {"devices"}},
          .apart = {{"nodes", "devices"}}};
}

ContractObject workload() {
  return {.name = "workload",
          .meaning =
              "A run that was recorded as execution traces of MLCommons' Chakra. Beside it "
              "stand `cluster`, `name`, `simulate`, `quality` and `sweep` only.",
          .keys = {{"chakra", text("traces/rank.%d.et"), "required",
                    "Path of the traces, a file for each rank from 0 on, with `%d` for the number "
                    "of the rank. Rank r runs on device r."},
                   {"precision", one_of(precision_names()), "they take no time",
                    "Prices computations that have no duration by their `num_ops` and "
                    "`tensor_size`, as a matrix product in this precision on the cluster's "
                    "device."}}};
}

}  // namespace

std::vector<ContractKey> length_keys() {
  return {{"steps", whole(1, kMostRunSteps), "",
           "How long to train; one of `steps`, `samples` and `tokens` is required."},
          {"samples", number(1, kMostAmount), "", "How long to train, in samples."},
          {"tokens", number(1, kMostAmount), "", "How long to train, in tokens."},
          {"further_steps", whole(0, kMostRunSteps), "0",
           "Beside `samples` or `tokens`: steps that it takes besides, however large the batch. "
           "Steps to a goal are about c1 / B + c2 for a batch of B samples (Lee et al., arXiv "
           "2003.11316): c1 are the `samples`, c2 the `further_steps`."}};
}

ContractType partition_type() {
  return either({one_of({"balanced", "uniform", "auto"}), list(whole(1), 1)});
}

std::vector<ContractObject> document_objects() {
  return {document(),
          simulate(),
          goal(),
          {.name = "goal.strategies", .meaning = "How long to train.", .keys = length_keys()},
          quality(),
          workload(),
          job(),
          job_placement()};
}

}  // namespace interlock::contract
