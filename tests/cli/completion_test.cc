// Help, completions and the manual page, in the shells and formatters that read them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "tests/cli/child_program.h"
#include "tests/support/skipped.h"

namespace interlock::completion_test {
namespace {

bool has_program(const std::string& name) {
  return run_shell("command -v " + name + " >/dev/null", ".").exit_code == 0;
}

/// Returns what bash offers for a command line whose words are `words`, the last one being typed.
std::vector<std::string> offered(const std::vector<std::string>& words) {
  const Folder folder;
  folder.file("interlock.bash", run_program({"completion", "bash"}).out);
  std::string array;
  for (const std::string& word : words) array += " '" + word + "'";
  folder.file("ask.sh", "source ./interlock.bash\nCOMP_WORDS=(" + array.substr(1) + ")\n" +
                            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                            "_interlock 2>/dev/null\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const Outcome run = run_shell("bash --norc --noprofile ask.sh", folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  std::istringstream lines(run.out);
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) found.push_back(line);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool offers(const std::vector<std::string>& words, const std::string& word) {
  const auto found = offered(words);
  return std::find(found.begin(), found.end(), word) != found.end();
}

TEST_CASE("bash completes commands, those below them, and options") {
  CHECK(offered({"interlock", "sim"}) == std::vector<std::string>{"simulate"});
  CHECK(offers({"interlock", ""}, "compare"));
  CHECK(offers({"interlock", "help", ""}, "sweep"));
  CHECK(offered({"interlock", "validate", "pub"}) == std::vector<std::string>{"published"});
  CHECK(offered({"interlock", "simulate", "--kin"}) == std::vector<std::string>{"--kineto"});
  CHECK(offers({"interlock", "validate", "run", "--"}, "--clock"));
  CHECK_FALSE(offers({"interlock", "validate", "run", "--"}, "--kind"));
  CHECK_FALSE(offers({"interlock", "check", "--"}, "--report"));
}

TEST_CASE("bash completes sets, names of machines and models, and settings") {
  CHECK(offered({"interlock", "list", "ma"}) == std::vector<std::string>{"machines"});
  CHECK(offered({"interlock", "completion", ""}) ==
        std::vector<std::string>{"bash", "fish", "zsh"});
  CHECK(offered({"interlock", "init", "--machine", "dgx-h"}) ==
        std::vector<std::string>{"dgx-h100", "dgx-h200"});
  CHECK(offers({"interlock", "init", "--model", "gpt2"}, "gpt2-xl"));
  CHECK(offers({"interlock", "simulate", "--engine", ""}, "native"));
  CHECK(offers({"interlock", "simulate", "--engine", "="}, "simgrid"));  // --engine=
  CHECK(offers({"interlock", "simulate", "x.json", "--set", "training.sch"}, "training.schedule="));
  // bash takes "training.schedule=zb-h" apart at "=".
  CHECK(offered({"interlock", "simulate", "--set", "training.precision", "=", "fp1"}) ==
        std::vector<std::string>{"fp16"});
  CHECK(offers({"interlock", "simulate", "--set", "training.precision", "="}, "bf16"));
}

TEST_CASE("bash completes files where files are meant") {
  const Folder folder;
  folder.file("one.json", "{}");
  CHECK(offers({"interlock", "simulate", folder.path("on")}, folder.path("one.json")));
  CHECK(offers({"interlock", "simulate", "--json", folder.path("on")}, folder.path("one.json")));
  CHECK(offers({"interlock", "report", folder.path("on")}, folder.path("one.json")));
  CHECK_FALSE(offers({"interlock", "list", folder.path("on")}, folder.path("one.json")));
}

TEST_CASE("zsh and fish read their completions without complaint") {
  for (const std::string shell : {"zsh", "fish"}) {
    CAPTURE(shell);
    const Outcome script = run_program({"completion", shell});
    CHECK(script.exit_code == 0);
    CHECK(script.out.find("--" + std::string(shell == "fish" ? "" : "kineto")) !=
          std::string::npos);
    if (!has_program(shell)) {
      tell_skipped("the syntax of completions for " + shell, shell);
      continue;
    }
    const Folder folder;
    folder.file("script", script.out);
    const Outcome read = run_shell(shell + " -n script", folder.path());
    CHECK(read.exit_code == 0);
    CHECK(read.err == "");
  }
}

TEST_CASE("the manual page is troff that groff takes, and names every command") {
  const Outcome page = run_program({"man"});
  CHECK(page.exit_code == 0);
  CHECK(page.out.starts_with(".TH INTERLOCK 1"));
  if (!has_program("groff")) {
    tell_skipped("the manual page, set by groff", "groff");
    return;
  }
  const Folder folder;
  folder.file("interlock.1", page.out);
  const Outcome set = run_shell("groff -ww -man -Tutf8 -P-cbou interlock.1", folder.path());
  CHECK(set.exit_code == 0);
  CHECK(set.err == "");
  for (const char* word : {"interlock simulate", "interlock validate published",
                           "interlock explain", "INTERLOCK_DATA", "EXIT STATUS", "--machine"}) {
    CAPTURE(word);
    CHECK(set.out.find(word) != std::string::npos);
  }
}

TEST_CASE("help of a command is its --help, and a name that is none gets the nearest") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{}, {"sweep"}, {"validate"}, {"validate", "run"}, {"help"}}) {
    std::vector<std::string> asked = {"help"}, option = command;
    asked.insert(asked.end(), command.begin(), command.end());
    option.emplace_back("--help");
    const Outcome help = run_program(asked);
    CHECK(help.exit_code == 0);
    CHECK(help.out == run_program(option).out);
    CHECK(help.out.find("Usage: interlock") != std::string::npos);
  }
  MESSAGE("options may stand before the name");
  const Outcome behind = run_program({"help", "sweep", "--json", "-"});
  CHECK(behind.out.find("--shard") != std::string::npos);
  CHECK(run_program({"help", "--json", "-", "sweep"}).out == behind.out);
  for (const auto& [asked, said] :
       {std::pair<std::vector<std::string>, std::string>{{"help", "swep"},
                                                         "\"swep\"; did you mean \"sweep\"?"},
        {{"help", "validate", "rnu"}, "\"rnu\"; did you mean \"run\"?"},
        {{"validate", "rnu"}, "\"rnu\"; did you mean \"run\"?"},
        {{"help", "man", "x"}, "\"x\"; no command is below this one"}}) {
    const Outcome wrong = run_program(asked);
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.out == "");
    CHECK(wrong.err == "unknown command " + said + "\n");
  }
}

}  // namespace
}  // namespace interlock::completion_test
