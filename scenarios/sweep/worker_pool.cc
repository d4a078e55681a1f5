// The pool: a pair of pipes to each worker; jobs go out as numbers, results come back as bytes.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/worker_pool.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"

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

class Pool {
 public:
  Pool(const Jobs& jobs, int processes)
      : jobs_(jobs), workers_(static_cast<std::size_t>(processes)) {}
  ~Pool() {
    for (Worker& worker : workers_) end(worker, worker.job.has_value());
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

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

}  // namespace

bool run_jobs(const Jobs& jobs, int processes) {
  CHECK(processes >= 1, "a pool has at least one process");
  return Pool(jobs, processes).run();
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace interlock
