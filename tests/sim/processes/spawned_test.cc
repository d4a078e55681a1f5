// Engines in a program of their own: against forked ones, and what happens when that program dies.
// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/spawned.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/sim/support/thrown_kind.h"
#include "tests/support/cases.h"

namespace interlock::spawned_test {
namespace {

Realised realise_spawned(const Program& program) {
  return realise(program, [](const Program& p, const TraceSink& sink) {
    return run_in_program(SIMGRID_PROGRAM, p, sink);
  });
}

/// A shell script in the place of an engine's program, and a file that it may write to.
class Script {
 public:
  explicit Script(const std::string& lines) {
    std::string folder = std::filesystem::temp_directory_path() / "interlock-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    std::ofstream(path()) << "#!/bin/sh\n" << lines << "\n";
    ::chmod(path().c_str(), 0700);
    ::setenv("SCRIPT_SAYS", (folder_ / "said").c_str(), 1);
  }
  ~Script() { std::filesystem::remove_all(folder_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  std::string path() const { return folder_ / "script"; }
  /// Returns what a run by the script throws.
  std::string ends(const Program& program) const {
    return kind_of([&] { run_in_program(path(), program, {}); });
  }
  std::string said() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "said").rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

bool no_child_is_left() { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST_CASE("SimGrid tells a program of its own what it tells a forked child") {
  for (int seed = 0; seed < cases(25); ++seed) {
    Random random(223, static_cast<std::uint64_t>(seed));
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    const Realised forked = realise_simgrid(program), spawned = realise_spawned(program);
    CHECK(difference(forked, spawned) == "");
    CHECK(forked.deadlock == spawned.deadlock);
    if (forked.deadlock.empty()) CHECK(spawned.summary.engine == "simgrid");
  }
  TestChain chain = make_chain(3, "1f1b");
  chain.micro_batches = 6;
  chain.policy.queue.kind = QueuePolicy::Kind::Rendezvous;  // 1F1B cannot live without room
  CHECK(says(realise_spawned(program_of(chain)).deadlock, "deadlocks"));
  CHECK(no_child_is_left());
}

TEST_CASE("many threads at once each get the trace of their own program") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int number = 1; number <= 8; ++number) {
    threads.emplace_back([&wrong, number] {
      TestChain chain = make_chain(1 + number % 4, "gpipe");
      chain.micro_batches = number;
      const Program program = program_of(chain);
      const Realised expected = realise(program, run_native);
      for (int round = 0; round < 3; ++round) {
        if (!difference(expected, realise_spawned(program)).empty()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(no_child_is_left());
}

TEST_CASE("a bug of an engine in its own program is a bug here") {
  Program program = program_of(make_chain(2, "1f1b"));
  program.wires[0].shared = true;
  program.wires[0].links = {0, 0, 0};  // a link is crossed again: no route of SimGrid
  const std::string told = kind_of([&] { run_in_program(SIMGRID_PROGRAM, program, {}); });
  CHECK(told.starts_with("bug: "));
  CHECK(says(told, "routes of SimGrid"));
}

TEST_CASE("a program of another build, or that is asked nothing, says so") {
  // Leaves out the first byte, as a build would send whose requests begin in another way.
  const Script other("tail -c +2 | '" SIMGRID_PROGRAM "'");
  CHECK(other.ends(program_of(make_chain(2, "1f1b")))
            .starts_with("Unavailable: the engine's program was asked in a way that it does not"));
  const Script nothing("'" SIMGRID_PROGRAM "' <&- 2>\"$SCRIPT_SAYS\"");
  CHECK(nothing.ends({}).starts_with("other: the engine's process died"));
  CHECK(nothing.said() ==
        "interlock-simgrid: libinterlock starts this program for a run of SimGrid\n");
}

TEST_CASE("a sink that throws passes its exception on, and the engine's program ends") {
  const TraceSink sink{.span = [](const Span&) { throw Error("enough"); }};
  const Program program = program_of(make_chain(2, "1f1b"));
  CHECK(kind_of([&] { run_in_program(SIMGRID_PROGRAM, program, sink); }) == "Error: enough");
  CHECK(no_child_is_left());
}

TEST_CASE("a sink that throws ends a program that writes, though a forked child has the socket") {
  TestChain chain = make_chain(3, "1f1b");
  chain.micro_batches = 20'000;  // a trace of more than a socket holds
  const Program program = program_of(chain);
  pid_t child = 0;
  const TraceSink sink{.span = [&](const Span&) {
    child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    throw Error("enough");
  }};
  CHECK(kind_of([&] { run_in_program(SIMGRID_PROGRAM, program, sink); }) == "Error: enough");
  ::kill(child, SIGKILL);
  CHECK(::waitpid(child, nullptr, 0) == child);
  CHECK(no_child_is_left());
}

TEST_CASE("a program that cannot be started is told with its path") {
  for (const char* path : {"/nowhere/interlock-simgrid", "/", "/dev/null"}) {
    const std::string told = kind_of([&] { run_in_program(path, {}, {}); });
    CHECK(told.starts_with(std::string("Unavailable: cannot start the engine's program ") + path +
                           ": "));
  }
  CHECK(no_child_is_left());
}

TEST_CASE("a program that dies is told by how it died, and raises no signal here") {
  // More than a socket holds, so that it is still being sent when the other side goes.
  Program large = program_of(make_chain(2, "1f1b"));
  large.folding_problem.assign(std::size_t{4} << 20, 'x');
  for (const Program& program : {program_of(make_chain(2, "1f1b")), large}) {
    CHECK(Script("kill -9 $$").ends(program).starts_with("Unavailable: the engine's process died"));
    CHECK(
        Script("kill -TERM $$").ends(program) ==
        "Unavailable: the engine's process was ended by signal 15; expected it to run to its end");
    CHECK(
        Script("exec 0<&- 1>&-; exit 3").ends(program).starts_with("other: the engine's process"));
    CHECK(Script("exit 77").ends(program) == "no memory");
    CHECK(Script("exit 0").ends(program).starts_with("other: "));
  }
  CHECK(no_child_is_left());
}

TEST_CASE("a program is given no descriptor but three, and no signal of its host") {
  REQUIRE(::dup2(STDOUT_FILENO, 57) == 57);  // kept open by exec
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  sigset_t blocked, mask;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  // The third descriptor is the folder that is listed.
  const Script script(
      "(echo $(ls /proc/self/fd); grep -E 'Sig(Blk|Ign)' /proc/self/status) "
      ">\"$SCRIPT_SAYS\"");
  script.ends({});
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  std::signal(SIGUSR1, before);
  ::close(57);
  std::istringstream said(script.said());
  std::string descriptors, word;
  std::getline(said, descriptors);
  CHECK(descriptors == "0 1 2 3");
  unsigned long long stopped = 1, ignored = 1;
  said >> word >> std::hex >> stopped >> word >> ignored;
  CHECK(stopped == 0);
  CHECK((ignored & 0x7fffffff) == 0);  // signals 32 and 33 are those of the C library itself
}

TEST_CASE("a host that closed its standard streams, or lets its children go, is served") {
  const Program program = program_of(make_chain(2, "1f1b"));
  const Realised expected = realise(program, run_native);
  const int in = ::dup(STDIN_FILENO), out = ::dup(STDOUT_FILENO), err = ::dup(STDERR_FILENO);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  const Realised closed = realise_spawned(program);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (const int copy : {in, out, err}) ::close(copy);
  CHECK(difference(expected, closed) == "");
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const Realised alone = realise_spawned(program);
  std::signal(SIGCHLD, before);
  CHECK(difference(expected, alone) == "");
}

}  // namespace
}  // namespace interlock::spawned_test
