// Graphs, clamps, stretched positions and layers on the host in Megatron's jobs: read and written.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::megatron_kernels_test {
namespace {

using Words = std::vector<std::string>;

/// A launch script of a GPT on one device, with `more`.
std::string script(const std::string& more) {
  return "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
         "--num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 --vocab-size "
         "32000 "
         "--position-embedding-type rope --swiglu --micro-batch-size 1 --global-batch-size 4 "
         "--bf16 " +
         more + "\n";
}

/// Imports `text`. Returns what went wrong, or nothing; `made.json` is the scenario.
std::string imported(const Folder& folder, const std::string& text,
                     const std::string& devices = "1", const std::string& framework = "nemo") {
  folder.file("run.sh", text);
  Words words = {"import", "megatron",  "run.sh",    "--cluster", "dgx-h100",
                 "--out",  "made.json", "--devices", devices};
  if (!framework.empty()) words.insert(words.end(), {"--framework", framework});
  const Outcome run = run_program(words, folder.path());
  return run.exit_code == 0 ? "" : run.err;
}

JsonValue training_of(const Folder& folder, const std::string& text) {
  CHECK(imported(folder, text) == "");
  return *read_json_file(folder.path("made.json")).find("training");
}

TEST_CASE("activations of some layers wait in the host's memory") {
  const Folder folder;
  const JsonValue some = training_of(folder, script("--cpu-offloading-num-layers 6"));
  REQUIRE(some.find("offload") != nullptr);
  CHECK(some.find("offload")->find("activations")->number == 0.75);
  CHECK(training_of(folder, script("--cpu-offloading-num-layers 0")).find("offload") == nullptr);
  INFO("where Megatron-Core stops");
  CHECK(imported(folder, script("--cpu-offloading-num-layers 8"))
            .find("--cpu-offloading-num-layers: expected fewer than the 8 layers") !=
        std::string::npos);
  CHECK(imported(folder, script("--cpu-offloading-num-layers 2 --recompute-granularity selective"))
            .find("beside recomputation; expected one of both") != std::string::npos);
  const std::string two = script("--cpu-offloading-num-layers 2 --pipeline-model-parallel-size 2");
  CHECK(imported(folder, two, "2").find("beside pipelines; expected one") != std::string::npos);
}

TEST_CASE("arguments change the entry that stands for the framework") {
  const Folder folder;
  const auto framework = [&](std::string text, const std::string& named) {
    if (const std::size_t at = text.find("--bf16 ");
        at != text.npos && text.find("--fp16") != text.npos)
      text.erase(at, 7);
    CHECK(imported(folder, text, "1", named) == "");
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue* found = made.find("training")->find("framework");
    return found ? *found : JsonValue{};
  };
  CHECK(framework(script(""), "nemo").text == "nemo");
  CHECK(framework(script("--grad-reduce-in-bf16"), "nemo").text == "nemo-25");
  const JsonValue narrow = framework(script("--grad-reduce-in-bf16"), "megatron-core-tests");
  CHECK(narrow.find("base")->text == "megatron-core-tests");
  CHECK(narrow.find("gradients")->text == "training");
  const JsonValue half = framework(script("--fp16 --transformer-impl local"), "");
  CHECK(half.find("base")->text == "megatron-lm-sequence-parallel");
  CHECK(half.find("gradients")->text == "fp32_for_updates");
  CHECK(half.find("attention_scores_buffer")->boolean);
  CHECK(framework(script("--fp16"), "none").kind == JsonValue::Kind::Null);
}

TEST_CASE("weight gradients of the readout are put off in a pipeline, there and back") {
  const Folder folder;
  const auto deferred = [&](const std::string& more) -> std::string {
    REQUIRE(imported(folder, script("--defer-embedding-wgrad-compute " + more), "2") == "");
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue& schedule = *made.find("training")->find("schedule");
    if (schedule.kind == JsonValue::Kind::String) return "none";
    const JsonValue& count = *schedule.find("deferred_readout");
    return count.kind == JsonValue::Kind::String ? count.text : std::to_string(int(count.number));
  };
  const std::string pipeline = "--pipeline-model-parallel-size 2 ";
  CHECK(deferred("") == "none");
  CHECK(deferred(pipeline + "--wgrad-deferral-limit 2") == "2");
  const auto written = [&] {
    const Outcome out = run_program({"export", "made.json", "--to", "megatron"}, folder.path());
    REQUIRE(out.exit_code == 0);
    return out.out;
  };
  CHECK(written().find("--defer-embedding-wgrad-compute --wgrad-deferral-limit 2") !=
        std::string::npos);
  CHECK(deferred(pipeline) == "all");
  CHECK(written().find("--defer-embedding-wgrad-compute --wgrad-deferral-limit 0") !=
        std::string::npos);
  CHECK(deferred(pipeline + "--wgrad-deferral-limit -1") == "all");
  CHECK(deferred(pipeline + "--mtp-num-layers 1") == "none");
  CHECK(deferred(pipeline + "--wgrad-deferral-limit 3") == "3");
  const Outcome titan = run_program({"export", "made.json", "--to", "torchtitan"}, folder.path());
  CHECK(titan.err.find("/training/schedule/deferred_readout") != std::string::npos);
}

TEST_CASE("a vocabulary is divided among pipeline ranks by the words of its authors' fork") {
  const Folder folder;
  const std::string pipeline = "--pipeline-model-parallel-size 2 ";
  const auto vocabulary = [&](const std::string& more) -> std::string {
    REQUIRE(imported(folder, script(more), "2") == "");
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue& schedule = *made.find("training")->find("schedule");
    return schedule.kind == JsonValue::Kind::String ? "" : schedule.find("vocabulary")->text;
  };
  CHECK(vocabulary(pipeline) == "");
  CHECK(vocabulary("--enable-vocab-parallel") == "");
  CHECK(vocabulary(pipeline + "--enable-vocab-parallel") == "vocab-2");
  CHECK(vocabulary(pipeline + "--enable-vocab-parallel --disable-backward-fusion") == "vocab-1");
  for (const char* const to : {"megatron", "torchtitan"}) {
    const Outcome out = run_program({"export", "made.json", "--to", to}, folder.path());
    CHECK(out.err.find("/training/schedule/vocabulary") != std::string::npos);
  }
  const auto refuses = [&](const std::string& flag, const std::string& more, const char* gpus) {
    INFO(flag);
    const std::string mistakes = imported(folder, script(pipeline + more), gpus);
    CHECK(mistakes.find("--" + flag + ":") != std::string::npos);
    CHECK(std::ranges::count(mistakes, '\n') == 1);
  };
  const std::string divides = "--enable-vocab-parallel ";
  refuses("overlap-grad-reduce", divides + "--overlap-grad-reduce", "4");
  CHECK(vocabulary(pipeline + divides + "--overlap-grad-reduce") == "vocab-2");  // no replicas
  refuses("num-layers-per-virtual-pipeline-stage",
          divides + "--num-layers-per-virtual-pipeline-stage 1", "2");
  refuses("defer-embedding-wgrad-compute", divides + "--defer-embedding-wgrad-compute", "2");
  refuses("use-interlaced-schedule", divides + "--use-interlaced-schedule", "2");
  refuses("use-interlaced-schedule", "--use-interlaced-schedule", "2");
}

TEST_CASE("contexts of two levels turn heads in the first, and go round rings between these") {
  const Folder folder;
  const auto text = [](int contexts, const std::string& sizes) {
    return script("--context-parallel-size " + std::to_string(contexts) +
                  " --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes " + sizes);
  };
  CHECK(imported(folder, text(8, "4 2"), "8") == "");
  const JsonValue made = read_json_file(folder.path("made.json"));
  CHECK(made.find("parallel")->find("context_layout")->text == "hybrid");
  CHECK(made.find("parallel")->find("context_all_to_all")->number == 4);
  CHECK(imported(folder, text(8, "8 1"), "8") == "");
  const JsonValue turned = read_json_file(folder.path("made.json"));
  CHECK(turned.find("parallel")->find("context_layout")->text == "all_to_all");
  for (const char* sizes : {"4 4", "3 2", "4x 2", "8"}) {
    CHECK(imported(folder, text(8, sizes), "8")
              .find("expected two sizes, whose product is context-parallel-size, 8, got " +
                    std::string(sizes)) != std::string::npos);
  }
}

TEST_CASE("a V of zero bubble's fork is the schedule of its memory, with two stages a rank") {
  const Folder folder;
  const std::string v =
      "--pipeline-model-parallel-size 2 --enable-zb-runtime "
      "--zero-bubble-v-schedule ";
  const std::string memory = v + "--zero-bubble-v-schedule-mem-setup ";
  const auto made = [&](const std::string& more) {
    REQUIRE(imported(folder, script(more), "2") == "");
    return read_json_file(folder.path("made.json"));
  };
  const auto kind = [&](const std::string& more) {
    const JsonValue scenario = made(more);
    CHECK(scenario.find("parallel")->find("stages")->number == 4);
    return scenario.find("training")->find("schedule")->text;
  };
  CHECK(kind(v) == "zb-v");
  CHECK(kind(memory + "zb") == "zb-v");
  CHECK(kind(memory + "half") == "v-half");
  CHECK(kind(memory + "min") == "v-min");
  for (const bool two : {false, true}) {
    const std::string divides =
        std::string("half --enable-vocab-parallel") + (two ? " --disable-backward-fusion" : "");
    const JsonValue scenario = made(memory + divides);
    const JsonValue& schedule = *scenario.find("training")->find("schedule");
    CHECK(schedule.find("kind")->text == "v-half");
    CHECK(schedule.find("vocabulary")->text == (two ? "vocab-1" : "vocab-2"));
    CHECK(run_program({"simulate", "made.json"}, folder.path()).err == "");
  }
  for (const char* const other : {"min", "zb"}) {
    const std::string said =
        imported(folder, script(memory + other + " --enable-vocab-parallel"), "2");
    CHECK(said.find("--zero-bubble-v-schedule:") != std::string::npos);
    CHECK(std::ranges::count(said, '\n') == 1);
  }
  CHECK(imported(folder, script(memory + "most"), "2").find("expected min, half or zb, got most") !=
        std::string::npos);
}

TEST_CASE("a recipe says with its own words what waits in the host's memory") {
  const Folder folder;
  const auto offload = [&](const std::string& more) {
    folder.file("r.yaml",
                "model:\n  num_layers: 8\n  hidden_size: 512\n  num_attention_heads: 8\n"
                "  seq_length: 512\n  vocab_size: 32000\n" +
                    more + "train:\n  micro_batch_size: 1\n  global_batch_size: 4\n");
    const Outcome run = run_program({"import", "nemo", "r.yaml", "--cluster", "dgx-h100", "--out",
                                     "made.json", "--devices", "1"},
                                    folder.path());
    REQUIRE(run.exit_code == 0);
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue* kept = made.find("training")->find("offload");
    return std::pair(kept ? kept->find("activations")->number : 0.0, run.out);
  };
  const std::string layers = "  cpu_offloading_num_layers: 4\n";
  CHECK(offload("  cpu_offloading: true\n" + layers).first == 0.5);
  CHECK(offload("  cpu_offloading: false\n" + layers).first == 0);
  const std::string activations = "  cpu_offloading: true\n  cpu_offloading_activations: false\n";
  CHECK(offload(activations + layers).first == 0);
  const auto weights = offload("  cpu_offloading: true\n  cpu_offloading_weights: true\n" + layers);
  CHECK(weights.first == 0.5);
  CHECK(weights.second.find("weights stay on the devices") != std::string::npos);
}

TEST_CASE("graphs have the same scopes under their older and their newer name") {
  const Folder folder;
  for (const char* name : {"--cuda-graph-scope", "--cuda-graph-modules"}) {
    CAPTURE(name);
    const JsonValue training =
        training_of(folder, script("--cuda-graph-impl transformer_engine " + std::string(name) +
                                   " attn moe_router moe_preprocess"));
    REQUIRE(training.find("cuda_graphs") != nullptr);
    CHECK(training.find("cuda_graphs")->items.size() == 2);
  }
}

TEST_CASE("what single kernels do of routing is read") {
  const Folder folder;
  const auto fused = [&](const std::string& arguments) {
    const JsonValue training = training_of(folder, script(arguments));
    const JsonValue* read = training.find("fused_routing");
    std::string all;
    if (read == nullptr) return all;
    for (const JsonValue& part : read->items) all += part.text + " ";
    return all;
  };
  CHECK(fused("").empty());
  CHECK(fused("--moe-router-fusion") == "router ");
  CHECK(fused("--moe-permute-fusion --moe-router-fusion") == "router permutation ");
}

TEST_CASE("windows of some layers are read, and written, as a number or a list") {
  const Folder folder;
  const auto pattern = [&](const std::string& skip) -> std::string {
    CHECK(imported(folder, script("--window-size 127,0 --window-attn-skip-freq " + skip)) == "");
    const JsonValue made = read_json_file(folder.path("made.json"));
    const JsonValue* found = made.find("model")->find("layer_pattern");
    std::string forms;  // of each form how many layers: with w, without f
    if (found == nullptr) return made.find("model")->find("sliding_window") ? "all" : "none";
    for (const JsonValue& one : found->items) {
      forms += (one.find("sliding_window") ? "f" : "w") +
               std::to_string(static_cast<int>(one.find("repeat")->number));
    }
    return forms;
  };
  CHECK(pattern("2") == "w1f1");
  CHECK(pattern("6") == "w5f1");
  CHECK(pattern("1") == "none");
  CHECK(pattern("9") == "all");
  CHECK(pattern("\"([1]*3+[0]*1+[1]*3+[0]*1)\"") == "w3f1");
  CHECK(pattern("\"[1,1,0,1,1,0,1,1]\"") == "w2f1");
  CHECK(imported(folder, script("--window-size 127,0 --window-attn-skip-freq \"[1,0]\""))
            .find("--window-attn-skip-freq: expected a number N, or a list for all 8 layers") !=
        std::string::npos);
}

TEST_CASE("what Megatron's own examples say is known by its name") {
  const Folder folder;
  folder.file("run.sh",
              script("--no-position-embedding --use-megatron-fsdp --fsdp-double-buffer "
                     "--fsdp-manual-registration --init-model-with-meta-device --no-rope-freq 4 "
                     "--data-parallel-sharding-strategy optim_grads_params"));
  const Outcome run = run_program({"import", "megatron", "run.sh", "--cluster", "dgx-h100", "--out",
                                   "made.json", "--json", "-"},
                                  folder.path());
  REQUIRE(run.exit_code == 0);
  const JsonValue told = parse_json(run.out, "told.json");
  CHECK(told.find("unknown")->items.empty());
  std::string matters;
  for (const JsonValue& one : told.find("not_predicted")->items)
    matters += described(one) + one.text;
  CHECK(matters.find("fsdp-double-buffer") != std::string::npos);
}

/// Returns the step time and the peak memory.
std::pair<double, double> predicted(const Folder& folder, const std::string& file,
                                    const Words& set) {
  Words words = {"simulate", file, "--json", "-"};
  for (const std::string& one : set) words.insert(words.end(), {"--set", one});
  const Outcome run = run_program(words, folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  const JsonValue result = parse_json(run.out, "out.json");
  return {result.find("step_time_s")->number,
          result.find("devices")->items.front().find("peak_memory_bytes")->number};
}

const char* const kMixture = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
    "vocab_size": 32000, "sequence_length": 512, "attention": "fused", "positions": "rotary",
    "gated_mlp": true, "norm": "rmsnorm", "bias": false, "experts": 4, "experts_per_token": 2},
  "cluster": {"machine": "dgx-h100", "devices": 1},
  "parallel": {"overlap_gradients": false},
  "training": {"strategy": "global", "global_batch_size": 4, "micro_batch_size": 1, "steps": 2,
    "precision": "bf16", "optimizer": "adam",
    "framework": {"kernel_issue": "20 us", "routing": "steps"}}})";

TEST_CASE("graphs, clamps, stretched positions and layers on the host go to arguments and back") {
  const Folder folder;
  folder.file("s.json", kMixture);
  for (const auto& [set, written] : std::initializer_list<std::pair<std::string, std::string>>{
           {"training.cuda_graphs=step", "--cuda-graph-impl full_iteration"},
           {R"(training.cuda_graphs=["attention", "router"])",
            "--cuda-graph-scope attn moe_router moe_preprocess"},
           {R"(training.fused_routing=["permutation", "router"])",
            "--moe-router-fusion --moe-permute-fusion"},
           {"model.clamped_mlp=true", "--quick-geglu --activation-func-clamp-value 7.0"},
           {"model.scaled_rotation=true", "--position-embedding-type yarn"},
           {R"(model.layer_pattern=[{"repeat": 3, "sliding_window": 64}, {}])",
            "--window-size 63,0 --window-attn-skip-freq 4"},
           {R"(model.layer_pattern=[{"sliding_window": 64}, {"repeat": 2}])",
            "--window-size 63,0 --window-attn-skip-freq \"([1,0,0,1,0,0,1,0])\""},
           {R"(training.offload={"activations": 0.375})", "--cpu-offloading-num-layers 3"}}) {
    CAPTURE(set);
    const Outcome out = run_program(
        {"export", "s.json", "--to", "megatron", "--set", set, "--set", "training.framework=null"},
        folder.path());
    CHECK(out.err == "");
    REQUIRE(out.exit_code == 0);
    CHECK(out.out.find(written) != std::string::npos);
    CHECK(imported(folder, out.out, "1", "none") == "");
    // Only a framework says how long the host takes to issue a kernel, and which there are. Where
    // it takes longer than the kernels, windows are of no use.
    const std::string issue = written.find("--window") != std::string::npos ? "1 us" : "20 us";
    const std::string framework =
        R"(training.framework={"routing": "steps", "kernel_issue": ")" + issue + "\"}";
    const auto there = predicted(folder, "s.json", {set, framework});
    CHECK(predicted(folder, "made.json", {framework}) == there);
    CHECK(there != predicted(folder, "s.json", {framework}));
  }
}

TEST_CASE("what activations keep has no argument, and is refused by its name in code") {
  const Folder folder;
  folder.file("s.json", kMixture);
  const auto said = [&](const std::string& set) {
    const Outcome out =
        run_program({"export", "s.json", "--to", "megatron", "--set", set}, folder.path());
    CHECK(out.exit_code == 2);
    return out.err;
  };
  CHECK(said("training.activation_inputs=fp8").find("activation_func_fp8_input_store") !=
        std::string::npos);
  for (const char* share : {"0.3", "1"}) {
    CHECK(said(R"(training.offload={"activations": )" + std::string(share) + "}")
              .find("expected a share that is a number of the 8 layers") != std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::megatron_kernels_test
