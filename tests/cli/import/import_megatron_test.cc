// interlock import megatron: launch scripts become the scenarios that people would write.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::import_megatron_test {
namespace {

const char* const kScript = R"(#!/bin/bash
# --num-layers 7 is not meant
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-2}
TP=4
RUN="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES
"
GPT_ARGS=(
    --num-layers 24 --hidden-size 2048
    --num-attention-heads 16   # heads
    --seq-length 1024 --max-position-embeddings 2048
    --attention-backend unfused
)
PARALLEL_ARGS="--tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \
    --num-layers-per-virtual-pipeline-stage 6 --sequence-parallel --use-distributed-optimizer \
    --overlap-grad-reduce"
torchrun $RUN pretrain_gpt.py ${GPT_ARGS[@]} $PARALLEL_ARGS \
    --micro-batch-size 2 --global-batch-size=32 --bf16 --lr 6.0e-5 \
    --recompute-activations --vocab-size 51200
)";

/// A scenario that means the same, as people write it.
const char* const kWritten = R"({
  "model": {"kind": "transformer", "name": "run", "layers": 24, "hidden_size": 2048,
    "attention_heads": 16, "attention": "materialised", "vocab_size": 51200,
    "sequence_length": 1024, "max_positions": 2048,
    "dropout": 0.1},
  "cluster": {"machine": "dgx-a100-80g", "nodes": 2},
  "parallel": {"tensor": 4, "sequence_parallel": true, "pipeline": 2, "data": 2, "zero_stage": 1,
    "stages": 4, "bucket": "160 MB"},
  "partition": [7, 6, 6, 7],
  "training": {"strategy": "global", "schedule": {"kind": "interleaved", "chunks": 2},
    "global_batch_size": 32, "micro_batch_size": 2, "optimizer": "adam",
    "recompute": "selective", "framework": "nemo", "steps": 2}})";

std::string without_first_line(const std::string& text) { return text.substr(text.find('\n') + 1); }

TEST_CASE("a launch script becomes the scenario that says the same") {
  const Folder folder;
  folder.file("run.sh", kScript);
  folder.file("written.json", kWritten);
  const Outcome import = run_program(
      {"import", "megatron", "run.sh", "--cluster", "dgx-a100-80g", "--out", "made.json"},
      folder.path());
  CHECK(import.exit_code == 0);
  CHECK(import.out == "not used, and without effect: --lr\n");
  const Outcome made = run_program({"simulate", "made.json"}, folder.path());
  const Outcome written = run_program({"simulate", "written.json"}, folder.path());
  CHECK(made.exit_code == 0);
  CHECK(made.out.size() > 500);
  CHECK(without_first_line(made.out) == without_first_line(written.out));
}

/// The scenario of settings, one a line.
JsonValue imported(const std::string& settings, const std::vector<std::string>& more = {}) {
  const Folder folder;
  folder.file("settings.yaml", settings);
  std::vector<std::string> words = {"import",   "megatron", "settings.yaml", "--cluster",
                                    "dgx-h100", "--out",    "s.json",        "-q"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome run = run_program(words, folder.path());
  CHECK(run.err == "");
  CHECK(run_program({"check", "s.json"}, folder.path()).exit_code == 0);
  return read_json_file(folder.path("s.json"));
}

const std::string kSettings =
    "ENV:\nMODEL_ARGS:\n  --num-layers: 8\n  hidden_size: 1536\n"
    "  --num-attention-heads: 12\n  --seq-length: 4096\n"
    "  --micro-batch-size: 1\n  --bf16: true\n";

TEST_CASE("an array may be added to, and its end is no argument") {
  const Folder folder;
  folder.file("run.sh",
              "ARGS=(--num-layers 8 --hidden-size 1536 --num-attention-heads 12\n"
              "  --seq-length 4096 --micro-batch-size 1 --vocab-size 1000 --bf16)\n"
              "ARGS+=(\n  --recompute-granularity selective\n"
              "  --recompute-modules core_attn mlp\n)\n"
              "torchrun pretrain_gpt.py ${ARGS[@]}\n");
  const Outcome import = run_program(
      {"import", "megatron", "run.sh", "--cluster", "dgx-a100-80g", "--out", "made.json"},
      folder.path());
  CHECK_MESSAGE(import.exit_code == 0, import.err);
  const JsonValue made = read_json_file(folder.path("made.json"));
  const JsonValue* modules = made.find("training")->find("recompute")->find("modules");
  REQUIRE(modules);
  REQUIRE(modules->items.size() == 2);
  CHECK(modules->items[0].text == "core_attn");
  CHECK(modules->items[1].text == "mlp");
}

TEST_CASE("lines of settings are read, and defaults are Megatron-LM's") {
  const JsonValue s = imported(kSettings + "--swiglu: true\n--sequence-parallel: false\n",
                               {"--vocab-size", "32000", "--devices", "8"});
  const JsonValue& model = *s.find("model");
  CHECK(model.find("ffn_hidden_size")->number == 4096);  // 8/3 of 1536 in multiples of 64
  CHECK(model.find("dropout")->number == 0.1);
  CHECK(model.find("attention")->text == "fused");
  CHECK(model.find("vocab_size")->number == 32000);
  CHECK(s.find("parallel")->find("data")->number == 8);
  CHECK(s.find("training")->find("global_batch_size")->number == 8);
  CHECK(!s.find("parallel")->find("overlap_gradients")->boolean);
  CHECK(s.find("training")->find("precision")->text == "bf16");
}

TEST_CASE("experts, latents, layers of the ends and recomputation have their keys") {
  const JsonValue s =
      imported(kSettings +
               "--vocab-size: 1000\n--num-experts: 8\n--moe-router-topk: 3\n"
               "--moe-ffn-hidden-size: 256\n--moe-shared-expert-intermediate-size: 512\n"
               "--moe-layer-freq: ([0]*2+[1]*6)\n--multi-latent-attention: true\n"
               "--q-lora-rank: 96\n--position-embedding-type: rope\n"
               "--pipeline-model-parallel-size: 4\n--decoder-first-pipeline-num-layers: 1\n"
               "--decoder-last-pipeline-num-layers: 3\n--recompute-granularity: full\n");
  const JsonValue& model = *s.find("model");
  CHECK(model.find("experts_per_token")->number == 3);
  CHECK(model.find("shared_experts")->number == 2);
  CHECK(model.find("dense_layers")->number == 2);
  CHECK(model.find("latent_attention")->find("query_rank")->number == 96);
  CHECK(model.find("latent_attention")->find("kv_rank")->number == 32);
  const std::vector<JsonValue>& stages = s.find("partition")->items;
  REQUIRE(stages.size() == 4);
  const double expected[] = {1 + 1, 2, 2, 3 + 1};
  for (std::size_t i = 0; i < 4; ++i) CHECK(stages[i].number == expected[i]);
  CHECK(s.find("training")->find("recompute")->text == "full");
}

TEST_CASE("a hybrid's letters become layers, with Megatron-Core's sizes where none are written") {
  const std::string hybrid =
      "MODEL_ARGS:\n  --hidden-size: 512\n  --num-attention-heads: 8\n  --seq-length: 1024\n"
      "  --micro-batch-size: 1\n  --bf16: true\n  --position-embedding-type: none\n"
      "  --num-experts: 4\n  --vocab-size: 1000\n";
  const JsonValue s = imported(hybrid + "--hybrid-layer-pattern: MM*-ME\n--mamba-state-dim: 64\n");
  const JsonValue& model = *s.find("model");
  CHECK(model.find("layers")->number == 6);
  const JsonValue& sizes = *model.find("mamba2");
  CHECK(sizes.find("heads")->number == 16);  // 2 x 512 / 64
  CHECK(sizes.find("state_size")->number == 64);
  CHECK(sizes.find("groups")->number == 8);
  const std::vector<JsonValue>& forms = model.find("layer_pattern")->items;
  REQUIRE(forms.size() == 5);
  CHECK(forms[0].find("repeat")->number == 2);
  CHECK(forms[0].find("attention")->text == "mamba2");
  CHECK(forms[1].find("attention") == nullptr);
  CHECK(forms[1].find("ffn")->text == "none");
  CHECK(forms[2].find("ffn")->text == "dense");
  CHECK(forms[4].find("ffn")->text == "experts");
  const auto refused = [&](const std::string& more) {
    const Folder folder;
    folder.file("settings.yaml", hybrid + more);
    const Outcome run = run_program(
        {"import", "megatron", "settings.yaml", "--cluster", "dgx-h100", "--out", "s.json", "-q"},
        folder.path());
    CHECK(run.exit_code == 2);
    return run.err;
  };
  CHECK(refused("--hybrid-layer-pattern: MG*-\n").find("expected letters M (Mamba 2)") !=
        std::string::npos);
  CHECK(refused("--hybrid-layer-pattern: M*-\n--num-layers: 4\n").find("3 letters") !=
        std::string::npos);
  CHECK(refused("--is-hybrid-model: true\n--num-layers: 4\n").find("M-M-M*-") != std::string::npos);
}

TEST_CASE("an encoder with a decoder has layers and tokens of its own in each") {
  // Sizes of Megatron-LM's example of T5: 12 layers of 768, 512 tokens in and 128 out.
  const std::string t5 =
      "MODEL_ARGS:\n  --encoder-num-layers: 12\n  --decoder-num-layers: 6\n  --hidden-size: 768\n"
      "  --num-attention-heads: 12\n  --kv-channels: 64\n  --ffn-hidden-size: 3072\n"
      "  --encoder-seq-length: 512\n  --decoder-seq-length: 128\n"
      "  --max-position-embeddings: 512\n  --micro-batch-size: 4\n  --fp16: true\n"
      "  --vocab-size: 30592\n";
  const JsonValue s = imported(t5);
  const JsonValue& model = *s.find("model");
  const JsonValue& encoder = *model.find("encoder");
  CHECK(model.find("layers")->number == 6);
  CHECK(model.find("sequence_length")->number == 128);
  CHECK(encoder.find("layers")->number == 12);
  CHECK(encoder.find("sequence_length")->number == 512);
  CHECK(encoder.find("ffn_hidden_size")->number == 3072);
  const JsonValue relative = imported(t5 + "  --position-embedding-type: relative\n");
  CHECK(relative.find("model")->find("encoder")->find("positions")->text == "relative");
}

TEST_CASE("later tokens, unequal shared experts, gates and lists of layers have their keys") {
  const JsonValue s =
      imported(kSettings +
               "--vocab-size: 1000\n--num-experts: 8\n--moe-ffn-hidden-size: 256\n"
               "--moe-shared-expert-intermediate-size: 384\n--moe-layer-freq: ([0]*1+[1,0]*3+[1])\n"
               "--mtp-num-layers: 2\n--attention-output-gate: true\n--softmax-type: learnable\n");
  const JsonValue& model = *s.find("model");
  CHECK(model.find("shared_experts")->number == 1);
  CHECK(model.find("shared_expert_ffn_hidden_size")->number == 384);
  CHECK(model.find("multi_token_prediction")->find("layers")->number == 2);
  CHECK(model.find("attention_gate")->boolean);
  CHECK(model.find("attention_sinks")->boolean);
  const std::vector<JsonValue>& forms = model.find("layer_pattern")->items;
  REQUIRE(forms.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(forms[i].find("ffn")->text == (i % 2 == 0 ? "dense" : "experts"));
    CHECK(forms[i].find("repeat")->number == 1);
  }
}

TEST_CASE("layers of stages that are computed again keep their numbers") {
  const auto recompute = [](const std::string& method) {
    return *imported(
                "--num-layers: 8\n--hidden-size: 64\n--num-attention-heads: 4\n"
                "--vocab-size: 1000\n--seq-length: 128\n--micro-batch-size: 1\n"
                "--pipeline-model-parallel-size: 2\n--recompute-granularity: full\n"
                "--recompute-method: " +
                method)
                .find("training")
                ->find("recompute");
  };
  CHECK(recompute("uniform\n").text == "full");
  CHECK(recompute("uniform\n--recompute-num-layers: 2\n").find("group")->number == 2);
  CHECK(recompute("block\n--recompute-num-layers: 3\n").find("stage_layers")->number == 3);
  CHECK(recompute("block\n--recompute-num-layers: 4\n").text == "full");
}

TEST_CASE("what has no counterpart is refused, all at once, and nothing is written") {
  const Folder folder;
  folder.file("a.sh",
              "train --num-layers eight --hidden-size 64 --num-attention-heads 4 \\\n"
              "  --seq-length 64 --micro-batch-size 1 --optimizer lion\n");
  const Outcome run = run_program(
      {"import", "megatron", "a.sh", "--cluster", "dgx-h100", "--out", "s.json"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "a.sh:1: --num-layers: expected a whole number, got \"eight\"\n"
        "a.sh:1: --vocab-size: the tokenizer has it; expected import's --vocab-size N\n"
        "a.sh:2: --optimizer: expected adam, muon or sgd\n");
  CHECK(folder.files() == std::vector<std::string>{"a.sh"});
  const auto said = [&](const std::string& more) {
    folder.file("b.yaml", kSettings + "vocab-size: 1000\n" + more);
    return run_program({"import", "megatron", "b.yaml", "--cluster", "dgx-h100", "--out", "s.json"},
                       folder.path())
        .err;
  };
  CHECK(said("pipeline-model-parallel-size: 3\n")
            .find("8 layers cannot be shared out evenly among 3 stages on 3 ranks") !=
        std::string::npos);
}

TEST_CASE(
    "how tokens reach experts, and what runs meanwhile, comes from Megatron-Core's arguments") {
  const std::string experts =
      kSettings +
      "vocab-size: 1000\nnum-experts: 8\nmoe-router-topk: 2\nglobal-batch-size: 64\n"
      "expert-model-parallel-size: 4\nmoe-router-num-groups: 4\n"
      "moe-router-group-topk: 2\n";
  const JsonValue pairs = imported(experts +
                                       "moe-token-dispatcher-type: flex\nmoe-enable-deepep: true\n"
                                       "overlap-moe-expert-parallel-comm: true\n"
                                       "delay-wgrad-compute: true\n",
                                   {"--devices", "8"});
  CHECK(pairs.find("parallel")->find("expert_dispatch")->text == "deepep");
  CHECK(pairs.find("parallel")->find("expert_overlap")->text == "micro_batches");
  CHECK(pairs.find("parallel")->find("delay_weight_gradients")->boolean);
  CHECK(pairs.find("model")->find("expert_groups")->number == 4);
  CHECK(pairs.find("model")->find("expert_groups_per_token")->number == 2);
  const JsonValue shared =
      imported(experts + "moe-token-dispatcher-type: alltoall\nmoe-shared-expert-overlap: true\n",
               {"--devices", "8"});
  CHECK(shared.find("parallel")->find("expert_overlap")->text == "shared_experts");
  CHECK(shared.find("parallel")->find("expert_dispatch") == nullptr);
}

/// Modules of each stage, as the scenario has them.
std::vector<double> stages_of(const JsonValue& scenario) {
  std::vector<double> stages;
  for (const JsonValue& stage : scenario.find("partition")->items) stages.push_back(stage.number);
  return stages;
}

TEST_CASE("a layout says what each stage holds, and stages may count the embedding and the loss") {
  const std::string sizes = "vocab-size: 1000\n";
  // Megatron-LM's own examples repeat letters, and groups that hold a boundary.
  const JsonValue written = imported(kSettings + sizes +
                                     "pipeline-model-parallel-size: 2\nglobal-batch-size: "
                                     "4\npipeline-model-parallel-layout: Et*2|(tt|)*2,t*2L\n");
  CHECK(stages_of(written) == std::vector<double>{3, 2, 2, 3});
  CHECK(written.find("training")->find("schedule")->find("chunks")->number == 2);
  const JsonValue alone =
      imported(kSettings + sizes +
               "pipeline-model-parallel-size: 4\npipeline-model-parallel-layout: E|t*4|t*4|L\n");
  CHECK(stages_of(alone) == std::vector<double>{1, 4, 4, 1});
  // 8 layers, an embedding and a loss are 10 on 2 ranks of 5: 4 layers and one end each; on 5 ranks
  // the ends have a layer beside them, the others two.
  const JsonValue counted =
      imported(kSettings + sizes +
               "pipeline-model-parallel-size: 5\naccount-for-embedding-in-pipeline-split: true\n"
               "account-for-loss-in-pipeline-split: true\n");
  CHECK(stages_of(counted) == std::vector<double>{2, 2, 2, 2, 2});
}

TEST_CASE("a script whose launches block is read so") {
  const auto blocks = [](const std::string& first) {
    const JsonValue scenario = imported(kSettings + "vocab-size: 1000\n" + first);
    const JsonValue* said = scenario.find("training")->find("blocking_launches");
    return said != nullptr && said->boolean;
  };
  CHECK(blocks("export CUDA_LAUNCH_BLOCKING=1\n"));
  CHECK(blocks("CUDA_LAUNCH_BLOCKING=1 \n"));
  CHECK(!blocks("export CUDA_LAUNCH_BLOCKING=0\n"));
  CHECK(!blocks(""));
}

TEST_CASE("parts of layers that run as CUDA graphs are read") {
  const auto graphs = [](const std::string& settings) {
    const JsonValue scenario = imported(kSettings + "vocab-size: 1000\n" + settings);
    const JsonValue* read = scenario.find("training")->find("cuda_graphs");
    if (read == nullptr) return std::string("none");
    std::string all = read->text;
    for (const JsonValue& part : read->items) all += part.text + " ";
    return all;
  };
  const std::string engine = "cuda-graph-impl: transformer_engine\n";
  CHECK(graphs("") == "none");
  CHECK(graphs(engine + "cuda-graph-scope: [attn, moe_router, moe_preprocess]\n") ==
        "attention router ");
  CHECK(graphs(engine + "cuda-graph-scope: [moe_router, moe_preprocess]\n") == "router ");
  CHECK(graphs(engine + "cuda-graph-scope: moe_router\n") == "none");  // counts stay outside
  CHECK(graphs(engine + "cuda-graph-scope: mlp\n") == "none");
  CHECK(graphs("cuda-graph-impl: full_iteration\n") == "step");
}

TEST_CASE("what matters and has no key is told by name, apart from what has no effect") {
  const Folder folder;
  folder.file("a.yaml", kSettings +
                            "vocab-size: 1000\nlr: 1e-4\ntp-comm-overlap: true\n"
                            "no-such-thing: 3\ncuda-graph-impl: null\n");
  const Outcome run = run_program(
      {"import", "megatron", "a.yaml", "--cluster", "dgx-h100", "--out", "s.json"}, folder.path());
  CHECK(run.out ==
        "not used, and without effect: --lr\n"
        "not predicted: --tp-comm-overlap: collectives of tensor devices run beside products as "
        "the framework's entry says\n"
        "unknown, and left out: --no-such-thing\n");
}

TEST_CASE("a word of a megabyte is refused, and no end of the program") {
  const Folder folder;
  folder.file("long.sh", "--num-layers " + std::string(1'000'000, '7') +
                             "\nA=" + std::string(1'000'000, 'x') + " --hidden-size $A --$A ${A:-" +
                             std::string(70'000, 'y') + "\n");
  const Outcome run = run_program(
      {"import", "megatron", "long.sh", "--cluster", "dgx-h100", "--out", "s.json"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("long.sh:2: a word has more than 100000 characters") == 0);
}

TEST_CASE("a plan on nodes of two kinds is exported where all of each node is used") {
  const Folder folder;
  folder.file("s.json", R"({
      "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
        "vocab_size": 32000, "sequence_length": 512, "attention": "fused", "positions": "rotary"},
      "cluster": {"machine": "pcie-rtx-4090", "nodes": 2, "kinds": [
        {"device": "rtx-4090", "count": 4}, {"device": "rtx-3090", "count": 4}]},
      "training": {"strategy": "global", "global_batch_size": 32, "micro_batch_size": 1,
        "precision": "bf16", "optimizer": "adam"}})");
  const auto exported = [&](const std::string& set) {
    return run_program({"export", "s.json", "--to", "megatron", "--out", "plan.sh", "--quiet",
                        "--set", "parallel.pipeline=1", "--set", set},
                       folder.path());
  };
  const Outcome whole = exported("parallel.data=16");
  CHECK(whole.err == "");
  CHECK(whole.exit_code == 0);
  const Outcome part = exported("cluster.devices=10");
  CHECK(part.exit_code == 2);
  CHECK(part.err.find("expected nodes that all use as many devices") != std::string::npos);
}

}  // namespace
}  // namespace interlock::import_megatron_test
