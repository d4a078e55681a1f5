// The studio as one file: its engine answers as the program does, in a browser and without one.
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "reports/report.h"
#include "scenarios/contract/set_key.h"
#include "tests/browser/page_test.h"
#include "tests/support/skipped.h"

using namespace interlock;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kScenario = PROJECT_FOLDER "/scenarios/quickstart/pairwise.json";

/// Runs `words`, with the file `input` as standard input if it is not empty, and output to a file.
int run(const std::vector<std::string>& words, const std::string& input,
        const std::string& output) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!input.empty() && std::freopen(input.c_str(), "r", stdin) == nullptr) ::_exit(126);
    if (std::freopen(output.c_str(), "w", stdout) == nullptr) ::_exit(126);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// A folder with the page of the quickstart in it, gone with the program.
class Page {
 public:
  Page() {
    std::string name = (fs::temp_directory_path() / "interlock-offline-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    const std::vector<std::string> words{INTERLOCK_PROGRAM, "studio", kScenario, "--out", file()};
    REQUIRE(run(words, "", path("said")) == 0);
  }
  ~Page() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string file() const { return path("studio.html"); }

 private:
  std::string folder_;
};

const Page& page() {
  static const Page one;
  return one;
}

/// Returns true if the engine that lies there is of other sources than the program.
bool is_of_other_sources() {
  const std::string said =
      (fs::temp_directory_path() / "interlock-offline-").string() + std::to_string(::getpid());
  const std::string quoted =
      "'" + std::string(INTERLOCK_PROGRAM) + "' studio --out '" + said + ".html' 2>'" + said + "'";
  const bool refused = std::system(quoted.c_str()) != 0 &&
                       read_file(said).find("from other sources") != std::string::npos;
  fs::remove(said);
  fs::remove(said + ".html");
  return refused;
}

/// Says whether node is there, which Debian's Emscripten brings.
bool has_node() { return run({"node", "--version"}, "", "/dev/null") == 0; }

/// Returns the last line of the answer to each of `questions`.
std::vector<Json> ask(const std::vector<Json>& questions) {
  std::string text;
  for (const Json& question : questions) text += question.dump() + "\n";
  write_file(page().path("questions"), text);
  const std::string script = PROJECT_FOLDER "/tests/browser/ask_offline.js";
  REQUIRE(run({"node", script, page().file()}, page().path("questions"), page().path("told")) == 0);
  std::vector<Json> answers;
  std::istringstream lines(read_file(page().path("told")));
  for (std::string line; std::getline(lines, line);) answers.push_back(Json::parse(line));
  REQUIRE(answers.size() == questions.size());
  return answers;
}

/// How far numbers may be apart. Deviations of random runs are what is left of large sums, and
/// logarithms of two C libraries differ in their last digit.
double allowed(const std::string& path) { return path.starts_with("/run/") ? 1e-9 : 1e-12; }

/// Returns the path of the first place where two results differ; empty: they do not.
std::string difference(const Json& ours, const Json& theirs, const std::string& path) {
  if (path.find("wall_") != std::string::npos) return "";  // what the clock says
  if (ours.is_number() && theirs.is_number()) {
    const double a = ours, b = theirs;
    const bool near = std::abs(a - b) <= allowed(path) * std::max(std::abs(a), std::abs(b));
    return near ? "" : path + ": " + ours.dump() + ", " + theirs.dump();
  }
  if (ours.type() != theirs.type() || ours.size() != theirs.size()) return path;
  if (!ours.is_structured()) return ours == theirs ? "" : path + ": " + ours.dump();
  if (ours.is_array()) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      std::string found = difference(ours[i], theirs[i], path + "/" + std::to_string(i));
      if (!found.empty()) return found;
    }
    return "";
  }
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key)) return path + "/" + key;
    std::string found = difference(value, theirs[key], path + "/" + key);
    if (!found.empty()) return found;
  }
  return "";
}

/// The scenarios that are shipped, as a page is given them: the first of a sweep, by our engine.
std::vector<std::string> shipped() {
  std::vector<std::string> files;
  for (const char* folder : {"examples", "papers", "quickstart", "validation"}) {
    const fs::path scenarios = fs::path(PROJECT_FOLDER "/scenarios") / folder;
    for (const auto& entry : fs::recursive_directory_iterator(scenarios)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("the page is one file of less than 6 MB that names nothing outside") {
  const std::string text = read_file(page().file());
  CHECK(text.size() < 6'000'000);
  CHECK(text.size() > 1'000'000);
  for (const char* outside : {"src=\"", "http-equiv=\"refresh", "@import", PROJECT_FOLDER}) {
    CHECK(text.find(outside) == std::string::npos);
  }
}

TEST_CASE("answers are the program's to 1e-12 for every scenario that is shipped") {
  if (!has_node()) return tell_skipped("answers of the offline page without a browser", "nodejs");
  const std::vector<std::string> files = shipped();
  std::vector<Json> questions;
  questions.reserve(files.size());
  for (const std::string& file : files) {
    questions.push_back({{"ask", "write"},
                         {"what", "result"},
                         {"text", read_file(file)},
                         {"settings", {"simulate.engine=native"}}});
  }
  const std::vector<Json> answers = ask(questions);
  int same = 0, ranges = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(files[i]);
    CAPTURE(answers[i].value("mistakes", ""));
    REQUIRE(answers[i].contains("answer"));
    JsonValue document = parse_json(read_file(files[i]), "pairwise.json");  // as opened
    apply_overrides(document, {"simulate.engine=native"});
    const ScenarioResult result = run_scenario(load_questions(document).front(), true);
    const Json theirs = Json::parse(answers[i]["answer"]["file"].get<std::string>());
    const std::string found = difference(Json::parse(result_json(result)), theirs, "");
    CHECK(found == "");
    same += found.empty();
    ranges += theirs["range"].is_object();
  }
  MESSAGE(same << " of " << files.size() << " scenarios the same, " << ranges << " with a range");
  CHECK(ranges > 20);
}

TEST_CASE("the page answers every control, and what it cannot do it says") {
  for (const int width : {400, 1280}) {
    INFO(width << " pixels");
    browser().visit("file://" + page().file(), {.width = width, .dark = width == 400});
    check_all("studio_checks.js");
    keep_picture("offline-used-" + std::to_string(width));
  }
  browser().visit("file://" + page().file());
  check_all("offline_checks.js");
}

TEST_CASE("a page whose engine cannot be started, or ends, says so and keeps the text") {
  const std::string mark = "id=\"engine-program\">";
  std::string text = read_file(page().file());
  const std::size_t engine = text.find(mark);
  REQUIRE(engine != std::string::npos);
  text.replace(engine + mark.size(), 8, "AAAAAAAA");
  write_file(page().path("damaged.html"), text);
  browser().visit("file://" + page().path("damaged.html"));
  check_all("offline_lost_checks.js");
  browser().visit("file://" + page().file());
  check_all("offline_ended_checks.js");
}

TEST_CASE("fifty quick changes of the page leave the answer to the last one") {
  browser().visit("file://" + page().file());
  check_all("studio_quick_checks.js");
}

TEST_CASE("the page fits narrow windows, light and dark") {
  for (const bool dark : {false, true}) {
    for (const int width : {400, 1280}) {
      INFO(width << " pixels, " << std::string(dark ? "dark" : "light"));
      browser().visit("file://" + page().file(), {.width = width, .dark = dark});
      check_all("studio_look_checks.js");
      keep_picture(std::string("offline-") + (dark ? "dark-" : "light-") + std::to_string(width));
    }
  }
}

TEST_CASE("the page is used by the keyboard alone") {
  browser().visit("file://" + page().file());
  check_all("studio_focus_checks.js");
  constexpr int kStops = 60;  // more than the page has
  for (int i = 0; i < kStops; ++i) browser().press("Tab");
  check_all("studio_keyboard_checks.js");
}

int main(int argc, char** argv) {
  if (!find_chromium()) {
    tell_skipped("the studio as one file", "chromium");
    return 77;
  }
  if (!fs::exists(INTERLOCK_ENGINE)) {
    std::puts(
        "skipped: the studio as one file; install emscripten and build the target studio_engine "
        "(ninja -C build studio_engine) to run it");
    return 77;
  }
  if (is_of_other_sources()) {
    std::puts(
        "skipped: the studio as one file, whose engine is of other sources; build the target "
        "studio_engine (ninja -C build studio_engine) to run it");
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
