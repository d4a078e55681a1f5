// Tokens that are chosen in Megatron's jobs: what is told of them, what stops Megatron-Core.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::megatron_chosen_tokens_test {
namespace {

using Words = std::vector<std::string>;

const std::string kLatents = "--multi-latent-attention ";
const std::string kChosen =
    "--experimental-attention-variant dsa --dsa-indexer-n-heads 4 --dsa-indexer-head-dim 32 "
    "--dsa-indexer-topk 64 ";
const std::string kLearns = "--dsa-indexer-loss-coeff 0.01 --dsa-indexer-use-sparse-loss ";
const std::string kFused = "--dsa-kernel-backend tilelang ";

/// Imports a script of a GPT with `more`.
Outcome imported(const Folder& folder, const std::string& more) {
  folder.file("run.sh",
              "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
              "--num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
              "--vocab-size 32000 --disable-bias-linear --position-embedding-type rope "
              "--micro-batch-size 1 --global-batch-size 4 --bf16 " +
                  more + "\n");
  return run_program({"import", "megatron", "run.sh", "--cluster", "dgx-h100", "--devices", "1",
                      "--out", "made.json"},
                     folder.path());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what is priced of an indexer is told where Megatron-Core does otherwise") {
  const Folder folder;
  const auto told = [&](const std::string& more) {
    const Outcome run = imported(folder, kLatents + kChosen + more);
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue* latents = made.find("model")->find("latent_attention");
    REQUIRE(latents != nullptr);
    REQUIRE(latents->find("selection") != nullptr);
    CHECK(latents->find("selection")->find("tokens")->number == 64);
    CHECK(!has(run.out, "unknown"));
    return run.out;
  };
  const std::string no_loss = "its loss takes time", all = "from what was chosen alone",
                    fused = "priced as fused kernels";
  const std::string whole = told(kLearns + kFused);
  CHECK(!has(whole, no_loss));
  CHECK(!has(whole, all));
  CHECK(!has(whole, fused));
  CHECK(has(told(kFused), "--experimental-attention-variant: the indexer learns, and " + no_loss));
  CHECK(has(told(kFused + "--dsa-indexer-loss-coeff 0 "),
            "--dsa-indexer-loss-coeff: the indexer learns, and " + no_loss));
  const std::string dense = told(kFused + "--dsa-indexer-loss-coeff 0.01 ");
  CHECK(has(dense, all));
  CHECK(!has(dense, no_loss));
  CHECK(has(told(kLearns), fused));
  CHECK(has(told(kLearns + "--dsa-kernel-backend none "), "--dsa-kernel-backend: attention"));
  CHECK(!has(told(kLearns + "--dsa-kernel-backend cudnn "), fused));
}

TEST_CASE("tokens are chosen among latents alone") {
  const Folder folder;
  const Outcome run = imported(folder, kChosen);
  CHECK(run.exit_code == 2);
  CHECK(has(run.err,
            "--experimental-attention-variant: dsa chooses among latents; expected "
            "--multi-latent-attention beside it"));
}

const char* const kScenario = R"({
  "model": {"kind": "transformer", "layers": 4, "hidden_size": 512, "attention_heads": 8,
    "vocab_size": 32000, "sequence_length": 512, "attention": "fused", "positions": "rotary",
    "norm": "rmsnorm", "bias": false, "gated_mlp": true,
    "latent_attention": {"query_rank": 128, "kv_rank": 64, "head_size": 64,
      "rotary_head_size": 32, "value_head_size": 64,
      "selection": {"tokens": 64, "index_heads": 4, "index_head_size": 32}}},
  "cluster": {"machine": "dgx-b200", "nodes": 1, "devices": 2},
  "parallel": {"data": 1, "tensor": 2, "sequence_parallel": true},
  "training": {"strategy": "global", "global_batch_size": 4, "micro_batch_size": 1,
    "precision": "bf16", "optimizer": "adam"}})";

Outcome exported(const Folder& folder, const Words& set) {
  folder.file("s.json", kScenario);
  Words words = {"export", "s.json", "--to", "megatron", "--out", "plan.sh"};
  for (const std::string& one : set) words.insert(words.end(), {"--set", one});
  return run_program(words, folder.path());
}

TEST_CASE("an export of chosen tokens runs fused kernels, and comes back without a remark") {
  const Folder folder;
  CHECK(exported(folder, {}).exit_code == 0);
  const std::string text = read_file(folder.path("plan.sh"));
  CHECK(has(text, "--dsa-kernel-backend tilelang"));
  CHECK(has(text, "--no-rope-fusion"));
  const Outcome run = run_program({"import", "megatron", "plan.sh", "--cluster", "dgx-b200",
                                   "--devices", "2", "--out", "made.json"},
                                  folder.path());
  CHECK_MESSAGE(run.exit_code == 0, run.err);
  CHECK(!has(run.out, "not predicted"));
  CHECK(!has(run.out, "unknown"));
}

TEST_CASE("what stops Megatron-Core is refused before it is written") {
  const Folder folder;
  const auto said = [&](const Words& set) {
    const Outcome run = exported(folder, set);
    return run.exit_code == 2 ? run.err : "";
  };
  CHECK(has(said({"model.bias=true"}), "/model/bias: Megatron-LM has no biases beside tokens"));
  CHECK(has(said({"parallel.sequence_parallel=false"}), "/parallel/sequence_parallel: Megatron"));
  const std::string again = R"(training.recompute={"modules": ["mla_up_proj"]})";
  const std::string wrong = "/training/recompute/modules: Megatron-LM makes no queries";
  CHECK(said({again}) == "");
  CHECK(said({"training.precision=fp8"}) == "");
  CHECK(has(said({again, "training.precision=fp8"}), wrong));
  CHECK(has(said({again, "training.precision=fp4"}), wrong));
  INFO("none of it where tokens see all before them");
  const std::string all = "model.latent_attention.selection=null";
  CHECK(said({all, "model.bias=true"}) == "");
  CHECK(said({all, again, "training.precision=fp8"}) == "");
  CHECK(said({all, "parallel.sequence_parallel=false"}) == "");
}

TEST_CASE("no shared experts run beside the exchange of latents") {
  const Folder folder;
  const auto said = [&](const std::string& latent) {
    Words set = {"model.experts=4", "model.experts_per_token=2", "model.shared_experts=1",
                 "parallel.expert_overlap=shared_experts"};
    if (!latent.empty()) set.push_back("model.expert_latent_size=" + latent);
    const Outcome run = exported(folder, set);
    return run.exit_code == 2 ? run.err : "";
  };
  CHECK(said("") == "");
  CHECK(has(said("128"), "/parallel/expert_overlap: Megatron-LM runs no shared experts"));
}

}  // namespace
}  // namespace interlock::megatron_chosen_tokens_test
