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
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scenarios/sweep/plain_locale.h"

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

/// The head that comes before the bytes of a result.
struct PipeHead {
  std::uint64_t size = 0;
  bool problem = false;
};

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

[[noreturn]] void work_and_exit(int orders, int results, pid_t parent, const Jobs& jobs) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process would take the result
  if (::getppid() != parent) _exit(1);
  std::signal(SIGINT, SIG_IGN);  // the parent hears it too, and decides
  for (std::uint64_t job = 0; read_all(orders, &job, sizeof job);) {
    PipeHead head;
    std::string bytes;
    try {
      bytes = jobs.work(static_cast<std::size_t>(job));
    } catch (const std::exception& error) {
      bytes = error.what();
      head.problem = true;
    }
    head.size = bytes.size();
    if (!write_all(results, &head, sizeof head)) break;
    if (!write_all(results, bytes.data(), bytes.size())) break;
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
  ProcessPool(const Jobs& jobs, int processes)
      : jobs_(jobs), workers_(static_cast<std::size_t>(processes)) {}
  ~ProcessPool() {
    for (Worker& worker : workers_) end(worker, worker.job.has_value());
  }
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  bool run() {
    while (!stopped()) {
      for (Worker& worker : workers_) give(worker);
      if (!anyone_works()) return true;
      take_results();
    }
    return false;
  }

 private:
  bool stopped() const { return jobs_.stop && jobs_.stop(); }
  bool anyone_works() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.job.has_value(); });
  }

  void give(Worker& worker) {
    if (worker.job || no_more_) return;
    worker.job = jobs_.next();
    no_more_ = !worker.job;
    if (no_more_) return;
    if (worker.id < 0) start(worker);
    const std::uint64_t number = *worker.job;
    write_all(worker.orders, &number, sizeof number);  // its death is seen when results are taken
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
      work_and_exit(orders[0], results[1], parent, jobs_);
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
    throw Error(std::string("cannot ") + what + ": " + std::strerror(errno));
  }

  void take_results() {
    std::vector<pollfd> waiting;
    std::vector<Worker*> whose;
    for (Worker& worker : workers_) {
      if (!worker.job) continue;
      waiting.push_back({worker.results, POLLIN, 0});
      whose.push_back(&worker);
    }
    if (::poll(waiting.data(), waiting.size(), kLookUp) <= 0) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) take_result(*whose[i]);
    }
  }

  void take_result(Worker& worker) {
    JobResult result{*worker.job, "", ""};
    PipeHead head;
    bool whole = read_all(worker.results, &head, sizeof head);
    if (whole) {
      std::string& text = head.problem ? result.problem : result.bytes;
      text.resize(head.size);
      whole = read_all(worker.results, text.data(), text.size());
    }
    if (!whole) result.problem = death(end(worker, false));
    worker.job.reset();
    jobs_.done(result);
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

  const Jobs& jobs_;
  std::vector<Worker> workers_;
  bool no_more_ = false;
  NoBrokenPipe no_broken_pipe_;
};

/// Returns what `job` gives, or what it throws.
JobResult result_of(const Jobs& jobs, std::size_t job) {
  JobResult result{job, "", ""};
  try {
    result.bytes = jobs.work(job);
  } catch (const std::exception& error) {
    result.problem = error.what();
  }
  return result;
}

class ThreadPool {
 public:
  ThreadPool(const Jobs& jobs, const Workers& workers) : jobs_(jobs), workers_(workers) {}
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

  bool run() {
    while (true) {
      if (jobs_.stop && jobs_.stop()) return false;
      while (under_way_ < workers_.count && give()) {
      }
      if (under_way_ == 0) return true;
      take_results();
    }
  }

 private:
  /// Returns whether there was a job to give.
  bool give() {
    const std::optional<std::size_t> job = no_more_ ? std::nullopt : jobs_.next();
    no_more_ = !job;
    if (no_more_) return false;
    ++under_way_;
    {
      const std::lock_guard lock(guard_);
      orders_.push_back(*job);
    }
    if (static_cast<int>(threads_.size()) < under_way_) threads_.emplace_back([this] { work(); });
    ordered_.notify_one();
    return true;
  }

  void work() {
    const PlainLocale locale;
    std::unique_lock lock(guard_);
    while (true) {
      ordered_.wait(lock, [this] { return ending_ || !orders_.empty(); });
      if (orders_.empty()) return;
      const std::size_t job = orders_.front();
      orders_.pop_front();
      lock.unlock();
      JobResult result = result_of(jobs_, job);
      lock.lock();
      results_.push_back(std::move(result));
      ended_.notify_one();
    }
  }

  void take_results() {
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
      jobs_.done(result);
    }
  }

  const Jobs& jobs_;
  const Workers& workers_;
  int under_way_ = 0;
  bool no_more_ = false;
  std::mutex guard_;  // of what follows
  std::condition_variable ordered_, ended_;
  std::deque<std::size_t> orders_;
  std::deque<JobResult> results_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// Runs `jobs` here, one after the other.
bool run_in_turn(const Jobs& jobs, const Workers& workers) {
  while (!jobs.stop || !jobs.stop()) {
    if (workers.meanwhile) workers.meanwhile();
    const std::optional<std::size_t> job = jobs.next();
    if (!job) return true;
    jobs.done(result_of(jobs, *job));
  }
  return false;
}

}  // namespace

bool run_jobs(const Jobs& jobs, const Workers& workers) {
  CHECK(workers.count >= 1, "a pool has at least one worker");
  if (!workers.threads) return ProcessPool(jobs, workers.count).run();
  return workers.count == 1 ? run_in_turn(jobs, workers) : ThreadPool(jobs, workers).run();
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace interlock
