// Sweeps side by side, killed at random with their processes: in the end all rows are there.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "base/random.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"
#include "tests/sweeps/started_program.h"

namespace interlock::killed_sweeps_test {
namespace {

constexpr int kPoints = 400;

struct Tally {
  int programs = 0, workers = 0, refused = 0;
};

std::vector<std::string> sweep(const std::vector<std::string>& more) {
  std::vector<std::string> words = {INTERLOCK_PROGRAM, "sweep", "sweep.json", "--jobs", "3", "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Kills a process of `program`, or the program: at any moment, in no particular place of a row.
void kill_one(StartedProgram& program, Random& random, Tally& tally) {
  const std::vector<pid_t> workers = program.children();
  const bool whole = workers.empty() || random.integer(0, 2) == 0;
  if (!program.running()) return;
  if (whole) {
    ::kill(program.id(), SIGKILL);
    ++tally.programs;
  } else {
    ::kill(
        workers[static_cast<std::size_t>(random.integer(0, static_cast<int>(workers.size()) - 1))],
        SIGKILL);
    ++tally.workers;
  }
}

/// Starts one sweep of each list of words and kills processes of both, `kills` times in all;
/// whatever has ended is started again.
Tally kill_among(const std::vector<std::vector<std::string>>& lines, const Folder& folder,
                 int kills, Random& random) {
  constexpr double kLongest = 40'000;  // us between two kills
  std::vector<std::unique_ptr<StartedProgram>> programs(lines.size());
  Tally tally;
  while (tally.programs + tally.workers < kills) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (programs[i] && programs[i]->running()) continue;
      if (programs[i] && programs[i]->wait() == 2) ++tally.refused;
      programs[i] = std::make_unique<StartedProgram>(lines[i], folder.path());
    }
    ::usleep(static_cast<unsigned>(random.uniform() * kLongest));
    const int last = static_cast<int>(lines.size()) - 1;
    kill_one(*programs[static_cast<std::size_t>(random.integer(0, last))], random, tally);
  }
  // Those that are left are ended as the others were.
  for (const auto& program : programs) {
    if (program->running()) ::kill(program->id(), SIGKILL);
    program->wait();
  }
  return tally;
}

std::string whole_sweep() {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  REQUIRE(StartedProgram(sweep({"--db", "s.db"}), folder.path()).wait() == 0);
  return rows_of(folder.path("s.db"));
}

TEST_CASE("two sweeps into one file, killed at random points, make the rows of one run") {
  const std::string right = whole_sweep();
  Random random(25, 1);
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const auto line = sweep({"--db", "s.db", "--retry"});
  const Tally tally = kill_among({line, line}, folder, cases(12), random);
  MESSAGE(tally.programs << " programs and " << tally.workers << " processes of theirs killed, "
                         << tally.refused << " refused");
  // Two at once: one works, the other is told so, or finds all rows there.
  StartedProgram first(line, folder.path()), second(line, folder.path());
  const int one = first.wait(), other = second.wait();
  CHECK((one == 0 || other == 0));
  CHECK((one == 0 || one == 2));
  CHECK((other == 0 || other == 2));
  CHECK(rows_of(folder.path("s.db")) == right);
}

TEST_CASE("shards killed at random points and put together make the rows of one run") {
  const std::string right = whole_sweep();
  Random random(25, 2);
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const std::vector<std::vector<std::string>> lines = {
      sweep({"--db", "1.db", "--shard", "1/2", "--retry"}),
      sweep({"--db", "2.db", "--shard", "2/2", "--retry"})};
  const Tally tally = kill_among(lines, folder, cases(12), random);
  MESSAGE(tally.programs << " programs and " << tally.workers << " processes of theirs killed");
  for (const auto& line : lines) CHECK(StartedProgram(line, folder.path()).wait() == 0);
  const Outcome merged = run_program({"merge", "all.db", "1.db", "2.db"}, folder.path());
  CAPTURE(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(rows_of(folder.path("all.db")) == right);
}

}  // namespace
}  // namespace interlock::killed_sweeps_test
