// Holds programs that went through bytes to the runs of those they were made of.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/program_bytes.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::program_bytes_test {
namespace {

/// Returns what differs between runs of `program` and of what its bytes are read as.
std::string changed_by_bytes(const Program& program) {
  const Program read = read_program(program_bytes(program));
  const Realised expected = realise(program, run_native), found = realise(read, run_native);
  return expected.deadlock == found.deadlock ? difference(expected, found) : found.deadlock;
}

TEST_CASE("a program is read as it was written, whatever is in it") {
  for (int seed = 0; seed < cases(60); ++seed) {
    Random random(211, static_cast<std::uint64_t>(seed));
    const TestChain chain = seed % 5 == 1 ? random_chain_in_line(random) : random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(changed_by_bytes(program) == "");
    if (!realise(program, run_native).deadlock.empty()) continue;
    CHECK(changed_by_bytes(freeze(program, EngineKind::Native)) == "");
  }
}

TEST_CASE("what no run shows is read as it was written, too") {
  Program program = program_of(make_chain(2, "1f1b"));
  Rank& rank = program.ranks.back();
  rank.libraries = Bytes(17);
  rank.update_copies = Bytes(19);
  rank.host = {Bytes(23), Bytes(29), Bytes(31)};
  rank.resident[1] = Bytes(37);
  rank.weight_versions = 41;
  program.folding_problem = "none";
  const Program read = read_program(program_bytes(program));
  const Rank& other = read.ranks.back();
  CHECK(other.libraries == Bytes(17));
  CHECK(other.update_copies == Bytes(19));
  CHECK(other.host.total() == Bytes(23 + 29 + 31));
  CHECK(other.resident[1] == Bytes(37));
  CHECK(other.weight_versions == 41);
  CHECK(read.folding_problem == "none");
}

TEST_CASE("what varies in a program varies alike once it was bytes") {
  Program program = program_of(make_chain(3, "1f1b"));
  program.steps = 2;
  const Realised planned = realise(program, run_native);
  program.variation = {.seed = 5, .compute = {.spread = 0.3}, .transfers = {.spread = 0.2}};
  program.variation.slow.push_back({.rank = 1, .first = 1, .end = 2, .slowdown = 3});
  CHECK(difference(planned, realise(program, run_native)) != "");
  CHECK(changed_by_bytes(program) == "");
  MeasuredTimes measured{.ops = {{2.5, -1}, {}, {7}}};
  program.variation.measured = std::make_shared<const MeasuredTimes>(measured);
  CHECK(changed_by_bytes(program) == "");
  CHECK(read_program(program_bytes(program)).variation.measured->ops == measured.ops);
}

TEST_CASE("packed micro-batches have their pairs of tokens, which a function tells, as a table") {
  TestChain chain = make_chain(2, "gpipe");
  chain.micro_batches = 4;
  chain.steps = 3;
  Program program = program_of(chain);
  const Realised planned = realise(program, run_native);
  PackedTimes packed{.work = {1, 16}, .group_of_replica = {0}};
  packed.durations.assign(2, std::vector<double>(program.ops.size(), 1));
  for (double& seconds : packed.durations[1]) seconds = 10;
  packed.work_of = [](std::uint64_t seed, int, int number) {
    return 1 + static_cast<double>((static_cast<int>(seed) + 5 * number) % 16);
  };
  program.variation.seed = 3;
  program.packed = std::make_shared<const PackedTimes>(packed);
  CHECK(difference(planned, realise(program, run_native)) != "");
  CHECK(changed_by_bytes(program) == "");
}

TEST_CASE("bytes that are cut short, go on or come from another build are refused") {
  const std::string bytes = program_bytes(program_of(make_chain(2, "1f1b")));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(read_program(bytes.substr(0, size)), std::runtime_error);
  }
  CHECK_THROWS_AS(read_program(bytes + '\0'), std::runtime_error);
  std::string other = bytes;
  ++other[bytes.find("program/1 ") + 10];  // the first digit of the size of a Program
  CHECK_THROWS_WITH_AS(read_program(other), "another build has written the program",
                       std::runtime_error);
}

}  // namespace
}  // namespace interlock::program_bytes_test
