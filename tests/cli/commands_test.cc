// The commands as a user runs them: exit codes, streams, files.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"

namespace interlock::commands_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const JsonValue& at(const JsonValue& value, const std::string& key) {
  const JsonValue* member = value.find(key);
  REQUIRE_MESSAGE(member, key);
  return *member;
}

TEST_CASE("simulate prints a table on standard output and nothing else") {
  const Folder folder;
  const Outcome run = run_program({"simulate", folder.file("toy.json", kPairwise)}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  CHECK(contains(run.out, "toy"));
  // Pairwise, eager, a = o = c = 0: 2f + bi + B = 5 ms.
  CHECK(contains(run.out, "5.00 ms"));
  CHECK_FALSE(contains(run.out, "\033["));  // no terminal, no colour
}

TEST_CASE("--json - puts the result alone on standard output") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome run = run_program({"simulate", "toy.json", "--json", "-"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  const JsonValue result = parse_json(run.out, "stdout");
  CHECK(at(result, "format").text == "interlock-result/1");
  CHECK(at(result, "step_time_s").number == doctest::Approx(0.005).epsilon(1e-9));
  CHECK(at(result, "devices").items.size() == 4);
}

TEST_CASE("a scenario is read from standard input, and --set overrides any key") {
  const Outcome run =
      run_program({"simulate", "-", "--set", "training.strategy=local", "--set",
                   "model.modules.0.forward=2 ms", "--set=name=from stdin", "--json", "-"},
                  ".", kPairwise);
  CHECK(run.exit_code == 0);
  const JsonValue result = parse_json(run.out, "stdout");
  CHECK(at(result, "name").text == "from stdin");
  // Local: f + a + B = 2 + 0 + 2 ms.
  CHECK(at(result, "step_time_s").number == doctest::Approx(0.004).epsilon(1e-9));
}

TEST_CASE("--engine is short for simulate.engine, and both engines agree") {
  for (const std::string engine : {"native", "simgrid"}) {
    CAPTURE(engine);
    const Outcome run =
        run_program({"simulate", "-", "--engine", engine, "--json", "-"}, ".", kPairwise);
    CHECK(run.exit_code == 0);
    const JsonValue result = parse_json(run.out, "stdout");
    CHECK(at(result, "engine").text == engine);
    CHECK(at(result, "step_time_s").number == doctest::Approx(0.005).epsilon(1e-9));
  }
  const Outcome wrong = run_program({"simulate", "-", "--engine", "fast"}, ".", kPairwise);
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err ==
        "--set simulate.engine: /simulate/engine: unknown name \"fast\"; known: auto, simgrid, "
        "native\n");
}

TEST_CASE("all outputs are written, and --quiet prints nothing") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome run = run_program({"simulate", "toy.json", "--quiet", "--json", "r.json",
                                   "--report", "r.html", "--svg", "r.svg"},
                                  folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.out == "");
  CHECK(run.err == "");
  CHECK(folder.files() == std::vector<std::string>{"r.html", "r.json", "r.svg", "toy.json"});
  CHECK(contains(read_file(folder.path("r.html")), "<html"));
  CHECK(contains(read_file(folder.path("r.svg")), "<svg"));
}

TEST_CASE("what was written is told on standard error") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome run = run_program({"simulate", "toy.json", "--json", "r.json"}, folder.path());
  CHECK(run.err == "wrote r.json\n");
}

TEST_CASE("compare puts every scenario of every file into one table and one array") {
  const Folder folder;
  folder.file("a.json", kPairwise);
  std::string sweep = kPairwise;
  sweep.insert(sweep.rfind('}'), R"(, "sweep": {"training.strategy": ["local", "global"]})");
  folder.file("b.json", sweep);
  const Outcome run = run_program(
      {"compare", "a.json", "b.json", "--json", "all.json", "--report", "all.html"}, folder.path());
  CHECK(run.exit_code == 0);
  const JsonValue results = read_json_file(folder.path("all.json"));
  REQUIRE(results.items.size() == 3);
  CHECK(at(results.items[1], "name").text == "toy | strategy=local");
  // Global, naive: K (f + B) = 12 ms; local: f + B = 3 ms.
  CHECK(at(results.items[1], "step_time_s").number == doctest::Approx(0.003).epsilon(1e-9));
  CHECK(at(results.items[2], "step_time_s").number == doctest::Approx(0.012).epsilon(1e-9));
}

TEST_CASE("simulate runs a sweep, but draws no timeline of several scenarios") {
  const Folder folder;
  std::string sweep = kPairwise;
  sweep.insert(sweep.rfind('}'), R"(, "sweep": {"training.strategy": ["local", "global"]})");
  folder.file("sweep.json", sweep);
  CHECK(run_program({"simulate", "sweep.json"}, folder.path()).exit_code == 0);
  const Outcome drawn = run_program({"simulate", "sweep.json", "--svg", "x.svg"}, folder.path());
  CHECK(drawn.exit_code == 2);
  CHECK(drawn.err ==
        "--svg draws one scenario, and there are 2; use --report FILE.html, which shows them all, "
        "or leave one: a single file, and --set sweep=null --set PATH=VALUE if it has a sweep\n");
  CHECK(folder.files() == std::vector<std::string>{"sweep.json"});
  CHECK(run_program({"simulate", "sweep.json", "--svg", "x.svg", "--set", "sweep=null"},
                    folder.path())
            .exit_code == 0);
}

TEST_CASE("check says ok for what is right and reports the mistakes of every other file") {
  const Folder folder;
  folder.file("good.json", kPairwise);
  folder.file("bad.json", "{\"modle\": 1,\n \"model\": 2}");
  folder.file("broken.json", "{");
  const Outcome run =
      run_program({"check", "bad.json", "good.json", "broken.json", "gone.json"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.out == "good.json: ok\n");
  for (const char* said : {"bad.json:1: /modle: unknown key; did you mean \"model\"?\n",
                           "bad.json:2: /model: ", "broken.json:1: malformed JSON",
                           "gone.json: cannot be read: no such file or directory\n"}) {
    CAPTURE(said);
    CHECK(contains(run.err, said));
  }
}

TEST_CASE("a run too long to be followed says so in the place of its critical path") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const auto told = [&](const char* steps) {
    return run_program({"simulate", "toy.json", "--set", steps}, folder.path()).out;
  };
  CHECK(contains(told("training.steps=100"), "\nCritical path "));
  CHECK(!contains(told("training.steps=100"), "not followed"));
  const std::string longer = told("training.steps=20000");
  CHECK(contains(longer, "\nCritical path    not followed"));
  CHECK(contains(longer, " tasks, more than 100 k; fewer training.steps"));
}

TEST_CASE("check counts the scenarios of a sweep") {
  std::string sweep = kPairwise;
  sweep.insert(sweep.rfind('}'), R"(, "sweep": {"training.steps": [1, 2, 3]})");
  CHECK(run_program({"check", "-"}, ".", sweep).out == "-: ok (3 scenarios)\n");
}

TEST_CASE("a model that does not fit is a result, and a mistake only with --require-fit") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const std::vector<std::string> small = {"simulate", "toy.json", "--set", "cluster.memory=2 GiB",
                                          "--json",   "r.json"};
  Outcome run = run_program(small, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(!at(read_json_file(folder.path("r.json")), "fits_in_memory").boolean);
  std::filesystem::remove(folder.path("r.json"));

  std::vector<std::string> strict = small;
  strict.push_back("--require-fit");
  run = run_program(strict, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(contains(run.out, "Step time"));  // the table comes first
  // 1 GiB of bf16 weights: as much again of gradients, and masters and momenta in fp32, 2 GiB each.
  CHECK(run.err ==
        "toy: does not fit in memory: device 0 needs 6.00 GiB and has 2.00 GiB, so it lacks 4.00 "
        "GiB\n");
  CHECK(folder.files() == std::vector<std::string>{"toy.json"});
  CHECK(run_program({"simulate", "toy.json", "--require-fit"}, folder.path()).exit_code == 0);
}

TEST_CASE("--require-fit names the host where the host is full") {
  const Folder folder;
  folder.file("host.json", R"({"model": {"kind": "mlp", "input_size": 1024,
      "hidden_sizes": [1024], "classes": 1024}, "cluster": {"kind": "machine",
      "device": "a100-80g", "port": {"bandwidth": "300 GB/s"},
      "host": {"bandwidth": "25 GB/s", "memory": "4 MiB"}},
      "training": {"strategy": "global", "global_batch_size": 4, "optimizer": "adam",
      "offload": {"optimizer": 1}}})");
  const Outcome run = run_program({"simulate", "host.json", "--require-fit"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_MESSAGE(contains(run.err, "does not fit in memory: the fullest host needs "), run.err);
  CHECK_MESSAGE(contains(run.err, " and has 4.00 MiB, so it lacks "), run.err);
  CHECK(!contains(run.err, "-"));
}

TEST_CASE("outputs that cannot be written are found before anything is simulated") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const auto refused = [&](std::vector<std::string> outputs) {
    std::vector<std::string> arguments = {"simulate", "toy.json"};
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    const Outcome run = run_program(arguments, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    return run.err;
  };
  CHECK(refused({"--json", "no/such/r.json"}) ==
        "--json no/such/r.json: there is no folder \"no/such\"\n");
  CHECK(refused({"--report", "."}) == "--report .: is a folder; expected a file\n");
  CHECK(refused({"--json", "x", "--svg", "./x"}) ==
        "--svg and --json name one file, ./x; expected two\n");
  CHECK(folder.files() == std::vector<std::string>{"toy.json"});
}

TEST_CASE("a mistake leaves the files of an earlier run as they were") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  folder.file("r.json", "old");
  const Outcome run = run_program(
      {"simulate", "toy.json", "--json", "r.json", "--set", "training.strategy=x"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(read_file(folder.path("r.json")) == "old");
  CHECK(folder.files() == std::vector<std::string>{"r.json", "toy.json"});
}

TEST_CASE("a full standard output is no success") {
  if (!std::filesystem::exists("/dev/full")) return;
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome run =
      run_program({"simulate", "toy.json", "--quiet", "--json", "/dev/full"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "/dev/full"));
}

TEST_CASE("list prints names that scenarios can use") {
  const Outcome models = run_program({"list", "models"});
  CHECK(models.exit_code == 0);
  CHECK(contains(models.out, "resnet-50 "));
  CHECK(contains(models.out, "18 modules"));
  CHECK(contains(run_program({"list", "machines"}).out, "dgx-a100-80g "));
  CHECK(contains(run_program({"list", "frameworks"}).out, "megatron-lm "));
  CHECK(contains(run_program({"list", "schedules"}).out, "1f1b "));
  const Outcome all = run_program({"list"});
  for (const char* name : {"models\n", "machines\n", "schedules\n", "gpt2-xl ", "eager "}) {
    CHECK(contains(all.out, name));
  }
  CHECK(run_program({"list", "moduls"}).exit_code == 2);
  // Two layers of four experts of 3 * 64 * 32 weights each.
  const Folder folder;
  folder.file("mine.json", R"({"kind": "transformer", "layers": 2, "hidden_size": 64,
      "attention_heads": 4, "vocab_size": 100, "sequence_length": 8, "gated_mlp": true,
      "experts": 4, "experts_per_token": 2, "expert_ffn_hidden_size": 32, "bias": false})");
  const Outcome mine = run_program({"list", "models", "mine.json"}, folder.path());
  CHECK(mine.err == "");
  CHECK(contains(mine.out, ", 49.2 k of them in experts"));
  CHECK(run_program({"list", "machines", "mine.json"}, folder.path()).err ==
        "list machines takes no files; expected interlock list models mine.json\n");
  CHECK(run_program({"list", "models", "none.json"}, folder.path()).exit_code == 2);
}

TEST_CASE("a misspelt key of a config.json is told by every command that reads it") {
  const Folder folder;
  folder.file("config.json", R"({"model_type": "qwen3", "hidden_size": 64, "head_dim": 16,
      "num_hidden_layer": 2, "intermediate_size": 128, "num_attention_heads": 4,
      "num_key_value_heads": 4, "vocab_size": 100, "max_position_embeddings": 64})");
  folder.file("s.json", R"({"model": "config.json", "cluster": "dgx-h100", "training": {
      "strategy": "global", "global_batch_size": 8, "micro_batch_size": 1}})");
  const std::string unknown = ": not used, as nothing is known of them here: num_hidden_layer\n";
  const std::string taken =
      ": not in the configuration; model_type \"qwen3\" has "
      "num_hidden_layers 32\n";
  for (const std::vector<std::string>& words : std::initializer_list<std::vector<std::string>>{
           {"check", "s.json"},
           {"check", "s.json", "--json", "c.json"},
           {"list", "models", "config.json"},
           {"init", "--model", "config.json", "--machine", "dgx-h100", "--devices", "2", "--out",
            "made.json"}}) {
    CAPTURE(words.front());
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 0);
    for (const std::string& note : {unknown, taken}) {
      const std::size_t at = run.err.find(note);
      CHECK(at != std::string::npos);
      CHECK(run.err.find(note, at + 1) == std::string::npos);  // once
    }
  }
}

TEST_CASE("a result in the place of a scenario is told to be one") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome made =
      run_program({"simulate", "toy.json", "-q", "--json", "o.json"}, folder.path());
  REQUIRE(made.exit_code == 0);
  REQUIRE(
      run_program({"compare", "toy.json", "toy.json", "-q", "--json", "all.json"}, folder.path())
          .exit_code == 0);
  for (const std::string file : {"o.json", "all.json"}) {
    const Outcome run = run_program({"compare", file, "toy.json"}, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.err ==
          file + " is a result; expected a scenario (interlock report " + file + " shows it)\n");
  }
  REQUIRE(run_program({"list", "--json", "list.json", "-q"}, folder.path()).exit_code == 0);
  CHECK(run_program({"check", "list.json"}, folder.path()).err ==
        "list.json is an interlock-list/1; expected a scenario\n");
}

TEST_CASE("schema prints the JSON Schema") {
  const Outcome run = run_program({"schema"});
  CHECK(run.exit_code == 0);
  CHECK(at(parse_json(run.out, "schema"), "title").text == "interlock scenario");
}

TEST_CASE("help and version succeed; wrong command lines are the user's mistake") {
  CHECK(run_program({"--version"}).out.starts_with("interlock "));
  CHECK(run_program({"--help"}).exit_code == 0);
  for (const std::string command : {"simulate", "compare", "check", "list", "schema"}) {
    const Outcome help = run_program({command, "--help"});
    CAPTURE(command);
    CHECK(help.exit_code == 0);
    CHECK(help.out.size() > 40);
    CHECK(help.err == "");
  }
  CHECK(run_program({"simulat"}).err ==
        "unknown command \"simulat\"; did you mean \"simulate\"?\n");
  CHECK(contains(run_program({}).err, "to begin: interlock simulate"));
  CHECK(run_program({"simulate", "a", "b"}).err ==
        "simulate runs one file; for several there is interlock compare\n"
        "see interlock simulate --help\n");
  CHECK(run_program({"explain", "a", "b"}).err ==
        "explain takes one file\nsee interlock explain --help\n");
  CHECK(run_program({"simulate", "a", "--repotr", "b"}).err ==
        "unknown option \"--repotr\"; did you mean \"--report\"?\nsee interlock simulate --help\n");
  CHECK(contains(run_program({"sweep", "--halp"}).err, "did you mean \"--help\"?"));
  CHECK(contains(run_program({"validate", "run"}).err, "see interlock validate run --help"));
  CHECK(contains(run_program({"check"}).err, "see interlock check --help"));
  using Arguments = std::vector<std::string>;
  for (const Arguments& wrong : {Arguments{},
                                 {"simulate"},
                                 {"simulate", "a", "b"},
                                 {"check"},
                                 {"simulate", "-", "--jsn", "x"},
                                 {"simulate", "-", "--set"},
                                 {"simulate", "-", "--set", "steps"},
                                 {"check", "-", "-"}}) {
    const Outcome run = run_program(wrong, ".", kPairwise);
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err != "");
  }
}

TEST_CASE("every scenario that is shipped is right") {
  std::vector<std::string> arguments = {"check"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SCENARIOS_FOLDER)) {
    const std::string path = entry.path().string();
    const std::string folder = entry.path().parent_path().filename();
    if (folder == "frameworks" || folder == "ranges") continue;  // no scenarios, but parts of them
    if (path.ends_with(".json") && !path.ends_with(".schema.json")) arguments.push_back(path);
  }
  CHECK(arguments.size() > 10);
  const Outcome run = run_program(arguments);
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
}

TEST_CASE("without the harness's module all else works, and what needs it says what to build") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  std::filesystem::copy_file(INTERLOCK_PROGRAM, folder.path("interlock"));
  const std::string alone = "INTERLOCK_DATA='" SOURCE_FOLDER "' ./interlock ";
  CHECK(run_shell(alone + "check toy.json", folder.path()).exit_code == 0);
  CHECK(run_shell(alone + "validate published --help", folder.path()).exit_code == 0);
  const Outcome run = run_shell(alone + "train toy.json", folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK(contains(run.err, "libinterlock_harness.so; in the source tree, ./run train"));
}

}  // namespace
}  // namespace interlock::commands_test
