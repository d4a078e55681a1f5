// interlock studio without a browser: who may ask, what is answered, and that nothing is left over.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "base/file.h"
#include "tests/cli/child_program.h"
#include "tests/support/studio_program.h"

namespace interlock::studio_test {
namespace {

using Json = nlohmann::json;

const std::string kScenario = SCENARIOS_FOLDER "/quickstart/pairwise.json";
// A search of it takes seconds.
const std::string kLarge = SCENARIOS_FOLDER "/examples/gpt3-175b-64-a100.json";

/// Waits until `holds`, for as long as it takes; what hangs is ended from outside.
template <class Condition>
void wait_until(const Condition& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

std::string request(const std::string& path, const std::string& head) {
  return "GET " + path + " HTTP/1.1\r\n" + head + "Connection: close\r\n\r\n";
}

Json simulate(const std::string& text) { return {{"ask", "simulate"}, {"text", text}}; }

/// The processes below the one that forks.
std::vector<pid_t> answering(const StudioProgram& studio) {
  std::vector<pid_t> below = processes_below(studio.process());
  REQUIRE(!below.empty());
  below.erase(below.begin());
  return below;
}

TEST_CASE("the studio tells nothing without its token, its own name, and its own origin") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  const std::string own = "Host: 127.0.0.1:" + std::to_string(studio.port()) + "\r\n";
  const std::string local = "localhost:" + std::to_string(studio.port());
  struct Case {
    std::string path, head;
    int status;
  };
  std::string wrong = studio.path();
  wrong[1] = wrong[1] == '0' ? '1' : '0';
  for (const Case& each : std::vector<Case>{
           {studio.path(), own, 200},
           {studio.path(), "Host: " + local + "\r\nOrigin: http://" + local + "\r\n", 200},
           {"/", own, 403},
           {wrong, own, 403},
           {studio.path().substr(0, 20) + "/", own, 403},
           {studio.path(), "", 403},
           {studio.path(), "Host: studio.example:80\r\n", 403},
           {studio.path(), own + "Origin: http://studio.example\r\n", 403},
           {studio.path(), own + "Origin: null\r\n", 403},
           {studio.path() + "scenario.json", own, 404},
           {studio.path() + "../../../../etc/passwd", own, 404},
           {studio.path() + "..%2f..%2f..%2fetc%2fpasswd", own, 404},
           {"/../../etc/passwd", own, 403}}) {
    CAPTURE(each.path);
    CAPTURE(each.head);
    HttpCall call(studio.port(), request(each.path, each.head));
    const std::string& come = call.all();
    CHECK(call.status() == each.status);
    CHECK((come.find("<title>interlock studio") != std::string::npos) == (each.status == 200));
    CHECK(come.find("root:x") == std::string::npos);
  }
}

TEST_CASE("a question over sixteen megabytes is refused, and the studio goes on") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  HttpCall call(studio.port(), studio.request(simulate(std::string(17 << 20, ' '))));
  call.all();
  CHECK(call.status() == 413);
  CHECK(studio.ask(simulate(read_file(kScenario))).contains("answer"));
}

TEST_CASE("the studio's results are those of interlock simulate") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  Json question = simulate(read_file(kScenario));
  question["settings"] = {"training.micro_batches=4"};
  question["ask"] = "write";
  question["what"] = "result";
  Json told = Json::parse(studio.ask(question)["answer"]["file"].get<std::string>());
  const Outcome run = run_program(
      {"simulate", kScenario, "--set", "training.micro_batches=4", "--quiet", "--json", "-"});
  Json expected = Json::parse(run.out);
  for (Json* result : {&told, &expected}) result->erase("wall_time_s");
  CHECK(told == expected);
}

TEST_CASE("mistakes come as sentences with file, line and path") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  const auto mistakes = [&](const Json& question) {
    return studio.ask(question).value("mistakes", "");
  };
  std::string text = read_file(kScenario);
  text.replace(text.find("\"eager\""), 7, "\"eagre\"");
  CHECK(mistakes(simulate(text)).starts_with(kScenario + ":11: /training/schedule: unknown"));
  CHECK(mistakes(simulate("{")).find("malformed JSON") != std::string::npos);
  CHECK(mistakes({{"ask", "sing"}, {"text", "{}"}}).find("expected edit, simulate") !=
        std::string::npos);
  CHECK(mistakes("a text").find("expected") != std::string::npos);
}

TEST_CASE("the studio reads no file but those that its scenario names") {
  const Folder folder;
  const std::string model = R"({"kind": "mlp", "layers": [64, 64, 64]})";
  folder.file("own.json", model);
  folder.file("other.json", model);
  std::string text = read_file(kScenario);
  text.replace(text.find("\"resnet-50\""), 11, "\"own.json\"");
  folder.file("scenario.json", text);
  const StudioProgram studio(INTERLOCK_PROGRAM, {folder.path("scenario.json")});
  const std::string refused = "is a file, and the studio reads none but those";
  const auto mistakes = [&](const std::string& now) {
    return studio.ask(simulate(now)).value("mistakes", "");
  };
  CHECK(mistakes(text).find(refused) == std::string::npos);
  for (const std::string& name : {std::string("other.json"), folder.path("other.json"),
                                  std::string("./other.json"), std::string("/etc/passwd")}) {
    CAPTURE(name);
    std::string other = text;
    other.replace(other.find("own.json"), 8, name);
    CHECK(mistakes(other).find(refused) != std::string::npos);
  }
  Json plan = {{"ask", "plan"},
               {"options",
                {{"model", folder.path("other.json")},
                 {"machines", {"dgx-h100"}},
                 {"devices", "8"},
                 {"tokens", "1e9"}}}};
  CHECK(studio.ask(plan).value("mistakes", "").find(refused) != std::string::npos);
}

TEST_CASE("a question that is given up ends all processes that worked for it") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kLarge});
  {
    HttpCall search(studio.port(),
                    studio.request({{"ask", "search"}, {"text", read_file(kLarge)}}));
    search.until("\"done\"");
    wait_until([&] { return answering(studio).size() > 1; });  // it, and those of its pool
  }
  wait_until([&] { return answering(studio).empty(); });
}

TEST_CASE("questions do not wait for each other, and one whose process dies dies alone") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kLarge});
  HttpCall search(studio.port(), studio.request({{"ask", "search"}, {"text", read_file(kLarge)}}));
  search.until("\"done\"");
  const std::vector<pid_t> processes = answering(studio);
  REQUIRE(!processes.empty());
  REQUIRE(kill(processes.front(), SIGSTOP) == 0);  // it answers nothing now
  CHECK(studio.ask(simulate(read_file(kScenario))).contains("answer"));
  REQUIRE(kill(processes.front(), SIGKILL) == 0);
  CHECK(search.all().find("\"answer\"") == std::string::npos);
  CHECK(studio.ask(simulate(read_file(kScenario))).contains("answer"));
  wait_until([&] {
    return std::none_of(processes.begin(), processes.end(), [](pid_t one) { return runs(one); });
  });
}

TEST_CASE("an interrupt ends the studio with its processes, and frees its port") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    StudioProgram studio(INTERLOCK_PROGRAM, {kLarge});
    const int port = studio.port();
    HttpCall search(port, studio.request({{"ask", "search"}, {"text", read_file(kLarge)}}));
    search.until("\"done\"");
    const std::vector<pid_t> processes = processes_below(studio.process());
    CHECK(studio.end(signal) == 0);
    wait_until([&] {
      return std::none_of(processes.begin(), processes.end(), [](pid_t one) { return runs(one); });
    });
    const StudioProgram next(INTERLOCK_PROGRAM, {kScenario, "--port", std::to_string(port)});
    CHECK(next.port() == port);
  }
}

TEST_CASE("a studio that has just begun ends as well") {
  for (int i = 0; i < 20; ++i) {
    StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
    CHECK(studio.end(SIGTERM) == 0);
  }
}

TEST_CASE("a page that is a file says what it lacks in a sentence") {
  const Folder folder;
  const auto refusal = [&](const std::string& program, const std::string& options) {
    const Outcome run =
        run_shell("'" + program + "' studio '" + kScenario + "' " + options, folder.path());
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    return run.err;
  };
  CHECK(refusal(INTERLOCK_PROGRAM, "--out s.txt").find("ends with .html") != std::string::npos);
  CHECK(refusal(INTERLOCK_PROGRAM, "--out s.html --port 8080").find("needs no server") !=
        std::string::npos);
  CHECK(refusal(INTERLOCK_PROGRAM, "--out none/s.html").find("there is no folder") !=
        std::string::npos);
  // A program that lies alone has no engine beside it.
  std::filesystem::copy_file(INTERLOCK_PROGRAM, folder.path("alone"));
  const std::string lacks = refusal(folder.path("alone"), "--out s.html");
  CHECK(lacks.find("the engine of such a page was not built") != std::string::npos);
  CHECK(lacks.find("ninja -C build studio_engine") != std::string::npos);
  CHECK(folder.files() == std::vector<std::string>{"alone"});
  // An engine of other sources would tell other numbers.
  folder.file("interlock_studio.js", "");
  folder.file("interlock_studio.wasm", "interlock-sources-0123456789abcdef");
  const std::string old = refusal(folder.path("alone"), "--out s.html");
  CHECK(old.find("was compiled from other sources than this program") != std::string::npos);
  CHECK(old.find("ninja -C build studio_engine") != std::string::npos);
}

TEST_CASE("a port that is taken, and a scenario that is not there, are said in a sentence") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  const std::string port = std::to_string(studio.port());
  const Outcome taken = run_program({"studio", kScenario, "--port", port});
  CHECK(taken.exit_code == 2);
  CHECK(taken.err == "--port " + port +
                         ": cannot listen there: it is taken, or not allowed; expected another "
                         "port, or none, for any that is free\n");
  CHECK(run_program({"studio", "nowhere.json"}).exit_code == 2);
  // A wrong scenario is shown, not refused: it is there to be repaired.
  const Folder folder;
  folder.file("wrong.json", "{\"model\": 3");
  const StudioProgram wrong(INTERLOCK_PROGRAM, {folder.path("wrong.json")});
  CHECK(wrong.address() != "");
}

}  // namespace
}  // namespace interlock::studio_test
