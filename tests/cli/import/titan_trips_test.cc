// Plans that torchtitan's TOML can say come back from it as they were.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::titan_trips_test {
namespace {

using Words = std::vector<std::string>;

const char* const kPipeline = R"({"model": "llama-3-8b", "cluster": "dgx-h100",
  "partition": "uniform", "parallel": {"pipeline": 4, "data": 2, "zero_stage": 2},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 32,
    "micro_batch_size": 1, "precision": "bf16", "optimizer": "adamw", "steps": 2}})";

Outcome exported(const Folder& folder, const std::string& program, const Words& set) {
  Words words = {"export", "s.json", "--to", program, "--out", "plan.toml", "--quiet"};
  for (const std::string& one : set) words.insert(words.end(), {"--set", one});
  return run_program(words, folder.path());
}

std::string read(const Folder& folder) { return run_shell("cat plan.toml", folder.path()).out; }

double step_time(const Folder& folder, const std::string& file, const Words& set) {
  Words words = {"simulate", file, "--json", "-"};
  for (const std::string& one : set) words.insert(words.end(), {"--set", one});
  const Outcome run = run_program(words, folder.path());
  REQUIRE(run.exit_code == 0);
  return parse_json(run.out, "out.json").find("step_time_s")->number;
}

void import_plan(const Folder& folder, const std::string& file) {
  const Outcome run =
      run_program({"import", "torchtitan", file, "--cluster", "dgx-h100", "--devices", "8",
                   "--framework", "none", "--out", "made.json", "--quiet"},
                  folder.path());
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
}

TEST_CASE("schedules in a V go to torchtitan by its names, and come back") {
  const Folder folder;
  folder.file("s.json", kPipeline);
  const std::string experts = R"(model={"base": "deepseek-v2-lite", "sequence_length": 1024})";
  const std::string overlap = "parallel.expert_overlap=micro_batches";
  struct Case {
    Words set;
    std::string line;
  };
  for (const auto& [set, line] : std::initializer_list<Case>{
           {{"training.schedule=zb-v"}, "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"},
           {{"training.schedule=dualpipe-v"}, "pipeline_parallel_schedule = \"DualPipeV\"\n"},
           {{"training.schedule=dualpipe-v", experts, "parallel.expert=2"},
            "pipeline_parallel_expert_parallel_overlap = false\n"},
           {{"training.schedule=dualpipe-v", experts, "parallel.expert=2", overlap},
            "pipeline_parallel_schedule = \"DualPipeV\"\n"}}) {
    CAPTURE(line);
    const Outcome out = exported(folder, "torchtitan", set);
    CHECK(out.err == "");
    REQUIRE(out.exit_code == 0);
    CHECK(read(folder).find(line) != std::string::npos);
    import_plan(folder, "plan.toml");
    CHECK(step_time(folder, "made.json", {}) == step_time(folder, "s.json", set));
  }
}

TEST_CASE("a program that lacks a schedule in a V says so of the schedule, not of a placement") {
  const Folder folder;
  folder.file("s.json", kPipeline);
  for (const auto& [program, schedule] :
       {std::pair("megatron", "zb-v"), std::pair("deepspeed", "zb-v"),
        std::pair("torchtitan", "hanayo"), std::pair("torchtitan", "chimera")}) {
    const Words set = {"training.schedule=" + std::string(schedule), "parallel.zero_stage=0"};
    const Outcome out = exported(folder, program, set);
    CAPTURE(out.err);
    CHECK(out.exit_code == 2);
    CHECK(out.err.find("/training/schedule: ") != std::string::npos);
    CHECK(out.err.find("/parallel/placement") == std::string::npos);
  }
  // Stages that the file itself lays are a placement.
  CHECK(exported(folder, "torchtitan",
                 {"parallel.pipeline=2", "parallel.data=4", "parallel.stages=4",
                  "parallel.placement=[0, 1, 1, 0]"})
            .err.find("/parallel/placement: torchtitan lays stages in loops; expected \"loop\"") !=
        std::string::npos);
}

TEST_CASE("torchtitan computes one layer in N again; nothing said is one in two") {
  const Folder folder;
  folder.file("s.json", kPipeline);
  folder.file("job.toml", R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 4
[parallelism]
data_parallel_shard_degree = 8
)");
  import_plan(folder, "job.toml");  // 16 of the 32 layers
  const double before = step_time(folder, "made.json", {});
  const Outcome out = run_program(
      {"export", "made.json", "--to", "torchtitan", "--out", "plan.toml"}, folder.path());
  REQUIRE(out.exit_code == 0);
  CHECK(out.err.find("/training/recompute: one layer in 2 is computed again, not the first 16") !=
        std::string::npos);
  CHECK(read(folder).find("mode = \"selective\"\nselective_ac_option = \"2\"\n") !=
        std::string::npos);
  import_plan(folder, "plan.toml");
  CHECK(step_time(folder, "made.json", {}) == before);
  // One in N of 32 layers are 32, 16, 10, 8, 6, 5, ...
  const auto again = [&](int layers) {
    return exported(folder, "torchtitan",
                    {R"(training.recompute={"full_layers": )" + std::to_string(layers) + "}"});
  };
  CHECK(again(10).err == "");
  CHECK(read(folder).find("selective_ac_option = \"3\"\n") != std::string::npos);
  CHECK(again(12).err.find("/training/recompute: torchtitan computes one layer in N again, of 32 "
                           "layers 10 or 16; expected full_layers of one of these") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::titan_trips_test
