// Starts programs by their ids, and reads what sweeps have written meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sweeps/started_program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "reports/sweeps/ranking.h"
#include "tests/cli/child_program.h"
#include "tests/support/skipped.h"

namespace interlock {

StartedProgram::StartedProgram(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  id_ = ::fork();
  REQUIRE(id_ >= 0);
  if (id_ > 0) return;
  if (::chdir(folder.c_str()) != 0) _exit(126);
  const int said = ::open("said", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  _exit(127);
}

StartedProgram::~StartedProgram() {
  if (id_ > 0) ::kill(id_, SIGKILL);
  wait();
}

bool StartedProgram::running() {
  if (id_ > 0 && ::waitpid(id_, &status_, WNOHANG) == id_) id_ = -1;
  return id_ > 0;
}

int StartedProgram::wait() {
  if (id_ > 0) ::waitpid(id_, &status_, 0);
  id_ = -1;
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::vector<pid_t> StartedProgram::children() const {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const std::size_t end = text.rfind(')');  // of the program's name; state and parent follow
    if (end == std::string::npos || text.size() < end + 4) continue;
    if (std::stol(text.substr(end + 4)) == id_) children.push_back(std::stoi(name));
  }
  return children;
}

bool lacks_mpi() {
  const bool lacks =
      !std::filesystem::exists(MPI_MODULE) || run_shell("command -v mpirun", ".").exit_code != 0;
  if (lacks) tell_skipped("sweeps by MPI ranks", "libopenmpi-dev openmpi-bin");
  return lacks;
}

std::vector<std::string> by_three_ranks(const std::vector<std::string>& words,
                                        const std::string& before) {
  std::vector<std::string> all = {
      "env",
      "ASAN_OPTIONS=detect_leaks=0",  // Open MPI's, in modules that are gone by then
      "OMPI_ALLOW_RUN_AS_ROOT=1",
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
      "mpirun",
      "-n",
      "3",
      "--oversubscribe",
      "sh",
      "-c",
      before + "exec \"$0\" \"$@\"",
      INTERLOCK_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::size_t rows_in(const std::string& database) {
  try {
    Database file(database, Database::Mode::Read);
    Statement count = file.prepare("SELECT count(*) FROM results");
    count.step();
    return static_cast<std::size_t>(number_or(count.cell(0), 0));
  } catch (const Error&) {  // it is just being made
    return 0;
  }
}

std::string rows_of(const std::string& database) {
  Ranking all = rank_rows(database, {.by = "id", .where = "1"});
  CHECK(all.columns.back() == "wall_time_s");
  for (auto& row : all.rows) row.pop_back();
  all.columns.pop_back();
  return ranking_csv(all);
}

std::string swept_scenario(int count) {
  return R"({
  "model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MB", "stash": "1 MB",
    "parameters": "1 MB"}]},
  "cluster": {"kind": "uniform", "devices": 8, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 16, "steps": 1},
  "sweep": {"cluster.link.latency": {"from": "1 us", "to": ")" +
         std::to_string(count / 10) + R"( us"},
            "training.micro_batches": {"from": 2, "to": 20, "step": 2}}
})";
}

}  // namespace interlock
