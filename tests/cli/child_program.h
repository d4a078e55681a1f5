// The built program, run as a user runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace interlock {

/// How a run of the program ended.
struct Outcome {
  int exit_code = -1;  // 128 + signal if it was killed, as what hangs is
  std::string out, err;
};

/// Runs the program with `arguments` in `folder`, `input` on its standard input.
Outcome run_program(const std::vector<std::string>& arguments, const std::string& folder = ".",
                    const std::string& input = "");

/// Runs a command line as a shell does, likewise.
Outcome run_shell(const std::string& command, const std::string& folder);

/// Runs the program and sends `signal` to all its processes, as a terminal does, once it has a
/// handler for that signal.
Outcome interrupt_program(const std::vector<std::string>& arguments, const std::string& folder,
                          int signal = SIGINT);

/// Runs the program with a terminal as its standard error, and sends SIGINT to all its processes
/// once `words` stand there. `err` is all that the terminal was sent.
Outcome interrupt_on_terminal(const std::vector<std::string>& arguments, const std::string& folder,
                              const std::string& words);

/// A folder of this test alone, gone with it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name = "") const { return (path_ / name).string(); }
  /// Writes a file and returns its name.
  std::string file(const std::string& name, const std::string& text) const;
  /// The names of all files, sorted.
  std::vector<std::string> files() const;

 private:
  std::filesystem::path path_;
};

/// Four equal stages of 1 ms an op, pairwise, two steps.
extern const char* const kPairwise;

}  // namespace interlock
