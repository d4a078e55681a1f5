// Each call that changes a file fails once: a command then says so, and leaves no half of a file.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>

#include "base/file.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"
#include "tests/sweeps/started_program.h"

namespace interlock::failing_calls_test {
namespace {

const std::string kExamples = SCENARIOS_FOLDER "/examples/";

/// Which call of a program fails, with what, and whether all after it fail too.
struct Fault {
  int call = 1;
  int error = ENOSPC;
  bool stays = false;
};

/// Runs the program while a call fails. `came`: whether that call was made.
Outcome run_with(const Fault& fault, const std::string& arguments, const Folder& folder,
                 bool& came) {
  const Folder notes;
  const std::string said = notes.path("said"), preloaded = notes.path("failing_calls.so");
  std::filesystem::create_symlink(FAILING_CALLS, preloaded);  // a list is cut at spaces
  const Outcome run =
      run_shell("INTERLOCK_FAIL_AT=" + std::to_string(fault.call) +
                    " INTERLOCK_FAIL_WITH=" + std::to_string(fault.error) +
                    " INTERLOCK_FAIL_ON=" + (fault.stays ? "1" : "0") + " INTERLOCK_FAIL_SAID='" +
                    said + "' ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD='" + preloaded +
                    "' '" INTERLOCK_PROGRAM "' " + arguments,
                folder.path());
  came = std::filesystem::exists(said);
  return run;
}

/// Calls `look` with the outcome of a run for each call that can fail, until none is left. Returns
/// how many runs had a failure.
int with_each_fault(const std::function<void(const Fault&)>& prepare, const std::string& arguments,
                    const Folder& folder, const std::function<void(const Outcome&)>& look,
                    int stride = 1) {
  int failures = 0;
  for (const int error : {ENOSPC, EIO}) {
    for (const bool stays : {false, true}) {
      bool came = true;
      for (int call = 1; came; call += stride) {
        const Fault fault = {call, error, stays};
        prepare(fault);
        CAPTURE(arguments);
        CAPTURE(call);
        CAPTURE(error);
        CAPTURE(stays);
        const Outcome run = run_with(fault, arguments, folder, came);
        CAPTURE(run.err);
        failures += came ? 1 : 0;
        if (came) {
          look(run);
        } else {
          CHECK(run.exit_code == 0);
        }
      }
    }
  }
  return failures;
}

void check_sentence(const Outcome& run) {
  CHECK(run.exit_code == 2);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find("bug") == std::string::npos);
}

/// Returns the files under a folder with what is in them; folders have none.
std::map<std::string, std::string> contents_of(const Folder& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string name =
        std::filesystem::relative(entry.path(), folder.path()).generic_string();
    contents[name] = entry.is_directory() ? "" : read_file(entry.path().string());
  }
  return contents;
}

/// A command that writes one file, or one folder, of the name `output`.
struct Writing {
  std::string arguments, output;
};

const std::vector<Writing>& writings() {
  static const std::string four = "'" + kExamples + "four-equal-stages.json' ";
  static const std::string gpt = "'" + kExamples + "gpt2-xl-1f1b.json' ";
  static const std::string few_plans =
      R"(--set 'search={"zero_stage": [1], "micro_batch_size": [1], "recompute": ["none"], )"
      R"("schedule": ["1f1b"]}' )";
  static const std::vector<Writing> all = {
      {"simulate " + four + "-q --json r.json", "r.json"},
      {"simulate " + four + "-q --report r.html", "r.html"},
      {"simulate " + four + "-q --svg r.svg", "r.svg"},
      {"simulate " + four + "-q --trace r.json.gz", "r.json.gz"},
      {"simulate " + four + "-q --kineto traces", "traces"},
      {"schedule " + gpt + "-q --csv o.csv", "o.csv"},
      {"search " + gpt + few_plans + "-q --out p.json", "p.json"},
      {"export '" + kExamples + "gpt3-175b-1024-a100.json' -q --to megatron --out p.sh", "p.sh"},
      {"init --model gpt2-xl --machine dgx-h100 --devices 8 --out s.json --force -q", "s.json"},
  };
  return all;
}

TEST_CASE("a call that fails leaves the old file, or none") {
  for (const Writing& writing : writings()) {
    CAPTURE(writing.arguments);
    for (const bool old : {false, true}) {
      if (old && writing.output == "traces") continue;
      const Folder folder;
      std::map<std::string, std::string> before;
      const auto as_before = [&](const Fault&) {
        std::filesystem::remove_all(folder.path(writing.output));
        if (old) folder.file(writing.output, "old\n");
        before = contents_of(folder);
      };
      const auto look = [&](const Outcome& run) {
        check_sentence(run);
        CHECK(run.err.find(writing.output) != std::string::npos);
        CHECK(contents_of(folder) == before);
      };
      const int failures = with_each_fault(as_before, writing.arguments, folder, look);
      CHECK(failures >= 2 * 2 * 3);  // opened, written, renamed
      const auto after = contents_of(folder);
      CHECK(after.at(writing.output) != "old\n");
    }
  }
}

TEST_CASE("of several outputs each is whole or as it was") {
  const std::string arguments = "simulate '" + kExamples +
                                "four-equal-stages.json' -q --trace r.json --svg r.svg --report "
                                "r.html";
  const Folder whole;
  bool came = false;
  REQUIRE(run_with({.call = 100'000}, arguments, whole, came).exit_code == 0);
  const auto right = contents_of(whole);
  REQUIRE(right.size() == 3);
  const Folder folder;
  const auto put_old = [&](const Fault&) {
    for (const auto& [name, text] : right) folder.file(name, "old\n");
  };
  with_each_fault(put_old, arguments, folder, [&](const Outcome& run) {
    check_sentence(run);
    const auto left = contents_of(folder);
    REQUIRE(left.size() == 3);
    for (const auto& [name, text] : left) CHECK((text == "old\n" || text == right.at(name)));
  });
}

TEST_CASE("a call that fails ends a sweep with a sentence, and the next run has all rows") {
  const Folder whole;
  whole.file("sweep.json", swept_scenario(10));
  const std::vector<std::string> words = {"sweep", "sweep.json", "--db", "s.db", "-q"};
  REQUIRE(run_program(words, whole.path()).exit_code == 0);
  const std::string right = rows_of(whole.path("s.db"));
  const Folder folder;
  folder.file("sweep.json", swept_scenario(10));
  const auto start_again = [&](const Fault&) {
    for (const std::string& name : folder.files()) {
      if (name.starts_with("s.db")) std::filesystem::remove(folder.path(name));
    }
  };
  const int stride = cases(1) > 1 ? 1 : 7;  // every call where time is given
  const int failures = with_each_fault(
      start_again, "sweep sweep.json --db s.db --jobs 2 -q", folder,
      [&](const Outcome& run) {
        if (run.exit_code != 0) check_sentence(run);
        if (run.exit_code == 0) {  // a call may fail that nothing depends on
          CHECK(folder.files() == std::vector<std::string>{"s.db", "sweep.json"});
          CHECK(rows_of(folder.path("s.db")) == right);
        }
        CHECK(run_program(words, folder.path()).exit_code == 0);
        CHECK(rows_of(folder.path("s.db")) == right);
      },
      stride);
  MESSAGE(failures << " failures of a sweep");
  CHECK(failures >= 2 * 2 * 5);
}

}  // namespace
}  // namespace interlock::failing_calls_test
