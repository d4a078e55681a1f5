// Promises to a host: threads, callbacks, statuses in C, and nothing done behind its back.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <interlock/interlock.h>
#include <interlock/interlock_c.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
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
    Options options;
    options.threads = 3;
    explain(many_texts()[1], options);
    search(many_texts()[0], options);
    heard = listening.heard();
  }
  CHECK(heard.empty());
  CHECK(forks == 0);
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

TEST_CASE("SimGrid, which needs a process of its own, is refused") {
  Options options;
  options.set = {"simulate.engine=simgrid"};
  CHECK_THROWS_WITH_AS(simulate(stages_text(2, 4), options),
                       doctest::Contains("/simulate/engine: the library runs"), Error);
  CHECK_THROWS_AS(explain(stages_text(2, 4), options), Error);
  options.set = {"sweep={\"simulate.engine\": [\"simgrid\", \"native\"]}"};
  const SweepResult swept = sweep(stages_text(2, 4), options);
  CHECK(swept.rows[0].error.find("the library runs") != std::string::npos);
  CHECK(swept.rows[1].error.empty());
}

TEST_CASE("an option asks for SimGrid, whose times are those of the native engine") {
  const std::string text = R"({"model": {"kind": "profile", "modules": [{"repeat": 4,
      "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "8 MiB"}]},
    "cluster": {"machine": "dgx-a100-80g", "devices": 4},
    "training": {"strategy": "global", "micro_batches": 4, "steps": 2}})";
  Options options;
  const Result native = simulate(text, options);
  CHECK(native.json().find("\"engine\": \"native\"") != std::string::npos);
  options.engine = "native";
  CHECK(simulate(text, options).step_time_s() == native.step_time_s());
  options.engine = "gantt";
  CHECK_THROWS_WITH_AS(simulate(text, options),
                       doctest::Contains("expected native, simgrid or auto"), Error);
  options.engine = "simgrid";
  CHECK_THROWS_WITH_AS(sweep(text, options), doctest::Contains("simulate_all"), Error);
  const Result result = simulate(text, options);
  CHECK(result.json().find("\"engine\": \"simgrid\"") != std::string::npos);
  CHECK(result.step_time_s() == doctest::Approx(native.step_time_s()).epsilon(1e-9));
  CHECK(!result.timeline().empty());
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
