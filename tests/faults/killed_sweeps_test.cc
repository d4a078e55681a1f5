// Sweeps side by side, by processes and by ranks, killed at random: in the end all rows are there.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/random.h"
#include "tests/cli/child_program.h"
#include "tests/support/cases.h"
#include "tests/sweeps/started_program.h"

namespace interlock::killed_sweeps_test {
namespace {

constexpr int kPoints = 400;

struct Tally {
  int programs = 0, workers = 0, refused = 0, whole = 0;  // killed, killed, ended, ended
};

std::vector<std::string> sweep(const std::vector<std::string>& more) {
  std::vector<std::string> words = {INTERLOCK_PROGRAM, "sweep", "sweep.json", "--jobs", "3", "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Sweeps side by side, and what is to be done when all of them have ended well.
struct Trial {
  std::vector<std::vector<std::string>> lines;
  std::function<void()> finish;  // checks the rows, and takes the files away
  double longest = 0;            // us between two kills: half of what a sweep takes
};

/// A sweep that is run again until it ends well, with all its processes alive: a row whose process
/// is killed fails, and the next run does it again.
struct Running {
  std::unique_ptr<StartedProgram> program;
  bool hurt = false, done = false;
};

/// Kills a process of a program, or the program: at any moment, in no particular place of a row.
void kill_one(Running& sweep, Random& random, Tally& tally) {
  StartedProgram& program = *sweep.program;
  const std::vector<pid_t> workers = program.children();
  const bool whole = workers.empty() || random.integer(0, 2) == 0;
  if (!program.running()) return;
  sweep.hurt = true;
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

/// Starts what does not run and has not ended well. Returns true if all have.
bool keep_running(const Trial& trial, const Folder& folder, std::vector<Running>& sweeps,
                  Tally& tally) {
  sweeps.resize(trial.lines.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    Running& one = sweeps[i];
    if (one.done || (one.program && one.program->running())) continue;
    const int code = one.program ? one.program->wait() : 1;
    if (code == 2) ++tally.refused;
    one.done = code == 0 && !one.hurt;
    one.hurt = false;
    if (!one.done) one.program = std::make_unique<StartedProgram>(trial.lines[i], folder.path());
  }
  return std::ranges::all_of(sweeps, &Running::done);
}

/// Keeps the sweeps of `trial` running and kills processes of them, `kills` times in all and never
/// after the last row; where all have ended, it begins anew. Then lets them end.
void kill_among(const Trial& trial, const Folder& folder, int kills, Random& random) {
  std::vector<Running> sweeps;
  Tally tally;
  while (tally.programs + tally.workers < kills) {
    if (keep_running(trial, folder, sweeps, tally)) {
      trial.finish();
      ++tally.whole;
      sweeps.clear();
      continue;
    }
    ::usleep(static_cast<unsigned>(random.uniform() * trial.longest));
    const int last = static_cast<int>(sweeps.size()) - 1;
    Running& chosen = sweeps[static_cast<std::size_t>(random.integer(0, last))];
    if (!chosen.done) kill_one(chosen, random, tally);
  }
  while (!keep_running(trial, folder, sweeps, tally)) ::usleep(1000);
  trial.finish();
  ++tally.whole;
  MESSAGE(tally.programs << " programs and " << tally.workers << " processes of theirs killed, "
                         << tally.refused << " refused; " << tally.whole << " sweeps ended");
}

/// The rows of a sweep that nothing disturbs, and how long it took.
struct Whole {
  std::string rows;
  double microseconds = 0;
};

Whole whole(const std::vector<std::string>& line) {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(StartedProgram(line, folder.path()).wait() == 0);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return {rows_of(folder.path("s.db")), took.count()};
}

/// Returns a step of a trial that compares `database` with `right` and begins anew.
std::function<void()> compared(const Folder& folder, const std::string& right,
                               const std::string& database) {
  return [&folder, right, database] {
    CHECK(rows_of(folder.path(database)) == right);
    for (const std::string& name : folder.files()) {
      if (name != "sweep.json") std::filesystem::remove(folder.path(name));
    }
  };
}

TEST_CASE("two sweeps into one file, killed at random points, make the rows of one run") {
  Random random(25, 1);
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const auto line = sweep({"--db", "s.db", "--retry"});
  const Whole right = whole(line);
  kill_among({{line, line}, compared(folder, right.rows, "s.db"), right.microseconds / 2}, folder,
             cases(12), random);
}

TEST_CASE("shards killed at random points and put together make the rows of one run") {
  const Whole right = whole(sweep({"--db", "s.db"}));
  Random random(25, 2);
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const auto merged = [&] {
    CHECK(run_program({"merge", "all.db", "1.db", "2.db"}, folder.path()).exit_code == 0);
    compared(folder, right.rows, "all.db")();
  };
  kill_among({{sweep({"--db", "1.db", "--shard", "1/2", "--retry"}),
               sweep({"--db", "2.db", "--shard", "2/2", "--retry"})},
              merged,
              right.microseconds / 4},
             folder, cases(12), random);
}

TEST_CASE("ranks of MPI, or what started them, killed at random points: the rows of one run") {
  if (lacks_mpi()) return;
  Random random(25, 3);
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  const Whole right = whole(sweep({"--db", "s.db"}));
  const auto line = by_three_ranks({"sweep", "sweep.json", "--db", "s.db", "-q", "--retry"});
  const Whole ranked = whole(line);
  CHECK(ranked.rows == right.rows);
  kill_among({{line}, compared(folder, right.rows, "s.db"), ranked.microseconds / 2}, folder,
             cases(3), random);
}

}  // namespace
}  // namespace interlock::killed_sweeps_test
