// Runs the built program in a child process and collects what it says.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/file.h"

namespace interlock {
namespace {

std::atomic<int> folders = 0;

/// In the child: becomes the program `words[0]`, its streams tied to files. Never returns.
[[noreturn]] void become_program(const std::vector<std::string>& words, const Folder& streams,
                                 const std::string& folder) {
  constexpr unsigned kLimit = 1800;  // s; what takes so long hangs, however slow the machine is
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int in = open(streams.path("in").c_str(), O_RDONLY);
  const int out = open(streams.path("out").c_str(), O_WRONLY | O_CREAT, 0600);
  const int err = open(streams.path("err").c_str(), O_WRONLY | O_CREAT, 0600);
  const bool tied = dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2;
  if (!tied || chdir(folder.c_str()) != 0) _exit(126);
  alarm(kLimit);
  execv(argv[0], argv.data());
  _exit(127);
}

/// Says whether the process `id` has ended, or is the program and has a handler for `signal`.
bool has_ended_or_catches(pid_t id, int signal) {
  siginfo_t ended = {};
  if (waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != 0) {
    return true;
  }
  std::ifstream status("/proc/" + std::to_string(id) + "/status");
  bool begun = false;
  for (std::string line; std::getline(status, line);) {
    begun = begun || line == "Name:\tinterlock";
    if (!line.starts_with("SigCgt:")) continue;
    return begun && (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

/// Runs `words`, and calls `meanwhile` with the id of their process.
Outcome run_words(const std::vector<std::string>& words, const std::string& folder,
                  const std::string& input, const std::function<void(pid_t)>& meanwhile = {}) {
  const Folder streams;
  streams.file("in", input);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (meanwhile) setpgid(0, 0);  // what is sent to its group must not reach this program
    std::signal(SIGINT, SIG_DFL);  // doctest's handler is not the program's
    std::signal(SIGHUP, SIG_DFL);  // nohup may have started the tests
    become_program(words, streams, folder);
  }
  if (meanwhile) meanwhile(child);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_file(streams.path("out")), read_file(streams.path("err"))};
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, const std::string& folder,
                    const std::string& input) {
  std::vector<std::string> words = {INTERLOCK_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, folder, input);
}

Outcome run_shell(const std::string& command, const std::string& folder) {
  return run_words({"/bin/sh", "-c", command}, folder, "");
}

Outcome interrupt_program(const std::vector<std::string>& arguments, const std::string& folder,
                          int signal) {
  std::vector<std::string> words = {INTERLOCK_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, folder, "", [signal](pid_t id) {
    constexpr unsigned kLook = 2000;  // us
    while (!has_ended_or_catches(id, signal)) usleep(kLook);
    kill(-id, signal);
  });
}

Folder::Folder()
    : path_(std::filesystem::temp_directory_path() /
            ("interlock-cli-" + std::to_string(getpid()) + "-" + std::to_string(++folders))) {
  std::filesystem::create_directories(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(const std::string& name, const std::string& text) const {
  write_file(path(name), text);
  return name;
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

const char* const kPairwise = R"({
  "name": "toy",
  "model": {"kind": "profile", "modules": [
    {"repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
     "parameters": "1 GiB"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "pairwise", "steps": 2}
})";

}  // namespace interlock
