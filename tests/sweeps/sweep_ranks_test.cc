// Sweeps by the ranks of mpirun. Skipped, and said so, where there is no MPI.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/child_program.h"
#include "tests/sweeps/started_program.h"

namespace interlock::sweep_ranks_test {
namespace {

std::vector<std::string> three_ranks(const std::string& database) {
  return by_three_ranks({"sweep", "sweep.json", "--db", database, "-q"});
}

/// Kills one of three ranks after 100 rows. Returns false if all was done by then, since this
/// process had to wait for the processor.
bool one_of_three_killed(const Folder& folder) {
  StartedProgram program(three_ranks("ranks.db"), folder.path());
  while (program.running() && rows_in(folder.path("ranks.db")) < 100) ::usleep(2000);
  const std::vector<pid_t> ranks = program.children();  // of mpirun, which env became
  if (ranks.size() >= 3) ::kill(ranks.back(), SIGKILL);
  return program.wait() != 0;
}

TEST_CASE("three ranks, one of which is killed, and then three again, make the sweep of one run") {
  if (lacks_mpi()) return;
  const Folder folder;
  folder.file("sweep.json", swept_scenario(2000));
  REQUIRE(run_program({"sweep", "sweep.json", "--db", "whole.db", "-q"}, folder.path()).exit_code ==
          0);
  const std::string ranked = folder.path("ranks.db");
  while (!one_of_three_killed(folder)) std::filesystem::remove(ranked);
  const std::size_t before = rows_in(ranked);
  CHECK(before >= 100);
  CHECK(before < 2000);
  CHECK(StartedProgram(three_ranks("ranks.db"), folder.path()).wait() == 0);
  CHECK(rows_of(ranked) == rows_of(folder.path("whole.db")));
}

TEST_CASE("a mistake is told by one rank, and all end") {
  if (lacks_mpi()) return;
  const Folder folder;
  folder.file("sweep.json", "{\"model\": 1, \"sweep\": {\"trainin.steps\": [1]}}");
  CHECK(StartedProgram(three_ranks("ranks.db"), folder.path()).wait() == 2);
  const Outcome told = run_shell("grep -c 'leads to no key' said", folder.path());
  CHECK(told.out == "1\n");
}

TEST_CASE("a disk that is full ends all ranks with a message") {
  if (lacks_mpi()) return;
  const Folder folder;
  folder.file("sweep.json", swept_scenario(2000));
  // Rank 0 writes; no file of its may grow beyond 256 blocks.
  StartedProgram full(by_three_ranks({"sweep", "sweep.json", "--db", folder.path("s.db")},
                                     "test $OMPI_COMM_WORLD_RANK != 0 || ulimit -f 256; "),
                      folder.path());
  CHECK(full.wait() == 2);
  CHECK(run_shell("grep -c 'what is there is kept' said", folder.path()).out == "1\n");
  CHECK(rows_in(folder.path("s.db")) < 2000);
  CHECK(StartedProgram(three_ranks("s.db"), folder.path()).wait() == 0);
  CHECK(rows_in(folder.path("s.db")) == 2000);
}

TEST_CASE("ranks that do not find the scenario say so in the rows that they were given") {
  if (lacks_mpi()) return;
  const Folder folder;
  folder.file("sweep.json", swept_scenario(20));
  StartedProgram lost(by_three_ranks({"sweep", "sweep.json", "--db", folder.path("s.db")},
                                     "test $OMPI_COMM_WORLD_RANK = 0 || cd /; "),
                      folder.path());
  CHECK(lost.wait() == 0);
  CHECK(run_shell("grep -c 'sweep.json: cannot be read: no such file' said", folder.path()).out ==
        "1\n");
  CHECK(rows_in(folder.path("s.db")) == 20);
}

}  // namespace
}  // namespace interlock::sweep_ranks_test
