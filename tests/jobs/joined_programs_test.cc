// Programs joined: what one job does is what it does alone, and engines agree on what they share.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/jobs/joined_program.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::joined_programs_test {
namespace {

/// Programs of `chains` in ticks that serve all.
std::vector<Program> programs_of_all(std::vector<TestChain> chains) {
  std::vector<Program> programs;
  double least = 1e15;  // the joined horizon is longer
  for (TestChain& chain : chains) {
    chain.contention = true;
    chain.most_ticks_per_second = least;
    least = std::min(least, program_of(chain).ticks_per_second);
  }
  for (TestChain& chain : chains) {
    chain.most_ticks_per_second = least;
    programs.push_back(program_of(chain));
  }
  return programs;
}

/// Gives the links of `program` names of their own.
void set_apart(Program& program, const std::string& name) {
  for (ProgramLink& link : program.links) link.name = name + link.name;
}

/// Runs all of `jobs` together, and returns what happened to each.
std::vector<Realised> run_together(const std::vector<Program>& jobs,
                                   const std::vector<Seconds>& starts = {}) {
  const JoinedProgram joined = join(jobs, starts);
  std::vector<TraceLog> logs(jobs.size());
  std::vector<TraceSink> sinks;
  for (TraceLog& log : logs) sinks.push_back(log_sink(log));
  run_native(joined.program, parted(joined, sinks));
  std::vector<Realised> runs;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    RunSummary summary{.engine = "native", .tasks = count_tasks(jobs[j])};
    for (const Span& span : logs[j].spans) {
      summary.makespan = std::max(summary.makespan, span.end);
    }
    runs.push_back(realised(std::move(logs[j]), summary));
  }
  return runs;
}

Realised alone(const Program& job) {
  Realised run = realise(job, run_native);
  run.summary.makespan = Seconds(0);
  for (const Span& span : run.log.spans) {
    run.summary.makespan = std::max(run.summary.makespan, span.end);
  }
  return run;
}

TEST_CASE("jobs that share no link do what they do alone, to the tick, under every schedule") {
  std::set<std::string_view> met;
  int choosing = 0, same = 0;  // jobs whose ranks choose: ties between their streams may differ
  Random other(771, 0);
  for (const std::string_view family : families()) {
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(std::max(4, cases(6))); ++seed) {
      Random random(770, seed);
      std::vector<TestChain> chains = {random_chain(random, family), random_chain(other)};
      if (seed % 2 == 1) chains.push_back(random_choosing_chain(other));
      for (TestChain& chain : chains) {
        chain.cluster.mesh = seed % 3 != 0;  // else ports are shared inside of each job
      }
      INFO("seed " << seed << ": " << describe(chains[0]) << " beside " << describe(chains[1]));
      std::vector<Program> jobs = programs_of_all(chains);
      for (std::size_t j = 0; j < jobs.size(); ++j) set_apart(jobs[j], std::to_string(j) + " ");
      bool ends = true;
      for (const Program& job : jobs) ends = ends && realise(job, run_native).deadlock.empty();
      if (!ends) continue;
      const std::vector<Realised> together = run_together(jobs);
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        const std::string differs = difference(alone(jobs[j]), together[j]);
        if (!chooses_order(jobs[j])) CHECK(differs == "");
        choosing += chooses_order(jobs[j]) ? 1 : 0;
        same += chooses_order(jobs[j]) && differs.empty() ? 1 : 0;
      }
      met.insert(family);
    }
  }
  MESSAGE(same << " of " << choosing << " jobs that choose their order choose the same");
  CHECK(same * 100 >= choosing * 98);
  CHECK(met.size() == families().size());
}

/// Moves all that `run` tells to `start` later.
Realised later(Realised run, Seconds start) {
  for (Span& span : run.log.spans) {
    span.start += start;
    span.end += start;
  }
  for (Transfer& transfer : run.log.transfers) {
    for (Seconds* time : {&transfer.sent, &transfer.start, &transfer.end, &transfer.arrival}) {
      *time += start;
    }
  }
  for (CollectiveSpan& span : run.log.collectives) {
    for (Seconds* time : {&span.joined, &span.start, &span.end}) *time += start;
  }
  for (MemoryChange& change : run.log.memory) change.time += start;
  run.summary.makespan += start;
  return run;
}

TEST_CASE("a job that begins later does the same, as much later") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(60)); ++seed) {
    Random random(778, seed);
    std::vector<Program> jobs = programs_of_all({random_chain(random), random_chain(random)});
    for (std::size_t j = 0; j < jobs.size(); ++j) set_apart(jobs[j], std::to_string(j) + " ");
    if (!realise(jobs[0], run_native).deadlock.empty()) continue;
    if (!realise(jobs[1], run_native).deadlock.empty()) continue;
    if (chooses_order(jobs[1])) continue;  // ties between its streams may differ
    INFO("seed " << seed);
    const Seconds start(random.integer(1, 1000));
    const std::vector<Realised> together = run_together(jobs, {Seconds(0), start});
    CHECK(difference(alone(jobs[0]), together[0]) == "");
    CHECK(difference(later(alone(jobs[1]), start), together[1], 1e-12) == "");
    ++compared;
  }
  CHECK(compared > met_by_cases(25));
}

TEST_CASE("jobs that share links run natively as by SimGrid") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(150)); ++seed) {
    Random random(772, seed);
    std::vector<TestChain> chains = {random_chain(random), random_chain(random)};
    for (TestChain& chain : chains) {
      chain.cluster.mesh = seed % 2 == 0;
      for (StageCost& cost : chain.costs) cost.output += Bytes(500);
    }
    const JoinedProgram joined =
        join(programs_of_all(chains), {Seconds(0), Seconds(random.integer(0, 9))});
    if (!shares_links(joined.program)) continue;
    INFO("seed " << seed << ": " << describe(chains[0]) << " beside " << describe(chains[1]));
    CHECK(difference(realise(joined.program, run_native), realise_simgrid(joined.program)) == "");
    ++compared;
  }
  CHECK(compared > met_by_cases(60));
}

TEST_CASE("links of one name are one link, and both jobs' messages are on it") {
  const std::vector<Program> jobs = programs_of_all(
      {make_chain({{.output = 1000}, {}}, "1f1b"), make_chain({{.output = 500}, {}}, "1f1b")});
  REQUIRE(jobs[0].links.size() == 2);
  const JoinedProgram joined = join(jobs);
  CHECK(joined.program.links.size() == 2);
  CHECK(joined.program.ranks.size() == 4);
  CHECK(joined.program.wires.size() == 4);
  CHECK(joined.program.wires[2].from_rank == 2);
  CHECK(joined.program.wires[2].links == joined.program.wires[0].links);
  for (const Wire& wire : joined.program.wires) CHECK(wire.shared);
  CHECK_FALSE(shares_links(jobs[0]));
  CHECK(joined.links[1] == std::vector<int>{0, 1});
}

TEST_CASE("two messages on one link take as long as both of their bytes") {
  // Forward of 1 s, then 1 kB on a link of 1 kB/s: alone it arrives at 2 s, beside the other at 3.
  const std::vector<Program> jobs = programs_of_all(
      {make_chain({{.output = 1000}, {}}, "1f1b"), make_chain({{.output = 1000}, {}}, "1f1b")});
  for (const Realised& run : run_together(jobs)) {
    REQUIRE_FALSE(run.log.transfers.empty());
    CHECK(run.log.transfers.front().start == Seconds(1));
    CHECK(run.log.transfers.front().end == Seconds(3));
  }
  CHECK(alone(jobs[0]).log.transfers.front().end == Seconds(2));
}

}  // namespace
}  // namespace interlock::joined_programs_test
