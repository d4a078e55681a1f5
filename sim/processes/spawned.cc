// An engine in a program of its own: a request goes to it through a socket, and a trace comes back.
// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/spawned.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>

#include "sim/processes/socket_text.h"
#include "sim/processes/trace_pipe.h"
#include "sim/processes/unavailable.h"
#include "sim/program/program_bytes.h"

namespace interlock {
namespace {

/// Holds the descriptors and signals that a program is started with.
class StartConditions {
 public:
  /// `end`: of a socket, its standard input and output.
  explicit StartConditions(int end) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, end, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files_, STDIN_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~StartConditions() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }
  StartConditions(const StartConditions&) = delete;
  StartConditions& operator=(const StartConditions&) = delete;

  /// Returns 0, or why the program could not be started.
  int start(const std::string& path, pid_t& id) const {
    std::string name = path;
    char* const arguments[] = {name.data(), nullptr};
    return ::posix_spawn(&id, path.c_str(), &files_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

constexpr std::size_t kFlags = 4;  // bytes of a request before its program

std::string flags_of(const WantedTrace& wanted) {
  return {static_cast<char>(wanted.spans), static_cast<char>(wanted.transfers),
          static_cast<char>(wanted.memory), static_cast<char>(wanted.collectives)};
}

/// Reads flags_of(). Those of another build may be any bytes.
WantedTrace wanted_in(std::string_view request) {
  return {.spans = request[0] != 0,
          .transfers = request[1] != 0,
          .memory = request[2] != 0,
          .collectives = request[3] != 0};
}

/// Returns the program of a request. Throws: Unavailable if it cannot be read.
Program program_in(std::string_view request) {
  try {
    return read_program(request);
  } catch (const std::runtime_error& problem) {
    throw Unavailable(
        std::string("the engine's program was asked in a way that it does not know: ") +
        problem.what() + "; expected it from the installation that asks");
  }
}

}  // namespace

RunSummary run_in_program(const std::string& path, const Program& program, const TraceSink& sink) {
  const std::string request = flags_of(wanted_by(sink)) + program_bytes(program);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Unavailable(std::string("cannot make a socket: ") + std::strerror(errno));
  }
  pid_t id = 0;
  const int failed = StartConditions(ends[1]).start(path, id);
  ::close(ends[1]);
  EngineProcess process(ends[0], failed == 0 ? id : 0);
  if (failed != 0) {
    throw Unavailable("cannot start the engine's program " + path + ": " + std::strerror(failed) +
                      "; expected it beside what started it, or in ../lib/interlock");
  }
  send_all(ends[0], request);
  ::shutdown(ends[0], SHUT_WR);
  return process.take_trace(sink);
}

void serve_program(RunSummary (*engine)(const Program&, const TraceSink&)) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process would take the trace
  std::signal(SIGINT, SIG_IGN);        // who asks hears it, too, and decides
  try {
    const std::string request = receive_all(STDIN_FILENO);
    if (request.size() < kFlags) return;
    run_and_exit(STDOUT_FILENO, wanted_in(request), [&](const TraceSink& sink) {
      return engine(program_in(std::string_view(request).substr(kFlags)), sink);
    });
  } catch (const std::bad_alloc&) {
    _exit(kOutOfMemory);
  }
}

}  // namespace interlock
