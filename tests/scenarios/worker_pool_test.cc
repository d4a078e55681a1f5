// Jobs in forked processes: each is done once, also if a process dies.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/worker_pool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <new>
#include <set>
#include <system_error>

#include "base/error.h"
#include "scenarios/sweep/told_failure.h"
#include "sim/processes/unavailable.h"

namespace interlock::worker_pool_test {
namespace {

/// Hands out 0, 1, ... up to `count`.
std::function<std::optional<std::size_t>()> first(std::size_t count) {
  return [count, next = std::size_t{0}]() mutable {
    return next < count ? std::optional(next++) : std::nullopt;
  };
}

TEST_CASE("every job is done once, in another process, by as many as asked") {
  constexpr std::size_t kJobs = 200;
  std::map<std::size_t, std::string> results;
  std::set<std::string> workers;
  Jobs jobs{first(kJobs),
            [](std::size_t job) {
              return std::to_string(::getpid()) + " " + std::string(job * 1000, 'x');
            },
            [&](const JobResult& result) {
              CHECK(result.problem.empty());
              const std::size_t space = result.bytes.find(' ');
              workers.insert(result.bytes.substr(0, space));
              CHECK(results.emplace(result.job, result.bytes.substr(space + 1)).second);
            },
            {}};
  CHECK(run_jobs(jobs, 3));
  REQUIRE(results.size() == kJobs);
  for (const auto& [job, bytes] : results) CHECK(bytes.size() == job * 1000);
  CHECK(workers.size() == 3);
  CHECK(workers.count(std::to_string(::getpid())) == 0);
}

TEST_CASE("who throws or dies takes one job along") {
  std::map<std::size_t, std::string> problems;
  Jobs jobs{first(8),
            [](std::size_t job) -> std::string {
              if (job == 2) throw Error("two is refused");
              if (job == 4) std::raise(SIGKILL);
              if (job == 5) _exit(3);
              return "fine";
            },
            [&](const JobResult& result) { problems[result.job] = result.problem; },
            {}};
  CHECK(run_jobs(jobs, 2));
  REQUIRE(problems.size() == 8);
  CHECK(problems[2] == "two is refused");
  CHECK(problems[4].find("signal 9") != std::string::npos);
  CHECK(problems[5].find("status 3") != std::string::npos);
  for (const std::size_t job : {0, 1, 3, 6, 7}) CHECK(problems[job].empty());
}

TEST_CASE("a stop gives up what runs") {
  int done = 0;
  Jobs jobs{first(100),
            [](std::size_t job) {
              if (job >= 5) ::sleep(600);  // never ends by itself
              return std::string();
            },
            [&](const JobResult&) { ++done; }, [&] { return done == 5; }};
  CHECK_FALSE(run_jobs(jobs, 2));
  CHECK(done == 5);
}

/// Answers an order with how many it had before, and its bytes; "die" ends the process.
OrderAnswerer counting() {
  return [count = 0](const std::string& order) mutable {
    if (order == "die") _exit(7);
    if (order == "refuse") throw Error("refused");
    return std::to_string(count++) + order;
  };
}

TEST_CASE("workers of a pool live from one call to the next, and a dead one is replaced") {
  WorkerPool pool(counting, 1);
  const auto answers = [&](const std::vector<std::string>& orders) {
    std::vector<std::string> told(orders.size());
    pool.answer({.count = orders.size(),
                 .order = [&](std::size_t i) { return orders[i]; },
                 .done =
                     [&](const JobResult& result) {
                       told[result.job] = result.problem.empty() ? result.bytes : result.problem;
                     }});
    return told;
  };
  using Texts = std::vector<std::string>;
  CHECK(answers({"a", "b"}) == Texts{"0a", "1b"});
  CHECK(answers({"refuse", "c"}) == Texts{"refused", "2c"});
  CHECK(
      answers({"die", std::string(200'000, 'd')}) ==
      Texts{"the process that simulated it ended with status 7", "0" + std::string(200'000, 'd')});
  CHECK(answers({"e"}) == Texts{"1e"});
}

TEST_CASE("signals that ask a program to stop are not for its workers to hear") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    std::string told;
    const Jobs jobs{first(1),
                    [=](std::size_t) -> std::string {
                      std::raise(signal);
                      return "goes on";
                    },
                    [&](const JobResult& result) { told = result.problem + result.bytes; },
                    {}};
    CHECK(run_jobs(jobs, 2));
    CHECK(told == "goes on");
  }
}

TEST_CASE("threads of a pool have what they know for themselves") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    WorkerPool pool(counting, Workers::of_threads(threads));
    int answered = 0;
    for (int call = 0; call < 5; ++call) {
      pool.answer({.count = 20,
                   .order = [](std::size_t) { return std::string("x"); },
                   .done =
                       [&](const JobResult& result) {
                         CHECK(result.problem.empty());
                         ++answered;
                       }});
    }
    // Every answer but the first of a worker counts those before it.
    CHECK(answered == 100);
  }
}

TEST_CASE("memory that runs out takes one job along, and is told as such") {
  const auto told = [](const Workers& workers) {
    std::map<std::size_t, std::string> problems;
    Jobs jobs{first(3),
              [](std::size_t job) -> std::string {
                if (job == 1) throw std::bad_alloc();
                return "fine";
              },
              [&](const JobResult& result) { problems[result.job] = result.problem; },
              {}};
    CHECK(run_jobs(jobs, workers));
    CHECK(problems[0].empty());
    CHECK(problems[2].empty());
    return problems[1];
  };
  for (const Workers& workers : {Workers(2), Workers::of_threads(1), Workers::of_threads(2)}) {
    CHECK(told(workers).starts_with("there is not enough memory for this; expected"));
  }
}

TEST_CASE("a worker that cannot be hired takes one job along, not the program") {
  for (const Workers& workers : {Workers(2), Workers::of_threads(1), Workers::of_threads(2)}) {
    WorkerPool pool([]() -> OrderAnswerer { throw Error("there is no worker"); }, workers);
    int refused = 0;
    pool.answer({.count = 4,
                 .order = [](std::size_t) { return std::string("x"); },
                 .done =
                     [&](const JobResult& result) {
                       CHECK(result.problem == "there is no worker");
                       ++refused;
                     }});
    CHECK(refused == 4);
  }
}

TEST_CASE("what the system refuses is no bug, what should have held is one") {
  namespace fs = std::filesystem;
  const auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
  const ToldFailure thread = told_failure(std::system_error(again));
  CHECK(thread.words.starts_with("no further thread can be started: "));
  const ToldFailure name = told_failure(
      fs::filesystem_error("status", "a.db", std::make_error_code(std::errc::filename_too_long)));
  CHECK(name.words == "a.db: file name too long");
  CHECK(told_failure(Error("as it is")).words == "as it is");
  const ToldFailure engine = told_failure(Unavailable("cannot open an engine"));
  CHECK(engine.words == "cannot open an engine");
  CHECK(engine.lacking);
  for (const bool ours :
       {engine.ours, thread.ours, name.ours, told_failure(Error("as it is")).ours}) {
    CHECK(!ours);
  }
  const ToldFailure bug = told_failure(std::logic_error("x"));
  CHECK(bug.words == "this is a bug in interlock: x");
  CHECK(bug.ours);
}

}  // namespace
}  // namespace interlock::worker_pool_test
