// Runs the built program in a child process and collects what it says.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

#include <fcntl.h>
#include <poll.h>
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

/// In the child: becomes the program `words[0]`, its streams tied to files, standard error to
/// `errors`. Never returns.
[[noreturn]] void become_program(const std::vector<std::string>& words, const Folder& streams,
                                 const std::string& errors, const std::string& folder) {
  constexpr unsigned kLimit = 1800;  // s; what takes so long hangs, however slow the machine is
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int in = open(streams.path("in").c_str(), O_RDONLY);
  const int out = open(streams.path("out").c_str(), O_WRONLY | O_CREAT, 0600);
  const int err = open(errors.c_str(), O_WRONLY | O_CREAT | O_NOCTTY, 0600);
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

/// Forks, and becomes `words` in the child, as the leader of a group or not. Returns its id.
pid_t start_words(const std::vector<std::string>& words, const Folder& streams,
                  const std::string& errors, const std::string& folder, bool leads) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  if (leads) setpgid(0, 0);      // what is sent to its group must not reach this program
  std::signal(SIGINT, SIG_DFL);  // doctest's handler is not the program's
  std::signal(SIGHUP, SIG_DFL);  // nohup may have started the tests
  become_program(words, streams, errors, folder);
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> program_with(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {INTERLOCK_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// A pseudo-terminal that programs write to.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    name_ = ptsname(master_);
    slave_ = open(name_.c_str(), O_RDWR | O_NOCTTY);  // or reads fail before the program opens it
    REQUIRE(slave_ >= 0);
  }
  ~Terminal() {
    close(slave_);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }

  /// Adds to text() what was written. Returns false if nothing comes for a while.
  bool read_some() {
    constexpr int kLook = 20;  // ms
    pollfd ready{.fd = master_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kLook) != 1) return false;
    char bytes[512];
    const ssize_t got = read(master_, bytes, sizeof bytes);
    if (got > 0) text_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }

 private:
  int master_, slave_ = -1;
  std::string name_, text_;
};

/// Runs `words`, and calls `meanwhile` with the id of their process.
Outcome run_words(const std::vector<std::string>& words, const std::string& folder,
                  const std::string& input, const std::function<void(pid_t)>& meanwhile = {}) {
  const Folder streams;
  streams.file("in", input);
  const std::string errors = streams.path("err");
  const pid_t child = start_words(words, streams, errors, folder, static_cast<bool>(meanwhile));
  if (meanwhile) meanwhile(child);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return {exit_code_of(status), read_file(streams.path("out")), read_file(errors)};
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, const std::string& folder,
                    const std::string& input) {
  return run_words(program_with(arguments), folder, input);
}

Outcome run_shell(const std::string& command, const std::string& folder) {
  return run_words({"/bin/sh", "-c", command}, folder, "");
}

Outcome interrupt_program(const std::vector<std::string>& arguments, const std::string& folder,
                          int signal) {
  return run_words(program_with(arguments), folder, "", [signal](pid_t id) {
    constexpr unsigned kLook = 2000;  // us
    while (!has_ended_or_catches(id, signal)) usleep(kLook);
    kill(-id, signal);
  });
}

Outcome interrupt_on_terminal(const std::vector<std::string>& arguments, const std::string& folder,
                              const std::string& words) {
  const Folder streams;
  streams.file("in", "");
  Terminal terminal;
  const pid_t child = start_words(program_with(arguments), streams, terminal.name(), folder, true);
  bool sent = false;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    terminal.read_some();
    if (sent || terminal.text().find(words) == std::string::npos) continue;
    kill(-child, SIGINT);
    sent = true;
  }
  while (terminal.read_some()) {
  }
  return {exit_code_of(status), read_file(streams.path("out")), terminal.text()};
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
