// interlock search as a user runs it: what it finds is what simulate says.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::search_command_test {
namespace {

constexpr const char* kSpace = R"({
  "name": "six layers",
  "model": {"kind": "transformer", "layers": 6, "hidden_size": 512, "attention_heads": 8,
            "ffn_hidden_size": 2048, "vocab_size": 8192, "sequence_length": 512},
  "cluster": {"machine": "dgx-a100-40g", "devices": 4, "price": "2 USD/h"},
  "training": {"strategy": "global", "global_batch_size": 16, "optimizer": "adam", "steps": 2},
  "search": {"tensor": [1, 2], "micro_batch_size": [1, 4], "recompute": ["none", "full"]}
})";

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonValue* member = value.find(key);
  REQUIRE_MESSAGE(member, key);
  return *member;
}

JsonValue simulated(const Folder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"simulate"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--json", "-"});
  const Outcome run = run_program(all, folder.path());
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  return parse_json(run.out, "simulate");
}

TEST_CASE("the best plan runs as it was found, from its file and by its settings") {
  const Folder folder;
  folder.file("space.json", kSpace);
  std::filesystem::create_directory(folder.path("plans"));
  const Outcome run = run_program(
      {"search", "space.json", "--out", "plans/best.json", "--json", "found.json"}, folder.path());
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  CHECK(run.err.find("wrote plans/best.json; interlock simulate plans/best.json") !=
        std::string::npos);
  CHECK(run.out.find("Best: tensor") != std::string::npos);
  CHECK(run.out.find("Next best, and why they lost to plan 1") != std::string::npos);
  const JsonValue found = read_json_file(folder.path("found.json"));
  CHECK(at(found, "format").text == "interlock-search/1");
  const JsonValue& best = at(found, "plans").items.front();
  const double step = at(best, "step_time_s").number;
  CHECK(at(simulated(folder, {"plans/best.json"}), "step_time_s").number == step);
  std::vector<std::string> arguments = {"space.json"};
  for (const JsonValue& setting : at(best, "set").items) {
    arguments.insert(arguments.end(), {"--set", setting.text});
  }
  CHECK(at(simulated(folder, arguments), "step_time_s").number == step);
}

TEST_CASE("the best plan is written for a program as export writes it, and runs as it was found") {
  const Folder folder;
  folder.file("space.json", kSpace);
  const auto run = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(arguments, folder.path());
    REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
  };
  // Megatron-LM's ZeRO 2 and 3 reduce gradients after every micro-batch, which is another plan.
  const std::string few = "search.zero_stage=[0, 1]";
  run({"search", "space.json", "--set", few, "--out", "best.json", "--quiet"});
  run({"search", "space.json", "--set", few, "--to", "megatron", "--out", "found.sh", "--quiet"});
  run({"export", "best.json", "--to", "megatron", "--out", "exported.sh", "--quiet"});
  CHECK(read_file(folder.path("found.sh")) == read_file(folder.path("exported.sh")));
  run({"import", "megatron", "found.sh", "--cluster", "dgx-a100-40g", "--devices", "4",
       "--framework", "none", "--out", "again.json", "--quiet"});
  CHECK(at(simulated(folder, {"again.json", "--set", "training.steps=2"}), "step_time_s").number ==
        at(simulated(folder, {"best.json"}), "step_time_s").number);
}

struct Program {
  std::string name, model, machine, devices, file, recompute;
};

/// Returns a small search on `program`'s machine, whose replicas divide states by `zero`.
std::string sharded_space(const Program& program, int zero) {
  return R"({"name": "shards", "model": ")" + program.model + R"(", "cluster": {"machine": ")" +
         program.machine + R"(", "devices": )" + program.devices + R"(},
    "training": {"strategy": "global", "global_batch_size": 16, "optimizer": "adamw", "steps": 2},
    "search": {"tensor": 1, "pipeline": 1, "context": 1, "micro_batch_size": 1,
               "recompute": ")" +
         program.recompute + R"(", "zero_stage": )" + std::to_string(zero) + "}}";
}

TEST_CASE("ZeRO 2 and 3 are written for each program, and read back as they were found") {
  // DeepSpeed's file has no model, and no recomputation; torchtitan knows only some models.
  for (const Program& program :
       {Program{"megatron", "gpt2", "dgx-a100-40g", "4", "plan.sh", "full"},
        Program{"deepspeed", "gpt2", "dgx-a100-40g", "4", "plan.json", "none"},
        Program{"torchtitan", "llama-3-8b", "dgx-h100", "8", "plan.toml", "full"}}) {
    for (const int zero : {2, 3}) {
      CAPTURE(program.name);
      CAPTURE(zero);
      const Folder folder;
      folder.file("space.json", sharded_space(program, zero));
      const auto run = [&](const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(arguments, folder.path());
        REQUIRE_MESSAGE(outcome.exit_code == 0, outcome.err);
      };
      run({"search", "space.json", "--to", program.name, "--out", program.file, "--json",
           "found.json", "--quiet"});
      const JsonValue found = read_json_file(folder.path("found.json"));
      const JsonValue& best = at(found, "plans").items.front();
      CHECK(at(best, "zero_stage").number == zero);
      std::vector<std::string> import = {
          "import",        program.name,  program.file, "--cluster", program.machine, "--devices",
          program.devices, "--framework", "none",       "--out",     "again.json",    "--quiet"};
      if (program.name == "deepspeed") import.insert(import.end(), {"--model", program.model});
      run(import);
      const JsonValue again = read_json_file(folder.path("again.json"));
      CHECK(at(at(again, "parallel"), "zero_stage").number == zero);
      CHECK(at(simulated(folder, {"again.json", "--set", "training.steps=2"}), "step_time_s")
                .number == doctest::Approx(at(best, "step_time_s").number).epsilon(1e-9));
    }
  }
}

TEST_CASE("a search shows what it was asked for, and no progress where no terminal is") {
  const Folder folder;
  folder.file("space.json", kSpace);
  const Outcome run = run_program(
      {"search", "space.json", "--json", "-", "--set", "search.minimize=memory"}, folder.path());
  REQUIRE_MESSAGE(run.exit_code == 0, run.err);
  CHECK(run.err == "");
  const JsonValue found = parse_json(run.out, "search");
  CHECK(at(found, "minimize").text == "memory");
  const auto& plans = at(found, "plans").items;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    CHECK(at(plans[i - 1], "memory_bytes").number <= at(plans[i], "memory_bytes").number);
  }
}

TEST_CASE("mistakes end a search in a sentence, with nothing written") {
  const Folder folder;
  folder.file("space.json", kSpace);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), {"search", "space.json"});
    const Outcome run = run_program(arguments, folder.path());
    CHECK(run.exit_code == 2);
    CHECK_MESSAGE(run.err.find(words) != std::string::npos, run.err);
    CHECK(folder.files() == std::vector<std::string>{"space.json"});
  };
  refused({"--set", "search.limits.memory=1 MB", "--out", "best.json"}, "no plan is within");
  refused({"--to", "megatron"}, "expected --out FILE");
  refused({"--set", "search.minimize=speed"}, "/search/minimize");
  refused({"--set", "search.tensor=[0]"}, "/search/tensor");
  refused({"--set", "search.limits.memory=3"}, "/search/limits/memory");
  refused({"--set", "sweep={\"simulate.seed\": [1, 2]}"}, "--set sweep=null");
  refused({"--out", "nowhere/best.json"}, "nowhere");
  refused({"--jobs", "0"}, "--jobs");
}

TEST_CASE("search without a plan says which limits are too narrow") {
  const Folder folder;
  folder.file("s.json", kSpace);
  const auto told = [&](const std::string& limit) {
    const Outcome run =
        run_program({"search", "s.json", "--set", "search.limits." + limit}, folder.path());
    CHECK(run.out.find("No plan is within the limits.") != std::string::npos);
    return run.out;
  };
  const std::string time = told("time=1 us"), memory = told("memory=1 MiB");
  CHECK(time.find("Wider limits") != std::string::npos);
  CHECK(time.find("east memory") == std::string::npos);
  CHECK(memory.find("Wider limits") == std::string::npos);
}

TEST_CASE("a setting that every plan chooses is refused, and one that is removed is not") {
  const Folder folder;
  folder.file("space.json", kSpace);
  const auto searched = [&](const std::string& set) {
    return run_program({"search", "space.json", "-q", "--set", set}, folder.path());
  };
  const Outcome tensor = searched("parallel.tensor=2");
  CHECK(tensor.exit_code == 2);
  CHECK(tensor.err ==
        "--set parallel.tensor: each plan chooses it; expected --set 'search.tensor=[2]' in its "
        "place\n");
  CHECK(searched("parallel={\"zero_stage\": 3}").err.find("'search.zero_stage=[3]'") !=
        std::string::npos);
  CHECK(searched("training.recompute=full").err.find("'search.recompute=[\"full\"]'") !=
        std::string::npos);
  CHECK(searched("partition=uniform").err.find("'search.partition=[\"uniform\"]'") !=
        std::string::npos);
  CHECK(searched("parallel.tensor=null").exit_code == 0);
  CHECK(searched("parallel.overlap_gradients=true").exit_code == 0);
}

}  // namespace
}  // namespace interlock::search_command_test
