// Promises to a host: threads, callbacks, statuses in C, and nothing done behind its back.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <interlock/interlock.h>
#include <interlock/interlock_c.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <clocale>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cli/child_program.h"

namespace interlock::host_test {
namespace {

std::string stages_text(int stages, int micro_batches) {
  return R"({"model": {"kind": "profile", "modules": [{"repeat": )" + std::to_string(stages) +
         R"(, "forward": "1.5 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
              "output": "2 MB"}]},
    "cluster": {"kind": "uniform", "devices": )" +
         std::to_string(stages) + R"(, "memory": "1 GB", "link": {"bandwidth": "1 GB/s"}},
    "training": {"strategy": "global", "micro_batches": )" +
         std::to_string(micro_batches) + "}}";
}

/// Texts that ask for a zoo model, ranges, shared links, orders that are searched for.
std::vector<std::string> many_texts() {
  std::vector<std::string> texts = {
      R"({"model": "gpt2-xl", "cluster": "dgx-a100-80g", "parallel": {"pipeline": 4},
          "training": {"strategy": "global", "global_batch_size": 8}})",
      R"({"model": "llama-3-8b", "cluster": {"machine": "dgx-h100", "nodes": 2},
          "parallel": {"tensor": 4, "data": 4},
          "training": {"strategy": "global", "global_batch_size": 8}})",
      R"({"model": "resnet-50", "cluster": {"machine": "dgx-a100-80g", "nodes": 2},
          "parallel": {"data": 16}, "training": {"strategy": "global", "global_batch_size": 512}})",
      R"({"model": "gpt2-xl", "cluster": "dgx-a100-80g", "parallel": {"pipeline": 2},
          "training": {"strategy": "global", "global_batch_size": 4, "schedule": "auto"}})",
      R"({"model": "gpt9"})"};
  for (int stages = 1; stages <= 6; ++stages) texts.push_back(stages_text(stages, 2 * stages));
  return texts;
}

/// Returns what `text` gives, whatever it is, without the time that it took.
std::string answer_to(const std::string& text) {
  try {
    std::string json = simulate(text).json();
    const std::size_t begin = json.find("\"wall_time_s\""), end = json.find('\n', begin);
    return json.erase(begin, end - begin);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("many threads at once are told what one is told") {
  const std::vector<std::string> texts = many_texts();
  std::vector<std::string> expected;
  for (const std::string& text : texts) expected.push_back(answer_to(text));
  constexpr std::size_t kThreads = 8;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t at = (i * (number + 1) + number) % texts.size();
        if (answer_to(texts[at]) != expected[at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

std::atomic<int> forks = 0;

/// Sends standard output and standard error to a file while it lives.
class Listening {
 public:
  explicit Listening(const std::string& file) : file_(file) {
    std::fflush(nullptr);
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (const int stream : {1, 2}) {
      before_[stream] = ::dup(stream);
      ::dup2(to, stream);
    }
    ::close(to);
  }
  ~Listening() {
    for (const int stream : {1, 2}) {
      ::dup2(before_[stream], stream);
      ::close(before_[stream]);
    }
  }
  std::string heard() const {
    std::fflush(nullptr);
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string file_;
  int before_[3] = {};
};

/// Messages that meet on the ports of their devices.
const char* const kShared = R"({"model": {"kind": "profile", "modules": [{"repeat": 4,
    "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "8 MiB"}]},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "training": {"strategy": "global", "micro_batches": 4, "steps": 2}})";
const char* const kSearched = R"({"model": "gpt2-xl", "cluster": "dgx-a100-80g",
  "training": {"strategy": "global", "global_batch_size": 8}, "simulate": {"engine": "simgrid"},
  "search": {"tensor": 1, "pipeline": [1, 2], "micro_batch_size": 1, "recompute": "none"}})";

/// Calls every function that computes, by SimGrid where it can be asked for.
void call_everything() {
  Options options;
  options.threads = 3;
  for (const char* engine : {"", "native", "simgrid", "auto"}) {
    INFO("engine " << engine);
    options.engine = engine;
    options.range_draws = 20;
    check(kShared, options);
    const Result result = simulate(kShared, options);
    CHECK_FALSE(result.timeline().empty());
    report_html({result});
    simulate(Schedule::named("1f1b", 2, 2, 4), options);
    options.set = {R"(sweep={"training.micro_batches": [4, 6, 8]})"};
    CHECK(simulate_all(kShared, options).size() == 3);
    for (const SweepRow& row : sweep(kShared, options).rows) CHECK(row.error.empty());
    options.set.clear();
  }
  options.engine = "simgrid";
  simulate(many_texts()[1], options);  // a range is drawn
  explain(kShared, options);
  search(kSearched, options);
  PlanQuestion question{.model = "gpt2-xl", .machines = {"dgx-a100-80g"}, .devices = {8}};
  question.tokens = 1e9;
  options.set = {"simulate.engine=simgrid"};
  plan(question, options);
  const char* const by_simgrid = R"({"engine": "simgrid"})";
  for (const auto call :
       {interlock_simulate, interlock_svg, interlock_report_html, interlock_explain}) {
    CHECK(call(kShared, by_simgrid, nullptr) == INTERLOCK_OK);
  }
}

TEST_CASE("nothing is printed, forked, or changed in the process of the host") {
  ::pthread_atfork([] { ++forks; }, nullptr, nullptr);
  const Folder folder;
  struct sigaction before = {}, after = {};
  ::sigaction(SIGINT, nullptr, &before);
  const std::filesystem::path place = std::filesystem::current_path();
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  std::string heard;
  {
    const Listening listening(folder.path("heard"));
    for (const std::string& text : many_texts()) answer_to(text);
    call_everything();
    heard = listening.heard();
  }
  CHECK(heard.empty());
  CHECK(forks == 0);
  CHECK((::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD));  // nor is a process left
  ::sigaction(SIGINT, nullptr, &after);
  CHECK((before.sa_handler == after.sa_handler));
  CHECK(std::filesystem::current_path() == place);
  CHECK(std::setlocale(LC_ALL, nullptr) == locale);
}

TEST_CASE("numbers have points, whatever the locale of the host") {
  const std::string text = R"({"model": "gpt2-xl", "cluster": "dgx-a100-80g",
    "parallel": {"pipeline": 4}, "training": {"strategy": "global", "global_batch_size": 8}})";
  const std::string table = simulate(text).table();
  const Folder folder;
  const std::string made = folder.path("de_DE.UTF-8");
  const std::string command = "localedef -i de_DE -f UTF-8 '" + made + "'";
  if (run_shell(command, ".").exit_code != 0) {
    std::printf("skipped: a locale with commas; install locales to run it\n");
    return;
  }
  ::setenv("LOCPATH", folder.path().c_str(), 1);
  const std::string before = std::setlocale(LC_ALL, nullptr);
  REQUIRE(std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr);
  char shown[8];
  std::snprintf(shown, sizeof shown, "%.1f", 1.5);
  const std::string there = simulate(text).table();
  std::setlocale(LC_ALL, before.c_str());
  ::unsetenv("LOCPATH");
  CHECK(std::string(shown) == "1,5");
  const auto without_time = [](const std::string& lines) {
    return lines.substr(0, lines.find("simulated"));
  };
  CHECK(without_time(there) == without_time(table));
}

TEST_CASE("progress is told in the caller's thread, and what it throws ends the call") {
  const std::thread::id here = std::this_thread::get_id();
  Options options;
  options.threads = 2;
  std::size_t last = 0, all = 0;
  options.progress = [&](std::size_t done, std::size_t of) {
    CHECK(std::this_thread::get_id() == here);
    CHECK(done == last + 1);
    last = done;
    all = of;
  };
  options.set = {"sweep={\"training.micro_batches\": [1, 2, 3, 4, 5, 6, 7]}"};
  sweep(stages_text(2, 4), options);
  CHECK(last == 7);
  CHECK(all == 7);
  struct Stop {};
  options.progress = [](std::size_t, std::size_t) { throw Stop(); };
  CHECK_THROWS_AS(sweep(stages_text(2, 4), options), Stop);
  CHECK_THROWS_AS(explain(stages_text(2, 4), options), Error);  // of several scenarios
  options.set.clear();
  CHECK_THROWS_AS(explain(stages_text(2, 4), options), Stop);
  options.progress = {};
  options.poll = [&] {
    CHECK(std::this_thread::get_id() == here);
    throw Stop();
  };
  for (options.threads = 1; options.threads <= 2; ++options.threads) {
    CHECK_THROWS_AS(explain(stages_text(2, 4), options), Stop);
  }
}

TEST_CASE("an option asks for SimGrid, whose times are those of the native engine") {
  Options options;
  const Result native = simulate(kShared, options);
  CHECK(native.json().find("\"engine\": \"native\"") != std::string::npos);
  options.engine = "native";
  CHECK(simulate(kShared, options).step_time_s() == native.step_time_s());
  options.engine = "gantt";
  CHECK_THROWS_WITH_AS(simulate(kShared, options),
                       doctest::Contains("expected native, simgrid or auto"), Error);
  for (const char* engine : {"simgrid", "auto"}) {
    options.engine = engine;
    const Result result = simulate(kShared, options);
    CHECK(result.json().find("\"engine\": \"simgrid\"") != std::string::npos);
    CHECK(result.step_time_s() == doctest::Approx(native.step_time_s()).epsilon(1e-9));
    CHECK(result.timeline().size() == native.timeline().size());
  }
}

TEST_CASE("a scenario that insists on SimGrid is run by it, alone and in a sweep") {
  Options options;
  options.set = {"simulate.engine=simgrid"};
  CHECK(simulate(kShared, options).json().find("\"engine\": \"simgrid\"") != std::string::npos);
  options.set = {R"(sweep={"simulate.engine": ["simgrid", "native", "auto"]})"};
  const SweepResult swept = sweep(kShared, options);
  REQUIRE(swept.rows.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const engine = i == 0 ? "simgrid" : "native";  // "auto" of many is native
    CHECK(swept.rows[i].json.find(std::string("\"engine\":\"") + engine + "\"") !=
          std::string::npos);
    CHECK(swept.rows[i].metric("step_time_s").value() ==
          doctest::Approx(swept.rows[1].metric("step_time_s").value()).epsilon(1e-9));
  }
}

TEST_CASE("many threads at once are each answered by their own run of SimGrid") {
  std::vector<std::string> texts = {kShared};
  for (int stages = 2; stages <= 4; ++stages) texts.push_back(stages_text(stages, 2 * stages));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      const std::string& text = texts[number % texts.size()];
      Options options;
      const double expected = simulate(text, options).step_time_s();
      options.engine = "simgrid";
      const double found = simulate(text, options).step_time_s();
      if (std::abs(found - expected) > 1e-9 * expected) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("of scenarios that are simulated at once the first that is wrong is told") {
  Options options;
  options.threads = 3;
  std::size_t last = 0;
  options.progress = [&](std::size_t done, std::size_t of) {
    CHECK(done == ++last);
    CHECK(of == 6);
  };
  options.set = {R"(sweep={"training.micro_batches": [1, 2, 3, 4, 5, 6]})"};
  const std::vector<Result> results = simulate_all(stages_text(3, 4), options);
  REQUIRE(results.size() == 6);
  CHECK(last == 6);
  for (int batches = 1; batches <= 6; ++batches) {
    CHECK(results[batches - 1].json().find("\"micro_batches\": " + std::to_string(batches)) !=
          std::string::npos);
  }
  // A queue without room: 1F1B stands still, and gpipe, which comes before it, does not.
  options.progress = {};
  options.set = {R"(training.schedule={"kind": "gpipe", "queue": "rendezvous"})",
                 R"(sweep={"training.schedule.kind": ["gpipe", "1f1b", "zb-h1"]})"};
  CHECK_THROWS_WITH_AS(simulate_all(stages_text(3, 6), options),
                       doctest::Contains("kind=1f1b: the schedule deadlocks"), Error);
}

TEST_CASE("in C, statuses tell what happened, and answers are JSON") {
  const std::string good = stages_text(2, 4);
  char* answer = nullptr;
  CHECK(interlock_check(good.c_str(), nullptr, &answer) == INTERLOCK_OK);
  CHECK(std::string(answer) == "{\"format\": \"interlock-check/1\", \"scenarios\": 1}\n");
  interlock_free(answer);
  CHECK(interlock_simulate(good.c_str(), "{\"set\": [\"training.micro_batches=8\"]}", &answer) ==
        INTERLOCK_OK);
  CHECK(std::strstr(answer, "\"micro_batches\": 8") != nullptr);
  interlock_free(answer);
  CHECK(interlock_svg(good.c_str(), nullptr, &answer) == INTERLOCK_OK);
  CHECK(std::strncmp(answer, "<svg", 4) == 0);
  interlock_free(answer);
  CHECK(interlock_simulate("{\"model\": 3}", nullptr, &answer) == INTERLOCK_ERROR);
  CHECK(std::strstr(answer, "\"path\": \"/model\"") != nullptr);
  interlock_free(answer);
  CHECK(interlock_simulate(good.c_str(), "{\"sett\": []}", &answer) == INTERLOCK_ERROR);
  CHECK(std::strstr(answer, "did you mean") != nullptr);
  interlock_free(answer);
  CHECK(interlock_plan("{\"model\": \"gpt2-xl\"}", nullptr, nullptr) == INTERLOCK_ERROR);
  CHECK(interlock_explain(good.c_str(), nullptr, nullptr) == INTERLOCK_OK);
  CHECK(interlock_version() == version());
  interlock_free(nullptr);
}

}  // namespace
}  // namespace interlock::host_test
