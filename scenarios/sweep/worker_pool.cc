// The pools: a pair of pipes to each process, or lists of jobs and results between threads.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/worker_pool.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "scenarios/sweep/plain_locale.h"
#include "scenarios/sweep/told_failure.h"

namespace interlock {
namespace {

constexpr int kLookUp = 100;  // ms between questions whether to stop

bool write_all(int to, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(to, from, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool read_all(int from, void* data, std::size_t size) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::read(from, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

using Hire = std::function<OrderAnswerer()>;

/// Orders that are given and answered in one run of a pool. See Jobs.
struct Round {
  std::function<std::optional<std::size_t>()> next;
  std::function<std::string(std::size_t)> order;
  std::function<void(const JobResult&)> done;
  std::function<bool()> stop;
};

/// The head that comes before the bytes of an order, or of a result.
struct PipeHead {
  std::uint64_t size = 0;
  bool problem = false, unanswered = false;  // see JobResult
};

bool write_text(int to, PipeHead head, const std::string& text) {
  head.size = text.size();
  return write_all(to, &head, sizeof head) && write_all(to, text.data(), text.size());
}

bool read_text(int from, PipeHead& head, std::string& text) {
  if (!read_all(from, &head, sizeof head)) return false;
  text.resize(head.size);
  return read_all(from, text.data(), text.size());
}

/// Writes to a process that died fail here and now instead of ending this one.
class NoBrokenPipe {
 public:
  NoBrokenPipe() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~NoBrokenPipe() { std::signal(SIGPIPE, before_); }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  void (*before_)(int);
};

[[noreturn]] void work_and_exit(int orders, int results, pid_t parent, const Hire& hire) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process would take the result
  if (::getppid() != parent) _exit(1);
  // The parent hears these too, and decides.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  // No exception may reach the parent's handlers, which stand around this call.
  try {
    OrderAnswerer answer;
    PipeHead head;
    for (std::string order; read_text(orders, head, order);) {
      PipeHead told;
      std::string bytes;
      try {
        if (!answer) answer = hire();
        bytes = answer(order);
      } catch (const std::exception& failure) {
        const ToldFailure why = told_failure(failure);
        bytes = why.words;
        told = {.problem = true, .unanswered = why.lacking};
      }
      if (!write_text(results, told, bytes)) break;
    }
  } catch (...) {
    _exit(1);
  }
  _exit(0);  // destructors and buffers are the parent's
}

std::string death(int status) {
  if (WIFSIGNALED(status)) {
    return "the process that simulated it was ended by signal " + std::to_string(WTERMSIG(status)) +
           (WTERMSIG(status) == SIGKILL ? ", as when memory runs out" : "");
  }
  return "the process that simulated it ended with status " + std::to_string(WEXITSTATUS(status));
}

struct Worker {
  pid_t id = -1;  // none
  int orders = -1, results = -1;
  std::optional<std::size_t> job;
};

class ProcessPool {
 public:
  ProcessPool(Hire hire, int processes)
      : hire_(std::move(hire)), workers_(static_cast<std::size_t>(processes)) {}
  ~ProcessPool() {
    for (Worker& worker : workers_) end(worker, worker.job.has_value());
  }
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  bool run(const Round& round) {
    no_more_ = false;
    while (!round.stop || !round.stop()) {
      for (Worker& worker : workers_) give(round, worker);
      if (!anyone_works()) return true;
      take_results(round);
    }
    return false;
  }

 private:
  bool anyone_works() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.job.has_value(); });
  }

  void give(const Round& round, Worker& worker) {
    if (worker.job || no_more_) return;
    worker.job = round.next();
    no_more_ = !worker.job;
    if (no_more_) return;
    if (worker.id < 0) start(worker);
    // Its death is seen when results are taken.
    write_text(worker.orders, {}, round.order(*worker.job));
  }

  void start(Worker& worker) {
    int orders[2], results[2];
    if (::pipe(orders) != 0) throw_cannot("make a pipe");
    if (::pipe(results) != 0) {
      ::close(orders[0]);
      ::close(orders[1]);
      throw_cannot("make a pipe");
    }
    std::fflush(nullptr);  // or the child might print what waits here a second time
    const pid_t parent = ::getpid(), id = ::fork();
    if (id == 0) {
      for (const Worker& other : workers_) {
        if (other.id < 0) continue;
        ::close(other.orders);
        ::close(other.results);
      }
      ::close(orders[1]);
      ::close(results[0]);
      work_and_exit(orders[0], results[1], parent, hire_);
    }
    const int why = errno;
    ::close(orders[0]);
    ::close(results[1]);
    worker = {id, orders[1], results[0], worker.job};
    if (id > 0) return;
    ::close(worker.orders);
    ::close(worker.results);
    errno = why;
    throw_cannot("start a process");
  }

  [[noreturn]] static void throw_cannot(const char* what) {
    throw Unavailable(std::string("cannot ") + what + ": " + std::strerror(errno));
  }

  void take_results(const Round& round) {
    std::vector<pollfd> waiting;
    std::vector<Worker*> whose;
    for (Worker& worker : workers_) {
      if (!worker.job) continue;
      waiting.push_back({worker.results, POLLIN, 0});
      whose.push_back(&worker);
    }
    if (::poll(waiting.data(), waiting.size(), kLookUp) <= 0) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) take_result(round, *whose[i]);
    }
  }

  void take_result(const Round& round, Worker& worker) {
    JobResult result{.job = *worker.job};
    PipeHead head;
    if (!read_text(worker.results, head, result.bytes)) {
      result = {.job = result.job, .problem = death(end(worker, false)), .unanswered = true};
    } else if (head.problem) {
      result.problem = std::exchange(result.bytes, "");
      result.unanswered = head.unanswered;
    }
    worker.job.reset();
    round.done(result);
  }

  /// Ends a worker, waiting for what it does unless `at_once`. Returns its status.
  static int end(Worker& worker, bool at_once) {
    if (worker.id < 0) return 0;
    if (at_once) ::kill(worker.id, SIGKILL);
    ::close(worker.orders);
    ::close(worker.results);
    int status = 0;
    while (::waitpid(worker.id, &status, 0) < 0 && errno == EINTR) {
    }
    worker.id = -1;
    return status;
  }

  Hire hire_;
  std::vector<Worker> workers_;
  bool no_more_ = false;
  NoBrokenPipe no_broken_pipe_;
};

/// Returns what the `order` of `job` gives, or what it throws. Hires `answer` if it is empty.
JobResult result_of(OrderAnswerer& answer, const Hire& hire, std::size_t job,
                    const std::string& order) {
  JobResult result{.job = job};
  try {
    if (!answer) answer = hire();
    result.bytes = answer(order);
  } catch (const std::exception& failure) {
    const ToldFailure told = told_failure(failure);
    result.problem = told.words;
    result.unanswered = told.lacking;
  }
  return result;
}

class ThreadPool {
 public:
  ThreadPool(Hire hire, Workers workers) : hire_(std::move(hire)), workers_(std::move(workers)) {}
  ~ThreadPool() {
    {
      const std::lock_guard lock(guard_);
      ending_ = true;
      orders_.clear();
    }
    ordered_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  bool run(const Round& round) {
    no_more_ = false;
    while (true) {
      if (round.stop && round.stop()) return false;
      while (under_way_ < workers_.count && give(round)) {
      }
      if (under_way_ == 0) return true;
      take_results(round);
    }
  }

 private:
  /// Returns whether there was a job to give.
  bool give(const Round& round) {
    const std::optional<std::size_t> job = no_more_ ? std::nullopt : round.next();
    no_more_ = !job;
    if (no_more_) return false;
    ++under_way_;
    std::string order = round.order(*job);
    {
      const std::lock_guard lock(guard_);
      orders_.emplace_back(*job, std::move(order));
    }
    if (static_cast<int>(threads_.size()) < under_way_) start_thread();
    ordered_.notify_one();
    return true;
  }

  /// Does with the threads that there are if the system gives no further one.
  void start_thread() {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& failure) {
      if (threads_.empty()) throw Unavailable(told_failure(failure).words);
    }
  }

  void work() {
    const PlainLocale locale;
    OrderAnswerer answer;
    std::unique_lock lock(guard_);
    while (true) {
      ordered_.wait(lock, [this] { return ending_ || !orders_.empty(); });
      if (orders_.empty()) return;
      const auto [job, order] = std::move(orders_.front());
      orders_.pop_front();
      lock.unlock();
      JobResult result = result_of(answer, hire_, job, order);
      lock.lock();
      results_.push_back(std::move(result));
      ended_.notify_one();
    }
  }

  void take_results(const Round& round) {
    std::deque<JobResult> results;
    {
      std::unique_lock lock(guard_);
      ended_.wait_for(lock, std::chrono::milliseconds(kLookUp),
                      [this] { return !results_.empty(); });
      results.swap(results_);
    }
    if (workers_.meanwhile) workers_.meanwhile();
    for (const JobResult& result : results) {
      --under_way_;
      round.done(result);
    }
  }

  Hire hire_;
  Workers workers_;
  int under_way_ = 0;
  bool no_more_ = false;
  std::mutex guard_;  // of what follows
  std::condition_variable ordered_, ended_;
  std::deque<std::pair<std::size_t, std::string>> orders_;
  std::deque<JobResult> results_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// A worker that works here, one order after the other.
class OwnThread {
 public:
  OwnThread(Hire hire, Workers workers) : hire_(std::move(hire)), workers_(std::move(workers)) {}

  bool run(const Round& round) {
    while (!round.stop || !round.stop()) {
      if (workers_.meanwhile) workers_.meanwhile();
      const std::optional<std::size_t> job = round.next();
      if (!job) return true;
      round.done(result_of(answer_, hire_, *job, round.order(*job)));
    }
    return false;
  }

 private:
  Hire hire_;
  OrderAnswerer answer_;  // hired at the first order
  Workers workers_;
};

std::string bytes_of_number(std::size_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::size_t number_in(const std::string& bytes) {
  std::size_t number = 0;
  CHECK(bytes.size() == sizeof number, "an order is the number of a job");
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

/// Processes, threads, or none of both.
class AnyPool {
 public:
  AnyPool(Hire hire, const Workers& workers) {
    CHECK(workers.count >= 1, "a pool has at least one worker");
    if (!workers.threads) {
      pool_.emplace<ProcessPool>(std::move(hire), workers.count);
    } else if (workers.count > 1) {
      pool_.emplace<ThreadPool>(std::move(hire), workers);
    } else {
      pool_.emplace<OwnThread>(std::move(hire), workers);
    }
  }

  bool run(const Round& round) {
    if (auto* processes = std::get_if<ProcessPool>(&pool_)) return processes->run(round);
    if (auto* threads = std::get_if<ThreadPool>(&pool_)) return threads->run(round);
    return std::get<OwnThread>(pool_).run(round);
  }

 private:
  std::variant<std::monostate, ProcessPool, ThreadPool, OwnThread> pool_;
};

}  // namespace

WorkerPool::WorkerPool(std::function<OrderAnswerer()> hire, const Workers& workers)
    : answer_([pool = std::make_shared<AnyPool>(std::move(hire), workers)](const Orders& orders) {
        std::size_t next = 0;
        pool->run({.next = [&]() -> std::optional<std::size_t> {
                     return next < orders.count ? std::optional(next++) : std::nullopt;
                   },
                   .order = orders.order,
                   .done = orders.done,
                   .stop = {}});
      }) {}

bool run_jobs(const Jobs& jobs, const Workers& workers) {
  const Hire hire = [&jobs] {
    return [&jobs](const std::string& order) { return jobs.work(number_in(order)); };
  };
  return AnyPool(hire, workers)
      .run({.next = jobs.next, .order = bytes_of_number, .done = jobs.done, .stop = jobs.stop});
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace interlock
