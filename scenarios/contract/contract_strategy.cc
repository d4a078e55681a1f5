// The scenario contract: "training.strategy".
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/head.h"
#include "scenarios/contract/contract_parts.h"

namespace interlock::contract {
namespace {

ContractType strategy_kind() {
  return one_of({"global", "local", "interlocking", "greedy", "chunked", "overlapping",
                 "forward-forward", "backlink", "tree", "independent", "pairwise", "inference"});
}

const std::vector<std::string>& trained_by_heads() {
  static const std::vector<std::string> kinds = {"local",    "interlocking", "pairwise",
                                                 "greedy",   "chunked",      "overlapping",
                                                 "backlink", "tree",         "independent"};
  return kinds;
}

ContractType sent_format() { return one_of({"training", "fp8", "int8", "int4"}); }

/// Returns the strategies under which gradients cross boundaries; with `up`, also those under which
/// outputs alone do.
std::vector<std::string> kinds_that_send(bool up) {
  std::vector<std::string> kinds = {"global",  "interlocking", "pairwise",
                                    "chunked", "overlapping",  "backlink"};
  if (up) kinds.insert(kinds.end(), {"local", "greedy", "forward-forward", "inference"});
  return kinds;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
ContractObject strategy_object() {
  return {
      .name = "training.strategy",
      .meaning = "Which loss trains which stage.",
      .keys = {
          {"kind", strategy_kind(), "required",
           "`global`: one loss, at the last stage. `local`: every stage is trained by a loss of "
           "its "
           "own. `interlocking`: stage i is trained by the furthest loss that it reaches, of stage "
           "i "
           "+ `n_wise` - 1, where all have one `n_wise`. `pairwise`: interlocking with `n_wise` 2. "
           "`greedy`: a loss on every "
           "module, which is a stage. `chunked`: full backpropagation inside blocks of stages, "
           "none "
           "between. `overlapping`: blocks of two stages (1,2), (2,3), (3,4). `forward-forward`: "
           "every module learns from a positive and a negative pass (arXiv 2212.13345). "
           "`backlink`: "
           "local, but the next stage's error also goes down the last `modules` of a stage (arXiv "
           "2205.07141). `tree`: local, but stages read the output of their parent in a tree "
           "(arXiv "
           "2606.21497). `independent`: local, but every stage reads the batch itself, beside it "
           "its "
           "target under noise of its own level, and hands nothing on (DiffusionBlocks, arXiv "
           "2506.14202). `inference`: forward only."},
          {"n_wise",
           either({whole(1, 1e9), one_of({"auto"}), list(whole(1, 1e9), 1)}),
           "2",
           "Stages that a loss reaches, its own included. 1 is local; as many as there are stages, "
           "or more, train like global. A list: of the loss of each stage, first to last; a stage "
           "is "
           "trained by the furthest loss that reaches it. `auto`: the list under which a stage is "
           "trained by a loss that is furthest away on average, of those that fit and whose step "
           "is "
           "at most `slowdown` longer than the shortest; boundaries and order that are `auto`, "
           "too, "
           "are chosen with it.",
           {"interlocking"}},
          {"module_stages",
           whole(1, 1e9),
           "1",
           "Stages of a module: each module has one loss, at its last stage, and `n_wise` counts "
           "modules. With `n_wise` 1, `chunked`. The stages must be a multiple. Beside "
           "`gradient_every` every "
           "stage has a loss.",
           {"interlocking", "pairwise"}},
          {"least_n",
           whole(1, 1e9),
           "1",
           "`n_wise` `auto`: stages that each loss reaches at least, where there are as many.",
           {"interlocking"}},
          {"slowdown",
           number(0, 1e9),
           "0",
           "`n_wise` `auto`: the share by which a step may be longer than the shortest that is "
           "found, "
           "for losses that reach further.",
           {"interlocking"}},
          {"gradient",
           one_of({"furthest", "sum", "mean"}),
           "furthest",
           "The gradient that trains a stage: of the furthest loss alone, or the sum or mean of "
           "all "
           "that reach it (overlapping has no mean).",
           {"interlocking", "pairwise", "overlapping"}},
          {"heads",
           one_of({"minimal", "all"}),
           "`all` for the list schedule, else `minimal`",
           "Stages that own an auxiliary head: those whose loss trains something, or all; of "
           "modules "
           "of several stages their last ones.",
           {"local", "interlocking", "pairwise", "greedy"}},
          {"unneeded_input_gradients",
           one_of({"computed", "skipped"}),
           "computed",
           "`skipped` saves the first operator's input gradient where nothing reads it.",
           {"global", "local", "interlocking", "pairwise", "greedy", "chunked", "overlapping",
            "forward-forward", "backlink", "tree", "independent"}},
          {"chunks",
           whole(1, 1e9),
           "required with chunked",
           "Blocks of stages, between which no gradient passes; the stages must be a multiple.",
           {"chunked"}},
          {"modules",
           whole(1, 1e9),
           "required with backlink",
           "Modules, from the top of a stage, that the error of the next stage goes down; more "
           "than "
           "a stage has means all.",
           {"backlink"}},
          {"arity",
           whole(1, 1e9),
           "2",
           "Stages that read the output of one; 1 is local training of a chain.",
           {"tree"}},
          {"forward",
           one_of({"shared", "recomputed"}),
           "shared",
           "A stage in two blocks runs its forward once, or in both; then blocks exchange nothing "
           "backward.",
           {"overlapping"}},
          {"gradient_every",
           whole(1, 1e6),
           "1",
           "Micro-batches of which only the last one's gradients cross boundaries; by the others "
           "each stage is trained by its own loss, as if local. Every stage then has a head. Must "
           "divide the micro-batches of a step; beside `in_flight`, best without a common factor.",
           {"interlocking", "pairwise", "chunked"}},
          {"activation_format", sent_format(), "training",
           "Of outputs that pass to another rank. `training`: as they are computed. `fp8` and "
           "`int4` have a scale of 4 bytes for every 128 elements, `int8` for every 4096. A "
           "kernel casts them when they leave, and another when they are read.",
           kinds_that_send(true)},
          {"gradient_format", sent_format(), "training",
           "Likewise, of the gradients of these outputs.", kinds_that_send(false)},
          {"noise",
           one_of({"log-normal", "cosine"}),
           "log-normal",
           "Noise over the target of each stage in `train`, most at the first; a simulated step is "
           "the same. `log-normal`: medians of equal shares of a distribution (DiffusionBlocks). "
           "`cosine`: NoProp's fixed schedule (arXiv 2503.24322).",
           {"independent"}},
          {"module_gradients",
           one_of({"none", "computed"}),
           "none",
           "How far the loss of a module goes back. `none`: each operator learns from what it "
           "makes "
           "itself, by its weight gradient alone. `computed`: through the module, by all input "
           "gradients but the first operator's; its output is then kept, too. `train` runs "
           "`computed`.",
           {"forward-forward"}},
          {"head", head_type(), "the model's",
           "Auxiliary head of each stage that is trained by a loss of its own.",
           trained_by_heads()}}};
}

ContractType strategy_type() { return either({strategy_kind(), object("training.strategy")}); }

}  // namespace interlock::contract
