// interlock init: scenarios from a model, a machine and a number.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::init_test {
namespace {

TEST_CASE("what init writes runs, fits, and has a comment at its choices") {
  struct Asked {
    const char *model, *machine, *devices;
  };
  for (const Asked& asked : {Asked{"gpt2-xl", "dgx-a100-80g", "8"},
                             {"resnet-50", "dgx-v100-32g", "4"},
                             {"llama-3-8b", "dgx-h100", "16"},
                             {"gpt2", "dgx-a100-40g", "1"},
                             {"bert-base", "pcie-rtx-3090", "3"}}) {
    CAPTURE(asked.model);
    const Folder folder;
    const Outcome run = run_program({"init", "--model", asked.model, "--machine", asked.machine,
                                     "--devices", asked.devices, "--out", "s.json"},
                                    folder.path());
    CHECK(run.exit_code == 0);
    CHECK(run.out == "");
    CHECK(run.err == "wrote s.json; interlock simulate s.json\n");
    const std::string text = read_file(folder.path("s.json"));
    CHECK(text.find("// Samples of one step. Assumed") != std::string::npos);
    const Outcome simulated =
        run_program({"simulate", "s.json", "--require-fit", "--json", "-"}, folder.path());
    CHECK(simulated.exit_code == 0);
    const JsonValue result = parse_json(simulated.out, "simulate");
    CHECK(std::to_string(static_cast<int>(result.find("devices_total")->number)) == asked.devices);
  }
}

TEST_CASE("init says whose efficiencies a machine borrows, in the file, as a note and as JSON") {
  const Folder folder;
  const Outcome run = run_program({"init", "--model", "gpt2", "--machine", "vr200-nvl72",
                                   "--devices", "2", "--out", "s.json", "--json", "j.json"},
                                  folder.path());
  REQUIRE(run.exit_code == 0);
  const std::string words = "\"VR200-288GB\" states no efficiency; it borrows those of gb200 (";
  CHECK(run.err.find("note: " + words) != std::string::npos);
  CHECK(read_file(folder.path("s.json")).find("// Note: " + words) != std::string::npos);
  const JsonValue json = parse_json(read_file(folder.path("j.json")), "j.json");
  CHECK(json.find("efficiencies_of")->text == "gb200");
}

TEST_CASE("--sequence-length stands in what init writes, and is short for a key of the model") {
  const Folder folder;
  const Outcome run =
      run_program({"init", "--model", "llama-3-8b", "--machine", "dgx-h100", "--devices", "8",
                   "--sequence-length", "2048", "--out", "s.json"},
                  folder.path());
  REQUIRE(run.exit_code == 0);
  const JsonValue written = parse_json(read_file(folder.path("s.json")), "s.json");
  CHECK(written.find("model")->find("base")->text == "llama-3-8b");
  CHECK(written.find("model")->find("sequence_length")->number == 2048);

  const auto tokens = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"simulate", "s.json", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const JsonValue result = parse_json(run_program(words, folder.path()).out, "simulate");
    return result.find("tokens_per_s")->number * result.find("step_time_s")->number;
  };
  const double samples = tokens({}) / 2048;
  CHECK(tokens({"--sequence-length", "1024"}) == doctest::Approx(samples * 1024));
  CHECK(tokens({"--set", "model.sequence_length=1024"}) == doctest::Approx(samples * 1024));
}

TEST_CASE("init writes to standard output without --out, and over a file only by force") {
  const Folder folder;
  folder.file("s.json", "mine");
  const std::vector<std::string> asked = {"init",     "--model",   "gpt2", "--machine",
                                          "dgx-h100", "--devices", "2"};
  const Outcome printed = run_program(asked, folder.path());
  CHECK(printed.exit_code == 0);
  CHECK(parse_json(printed.out, "init").find("model")->text == "gpt2");
  std::vector<std::string> to_file = asked;
  to_file.insert(to_file.end(), {"--out", "s.json"});
  const Outcome refused = run_program(to_file, folder.path());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err == "--out s.json: is there already; --force writes over it\n");
  CHECK(read_file(folder.path("s.json")) == "mine");
  to_file.emplace_back("--force");
  CHECK(run_program(to_file, folder.path()).exit_code == 0);
  CHECK(read_file(folder.path("s.json")) != "mine");
}

TEST_CASE("no plan of the space is faster than what init writes and leaves as much memory free") {
  const Folder folder;
  const Outcome run = run_program({"init", "--model", "resnet-50", "--machine", "dgx-v100-32g",
                                   "--devices", "2", "--out", "s.json", "--json", "-"},
                                  folder.path());
  REQUIRE(run.exit_code == 0);
  const Outcome all =
      run_program({"compare", "s.json", "--json", "-", "-q", "--set",
                   R"(sweep={"zip": {"parallel.pipeline": [1, 2], "parallel.data": [2, 1]},
          "training.micro_batch_size": [1, 2, 4, 8, 16, 32], "training.recompute": ["none", "full"],
          "parallel.zero_stage": [1], "training.schedule": ["1f1b"]})"},
                  folder.path());
  CAPTURE(all.err);
  REQUIRE(all.exit_code == 0);
  double best = 1e30;
  const JsonValue plans = parse_json(all.out, "compare");
  CHECK(plans.items.size() == 24);
  for (const JsonValue& plan : plans.items) {
    double peak = 0;
    for (const JsonValue& device : plan.find("devices")->items) {
      peak = std::max(peak, device.find("peak_memory_bytes")->number);
    }
    // Room for the allocator, a context, and a communicator of two.
    const double needed = 1.1 * peak + 0.4e9 + 544.0 * 1024 * 1024;
    if (needed > plan.find("memory_capacity_bytes")->number) continue;
    best = std::min(best, plan.find("step_time_s")->number);
  }
  CHECK(parse_json(run.out, "init").find("step_time_s")->number <= best);
}

TEST_CASE("init of 175 billion parameters on 64 devices decides on hundreds of plans") {
  const Folder folder;
  const Outcome run = run_program({"init", "--model", "gpt3-175b", "--machine", "dgx-a100-80g",
                                   "--devices", "64", "--out", "s.json", "--json", "-"},
                                  folder.path());
  REQUIRE(run.exit_code == 0);
  CHECK(parse_json(run.out, "init").find("plans")->number > 400);
}

TEST_CASE("init divides the experts of a mixture, and sequences that are long") {
  const Folder folder;
  const Outcome run = run_program({"init", "--model", "mixtral-8x7b", "--machine", "dgx-h100",
                                   "--devices", "16", "--out", "s.json", "--json", "-"},
                                  folder.path());
  REQUIRE(run.exit_code == 0);
  const JsonValue plan = parse_json(run.out, "init");
  const auto count = [&](const char* key) { return static_cast<int>(plan.find(key)->number); };
  CHECK(count("expert") > 1);
  CHECK(count("context") > 1);  // of 32,768 tokens
  CHECK(count("tensor") * count("pipeline") * count("data") * count("context") == 16);
  const Outcome simulated = run_program({"simulate", "s.json", "--json", "-"}, folder.path());
  const JsonValue result = parse_json(simulated.out, "simulate");
  CHECK(result.find("parallel")->find("expert")->number == count("expert"));
  CHECK(result.find("step_time_s")->number ==
        doctest::Approx(plan.find("step_time_s")->number).epsilon(0.01));
}

TEST_CASE("init says in a sentence what is missing or wrong") {
  const Outcome missing = run_program({"init", "--model", "gpt2"});
  CHECK(missing.exit_code == 2);
  CHECK(missing.err.starts_with("missing --machine (interlock list machines), --devices; "));
  const Outcome model =
      run_program({"init", "--model", "gpt2-xxl", "--machine", "dgx-h100", "--devices", "8"});
  CHECK(model.exit_code == 2);
  CHECK(model.err.find("did you mean") != std::string::npos);
  const Folder folder;
  folder.file("s.json", R"({"model": "gpt2", "training": {"strategy": "global"}})");
  const Outcome scenario = run_program(
      {"init", "--model", "s.json", "--machine", "dgx-h100", "--devices", "8"}, folder.path());
  CHECK(scenario.err == "s.json is a scenario; expected a model's name or file\n");
  const Outcome none =
      run_program({"init", "--model", "gpt2", "--machine", "pcie-rtx-3090", "--devices", "0"});
  CHECK(none.exit_code == 2);
}

TEST_CASE("broken data of init's is named once, by its place, whatever plan would meet it") {
  const Folder folder;
  folder.file("model.json", R"({"kind": "transformer", "layers": 4)");
  folder.file("config.json", "{\"model_type\": \"llama\",\n \"hidden_size\": -5}");
  folder.file("machine.json", "{\n\"device\": {\"peak\":");
  const auto told = [&](const std::string& model, const std::string& machine) {
    const Outcome run = run_program(
        {"init", "--model", model, "--machine", machine, "--devices", "8"}, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    return run.err;
  };
  const std::string end = "malformed JSON: the text ends too early; expected ";
  CHECK(told("model.json", "dgx-h100") ==
        "cannot use this model file: model.json:1: " + end + "\",\" or \"}\"\n");
  CHECK(told("config.json", "dgx-h100") ==
        "config.json:2: /hidden_size: expected a whole number from 1 to 1000000, got -5\n");
  CHECK(told("gpt2", "machine.json") == "machine.json:2: " + end + "a value\n");
}

TEST_CASE("a model too large for its devices is written, and the file says that it does not fit") {
  const Outcome run =
      run_program({"init", "--model", "gpt3-175b", "--machine", "dgx-v100-32g", "--devices", "2"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("none fits") != std::string::npos);
}

TEST_CASE("init says that memory is unknown where a model has times only") {
  const Folder folder;
  folder.file("m.json", R"({"kind": "profile", "modules": [{"repeat": 4, "forward": "1 ms"}]})");
  const Outcome run = run_program(
      {"init", "--model", "m.json", "--machine", "dgx-h100", "--devices", "2"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.out.find(" a step, in memory that is unknown, as the model has times only.\n") !=
        std::string::npos);
  CHECK(run.out.find("fits") == std::string::npos);
  CHECK(run.out.find("// Left free") == std::string::npos);
}

TEST_CASE("racks that are not filled are told by init, import and search") {
  const Folder folder;
  const Outcome run = run_program({"init", "--model", "gpt2", "--machine", "gb300-nvl72",
                                   "--devices", "128", "--out", "s.json"},
                                  folder.path());
  const std::string note =
      "note: 64 of the 72 devices of each node are used, in 2 nodes, as 128 devices fill no whole "
      "nodes\n";
  CHECK(run.exit_code == 0);
  CHECK(run.err == note + "wrote s.json; interlock simulate s.json\n");
  folder.file("run.sh",
              "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
              "--seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 "
              "--global-batch-size 128 --vocab-size 1024\n");
  const Outcome import = run_program({"import", "megatron", "run.sh", "--cluster", "gb300-nvl72",
                                      "--devices", "128", "--out", "m.json"},
                                     folder.path());
  CHECK(import.exit_code == 0);
  CHECK(import.err.find(note) != std::string::npos);
  const JsonValue written = parse_json(read_file(folder.path("m.json")), "m.json");
  CHECK(written.find("cluster")->find("devices_per_node")->number == 64);
  CHECK(written.find("cluster")->find("nodes")->number == 2);
  const Outcome search = run_program(
      {"search", "s.json", "--set", R"(cluster={"devices_per_node": null, "devices": 128})",
       "--set",
       R"(search={"tensor": [1], "pipeline": [1], "recompute": ["none"], "zero_stage": [1]})"},
      folder.path());
  CHECK(search.exit_code == 0);
  CHECK(search.err.find("note: 128 devices fill no whole nodes of 72, which makes a search slow; "
                        "equal parts of nodes: --set cluster.devices_per_node=64 --set "
                        "cluster.nodes=2\n") != std::string::npos);
}

}  // namespace
}  // namespace interlock::init_test
