// interlock import megatron of launch scripts: branches, sums and lines for other files.
// SPDX-License-Identifier: Apache-2.0
//
// The forms are those of scripts that people have, with their places:
//  - NVIDIA/Megatron-LM 157006d examples/llama/train_llama3_8b_h100_fp8.sh: arrays in branches,
//    words of two in quotes, "${3:-...}";
//  - 00c3f96 examples/deepseek2_lite/train_deepseek2_lite_h100_fp8.sh: the number of layers with
//    experts as a sum, 8 bits in a branch that is not taken;
//  - 62bc456 examples/azure/run-1t.sh: a configuration of DeepSpeed written by the script, a batch
//    as a product.
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::import_scripts_test {
namespace {

const std::string kSizes =
    "--num-layers $NUM_LAYERS --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--vocab-size 32000 --micro-batch-size 1";

/// Returns the scenario of a script of `lines`.
JsonValue imported(const std::string& lines) {
  const Folder folder;
  folder.file("run.sh", lines);
  const Outcome run = run_program(
      {"import", "megatron", "run.sh", "--cluster", "dgx-h100", "--out", "s.json", "--quiet"},
      folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  CHECK(run_program({"check", "s.json"}, folder.path()).exit_code == 0);
  return read_json_file(folder.path("s.json"));
}

std::string precision_of(const std::string& type) {
  return imported("NUM_LAYERS=16\nDTYPE=\"" + type + R"("
TOKENIZER_ARG=${3:-"MOCK"} # Path to tokenizer model, or "MOCK"
DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    if grep -q "transformer-impl local" <<< "${GPT_ARGS[@]}"; then
        echo "ERROR: set --transformer-impl transformer_engine"
    fi
    DTYPE_ARGS+=(
        "--fp8-format hybrid"
        "--fp8-param-gather"
    )
elif [ $DTYPE = fp16 ]; then DTYPE_ARGS+=(--fp16)
else
    DTYPE_ARGS+=(--bf16)
fi
if [[ "$TOKENIZER_ARG" == "MOCK" ]] || [[ -z "$TOKENIZER_ARG" ]]; then
    DATA_ARGS=("--mock-data" "--split '99,1,0'")
else
    DATA_ARGS=("--global-batch-size 7")
fi
torchrun pretrain_gpt.py )" +
                  kSizes + " ${DTYPE_ARGS[@]} ${DATA_ARGS[@]}\n")
      .find("training")
      ->find("precision")
      ->text;
}

TEST_CASE("arguments in a branch count if its test holds") {
  CHECK(precision_of("fp8") == "fp8");
  CHECK(precision_of("fp16") == "fp16");
  CHECK(precision_of("bf16") == "bf16");
}

TEST_CASE("where a test is not known, all branches are read") {
  const JsonValue s = imported(
      "NUM_LAYERS=16\nif [ -n \"${SOMETHING}\" ]; then\n  A=(--global-batch-size 8)\nelse\n"
      "  B=(--bf16)\nfi\ntorchrun pretrain_gpt.py " +
      kSizes + "\n");
  CHECK(s.find("training")->find("global_batch_size")->number == 8);
  CHECK(s.find("training")->find("precision")->text == "bf16");
}

TEST_CASE("sums and products of variables are worked out") {
  const JsonValue s = imported(R"sh(NUM_LAYERS=16
MOE_LAYERS=$(($NUM_LAYERS-1))
MICRO_BATCH=1
GPN=8
GLOBAL_BATCH=$(( ${GPN} * ${MICRO_BATCH} * (2 + 2) ))
MOE_ARGS=(
    --num-experts 64
    --moe-layer-freq "([0]+[1]*$MOE_LAYERS)"
    --moe-ffn-hidden-size 1408
)
torchrun pretrain_gpt.py --global-batch-size $GLOBAL_BATCH )sh" +
                               kSizes + "\n");
  CHECK(s.find("training")->find("global_batch_size")->number == 32);
  CHECK(s.find("model")->find("dense_layers")->number == 1);
}

TEST_CASE("lines that a script writes to another file are no arguments of it") {
  const JsonValue s = imported(R"(NUM_LAYERS=16
cat <<EOT > ds_config.json
{
  "train_batch_size" : 16,
  "num-layers": 3,
  --global-batch-size 77
}
EOT
deepspeed pretrain_gpt.py )" + kSizes +
                               " --global-batch-size 16\n");
  CHECK(s.find("model")->find("layers")->number == 16);
  CHECK(s.find("training")->find("global_batch_size")->number == 16);
}

TEST_CASE("Megatron-DeepSpeed's arguments shard, offload and compute again") {
  const JsonValue s = imported(
      "NUM_LAYERS=16\nds_args=\" --deepspeed ${ds_args}\"\n"
      "ds_args=\" --zero-stage=3 ${ds_args}\"\n"
      "ds_args=\" --deepspeed_config=ds.json ${ds_args}\"\n"
      "deepspeed --force_multi --num_nodes=2 --num_gpus 4 pretrain_gpt.py " +
      kSizes + " --checkpoint-activations --cpu-optimizer $ds_args --global-batch-size 8\n");
  CHECK(s.find("parallel")->find("data")->number == 8);
  CHECK(s.find("parallel")->find("zero_stage")->number == 3);
  CHECK(s.find("parallel")->find("gradient_reduction")->text == "micro_batch");
  CHECK(s.find("training")->find("recompute")->text == "full");
  CHECK(s.find("training")->find("offload")->find("optimizer")->number == 1);
}

TEST_CASE("a scenario that cannot be simulated is written with what is wrong with it") {
  const auto import = [](const std::string& parts, bool to_json) {
    const Folder folder;
    folder.file("run.sh", "NUM_LAYERS=8\ntorchrun pretrain_gpt.py " + kSizes + " " + parts + "\n");
    std::vector<std::string> words = {"import",   "megatron", "run.sh", "--cluster",
                                      "dgx-h100", "--out",    "s.json"};
    if (to_json) words.insert(words.end(), {"--json", "-"});
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 0);
    const Outcome check = run_program({"check", "s.json"}, folder.path());
    return std::pair{run, check};
  };
  const std::string parts = "--recompute-granularity selective --recompute-modules moe_act";
  const auto [told, refused] = import(parts, false);
  const std::string fault = "/training/recompute/modules: no layer of \"run\" has \"moe_act\"";
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find(fault) != std::string::npos);
  CHECK(told.err.find("wrote s.json, which cannot be simulated as it stands:\ns.json:") !=
        std::string::npos);
  CHECK(told.err.find(fault) != std::string::npos);
  const auto fault_of = [](const Outcome& run) { return *parse_json(run.out, "-").find("fault"); };
  CHECK(fault_of(import(parts, true).first).text.find(fault) != std::string::npos);
  CHECK(fault_of(import("", true).first).kind == JsonValue::Kind::Null);
}

}  // namespace
}  // namespace interlock::import_scripts_test
