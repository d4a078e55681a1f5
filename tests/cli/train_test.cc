// interlock train as a user runs it: files, determinism, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::train_test {
namespace {

constexpr const char* kClassifier = R"({
  "name": "classifier",
  "model": {"kind": "residual-mlp", "input_size": 8, "layers": 4, "hidden_size": 16, "classes": 4},
  "cluster": {"kind": "uniform", "devices": 2, "link": {"bandwidth": "1 GB/s"},
    "device": {"memory": "1 GB", "memory_bandwidth": "10 GB/s", "peak": {"fp32": "10 GFLOP/s"}}},
  "parallel": {"pipeline": 2},
  "training": {"strategy": "pairwise", "global_batch_size": 32, "micro_batch_size": 32,
    "precision": "fp32", "optimizer": "adam"}})";

std::vector<double> losses_of(const std::string& json) {
  const JsonValue result = parse_json(json, "stdout");
  std::vector<double> losses;
  for (const JsonValue& loss : result.find("loss")->items) losses.push_back(loss.number);
  return losses;
}

TEST_CASE("a classifier learns, under every strategy, the same every time") {
  for (const char* strategy : {"global", "pairwise", "local"}) {
    CAPTURE(strategy);
    const std::vector<std::string> command = {
        "train", "-",       "--steps",
        "150",   "--quiet", "--json",
        "-",     "--set",   "training.strategy=" + std::string(strategy)};
    const Outcome run = run_program(command, ".", kClassifier);
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    const std::vector<double> losses = losses_of(run.out);
    REQUIRE(losses.size() == 150);
    // Four classes: ln 4 = 1.39 before anything is learnt, within what first weights do.
    CHECK(losses.front() == doctest::Approx(std::log(4)).epsilon(0.5));
    double last = 0;
    for (std::size_t i = losses.size() - 10; i < losses.size(); ++i) last += losses[i] / 10;
    CHECK(last < 0.85 * losses.front());
    CHECK(losses_of(run_program(command, ".", kClassifier).out) == losses);
  }
}

TEST_CASE(
    "files are written whole, and the dump holds weights, gradients and what became of them") {
  const Folder folder;
  folder.file("c.json", kClassifier);
  const Outcome run = run_program({"train", "c.json", "--steps", "3", "--svg", "c.svg", "--report",
                                   "c.html", "--dump", "c.npz", "--dump-step", "1"},
                                  folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("classifier") != std::string::npos);
  CHECK(read_file(folder.path("c.svg")).find("measured time (s)") != std::string::npos);
  CHECK(read_file(folder.path("c.html")).find("loss (nats) against measured time (s)") !=
        std::string::npos);
  const std::string dump = read_file(folder.path("c.npz"));
  for (const char* part : {"inputs.npy", "targets.npy", "weights/", "gradients/", "updated/"}) {
    CAPTURE(part);
    CHECK(dump.find(part) != std::string::npos);
  }
}

TEST_CASE("runs of several seeds are each the run of that seed alone, and the table has means") {
  const std::vector<std::string> command = {"train", "-", "--steps", "4", "--json", "-"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    const Outcome run = run_program(more, ".", kClassifier);
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    return run.out;
  };
  const JsonValue runs = parse_json(with({"--seed", "5", "--seeds", "3"}), "stdout");
  REQUIRE(runs.items.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const JsonValue& run = runs.items[static_cast<std::size_t>(i)];
    CHECK(run.find("seed")->number == 5 + i);
    std::vector<double> losses;
    for (const JsonValue& loss : run.find("loss")->items) losses.push_back(loss.number);
    CHECK(losses == losses_of(with({"--seed", std::to_string(5 + i)})));
  }
  const Outcome table =
      run_program({"train", "-", "--steps", "4", "--seeds", "2"}, ".", kClassifier);
  CHECK(table.out.find(" ± ") != std::string::npos);
  CHECK(table.err.find("training classifier, seed 2 ...") != std::string::npos);
  const Outcome refused =
      run_program({"train", "-", "--seeds", "2", "--dump", "c.npz"}, ".", kClassifier);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("expected --seeds 1, got 2") != std::string::npos);
}

TEST_CASE("independent stages are trained on CPUs, and refused on GPUs") {
  const std::string strategy = "training.strategy=independent";
  const Outcome run = run_program({"train", "-", "--steps", "40", "--set", strategy, "--json", "-"},
                                  ".", kClassifier);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const std::vector<double> losses = losses_of(run.out);
  REQUIRE(losses.size() == 40);
  CHECK(losses.back() < losses.front());
  // The chain's loss is more than that of its last stage, which is told of the target.
  const JsonValue json = parse_json(run.out, "stdout");
  CHECK(losses.front() > json.find("stage_loss")->items.back().items.front().number);
  const Outcome cuda = run_program(
      {"train", "-", "--set", strategy, "--set", "cluster.executor=cuda"}, ".", kClassifier);
  CHECK(cuda.exit_code == 2);
  CHECK(cuda.err.find("independent stages are trained on CPUs") != std::string::npos);
}

TEST_CASE(
    "casts, and gradients that cross now and then, are trained on CPUs, and refused on GPUs") {
  struct Kind {
    std::string strategy, refusal;
  };
  const std::vector<Kind> kinds = {
      {R"({"kind": "global", "activation_format": "fp8", "gradient_format": "int4"})",
       "/training/strategy: messages are cast on CPUs; expected \"executor\": \"cpu\""},
      {R"({"kind": "pairwise", "gradient_every": 2})",
       "gradients that cross boundaries now and then are trained on CPUs"}};
  for (const Kind& kind : kinds) {
    const std::vector<std::string> settings = {"--set", "training.strategy=" + kind.strategy,
                                               "--set", "training.micro_batch_size=8"};
    std::vector<std::string> train = {"train", "-", "--steps", "40", "--json", "-"};
    train.insert(train.end(), settings.begin(), settings.end());
    const Outcome run = run_program(train, ".", kClassifier);
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    const std::vector<double> losses = losses_of(run.out);
    REQUIRE(losses.size() == 40);
    CHECK(losses.back() < losses.front());
    train.insert(train.end(), {"--set", "cluster.executor=cuda"});
    const Outcome cuda = run_program(train, ".", kClassifier);
    CHECK(cuda.exit_code == 2);
    CHECK(cuda.err.find(kind.refusal) != std::string::npos);
  }
}

struct Mistake {
  const char* what;
  std::vector<std::string> arguments;
  const char* expected;
};

TEST_CASE("what cannot be trained is refused in one sentence, and nothing is written") {
  const std::vector<Mistake> mistakes = {
      {"a profile",
       {"--set", R"(model={"kind": "profile", "modules": [{"repeat": 2}]})"},
       "profile"},
      {"bf16",
       {"--set", "training.precision=bf16", "--set", "cluster.device.peak.bf16=1 TFLOP/s"},
       "fp32"},
      {"clocks", {"--set", "cluster.executor=virtual"}, "cpu"},
      {"a file for a classifier", {"--data", "c.json"}, "--data"},
      {"no steps", {"--steps", "0"}, "--steps"},
      {"a step that is not there", {"--dump", "d.npz", "--dump-step", "7", "--steps", "3"}, "7"},
      {"replicas", {"--set", "parallel.data=2", "--set", "cluster.devices=4"}, "expected"},
      {"petra of blocks that are not reversible",
       {"--set", "training.strategy=global", "--set", "training.schedule=petra"},
       R"("reversible": true)"},
      {"goodness of vectors",
       {"--set",
        R"(training.strategy={"kind": "forward-forward", "module_gradients": "computed"})"},
       "false samples are made of tokens"},
      {"goodness on GPUs",
       {"--set", "training.strategy=forward-forward", "--set", "cluster.executor=cuda"},
       "goodness of modules is trained on CPUs"},
      {"another optimiser", {"--set", "training.optimizer=muon"}, R"("adam")"},
      {"states of other formats",
       {"--set", R"(training.optimizer={"kind": "adam", "first_moment": "bf16"})"},
       "fp32"},
      {"frozen modules",
       {"--set", "training.strategy=global", "--set", "training.frozen_modules=1"},
       "kernels train all weights"},
      {"groups of layers",
       {"--set", "training.strategy=global", "--set", R"(training.recompute={"group": 2})"},
       R"(expected "full")"},
      {"a rate that explodes", {"--rate", "1e30", "--steps", "20"}, "smaller rate"}};
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.what);
    const Folder folder;
    folder.file("c.json", kClassifier);
    std::vector<std::string> command = {"train", "c.json", "--quiet", "--json", "out.json"};
    command.insert(command.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Outcome run = run_program(command, folder.path());
    CHECK(run.exit_code == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(mistake.expected) != std::string::npos);
    CHECK_THROWS(read_file(folder.path("out.json")));
  }
}

TEST_CASE("a graph is for GPUs") {
  const Outcome run = run_program({"train", "-", "--graph"}, ".", kClassifier);
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("only GPUs run graphs") != std::string::npos);
}

TEST_CASE("of several, one that cannot be trained is refused before any is") {
  const Folder folder;
  folder.file("c.json", kClassifier);
  const Outcome run = run_program({"train", "c.json", "--steps", "3", "--json", "c.out", "--set",
                                   R"(sweep={"training.recompute": ["none", "full"]})"},
                                  folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err.find(R"(expected "backward": "fused")") != std::string::npos);
  CHECK(run.err.find("training classifier") == std::string::npos);
  CHECK(!std::filesystem::exists(folder.path("c.out")));
}

TEST_CASE("of several, those that were trained before a loss was not a number are written") {
  const Folder folder;
  folder.file("c.json", kClassifier);
  // AdamW's steps are as long as the rate, SGD's grow with the gradients.
  const Outcome run =
      run_program({"train", "c.json", "--steps", "30", "--rate", "1e3", "--json", "c.out", "--set",
                   R"(sweep={"training.optimizer": ["adam", "sgd"]})"},
                  folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("is not a number at step") != std::string::npos);
  REQUIRE(std::filesystem::exists(folder.path("c.out")));
  CHECK(losses_of(read_file(folder.path("c.out"))).size() == 30);
}

TEST_CASE("a language model needs a file, of bytes that it knows") {
  const Folder folder;
  folder.file("text.txt", "to be or not to be, that is the question");
  folder.file("lm.json", R"({
    "name": "lm",
    "model": {"kind": "transformer", "layers": 2, "hidden_size": 16,
        "attention": "materialised", "attention_heads": 2,
      "ffn_hidden_size": 64, "vocab_size": 256, "sequence_length": 8, "tied_embeddings": false},
    "cluster": {"kind": "uniform", "devices": 2, "link": {"bandwidth": "1 GB/s"},
      "device": {"memory": "1 GB", "memory_bandwidth": "10 GB/s", "peak": {"fp32": "10 GFLOP/s"}}},
    "parallel": {"pipeline": 2},
    "training": {"strategy": "local", "global_batch_size": 2, "micro_batch_size": 2,
      "precision": "fp32"}})");
  CHECK(run_program({"train", "lm.json", "--steps", "2"}, folder.path()).exit_code == 2);
  const Outcome missing =
      run_program({"train", "lm.json", "--steps", "2", "--data", "no.txt"}, folder.path());
  CHECK(missing.exit_code == 2);
  CHECK(missing.err.find("no.txt") != std::string::npos);
  const Outcome run =
      run_program({"train", "lm.json", "--steps", "2", "--data", "text.txt"}, folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
}

}  // namespace
}  // namespace interlock::train_test
