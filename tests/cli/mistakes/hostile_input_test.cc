// Inputs and surroundings made to break the program: each ends in a sentence, and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"
#include "tests/support/sanitized.h"

namespace interlock::hostile_input_test {
namespace {

const std::string kProgram = "'" INTERLOCK_PROGRAM "'";

std::string example(const std::string& name) {
  return std::string(SCENARIOS_FOLDER) + "/examples/" + name + ".json";
}

/// Returns the same for a shell.
std::string quoted(const std::string& name) { return "'" + example(name) + "'"; }

// The sanitizer takes addresses as it likes.
const std::string kLittleMemory = kSanitized ? "" : "ulimit -v 200000; ";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Runs a command that must be refused, and returns what it says.
std::string refusal(const Folder& folder, const std::string& command) {
  const Outcome run = run_shell(kProgram + " " + command, folder.path());
  CAPTURE(command);
  CAPTURE(run.err);
  CHECK(run.exit_code == 2);
  CHECK(!holds(run.err, "bug"));
  return run.err;
}

TEST_CASE("sizes of Megatron arguments that overflow, and lists without end, are refused") {
  const Folder folder;
  const auto script = [&](const std::string& more) {
    folder.file("run.sh",
                "python pretrain_gpt.py --num-layers 4 --num-attention-heads 4 --seq-length 128 "
                "--vocab-size 1000 --micro-batch-size 1 --bf16 " +
                    more + "\n");
    return refusal(folder, "import megatron run.sh --cluster dgx-h100 --out s.json");
  };
  CHECK(script("--hidden-size 1000000000") ==
        "run.sh:1: --hidden-size: expected at most 1000000\n");
  for (const char* list : {"([0]*99999999999)", "(*99999999999)", "([0,1]*9223372036854775809)"}) {
    CHECK(holds(
        script(std::string("--hidden-size 64 --num-experts 4 --moe-layer-freq \"") + list + "\""),
        "run.sh:1: --moe-layer-freq: expected a number, or a list"));
  }
  for (const char* last : {"0:", "0:many", "200B:-1", "0:3.5", "0:99999999999"}) {
    CHECK(script(std::string("--hidden-size 64 --step-batch-size-schedule 0:8 ") + last)
              .starts_with("run.sh:1: --step-batch-size-schedule: expected a number of samples"));
  }
  CHECK(folder.files() == std::vector<std::string>{"run.sh"});
}

TEST_CASE("a word that variables of a script make too long is refused by its line") {
  const Folder folder;
  std::string script = "A=aaaaaaaaaa\n";
  for (int doubled = 0; doubled < 15; ++doubled) script += "A=$A$A\n";
  folder.file("run.sh", script + "python pretrain_gpt.py --num-layers 4 --save $A\n");
  CHECK(refusal(folder, "import megatron run.sh --cluster dgx-h100 --out s.json") ==
        "run.sh:15: a word has more than 100000 characters, what its variables hold included; "
        "expected a shorter one\n");
}

TEST_CASE("an array of arguments may end on the line of its last value") {
  const Folder folder;
  folder.file("run.sh",
              "ARGS=(--num-layers 4 --hidden-size 64\n --num-attention-heads 4 --seq-length 128\n"
              "  --vocab-size 1000 --micro-batch-size 16)\n"
              "python pretrain_gpt.py ${ARGS[@]} --bf16 --global-batch-size 64\n");
  const Outcome run = run_program(
      {"import", "megatron", "run.sh", "--cluster", "dgx-h100", "--out", "s.json"}, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  const JsonValue scenario = read_json_file(folder.path("s.json"));
  CHECK(scenario.find("training")->find("micro_batch_size")->number == 16);
}

TEST_CASE("a graph of PipeDream's with a time beyond all numbers is refused by its line") {
  const Folder folder;
  folder.file("g.txt",
              "node1 -- Linear -- forward_compute_time=1e999, backward_compute_time=1.0, "
              "activation_size=5.0, parameter_size=3.0\n");
  CHECK(refusal(folder, "import pipedream g.txt --out m.json") ==
        "g.txt:1: forward_compute_time: expected a number from 0 to 1e15, got \"1e999\"\n");
}

TEST_CASE("a pipe that a scenario names is refused, not waited for") {
  const Folder folder;
  REQUIRE(run_shell("mkfifo pipe.json", folder.path()).exit_code == 0);
  for (const char* set : {"model=pipe.json", "model.base=pipe.json", "cluster=./pipe.json",
                          "training.framework=./pipe.json"}) {
    CHECK(holds(refusal(folder, "simulate " + quoted("gpt2-xl-1f1b") + " --set " + set),
                "is a pipe or a device; expected a file"));
  }
}

// All that waits here waits at the same time, for ten seconds and more.
TEST_CASE("a pipe without another end is not waited for long, a slow one for as long as it takes") {
  const Folder folder;
  const std::string scenario = quoted("four-equal-stages");
  const std::string program = kProgram + " ";
  const Outcome run =
      run_shell("mkfifo no_writer no_reader slow; exec 3<>slow; " + program +
                    "simulate slow -q --json slow.json 3>&- & slow=$!; " + program +
                    "simulate no_writer 2>no_writer.said 3>&- & in=$!; " + program + "simulate " +
                    scenario + " -q --json no_reader 2>no_reader.said 3>&- & out=$!; " +
                    "sleep 12 3>&-; cat " + scenario + " >&3; exec 3>&-; " +
                    "wait $slow; echo $?; wait $in; echo $?; wait $out; echo $?",
                folder.path());
  CAPTURE(run.err);
  CHECK(run.out == "0\n2\n2\n");
  CHECK(read_file(folder.path("no_writer.said")) ==
        "no_writer: cannot be read: no program writes to this pipe; expected one, or a file\n");
  CHECK(read_file(folder.path("no_reader.said")) ==
        "no_reader: cannot be written: no program reads from this pipe; expected one, or a file\n");
  CHECK(std::filesystem::exists(folder.path("slow.json")));
}

TEST_CASE("scenarios and results may come through pipes") {
  const Folder folder;
  const std::string program = kProgram + " ", scenario = quoted("four-equal-stages");
  const std::string through = "cat " + scenario + " | " + program;
  const std::string figure = " --figure table:step_time --out -";
  REQUIRE(
      run_shell(program + "simulate " + scenario + " -q --json r.json", folder.path()).exit_code ==
      0);
  const Outcome plain = run_shell(program + "report r.json" + figure, folder.path());
  REQUIRE(plain.exit_code == 0);
  for (const std::string& command : {"cat r.json | " + program + "report /dev/stdin" + figure,
                                     "mkfifo p; cat r.json > p & " + program + "report p" + figure,
                                     through + "report /dev/stdin" + figure}) {
    const Outcome run = run_shell(command, folder.path());
    CAPTURE(command);
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
    CHECK(run.out == plain.out);
  }
  const Outcome simulated = run_shell(through + "simulate /dev/stdin -q --json -", folder.path());
  CHECK(simulated.exit_code == 0);
}

TEST_CASE("a pipe is no database") {
  const Folder folder;
  REQUIRE(run_shell("mkfifo p.db", folder.path()).exit_code == 0);
  for (const std::string& command :
       std::vector<std::string>{"rank p.db", "merge p.db p.db", "merge m.db p.db",
                                "sweep " + quoted("four-equal-stages") +
                                    " --set training.micro_batches=1,2 --db p.db"}) {
    CHECK(holds(refusal(folder, command), "p.db: is a pipe or a device; expected a file"));
  }
  CHECK(folder.files() == std::vector<std::string>{"p.db"});
}

TEST_CASE("a link to a file that is not there yet leads to that file") {
  const Folder folder;
  std::filesystem::create_symlink("later.json", folder.path("link.json"));
  const Outcome run = run_program(
      {"simulate", example("four-equal-stages"), "--quiet", "--json", "link.json"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(std::filesystem::is_symlink(folder.path("link.json")));
  CHECK(std::filesystem::is_regular_file(folder.path("later.json")));
}

TEST_CASE("results with a time of nothing, or beyond all bounds, are not drawn") {
  const Folder folder;
  const Outcome run = run_program(
      {"simulate", example("four-equal-stages"), "--quiet", "--json", "r.json"}, folder.path());
  REQUIRE(run.exit_code == 0);
  for (const char* time : {"0", "1e308"}) {
    std::string text = read_file(folder.path("r.json"));
    const std::size_t from = text.find("\"step_time_s\": ") + 15;
    text.replace(from, text.find(',', from) - from, time);
    folder.file("wrong.json", text);
    CHECK(holds(refusal(folder, "report wrong.json --figure table:step_time --out t.md"),
                "/step_time_s: expected a "));
  }
  CHECK(!std::filesystem::exists(folder.path("t.md")));
}

TEST_CASE("traces made to fill memory are read in little of it, or refused") {
  const Folder folder;
  const auto filled = [&](char with, const std::string& before, const std::string& after) {
    return "{ printf '" + before + "'; head -c 300000000 /dev/zero | tr '\\0' '" + with +
           "'; printf '" + after + "'; }";
  };
  const auto imported = [&](const std::string& written, const std::string& file) {
    REQUIRE(run_shell(written + file, folder.path()).exit_code == 0);
    const Outcome run = run_shell(
        kLittleMemory + kProgram + " import kineto " + file + " --out m.json", folder.path());
    CHECK(run.exit_code == 2);
    return run.err;
  };
  const std::string spaces = filled(' ', "{\"traceEvents\": [", "]}");
  CHECK(holds(imported(spaces + " > ", "spaces.json"), "has no kernel, copy or memset"));
  CHECK(holds(imported(spaces + " | gzip > ", "spaces.json.gz"),
              "expands to more than 200 times its size"));
  CHECK(holds(imported(filled('x', "[{\"name\": \"", "\"}]") + " > ", "name.json"),
              "a name or number of more than 16 MiB"));
}

TEST_CASE("a disk that is full, and a limit of sizes, leave no part of an output") {
  const Folder folder;
  const std::string simulate = " simulate " + quoted("gpt2-xl-1f1b") + " --quiet ";
  const auto limited = [&](const std::string& blocks, const std::string& output) {
    return run_shell("ulimit -f " + blocks + "; " + kProgram + simulate + output, folder.path());
  };
  const Outcome page = limited("8", "--report page.html");
  CHECK(page.exit_code == 2);
  CHECK(page.err == "page.html: cannot be written: file too large\n");
  CHECK(limited("16", "--kineto traces").exit_code == 2);  // some rank's is larger
  CHECK(folder.files().empty());
  CHECK(!std::filesystem::exists(folder.path("traces")));
}

TEST_CASE("a search without a plan writes neither of its files") {
  const Folder folder;
  folder.file("s.json", R"({"model": "gpt3-175b", "cluster": {"machine": "dgx-h100"},
    "training": {"strategy": "global", "global_batch_size": 8, "precision": "bf16",
      "optimizer": "adam"},
    "search": {"pipeline": [1], "tensor": [8], "data": [1], "schedule": ["1f1b"],
      "zero_stage": [0], "recompute": ["none"]}})");
  const Outcome run =
      run_program({"search", "s.json", "--json", "f.json", "--out", "g.json", "-q"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(holds(run.err, "--out g.json: no plan is within the limits"));
  CHECK(folder.files() == std::vector<std::string>{"s.json"});
}

/// Runs `command` on four equal stages in 60 MB, with too many micro-batches for these.
Outcome in_little_memory(const std::string& command, const std::string& more) {
  const Folder folder;
  return run_shell("ulimit -v 60000; " + kProgram + command + quoted("four-equal-stages") +
                       " --set training.micro_batches=900000" + more,
                   folder.path());
}

TEST_CASE("too little memory is a sentence about the scenario") {
  if (kSanitized) return;
  const Outcome run = in_little_memory(" simulate ", "");
  CHECK(run.exit_code == 2);
  CHECK(holds(run.err, "there is not enough memory for this; expected a smaller scenario"));
}

TEST_CASE("too little memory for a row of a sweep is no bug") {
  if (kSanitized) return;
  const Outcome run = in_little_memory(" sweep ", ",2 --db s.db");
  CAPTURE(run.out);
  CHECK(run.exit_code == 0);
  CHECK(holds(run.out, "1 failed"));
  CHECK(holds(run.out, "row 1: there is not enough memory for this"));
}

TEST_CASE("what is chosen among many is the same in little memory, or not told") {
  if (kSanitized) return;
  const Folder folder;
  for (const std::string& command :
       {std::string(" init --model gpt3-175b --machine dgx-a100-80g --devices 64"),
        " search " + quoted("gpt2-xl-1f1b") + " --json -",
        " explain " + quoted("gpt2-xl-1f1b") + " --json -"}) {
    const auto run = [&](const std::string& before) {
      return run_shell(before + kProgram + command + " -q", folder.path());
    };
    const Outcome whole = run("");
    REQUIRE(whole.exit_code == 0);
    int refused = 0;
    for (int limit = 50'000; limit <= 100'000; limit += is_soak() ? 10'000 : 20'000) {
      const Outcome little = run("ulimit -v " + std::to_string(limit) + "; ");
      CAPTURE(command);
      CAPTURE(limit);
      CAPTURE(little.err);
      CHECK((little.exit_code == 2 || little.out == whole.out));
      refused += little.exit_code == 2 ? 1 : 0;
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("an engine that cannot be opened ends what compares many, and is no refusal of theirs") {
  const Folder folder;
  for (const char* file : {"interlock", "libinterlock_harness.so"}) {
    std::filesystem::copy(std::filesystem::path(INTERLOCK_PROGRAM).parent_path() / file,
                          folder.path(file));
  }
  for (const std::string& command :
       {"simulate " + quoted("dualpipe"),
        std::string("validate published --source bigscience-176b"),
        "search " + quoted("gpt2-xl-1f1b") + " --set 'simulate.engine=\"simgrid\"'"}) {
    const Outcome run = run_shell("./interlock " + command + " -q", folder.path());
    CAPTURE(command);
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(holds(run.err, "cannot open the SimGrid engine " + folder.path("libinterlock_simgrid")));
  }
}

TEST_CASE("a bug met while a change is tried ends explain, and is no refusal of the change") {
  const Folder folder;
  std::filesystem::copy(INTERLOCK_PROGRAM, folder.path("interlock"));
  std::filesystem::copy(FAULTY_ENGINE, folder.path("libinterlock_simgrid.so"));
  const Outcome run = run_shell("./interlock explain " + quoted("four-equal-stages") +
                                    " --set 'simulate.engine=\"simgrid\"' -q",
                                folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 1);
  CHECK(run.out.empty());
  CHECK(holds(run.err, "this is a bug in interlock: "));
  CHECK(holds(run.err, "a change has an outcome or is refused"));
  CHECK(holds(run.err, "a clock goes back"));
}

TEST_CASE("names that are too long, and links in a circle, are refused") {
  const Folder folder;
  std::filesystem::create_symlink("circle.db", folder.path("circle.db"));
  const std::string name = std::string(300, 'n') + ".db";
  const std::string sweep =
      "sweep " + quoted("four-equal-stages") + " --set training.micro_batches=1,2 --db ";
  CHECK(refusal(folder, "rank " + name) == name.substr(0, 300) + "...: file name too long\n");
  CHECK(holds(refusal(folder, sweep + name), "file name too long"));
  CHECK(refusal(folder, "rank circle.db") == "circle.db: too many levels of symbolic links\n");
}

TEST_CASE("too little memory for the threads of a training is a sentence") {
  if (kSanitized) return;
  const Folder folder;
  folder.file("text.txt", std::string(20'000, 'a') + "bcd");
  for (const char* limit : {"60000", "90000", "120000", "150000"}) {
    const Outcome run =
        run_shell(std::string("ulimit -v ") + limit + "; " + kProgram + " train " +
                      quoted("byte-language-model") +
                      " --data text.txt --set sweep=null --set training.steps=2 --quiet",
                  folder.path());
    CAPTURE(limit);
    CAPTURE(run.err);
    CHECK((run.exit_code == 0 || run.exit_code == 2));
    CHECK(!holds(run.err, "bug"));
  }
}

TEST_CASE("training runs under a limit of address space, or of data") {
  if (kSanitized) return;
  const Folder folder;
  folder.file("text.txt", std::string(20'000, 'a') + "bcd");
  for (const std::string limit : {"ulimit -v 4000000; ", "ulimit -d 1000000; "}) {
    const Outcome run = run_shell(limit + kProgram + " train " + quoted("byte-language-model") +
                                      " --data text.txt --set sweep=null --quiet --json r.json",
                                  folder.path());
    CAPTURE(limit);
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
  }
}

}  // namespace
}  // namespace interlock::hostile_input_test
