// interlock schedule: what it draws, writes, lists and refuses.
// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "base/file.h"
#include "base/json/json.h"
#include "tests/cli/child_program.h"
#include "tests/support/skipped.h"

namespace interlock::draw_schedule_test {
namespace {

constexpr const char* kPipeline = R"({
  "name": "toy",
  "model": {"kind": "profile", "modules": [
    {"repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 4, "steps": 2}
})";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double step_time(const Folder& folder, const std::string& file) {
  const Outcome run =
      run_program({"simulate", file, "--quiet", "--json", "result.json"}, folder.path());
  REQUIRE(run.err == "");
  return read_json_file(folder.path("result.json")).find("step_time_s")->number;
}

TEST_CASE("schedule draws a step, and prints no colours into a file") {
  const Outcome run = run_program({"schedule", "-", "--ascii"}, ".", kPipeline);
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  CHECK(contains(run.out,
                 "device 0  F0F1F2F3............B0--..B1--..B2--..B3--  ######....  57%\n"
                 "device 1  ..F0F1F2........B0--F3B1--..B2--..B3--....  ######....  57%\n"));
  CHECK(contains(run.out, "Step time    21.0 ms"));  // (4 + 3) x 3 ms
  CHECK(contains(run.out, "Idle         42.9%"));    // 3 / 7
  CHECK(!contains(run.out, "\x1b"));
  const Outcome unicode = run_program({"schedule", "-", "--width", "60"}, ".", kPipeline);
  CHECK(contains(unicode.out, "F0F1F2F3············B0──"));
}

TEST_CASE("the order that schedule writes, read back as a file, takes the same time") {
  const Folder folder;
  folder.file("toy.json", kPipeline);
  for (const std::string name : {"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v", "dualpipe"}) {
    CAPTURE(name);
    const std::string schedule = "training.schedule=" + name;
    std::vector<std::string> common = {"--set", "training.micro_batches=8", "--set",
                                       "model.modules.0.repeat=8"};
    std::vector<std::string> drawn = {"schedule", "toy.json", "--set", schedule, "--csv", "o.csv"};
    drawn.insert(drawn.end(), common.begin(), common.end());
    const Outcome run = run_program(drawn, folder.path());
    CHECK(run.exit_code == 0);
    CHECK(run.err == "wrote o.csv\n");
    std::string toy = kPipeline;
    toy.replace(toy.find("\"micro_batches\": 4"), 18, "\"micro_batches\": 8");
    toy.replace(toy.find("\"repeat\": 4"), 11, "\"repeat\": 8");
    const std::size_t at = toy.find("\"1f1b\"");
    folder.file("written.json", std::string(toy).replace(at, 6, "\"" + name + "\""));
    folder.file("read.json", std::string(toy).replace(at, 6, R"({"file": "o.csv"})"));
    CHECK(step_time(folder, "read.json") == step_time(folder, "written.json"));
  }
}

TEST_CASE("docs/schedules.md is what schedule --table prints") {
  const Folder folder;
  const Outcome run = run_program({"schedule", "--table", "--svg", "map.svg"}, folder.path());
  CHECK(run.exit_code == 0);
  INFO("to renew them: interlock schedule --table --svg docs/schedules.svg > docs/schedules.md");
  const bool same = run.out == read_file(SOURCE_FOLDER "/docs/schedules.md");
  CHECK(same);
  const bool same_picture =
      read_file(folder.path("map.svg")) == read_file(SOURCE_FOLDER "/docs/schedules.svg");
  CHECK(same_picture);
}

TEST_CASE("no two names of docs/schedules.svg lie upon each other") {
  struct Name {
    double left, top, right, bottom;
    std::string text;
  };
  // Names are of 12 pixels: 10 above the line and 2 below, and about 6.6 wide a letter.
  std::vector<Name> names;
  const std::string svg = read_file(SOURCE_FOLDER "/docs/schedules.svg"),
                    page = read_file(SOURCE_FOLDER "/docs/schedules.md");
  const std::regex word("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\">([a-z0-9 +-]+)</text>");
  for (std::sregex_iterator match(svg.begin(), svg.end(), word), end; match != end; ++match) {
    const std::string text = (*match)[3], name = text.substr(0, text.find(' '));
    if (!contains(page, "| `" + name + "`")) continue;
    const double x = std::stod((*match)[1]), y = std::stod((*match)[2]);
    names.push_back({x, y - 10, x + 6.6 * static_cast<double>(text.size()), y + 2, text});
  }
  CHECK(names.size() > 20);
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Name &one = names[a], &other = names[b];
      INFO(one.text << " and " << other.text);
      CHECK((one.right <= other.left || other.right <= one.left || one.bottom <= other.top ||
             other.bottom <= one.top));
    }
  }
}

TEST_CASE("schedule --list is list schedules") {
  const Outcome listed = run_program({"schedule", "--list"});
  CHECK(listed.exit_code == 0);
  CHECK(listed.out == run_program({"list", "schedules"}).out);
  CHECK(contains(listed.out, "arXiv 2401.10241"));
}

TEST_CASE("every scenario of a sweep is drawn, but files hold one") {
  const Folder folder;
  std::string sweep = kPipeline;
  sweep.insert(sweep.rfind('}'), R"(, "sweep": {"training.schedule": ["1f1b", "gpipe"]})");
  folder.file("sweep.json", sweep);
  const Outcome run = run_program({"schedule", "sweep.json", "--ascii"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "toy | schedule=1f1b\n"));
  CHECK(contains(run.out, "\n\ntoy | schedule=gpipe\n"));
  const Outcome refused = run_program({"schedule", "sweep.json", "--csv", "o.csv"}, folder.path());
  CHECK(refused.exit_code == 2);
  CHECK(refused.out == "");
  CHECK(refused.err ==
        "--svg, --csv and --json hold one scenario, and there are 2; leave one: --set sweep=null "
        "--set PATH=VALUE\n");
  CHECK(folder.files() == std::vector<std::string>{"sweep.json"});
}

TEST_CASE("an order that auto found is written, and is the order of a file") {
  const Folder folder;
  folder.file("toy.json", kPipeline);
  const auto json = [&](const std::string& schedule) {
    const Outcome run = run_program(
        {"simulate", "toy.json", "--json", "-", "--set", "training.schedule=" + schedule},
        folder.path());
    CHECK(run.err == "");
    return parse_json(run.out, "result").find("step_time_s")->number;
  };
  const Outcome run = run_program(
      {"schedule", "toy.json", "--csv", "o.csv", "--set", "training.schedule=auto"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(json(R"({"file": "o.csv"})") == doctest::Approx(json("auto")).epsilon(1e-9));
}

TEST_CASE("an order that the text form cannot hold is refused, and nothing is written") {
  const Folder folder;
  folder.file("toy.json", kPipeline);
  const auto refused = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> words = {"schedule", "toy.json", "--svg", "o.svg", "--csv", "o.csv"};
    for (const std::string& override : overrides) {
      words.insert(words.end(), {"--set", override});
    }
    const Outcome run = run_program(words, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(folder.files() == std::vector<std::string>{"toy.json"});
    return run.err;
  };
  CHECK(refused({"training.schedule=eager", "training.strategy=local"}) ==
        "toy.json: toy: the text form has no letters for heads or for updates within a step; "
        "expected a schedule of global training that updates at its end\n");
  CHECK(refused({"parallel.pipeline=2", "parallel.stages=4"}) ==
        "toy.json: toy: a rank chooses its order while it runs; expected one stage a rank, or a "
        "schedule that lays out several\n");
  for (const auto& [name, batches] : std::map<std::string, std::string>{
           {"pipedream-2bw", "8"}, {"petra", "1"}, {"features-replay", "1"}}) {
    CHECK(refused({"training.schedule=" + name, "training.micro_batches=" + batches,
                   "training.global_batch_size=" + batches}) ==
          "toy.json: toy: the text form has one step, and schedule \"" + name +
              "\" begins one before the last is over; expected a schedule that flushes\n");
  }
}

TEST_CASE("ranks that choose their order are drawn from what they did") {
  const Outcome run = run_program(
      {"schedule", "-", "--ascii", "--set", "parallel.pipeline=2", "--set", "parallel.stages=4"},
      ".", kPipeline);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "device 1 (1, 3)  ..F"));
  CHECK(contains(run.out, "3B3"));
}

TEST_CASE("--exact proves the shortest step: ZB-H1 takes 3m + p - 1, and nothing takes less") {
  const std::vector<std::string> small = {
      "schedule", "-", "--exact", "--set", "cluster.devices=3", "--set", "model.modules.0.repeat=3",
      "--set"};
  std::vector<std::string> zb = small, flushed = small, large = small;
  zb.push_back("training.schedule=zb-h1");
  const Outcome run = run_program(zb, ".", kPipeline);
  if (contains(run.err, "cbc")) {
    tell_skipped("schedule --exact", "coinor-cbc");
    return;
  }
  CHECK(contains(run.out, "Exact        14.0 ms"));  // 3 x 4 + 3 - 1
  CHECK(contains(run.out, "takes 14.0 ms, 0.0% more"));
  flushed.push_back("training.schedule=1f1b");  // (4 + 3 - 1) x 3
  CHECK(contains(run_program(flushed, ".", kPipeline).out, "takes 18.0 ms, "));
  large.push_back("training.micro_batches=64");
  CHECK(run_program(large, ".", kPipeline).err ==
        "standard input: toy: --exact would search for days; expected at most 40 stages x "
        "micro-batches, got 192\n");
}

TEST_CASE("schedule writes the order to standard output, alone") {
  const Folder folder;
  folder.file("toy.json", kPipeline);
  const auto order = [&](const std::string& file) {
    return run_program({"schedule", "toy.json", "--csv", file, "--messages", "batched"},
                       folder.path());
  };
  REQUIRE(order("o.csv").exit_code == 0);
  const Outcome printed = order("-");
  CHECK(printed.exit_code == 0);
  CHECK(printed.err == "");
  CHECK(printed.out == read_file(folder.path("o.csv")));
  CHECK(folder.files() == std::vector<std::string>{"o.csv", "toy.json"});
}

TEST_CASE("schedule with wrong words is the user's mistake") {
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"schedule"},
                             {"schedule", "-", "--list"},
                             {"schedule", "--list", "--table"},
                             {"schedule", "-", "--width", "3"},
                             {"schedule", "gone.json"},
                             {"schedule", "-", "--csv", "no/such/o.csv"},
                             {"schedule", "-", "--csv", "x", "--svg", "x"}}) {
    const Outcome run = run_program(words, ".", kPipeline);
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err != "");
  }
  CHECK(run_program({"schedule", "--help"}).out.size() > 40);
}

}  // namespace
}  // namespace interlock::draw_schedule_test
