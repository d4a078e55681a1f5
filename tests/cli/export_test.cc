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

/// A scenario file as these tests ask it: on `machine`, without a framework, two steps.
struct Asked {
  std::string file;
  int devices = 8;
  Words set = {};          // further overrides
  std::string model = {};  // for programs that are not told it
  std::string key = {};    // may be left out, by name
  std::string machine = "dgx-h100";
};

Words overrides(const Asked& asked) {
  const std::string nodes = std::to_string((asked.devices + 7) / 8);
  Words words = {"sweep=null", "training.framework=null", "training.steps=2", "cluster=null",
                 R"(cluster={"machine": ")" + asked.machine + R"(", "nodes": )" + nodes +
                     R"(, "devices": )" + std::to_string(asked.devices) + "}"};
  words.insert(words.end(), asked.set.begin(), asked.set.end());
  Words options;
  for (const std::string& word : words) options.insert(options.end(), {"--set", word});
  return options;
}

/// Returns the step time and each device's peak memory, in seconds and bytes.
std::vector<double> predicted(const Folder& folder, Words words) {
  words.insert(words.begin(), "simulate");
  words.insert(words.end(), {"--json", "-"});
  const Outcome run = run_program(words, folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  const JsonValue result = parse_json(run.out, "out.json");
  std::vector<double> numbers = {result.find("step_time_s")->number};
  for (const JsonValue& device : result.find("devices")->items) {
    numbers.push_back(device.find("peak_memory_bytes")->number);
  }
  return numbers;
}

/// Writes a plan for `program`, reads that again, and compares the predictions. Returns what export
/// says where the program cannot run the plan, or leaves the key out.
std::string round_trip(const Asked& asked, const std::string& program) {
  const Folder folder;
  const char* const file = program == "deepspeed"    ? "plan.json"
                           : program == "torchtitan" ? "plan.toml"
                                                     : "plan.sh";
  Words out = {"export", asked.file, "--to", program, "--out", file, "--quiet", "--json", "-"};
  const Words set = overrides(asked);
  out.insert(out.end(), set.begin(), set.end());
  const Outcome written = run_program(out, folder.path());
  if (written.exit_code == 2) return written.err;
  REQUIRE(written.exit_code == 0);
  if (!asked.key.empty() && written.out.find("\"/" + asked.key) != std::string::npos) {
    return written.out;
  }
  Words in = {"import", program, file, "--cluster", asked.machine};
  in.insert(in.end(), {"--devices", std::to_string(asked.devices), "--framework", "none"});
  in.insert(in.end(), {"--out", "made.json", "--quiet"});
  if (!asked.model.empty()) in.insert(in.end(), {"--model", asked.model});
  const Outcome read = run_program(in, folder.path());
  CHECK(read.err == "");
  REQUIRE(read.exit_code == 0);
  Words before = {asked.file};
  before.insert(before.end(), set.begin(), set.end());
  CHECK(predicted(folder, {"made.json"}) == predicted(folder, before));
  return "";
}

std::string example(const std::string& name) {
  return std::string(SCENARIOS_FOLDER) + "/" + name + ".json";
}

TEST_CASE("shipped scenarios go to Megatron's arguments and back") {
  for (const Asked& asked : std::initializer_list<Asked>{
           {example("examples/gpt2-xl-1f1b"), 8},
           {example("examples/experts"), 32},
           // Megatron-LM pads a vocabulary to a multiple of the tensor ranks, and so does import.
           {example("examples/gpt3-175b-64-a100"), 64, {"model.vocab_size=50264"}},
           {example("examples/interleaved"), 8},
           {example("examples/llama-3-8b-fsdp"), 64, {"parallel.gradient_reduction=micro_batch"}},
           {example("examples/llama-3-8b"), 8},
           {example("examples/offload"), 8},
           {example("examples/long-context"),
            8,
            {"parallel.data=2", "parallel.context=4", "parallel.context_layout=hybrid",
             "parallel.context_all_to_all=2", "parallel.gradient_reduction=micro_batch"}},
           {example("examples/llama-3-8b"), 8, {"model=deepseek-v3.2"}}}) {
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
    const std::string zero = one_of({"0", "1", "2", "3"});
    Asked asked{folder.path("s.json"),
                std::stoi(pipeline) * std::stoi(tensor) * std::stoi(data) * std::stoi(context)};
    asked.set = {"parallel.pipeline=" + pipeline,
                 "parallel.tensor=" + tensor,
                 "parallel.data=" + data,
                 "parallel.context=" + context,
                 "parallel.zero_stage=" + zero,
                 "parallel.gradient_reduction=" + std::string(zero < "2" ? "step" : "micro_batch"),
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
                 "training.precision=" + one_of({"bf16", "fp16", "fp32", "fp8", "fp4"}),
                 "training.optimizer=" + one_of({"adam", "sgd", "sgd-momentum"}),
                 "training.recompute=" + one_of({"none", "selective", "full"})};
    if (random() % 3 == 0) {
      asked.set.insert(
          asked.set.end(),
          {"model.experts=4", "model.experts_per_token=2",
           one_of({"model.dense_layers=0", "model.dense_layers=1", "model.expert_interval=2",
                   R"(model.layer_pattern=[{"ffn": "experts"}, {"ffn": "dense", "repeat": 2}])"}),
           "model.shared_experts=" + one_of({"1", "2"}),
           "model.expert_latent_size=" + one_of({"128", "512"}),
           "model.expert_groups=" + one_of({"1", "2"}),
           "model.shared_expert_ffn_hidden_size=" + one_of({"768", "2048"})});
    }
    if (random() % 3 == 0) {
      asked.set.insert(asked.set.end(), {R"(model.multi_token_prediction={"layers": 2})",
                                         "model.attention_gate=" + one_of({"true", "false"}),
                                         "model.attention_sinks=" + one_of({"true", "false"})});
    }
    asked.machine = "dgx-b200";  // which computes in 4 bits
    const std::string round = one_of({"", R"(, "round": 8)"});
    asked.set.push_back(several ? R"(training.schedule={"kind": "interleaved", "chunks": 2)" +
                                      round + "}"
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
  Asked rounds = pipeline;  // ten micro-batches, which PyTorch takes in two rounds of five
  rounds.set.insert(rounds.set.end(),
                    {"training.global_batch_size=20", "training.micro_batch_size=1",
                     R"(training.schedule={"kind": "interleaved", "chunks": 2, "round": 5})"});
  CHECK(round_trip(rounds, "torchtitan") == "");
  rounds.set.back() = R"(training.schedule={"kind": "interleaved", "chunks": 2, "round": 6})";
  CHECK(round_trip(rounds, "torchtitan")
            .find("/training/schedule/round: torchtitan takes rounds of 5 micro-batches here") !=
        std::string::npos);
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

struct KeyValue {
  std::string key;
  int devices;
  Words set;  // gives the key another value than its default, and what that needs
};

/// A value of each key of parallel and training that a transformer may have.
const std::vector<KeyValue> kValuesOfKeys = {
    {"parallel/pipeline", 2, {"parallel.pipeline=2"}},
    {"parallel/stages",
     2,
     {"parallel.pipeline=2", "parallel.stages=4", "training.schedule=interleaved"}},
    {"parallel/placement",
     2,
     {"parallel.pipeline=2", "parallel.stages=4", "parallel.placement=[0, 1, 1, 0]"}},
    {"parallel/tensor", 2, {"parallel.tensor=2"}},
    {"parallel/data", 4, {"parallel.data=4"}},
    {"parallel/context", 2, {"parallel.context=2"}},
    {"parallel/expert", 4, {"parallel.data=4", "parallel.expert=2"}},
    {"parallel/expert_tensor",
     4,
     {"parallel.tensor=2", "parallel.data=2", "parallel.expert=2", "parallel.expert_tensor=1",
      "parallel.sequence_parallel=true"}},
    {"parallel/tensor_layout",
     4,
     {"parallel.tensor=4", "training.micro_batch_size=2", "parallel.tensor_layout=2d"}},
    {"parallel/sequence_parallel", 2, {"parallel.tensor=2", "parallel.sequence_parallel=true"}},
    {"parallel/context_layout", 2, {"parallel.context=2", "parallel.context_layout=all_to_all"}},
    {"parallel/expert_imbalance",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.expert_imbalance=1.5"}},
    {"parallel/expert_load", 4, {"parallel.data=4", "parallel.expert=2"}},
    {"parallel/expert_dispatch",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.expert_dispatch=deepep"}},
    {"parallel/dispatch_format",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.dispatch_format=fp8"}},
    {"parallel/combine_format",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.combine_format=bf16"}},
    {"parallel/dispatch_sms",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.dispatch_sms=0.2"}},
    {"parallel/expert_overlap",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.expert_overlap=shared_experts"}},
    {"parallel/expert_overlap",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.expert_overlap=micro_batches"}},
    {"parallel/delay_weight_gradients",
     4,
     {"parallel.data=4", "parallel.expert=2", "parallel.expert_overlap=micro_batches",
      "parallel.delay_weight_gradients=true"}},
    {"parallel/order",
     4,
     {"parallel.pipeline=2", "parallel.data=2",
      R"(parallel.order=["data", "tensor", "context", "pipeline"])"}},
    {"parallel/zero_stage", 4, {"parallel.data=4", "parallel.zero_stage=3"}},
    {"parallel/shard", 4, {"parallel.data=4", "parallel.zero_stage=3", "parallel.shard=2"}},
    {"parallel/overlap_gradients", 4, {"parallel.data=4", "parallel.overlap_gradients=false"}},
    {"parallel/overlap_weights",
     4,
     {"parallel.data=4", "parallel.zero_stage=2", "parallel.overlap_weights=true"}},
    {"parallel/gradient_density", 4, {"parallel.data=4", "parallel.gradient_density=0.5"}},
    {"parallel/gradient_reduction",
     4,
     {"parallel.data=4", "parallel.gradient_reduction=micro_batch"}},
    {"parallel/bucket", 4, {"parallel.data=4", "parallel.bucket=100 MiB"}},
    {"parallel/prefetch", 4, {"parallel.data=4", "parallel.zero_stage=3", "parallel.prefetch=3"}},
    {"parallel/stage_layouts",
     4,
     {"parallel.pipeline=2", R"(parallel.stage_layouts=[{"tensor": 2}, {"data": 2}])"}},
    {"training/strategy", 2, {"training.strategy=local", "parallel.pipeline=2"}},
    {"training/schedule", 2, {"training.schedule=gpipe", "parallel.pipeline=2"}},
    {"training/global_batch_size", 1, {"training.global_batch_size=64"}},
    {"training/micro_batch_size", 1, {"training.micro_batch_size=4"}},
    {"training/replica_micro_batches",
     2,
     {"parallel.data=2", "training.replica_micro_batches=[20, 12]"}},
    {"training/precision", 1, {"training.precision=fp8"}},
    {"training/bf16_layers",
     1,
     {"training.precision=fp8", R"(training.bf16_layers={"first": 1, "last": 2})"}},
    {"training/optimizer", 1, {R"(training.optimizer={"kind": "adam", "masters": "none"})"}},
    {"training/weights", 1, {"training.weights=fp8", "training.precision=fp8"}},
    {"training/lora", 1, {R"(training.lora={"rank": 8})"}},
    {"training/frozen_modules", 1, {"training.frozen_modules=3"}},
    {"training/recompute", 1, {R"(training.recompute={"modules": ["mlp", "layernorm"]})"}},
    {"training/recompute", 1, {R"(training.recompute={"full_layers": 3})"}},
    {"training/recompute", 1, {R"(training.recompute={"stage_layers": 3})"}},
    {"training/offload", 1, {R"(training.offload={"optimizer": 0.5})"}},
    {"training/offload", 1, {R"(training.offload={"activations": 0.5})"}}};

/// Returns what a plan of the model needs beside `one`, so that `program` could run it.
Asked asked_with(const KeyValue& one, const std::string& program, const std::string& file) {
  Asked asked{file, one.devices, {"parallel.pipeline=1"}};
  asked.key = one.key;
  const auto shares = [](const std::string& set) { return set.starts_with("parallel.expert="); };
  const bool experts = std::ranges::any_of(one.set, shares);
  const bool divided = one.set[1 % one.set.size()].find("zero_stage") != std::string::npos;
  if (program == "megatron" && experts) asked.set.push_back("model.experts=4");
  if (program != "torchtitan" && divided) {
    asked.set.push_back("parallel.gradient_reduction=micro_batch");
  }
  if (program == "torchtitan") {
    asked.set.push_back("partition=uniform");
    asked.set.push_back(experts ? "model=gpt-oss-20b" : "model=llama-3-8b");
    if (one.key == "parallel/tensor") asked.set.push_back("parallel.sequence_parallel=true");
    if (one.key == "parallel/context") asked.set.push_back("parallel.zero_stage=3");
  } else if (program == "deepspeed") {
    asked.model = experts ? "mixtral-8x7b" : "gpt2-medium";
    asked.set.push_back("model=" + asked.model);
  }
  asked.set.insert(asked.set.end(), one.set.begin(), one.set.end());
  if (one.key == "parallel/expert_load") {
    std::string loads = "[3";  // of each expert: Megatron's here, gpt-oss-20b's, mixtral-8x7b's
    const int count = program == "megatron" ? 4 : program == "torchtitan" ? 32 : 8;
    for (int expert = 1; expert < count; ++expert) loads += ", 1";
    asked.set.push_back("parallel.expert_load=" + loads + "]");
  }
  return asked;
}

TEST_CASE("no key is lost on the way to another program: it comes back, is refused or left out") {
  const Folder folder;
  folder.file("s.json", kSmall);
  for (const std::string program : {"megatron", "torchtitan", "deepspeed"}) {
    for (const KeyValue& one : kValuesOfKeys) {
      CAPTURE(program);
      CAPTURE(one.set.back());
      const std::string lacks =
          round_trip(asked_with(one, program, folder.path("s.json")), program);
      const bool named = lacks.find("/" + one.key) != std::string::npos;
      // DeepSpeed is told of pipelines and experts in Python; what divides them goes with it.
      const bool python = lacks.find("in Python") != std::string::npos;
      CHECK((lacks.empty() || named || python));
    }
  }
}

/// Returns the keys that Megatron-LM lacks of the small model, sorted as export says them.
Words megatron_lacks(const Words& set) {
  const Folder folder;
  folder.file("s.json", kSmall);
  std::istringstream lines(round_trip({folder.path("s.json"), 1, set}, "megatron"));
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
  CHECK(megatron_lacks({R"(model.layer_pattern=[{"sliding_window": 128}, {}])"}).empty());
  CHECK(megatron_lacks({R"(model.layer_pattern=[{"sliding_window": 128},
      {"sliding_window": 64}])"}) == Words{"/model/layer_pattern"});
  CHECK(megatron_lacks({R"(model.layer_pattern=[{"ffn_hidden_size": 1024}, {}])"}) ==
        Words{"/model/layer_pattern"});
  CHECK(megatron_lacks({"model.attention_heads=null", "model.attention=mamba", "model.mamba={}"}) ==
        Words{"/model/attention"});
  CHECK(megatron_lacks({"model.ffn=none"}) == Words{"/model/ffn"});
  CHECK(megatron_lacks({"model.norm_bias=false"}) == Words{"/model/norm_bias"});
  CHECK(megatron_lacks({"model.qk_norm=whole", "model.norm_position=both"}) ==
        Words{"/model/norm_position", "/model/qk_norm"});
  CHECK(megatron_lacks({"model.attention_chunk=128", "model.readout_bias=true"}) ==
        Words{"/model/attention_chunk", "/model/readout_bias"});
  CHECK(megatron_lacks({R"(model.encoder={"patches": {"image_size": 32, "patch_size": 16},
      "layers": 2, "hidden_size": 64, "attention_heads": 2})"}) == Words{"/model/encoder"});
}

}  // namespace
}  // namespace interlock::export_test
