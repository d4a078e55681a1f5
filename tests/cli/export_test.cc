// interlock export: what is written for other programs is the plan that was asked for.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "base/json/json.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"

namespace interlock::export_test {
namespace {

using Words = std::vector<std::string>;

/// A scenario file as these tests ask it: on H100s, without a framework, two steps.
struct Asked {
  std::string file;
  int devices = 8;
  Words set = {};          // further overrides
  std::string model = {};  // for programs that are not told it
};

Words overrides(const Asked& asked) {
  const std::string nodes = std::to_string((asked.devices + 7) / 8);
  Words words = {"sweep=null", "training.framework=null", "training.steps=2", "cluster=null",
                 R"(cluster={"machine": "dgx-h100", "nodes": )" + nodes + R"(, "devices": )" +
                     std::to_string(asked.devices) + "}"};
  words.insert(words.end(), asked.set.begin(), asked.set.end());
  Words options;
  for (const std::string& word : words) options.insert(options.end(), {"--set", word});
  return options;
}

double step_time(const Folder& folder, Words words) {
  words.insert(words.begin(), "simulate");
  words.insert(words.end(), {"--json", "-"});
  const Outcome run = run_program(words, folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  return parse_json(run.out, "out.json").find("step_time_s")->number;
}

/// Writes a plan for `program`, reads that again, and compares the step times. Returns what export
/// says where the program cannot run the plan.
std::string round_trip(const Asked& asked, const std::string& program) {
  const Folder folder;
  const char* const file = program == "deepspeed"    ? "plan.json"
                           : program == "torchtitan" ? "plan.toml"
                                                     : "plan.sh";
  Words out = {"export", asked.file, "--to", program, "--out", file, "--quiet"};
  const Words set = overrides(asked);
  out.insert(out.end(), set.begin(), set.end());
  const Outcome written = run_program(out, folder.path());
  if (written.exit_code == 2) return written.err;
  REQUIRE(written.exit_code == 0);
  Words in = {"import",
              program,
              file,
              "--cluster",
              "dgx-h100",
              "--devices",
              std::to_string(asked.devices),
              "--framework",
              "none",
              "--out",
              "made.json",
              "--quiet"};
  if (!asked.model.empty()) in.insert(in.end(), {"--model", asked.model});
  const Outcome read = run_program(in, folder.path());
  CHECK(read.err == "");
  REQUIRE(read.exit_code == 0);
  Words before = {asked.file};
  before.insert(before.end(), set.begin(), set.end());
  CHECK(step_time(folder, {"made.json"}) == step_time(folder, before));
  return "";
}

std::string example(const std::string& name) {
  return std::string(SCENARIOS_FOLDER) + "/" + name + ".json";
}

TEST_CASE("shipped scenarios go to Megatron's arguments and back") {
  for (const Asked& asked :
       std::initializer_list<Asked>{{example("examples/gpt2-xl-1f1b"), 8},
                                    {example("examples/experts"), 32},
                                    {example("examples/gpt3-175b-64-a100"), 64},
                                    {example("examples/interleaved"), 8},
                                    {example("examples/llama-3-8b-fsdp"), 64},
                                    {example("examples/llama-3-8b"), 8},
                                    {example("examples/offload"), 8},
                                    {example("examples/long-context"), 8, {"parallel.data=8"}}}) {
    CAPTURE(asked.file);
    CHECK(round_trip(asked, "megatron") == "");
  }
}

const char* const kSmall = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
    "vocab_size": 32000, "sequence_length": 512, "attention": "fused", "positions": "rotary"},
  "cluster": "dgx-h100",
  "training": {"strategy": "global", "global_batch_size": 32, "micro_batch_size": 1,
    "precision": "bf16", "optimizer": "adam"}})";

TEST_CASE("random plans go to Megatron's arguments and back") {
  const Folder folder;
  folder.file("s.json", kSmall);
  std::mt19937 random(11);
  const auto one_of = [&](const Words& words) { return words[random() % words.size()]; };
  for (int i = 0; i < cases(12); ++i) {
    const std::string pipeline = one_of({"1", "2", "4"}), tensor = one_of({"1", "2"});
    const std::string data = one_of({"1", "2", "4"}), context = one_of({"1", "2"});
    const bool several = pipeline != "1" && random() % 2 == 0;
    Asked asked{folder.path("s.json"),
                std::stoi(pipeline) * std::stoi(tensor) * std::stoi(data) * std::stoi(context)};
    asked.set = {"parallel.pipeline=" + pipeline,
                 "parallel.tensor=" + tensor,
                 "parallel.data=" + data,
                 "parallel.context=" + context,
                 "parallel.zero_stage=" + one_of({"0", "1", "2", "3"}),
                 "parallel.overlap_gradients=" + one_of({"true", "false"}),
                 "parallel.bucket=" + one_of({"1 MiB", "25 MiB", "100 MB"}),
                 "parallel.sequence_parallel=" + std::string(tensor == "1" ? "false" : "true"),
                 "model.kv_heads=" + one_of({"2", "8"}),
                 "model.gated_mlp=" + one_of({"true", "false"}),
                 "model.norm=" + one_of({"layernorm", "rmsnorm"}),
                 "model.positions=" + one_of({"learned", "rotary", "none"}),
                 "model.dropout=" + one_of({"0", "0.1"}),
                 "model.bias=" + one_of({"true", "false"}),
                 "model.attention=" + one_of({"fused", "materialised"}),
                 "training.precision=" + one_of({"bf16", "fp16", "fp32", "fp8"}),
                 "training.optimizer=" + one_of({"adam", "sgd", "sgd-momentum"}),
                 "training.recompute=" + one_of({"none", "selective", "full"})};
    if (random() % 3 == 0) {
      asked.set.insert(
          asked.set.end(),
          {"model.experts=4", "model.experts_per_token=2",
           one_of({"model.dense_layers=0", "model.dense_layers=1", "model.expert_interval=2",
                   R"(model.layer_pattern=[{"ffn": "experts"}, {"ffn": "dense", "repeat": 2}])"}),
           "model.shared_experts=" + one_of({"1", "2"}),
           "model.shared_expert_ffn_hidden_size=" + one_of({"768", "2048"})});
    }
    if (random() % 3 == 0) {
      asked.set.insert(asked.set.end(), {R"(model.multi_token_prediction={"layers": 2})",
                                         "model.attention_gate=" + one_of({"true", "false"}),
                                         "model.attention_sinks=" + one_of({"true", "false"})});
    }
    asked.set.push_back(several ? R"(training.schedule={"kind": "interleaved", "chunks": 2})"
                                : "training.schedule=1f1b");
    CAPTURE(i);
    for (const std::string& set : asked.set) INFO(set);
    CHECK(round_trip(asked, "megatron") == "");
  }
}

TEST_CASE("plans go to torchtitan's TOML and to DeepSpeed's JSON, and back") {
  CHECK(round_trip({example("examples/llama-3-8b-fsdp"), 64}, "torchtitan") == "");
  Asked pipeline{example("examples/llama-3-8b"), 8};
  pipeline.set = {"partition=uniform", "training.optimizer=adamw", "parallel.pipeline=4",
                  "parallel.data=2",   "parallel.zero_stage=2",    "parallel.tensor=1"};
  CHECK(round_trip(pipeline, "torchtitan") == "");
  Asked sinks = pipeline;
  sinks.set.push_back("model=gpt-oss-20b");
  CHECK(round_trip(sinks, "torchtitan") == "");
  sinks.set.back() = R"(model={"base": "gpt-oss-20b", "layers": 12})";
  CHECK(round_trip(sinks, "torchtitan").find("/model: torchtitan has no flavour of it") !=
        std::string::npos);
  const Folder folder;
  folder.file("s.json", R"({"model": "gpt2-xl", "cluster": "dgx-h100",
    "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 64,
    "micro_batch_size": 2, "precision": "bf16", "optimizer": "adam"}})");
  for (const char* stage : {"0", "1", "2", "3"}) {
    Asked asked{folder.path("s.json"), 8, {}, "gpt2-xl"};
    asked.set = {
        "parallel.data=8", "parallel.zero_stage=" + std::string(stage),
        "parallel.gradient_reduction=" + std::string(stage[0] < '2' ? "step" : "micro_batch")};
    CHECK(round_trip(asked, "deepspeed") == "");
  }
}

TEST_CASE("a plan that a program cannot run is refused by the keys that it lacks, all at once") {
  const Folder folder;
  folder.file("s.json", kSmall);
  Asked asked{folder.path("s.json"), 4};
  asked.set = {"parallel.pipeline=4", "training.schedule=zb-h1",
               R"(training.offload={"activations": 0.5})"};
  const std::string megatron = round_trip(asked, "megatron");
  CHECK(megatron.find("/training/schedule: Megatron-LM runs 1f1b and interleaved, not zb-h1\n") !=
        std::string::npos);
  CHECK(megatron.find("/training/offload/activations: Megatron-LM offloads whole layers") !=
        std::string::npos);
  CHECK(round_trip(asked, "deepspeed")
            .find("/parallel/pipeline: DeepSpeed has pipelines in Python "
                  "only; expected 1\n") != std::string::npos);
  CHECK(round_trip(asked, "torchtitan").find("/model: torchtitan has no flavour of it") !=
        std::string::npos);
}

/// Returns the keys that Megatron-LM lacks of the small model, sorted as export says them.
Words megatron_lacks(const Words& set) {
  const Folder folder;
  folder.file("s.json", kSmall);
  Asked asked{folder.path("s.json"), 1, set};
  std::istringstream lines(round_trip(asked, "megatron"));
  Words keys;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t from = line.find(": /") + 2;
    keys.push_back(line.substr(from, line.find(':', from) - from));
  }
  std::ranges::sort(keys);
  return keys;
}

TEST_CASE("forms of layers that Megatron's arguments cannot say are refused by name") {
  CHECK(megatron_lacks({}).empty());
  CHECK(megatron_lacks({R"(model.layer_pattern=[{"sliding_window": 128}, {}])"}) ==
        Words{"/model/layer_pattern"});
  CHECK(megatron_lacks({R"(model.layer_pattern=[{"ffn_hidden_size": 1024}, {}])"}) ==
        Words{"/model/layer_pattern"});
  CHECK(megatron_lacks({"model.attention_heads=null", "model.attention=mamba", "model.mamba={}"}) ==
        Words{"/model/attention"});
  CHECK(megatron_lacks({"model.ffn=none"}) == Words{"/model/ffn"});
  CHECK(megatron_lacks({"model.qk_norm=whole", "model.norm_position=both"}) ==
        Words{"/model/norm_position", "/model/qk_norm"});
  CHECK(megatron_lacks({"model.attention_chunk=128", "model.readout_bias=true"}) ==
        Words{"/model/attention_chunk", "/model/readout_bias"});
  CHECK(megatron_lacks({R"(model.encoder={"patches": {"image_size": 32, "patch_size": 16},
      "layers": 2, "hidden_size": 64, "attention_heads": 2})"}) == Words{"/model/encoder"});
}

}  // namespace
}  // namespace interlock::export_test
