// interlock report and timelines for other tools, as a user asks for them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "tests/cli/child_program.h"
#include "tests/support/skipped.h"

namespace interlock::draw_results_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kSvgStart = "<svg xmlns=";

/// A folder with a scenario, its sweep, and the results of both.
struct Results {
  Folder folder;
  Results() {
    folder.file("toy.json", kPairwise);
    const Outcome one = run("simulate toy.json --json one.json");
    const Outcome several =
        run("simulate toy.json --set 'sweep={\"training.steps\": [2, 3]}' --json two.json");
    REQUIRE(one.exit_code == 0);
    REQUIRE(several.exit_code == 0);
  }
  Outcome run(const std::string& command) const {
    return run_shell("'" INTERLOCK_PROGRAM "' " + command, folder.path());
  }
  /// Returns the message of a command that must fail and leave no picture.
  std::string refusal(const std::string& command) const {
    const Outcome outcome = run(command);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out == "");
    const std::vector<std::string> files = folder.files();
    CHECK(std::none_of(files.begin(), files.end(), [](const std::string& name) {
      return contains(name, ".svg") || contains(name, ".tmp-") || contains(name, ".png");
    }));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    return outcome.err;
  }
};

TEST_CASE("every figure of results is written, and again with the same bytes") {
  const Results results;
  for (const std::string figure :
       {"timeline", "utilisation", "memory", "breakdown", "pareto", "sweep"}) {
    CAPTURE(figure);
    const std::string name = figure + ".svg";
    const Outcome run = results.run("report two.json --figure " + figure + " --out " + name);
    CHECK(run.err == "");
    CHECK(run.out == "wrote " + name + ": " + figure + " of 2 results\n");
    const std::string svg = read_file(results.folder.path(name));
    CHECK(svg.starts_with(kSvgStart));
    CHECK(results.run("report two.json --figure " + figure + " --out again.svg -q").out == "");
    CHECK(read_file(results.folder.path("again.svg")) == svg);
  }
}

TEST_CASE("a scenario is drawn as its result is, and a result in whichever folder it lies") {
  const Results results;
  CHECK(results.run("report toy.json --figure memory --out a.svg").exit_code == 0);
  CHECK(results.run("report one.json --figure memory --out b.svg").exit_code == 0);
  CHECK(read_file(results.folder.path("a.svg")) == read_file(results.folder.path("b.svg")));
  std::filesystem::create_directory(results.folder.path("kept"));
  std::filesystem::rename(results.folder.path("one.json"), results.folder.path("kept/one.json"));
  CHECK(results.run("report kept/one.json --figure timeline --out c.svg").exit_code == 0);
}

TEST_CASE("a scenario whose model is in its sweep alone is drawn, too") {
  const Folder folder;
  folder.file("swept.json", R"({"cluster": {"kind": "uniform", "devices": 2, "memory": "1 GB",
    "link": {"bandwidth": "1 GB/s"}}, "training": {"strategy": "global"}, "sweep": {"model": [
      {"name": "a", "kind": "profile", "modules": [{"repeat": 2, "forward": "1 ms"}]},
      {"name": "b", "kind": "profile", "modules": [{"repeat": 2, "forward": "2 ms"}]}]}})");
  const Outcome drawn = run_shell(
      "'" INTERLOCK_PROGRAM "' report swept.json --figure table:step_time --out -", folder.path());
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out == "| step time (ms) | a | b |\n| --- | ---: | ---: |\n|  | 2.00 | 4.00 |\n");
}

TEST_CASE("a result whose scenario names files is simulated again from them") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("in"));
  folder.file("in/model.json", R"({"kind": "profile", "modules": [
    {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]})");
  folder.file("in/s.json", R"({"model": "./model.json",
    "cluster": {"kind": "uniform", "devices": 2, "memory": "80 GiB",
      "link": {"bandwidth": "100 GB/s"}},
    "training": {"strategy": "global", "micro_batches": 2, "steps": 2}})");
  const std::string program = "'" INTERLOCK_PROGRAM "' ";
  CHECK(run_shell(program + "simulate in/s.json --json r.json", folder.path()).exit_code == 0);
  const Outcome run =
      run_shell(program + "report r.json --figure timeline --out t.svg", folder.path());
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
}

TEST_CASE("PDF and PNG are made where rsvg-convert is, and missed by its package's name") {
  const Results results;
  const Outcome without =
      run_shell("PATH=/nowhere '" INTERLOCK_PROGRAM "' report one.json --figure memory --out m.pdf",
                results.folder.path());
  CHECK(without.exit_code == 2);
  CHECK(contains(without.err, "apt-get install librsvg2-bin"));
  if (run_shell("command -v rsvg-convert", ".").exit_code != 0) {
    tell_skipped("figures as PDF and PNG", "librsvg2-bin");
    return;
  }
  CHECK(results.run("report one.json --figure memory --out m.pdf").exit_code == 0);
  CHECK(results.run("report one.json --figure memory --out m.png").exit_code == 0);
  CHECK(read_file(results.folder.path("m.pdf")).starts_with("%PDF-"));
  CHECK(read_file(results.folder.path("m.png")).starts_with("\x89PNG"));
}

TEST_CASE("what cannot be drawn is refused in one sentence, and nothing is written") {
  const Results results;
  const Folder& folder = results.folder;
  const auto refusal = [&](const std::string& file, const std::string& figure) {
    return results.refusal("report " + file + " --figure " + figure + " --out x.svg");
  };
  CHECK(contains(refusal("none.json", "memory"), "none.json: cannot be read"));
  folder.file("empty.json", "");
  CHECK(contains(refusal("empty.json", "memory"), "empty.json"));
  folder.file("list.json", "[]");
  CHECK(contains(refusal("list.json", "memory"), "has no result; expected at least one"));
  const std::string text = read_file(folder.path("one.json"));
  folder.file("cut.json", text.substr(0, text.size() / 3));
  CHECK(contains(refusal("cut.json", "memory"), "cut.json"));
  std::string other = text;
  other.replace(other.find("interlock-result/1"), 18, "interlock-result/2");
  folder.file("other.json", other);
  CHECK(contains(refusal("other.json", "memory"), "another version than this program reads"));
  CHECK(contains(refusal("one.json", "sweep"), "needs results that differ in a number"));
  CHECK(contains(refusal("one.json", "pareto"), "there is one"));
  CHECK(contains(refusal("one.json", "tradeoff"), "interlock train --json"));
  CHECK(contains(refusal("one.json", "memroy"), "did you mean \"memory\"?"));
  std::string slower = text;
  const std::size_t at = slower.find("\"forward\": \"1 ms\"");
  REQUIRE(at != std::string::npos);
  slower.replace(at, 17, "\"forward\": \"2 ms\"");
  folder.file("slower.json", slower);
  CHECK(contains(refusal("slower.json", "timeline"), "simulated again, a step takes"));
  CHECK(contains(results.refusal("report one.json --figure memory --out x.jpg"),
                 "expected a name that ends with .svg, .pdf or .png"));
  CHECK(contains(results.refusal("report one.json --figure memory --out none/x.svg"),
                 "there is no folder \"none\""));
}

TEST_CASE("figures have the width, the title and the values that they are asked for") {
  const Results results;
  const auto refused = [&](const std::string& options) {
    return results.refusal("report two.json --figure sweep --out f.svg " + options);
  };
  CHECK(contains(refused("--width 3.5yd"), "--width \"3.5yd\": expected 240 to 4000 pixels"));
  CHECK(contains(refused("--width 10mm"), "expected 240 to 4000 pixels"));
  const auto drawn = [&](const std::string& options) {
    const Outcome run = results.run("report toy.json --figure sweep --out f.svg -q " + options);
    CHECK(run.err == "");
    return read_file(results.folder.path("f.svg"));
  };
  const std::string swept = "--set 'sweep={\"training.steps\": [2, 3]}' ";
  CHECK(contains(drawn(swept + "--width 90mm"), " width=\"340.16\""));
  CHECK(contains(drawn(swept + "--width 3.5in --title Ours"), ">Ours</text>"));
  // Grey lines of one picture differ in their dashes.
  const std::string lines =
      "--set 'sweep={\"training.steps\": [2, 3], \"training.micro_batches\": [1, 2]}' ";
  CHECK(contains(drawn(lines + "--grey"), "stroke-dasharray"));
}

TEST_CASE("a gain is over the first of its group, in the file of a sweep too") {
  const Results results;
  const std::string swept =
      "--set 'sweep={\"training.micro_batches\": [2, 8], \"training.steps\": [2, 3], "
      "\"training.strategy\": [\"global\", \"local\"]}' ";
  CHECK(results.run("simulate toy.json -q --json swept.json " + swept).exit_code == 0);
  CHECK(results.run("sweep toy.json -q --db swept.db " + swept).exit_code == 0);
  const auto gains = [&](const std::string& file) {
    const Outcome run = results.run("report " + file + " --figure table:gain --out -");
    CHECK(run.err == "");
    std::vector<std::string> numbers;
    std::istringstream words(run.out);
    for (std::string word; words >> word;) {
      if (word.size() >= 4 && word.find_first_not_of("0123456789.") == word.npos) {
        numbers.push_back(word);
      }
    }
    return numbers;
  };
  const std::vector<std::string> of_simulate = gains("swept.json");
  REQUIRE(of_simulate.size() == 8);
  CHECK(std::count(of_simulate.begin(), of_simulate.end(), "1.00") == 4);
  CHECK(gains("swept.db") == of_simulate);
}

TEST_CASE("tables are written for LaTeX, and take no width") {
  const Results results;
  const Outcome written = results.run("report two.json --figure table:step_time,busy --out t.tex");
  CHECK(written.exit_code == 0);
  CHECK(written.out == "wrote t.tex: table:step_time,busy of 2 results\n");
  const std::string text = read_file(results.folder.path("t.tex"));
  CHECK(text.starts_with("\\begin{tabular}{lrr}\n"));
  CHECK(text.ends_with("\\end{tabular}\n"));
  CHECK(contains(results.refusal("report two.json --figure table --out t.md --width 480"),
                 "--width is of pictures"));
  CHECK(contains(results.refusal("report two.json --figure table --out - --set training.steps=4"),
                 "these are results, which stay as they are"));
}

TEST_CASE("a memory snapshot is a pickle that Python reads") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  CHECK(run_program({"simulate", "toy.json", "--memory-snapshot", "m.txt"}, folder.path()).err ==
        "--memory-snapshot m.txt: expected a name that ends with .pickle\n");
  const Outcome run =
      run_program({"simulate", "toy.json", "--memory-snapshot", "m.pickle"}, folder.path());
  CHECK(contains(run.err, "wrote m.pickle"));
  if (run_shell("python3 --version", folder.path()).exit_code != 0) {
    return tell_skipped("a memory snapshot, read by Python", "python3");
  }
  const Outcome read = run_shell(
      "python3 -c 'import pickle; s = pickle.load(open(\"m.pickle\", \"rb\")); "
      "print(len(s[\"device_traces\"]), s[\"device_traces\"][0][1][\"action\"])'",
      folder.path());
  CHECK(read.out == "4 alloc\n");
}

TEST_CASE("curves of training are drawn as a trade-off, without what their names share") {
  const Folder folder;
  const auto curve = [](const std::string& strategy) {
    return R"({"format": "interlock-training/1", "name": "bytes | strategy=)" + strategy +
           R"(", "loss": [5.5, 5.25, null], "measured_end_s": [0.1, 0.2, 0.4],
               "simulated_step_time_s": 0.05, "measured_step_time_s": 0.1})";
  };
  folder.file("curves.json", "[" + curve("global") + ", " + curve("local") + "]");
  const Outcome run = run_program(
      {"report", "curves.json", "--figure", "tradeoff", "--out", "t.svg"}, folder.path());
  CHECK(run.err == "");
  const std::string svg = read_file(folder.path("t.svg"));
  CHECK(contains(svg, ">strategy=global</text>"));
  CHECK_FALSE(contains(svg, ">bytes | "));
  CHECK(contains(svg, "measured time (s)"));
}

TEST_CASE("traces are written whole, compressed by their name, and a file for each device") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const Outcome run = run_program(
      {"simulate", "toy.json", "--trace", "t.json", "--kineto", "ranks"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "wrote t.json"));
  CHECK(run_program({"simulate", "toy.json", "--trace", "t.json.gz"}, folder.path()).exit_code ==
        0);
  const std::string text = read_file(folder.path("t.json"));
  CHECK(text.ends_with("\n]}\n"));
  CHECK(run_shell("gunzip -c t.json.gz", folder.path()).out == text);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string file = "ranks/rank-" + std::to_string(rank) + ".json.gz";
    CHECK(contains(run_shell("gunzip -c " + file, folder.path()).out,
                   "\"rank\":" + std::to_string(rank)));
  }
}

TEST_CASE("traces that cannot be written are refused before anything runs") {
  const Folder folder;
  folder.file("toy.json", kPairwise);
  const auto refusal = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"simulate", "toy.json"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(folder.files() == std::vector<std::string>{"toy.json"});
    return run.err;
  };
  CHECK(
      contains(refusal({"--trace", "t.txt"}), "expected a name that ends with .json or .json.gz"));
  CHECK(contains(refusal({"--trace", "none/t.json"}), "there is no folder \"none\""));
  CHECK(contains(refusal({"--kineto", "toy.json"}), "is a file; expected a folder"));
  CHECK(contains(refusal({"--trace", "t.json", "--set", "sweep={\"training.steps\": [1, 2]}"}),
                 "--trace holds one scenario, and there are 2"));
}

}  // namespace
}  // namespace interlock::draw_results_test
