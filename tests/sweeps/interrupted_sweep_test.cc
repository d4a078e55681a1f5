// A sweep that is killed again and again ends with the rows of one that was not.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "reports/sweeps/ranking.h"
#include "tests/cli/child_program.h"
#include "tests/sweeps/started_program.h"

namespace interlock::interrupted_sweep_test {
namespace {

constexpr unsigned kLook = 2000;  // us between looks at a sweep that runs

/// How long each row took, by id: another run of it would take another time.
std::map<double, double> times_of(const std::string& database) {
  std::map<double, double> times;
  if (rows_in(database) == 0) return times;
  for (const auto& row : rank_rows(database, {.by = "id", .where = "1"}).rows) {
    times[number_or(row.front(), 0)] = number_or(row.back(), 0);
  }
  return times;
}

constexpr std::size_t kPoints = 2000, kKills = 10;

std::vector<std::string> sweep_into(const std::string& database) {
  return {INTERLOCK_PROGRAM, "sweep", "sweep.json", "--db", database, "--jobs", "3", "-q"};
}

/// Starts a sweep into the new file `name` and kills it, ten times. Returns false if it was once
/// done before it was killed, since this process had to wait for the processor.
bool kill_ten_times(const Folder& folder, const std::string& name, Random& random) {
  const std::string parts = folder.path(name);
  for (std::size_t k = 0; k < kKills; ++k) {
    const std::map<double, double> before = times_of(parts);
    // Somewhere in the next tenth of what is left, and in no particular place of a row.
    const std::size_t left = kPoints - before.size();
    const double share = random.uniform() / static_cast<double>(kKills - k + 1);
    const std::size_t aim =
        before.size() + 1 + static_cast<std::size_t>(share * static_cast<double>(left));
    StartedProgram program(sweep_into(name), folder.path());
    while (program.running() && rows_in(parts) < aim) ::usleep(kLook);
    ::usleep(static_cast<unsigned>(random.uniform() * kLook));
    if (!program.running()) return false;
    ::kill(program.id(), SIGKILL);
    program.wait();
    const std::map<double, double> after = times_of(parts);
    CHECK(after.size() >= before.size());
    for (const auto& [id, time] : before) CHECK(after.at(id) == time);  // none again
  }
  return true;
}

TEST_CASE("killed at ten points and started again, a sweep of 2,000 is that of one run") {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(kPoints));
  REQUIRE(run_program({"sweep", "sweep.json", "--db", "whole.db", "-q"}, folder.path()).exit_code ==
          0);
  REQUIRE(rows_in(folder.path("whole.db")) == kPoints);
  Random random(20, 1);
  int attempt = 1;
  while (!kill_ten_times(folder, std::to_string(attempt) + ".db", random)) ++attempt;
  const std::string name = std::to_string(attempt) + ".db", parts = folder.path(name);
  MESSAGE(kKills << " kills, " << rows_in(parts) << " rows before the last run");
  REQUIRE(StartedProgram(sweep_into(name), folder.path()).wait() == 0);
  CHECK(rows_in(parts) == kPoints);
  CHECK(rows_of(parts) == rows_of(folder.path("whole.db")));
}

/// Sends SIGINT to a sweep after 20 of its rows. Returns false if it was done by then, since this
/// process had to wait for the processor.
bool interrupted_amid_sweep(const Folder& folder) {
  StartedProgram program({INTERLOCK_PROGRAM, "sweep", "sweep.json", "--db", "s.db"}, folder.path());
  while (program.running() && rows_in(folder.path("s.db")) < 20) ::usleep(kLook);
  if (program.running()) ::kill(program.id(), SIGINT);
  const int code = program.wait();
  CHECK((code == 130 || code == 0));
  return code == 130;
}

TEST_CASE("Ctrl-C ends a sweep cleanly, with what is done") {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(2000));
  while (!interrupted_amid_sweep(folder)) std::filesystem::remove(folder.path("s.db"));
  const std::size_t rows = rows_in(folder.path("s.db"));
  CHECK(rows >= 20);
  CHECK(rows < 2000);
  const Outcome said = run_shell("cat said", folder.path());
  CHECK(said.out == "interrupted: " + std::to_string(rows) +
                        " of 2000 are in s.db; the same command goes on from there\n");
  const Outcome files = run_shell("ls", folder.path());
  CHECK(files.out == "s.db\nsaid\nsweep.json\n");  // no log is left beside the file
}

TEST_CASE("a full disk ends a sweep with a message and a whole file") {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(2000));
  // No file may grow beyond 512 blocks of 1024 bytes; writing more is an error, not a signal.
  const Outcome full =
      run_shell("trap '' XFSZ; ulimit -f 512; '" INTERLOCK_PROGRAM "' sweep sweep.json --db s.db",
                folder.path());
  CHECK(full.exit_code == 2);
  CHECK(full.err.starts_with("s.db: "));
  CHECK(full.err.find("what is there is kept") != std::string::npos);
  const std::size_t rows = rows_in(folder.path("s.db"));
  CHECK(rows > 0);
  CHECK(rows < 2000);
  {
    Database database(folder.path("s.db"), Database::Mode::Write);
    Statement whole = database.prepare("PRAGMA integrity_check");
    REQUIRE(whole.step());
    CHECK(text_or(whole.cell(0), "") == "ok");
  }
  const Outcome again = run_program({"sweep", "sweep.json", "--db", "s.db", "-q"}, folder.path());
  CHECK(again.exit_code == 0);
  CHECK(rows_in(folder.path("s.db")) == 2000);
}

}  // namespace
}  // namespace interlock::interrupted_sweep_test
