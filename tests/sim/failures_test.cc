// Messages of engines that cannot go on: deadlocks, contention, children that die.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/processes/child.h"
#include "sim/processes/unavailable.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/sim/support/thrown_kind.h"
#include "tests/support/sanitized.h"

namespace interlock::failures_test {
namespace {

/// Two stages that each hand a message to the other, and only then take one, `depth` messages
/// fitting in between.
Program both_send_first(int depth, bool synchronous = false) {
  Program program{.stages = 2};
  for (int s = 0; s < 2; ++s) {
    const int other = 1 - s;
    program.ops.push_back({OpKind::F, s, s, true, Seconds(1), Flops(1)});
    program.channels.push_back({.from_rank = s,
                                .to_rank = other,
                                .from_stage = s,
                                .to_stage = other,
                                .wire = s,
                                .depth = depth,
                                .synchronous = synchronous,
                                .occupancy = Seconds(1)});
    program.wires.push_back({.from_rank = s, .to_rank = other, .links = {s}});
    program.links.push_back({"link", BytesPerSecond(1)});
    program.instructions.push_back({Opcode::Compute, s, 0});
    program.instructions.push_back({Opcode::Send, s, 0});
    program.instructions.push_back({Opcode::Receive, other, 0});
    program.segments.push_back({3 * s, 3, 1, 1});
    program.streams.push_back({s, 1, 1, 0});
    program.ranks.push_back({.first_stream = s, .streams = 1, .stages = {s}});
  }
  return program;
}

std::vector<std::function<Realised(const Program&)>> all_engines() {
  return {[](const Program& p) { return realise(p, run_longest_path); },
          [](const Program& p) { return realise(p, run_event_loop); },
          [](const Program& p) { return realise_simgrid(p); }};
}

/// The message of the Error that `run` throws; empty if it throws none.
std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a deadlock is told with the stages, the queues and the micro-batch that wait") {
  for (const bool synchronous : {false, true}) {
    const Program program = both_send_first(0, synchronous);
    for (const auto& engine : all_engines()) {
      const std::string message = engine(program).deadlock;
      INFO(message);
      CHECK(says(message, "deadlocks"));
      CHECK(says(message, "2 streams are not done"));
      CHECK(says(message, "rank 0 waits on stage 0 for room in the queue to stage 1"));
      CHECK(says(message, "rank 1 waits on stage 1 for room in the queue to stage 0"));
      CHECK(says(message, "micro-batch 0"));
      CHECK(says(message,
                 synchronous ? "try \"copies\": \"overlapped\"" : "try \"queue\": \"unlimited\""));
    }
  }
}

TEST_CASE("with room for one message the same program ends, after 1 s of work and 1 s of wire") {
  for (const int depth : {1, Channel::kUnlimited}) {
    for (const auto& engine : all_engines()) {
      const Realised realised = engine(both_send_first(depth));
      CHECK(realised.deadlock == "");
      CHECK(realised.summary.makespan == Seconds(2));
      CHECK(realised.summary.tasks == 4);
    }
  }
}

TEST_CASE("a stage that waits for a message that is not sent is named with its neighbour") {
  Program program = both_send_first(1);
  program.instructions[1].code = Opcode::Receive;  // stage 0 takes twice, and sends nothing
  program.instructions[1].index = 1;
  for (const auto& engine : all_engines()) {
    const std::string message = engine(program).deadlock;
    INFO(message);
    CHECK(says(message, "rank 0 waits on stage 0 for a message from stage 1"));
    CHECK(says(message, "rank 1 waits on stage 1 for a message from stage 0"));
  }
}

TEST_CASE("of many streams that wait the first eight are listed, and the rest counted") {
  TestChain chain = make_chain(12, "1f1b");
  chain.micro_batches = 24;
  chain.policy.queue.kind = QueuePolicy::Kind::Rendezvous;  // 1F1B cannot live without room
  for (const auto& engine : all_engines()) {
    const std::string message = engine(program_of(chain)).deadlock;
    INFO(message);
    CHECK(says(message, "12 streams are not done"));
    CHECK(says(message, "rank 7 waits"));
    CHECK_FALSE(says(message, "rank 8 waits"));
    CHECK(says(message, "and 4 more"));
  }
}

TEST_CASE("readouts reach the ops that wait for them, whatever is in flight") {
  // The period of 2 micro-batches is no multiple of 3 in flight, so that several sequences of stage
  // 0 wait for readouts at once, which take 100 s to come.
  TestChain chain = make_chain(2, "eager");
  chain.micro_batches = 2;
  chain.steps = 4;
  chain.strategy.readout_every = 1;
  chain.policy.in_flight = 3;
  chain.policy.queue.kind = QueuePolicy::Kind::Unlimited;
  chain.cluster.machines.front().port_latency = Seconds(100);
  CHECK(realise(program_of(chain), run_event_loop).deadlock == "");
  CHECK(realise_simgrid(program_of(chain)).deadlock == "");
}

TEST_CASE("auto is SimGrid where a link is shared, but native for one run of many") {
  Program program = both_send_first(1);
  program.wires[0].shared = program.wires[1].shared = true;
  CHECK(shares_links(program));
  CHECK(choose_engine(EngineKind::Auto, program) == EngineKind::SimGrid);
  CHECK(choose_engine(EngineKind::Native, program) == EngineKind::Native);
  CHECK(engine_of_many(EngineKind::Auto) == EngineKind::Native);
  CHECK(engine_of_many(EngineKind::SimGrid) == EngineKind::SimGrid);
}

TEST_CASE("auto is native where no link is shared") {
  const Program program = both_send_first(1);
  CHECK(choose_engine(EngineKind::Auto, program) == EngineKind::Native);
  CHECK(choose_engine(EngineKind::SimGrid, program) == EngineKind::SimGrid);
}

TEST_CASE("a child's trace and summary arrive as they were made") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(131, seed);
    const TestChain chain = random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    const Realised here = realise(program, run_native);
    const Realised there = realise(program, [](const Program& p, const TraceSink& sink) {
      return run_in_child(p, sink, run_native);
    });
    CHECK(difference(here, there) == "");
    CHECK(here.deadlock == there.deadlock);
    if (here.deadlock.empty()) CHECK(there.summary.engine == "native");
  }
}

TEST_CASE("an Error thrown in a child is thrown here, word for word") {
  const auto engine = [](const Program&, const TraceSink&) -> RunSummary {
    throw Error("scenario.json:3: /model: no\nsuch model");
  };
  CHECK(error_of([&] { run_in_child({}, {}, engine); }) ==
        "scenario.json:3: /model: no\nsuch model");
}

TEST_CASE("an Error of a child keeps the file, line and path of each mistake") {
  const auto engine = [](const Program&, const TraceSink&) -> RunSummary {
    Diagnostics mistakes;
    mistakes.add("scenario.json", 3, "/model", "no\nsuch model");
    mistakes.add("", 0, "/training/steps", "is 0; expected 1 or more");
    mistakes.throw_if_any();
    return {};
  };
  std::vector<Diagnostic> kept;
  try {
    run_in_child({}, {}, engine);
  } catch (const Error& error) {
    kept = error.mistakes();
  }
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].file == "scenario.json");
  CHECK(kept[0].line == 3);
  CHECK(kept[0].path == "/model");
  CHECK(kept[0].message == "no\nsuch model");
  CHECK(kept[1].file == "");
  CHECK(kept[1].line == 0);
  CHECK(kept[1].path == "/training/steps");
  CHECK(kept[1].message == "is 0; expected 1 or more");
}

TEST_CASE("what is thrown in a child is of the same kind here") {
  const auto wordless = [](const Program&, const TraceSink&) -> RunSummary { throw Error(""); };
  const auto lacking = [](const Program&, const TraceSink&) -> RunSummary {
    throw Unavailable("cannot open the engine");
  };
  const auto wrong = [](const Program&, const TraceSink&) -> RunSummary {
    throw std::logic_error("a clock goes back");
  };
  const auto unknown = [](const Program&, const TraceSink&) -> RunSummary {
    throw std::runtime_error("a library's own");
  };
  const auto foreign = [](const Program&, const TraceSink&) -> RunSummary { throw 7; };
  const auto thrown_by = [](Engine engine) {
    return kind_of([&] { run_in_child({}, {}, engine); });
  };
  CHECK(thrown_by(wordless) == "Error: ");
  CHECK(thrown_by(lacking) == "Unavailable: cannot open the engine");
  CHECK(thrown_by(wrong) == "bug: a clock goes back");
  CHECK(thrown_by(unknown) == "bug: a library's own");
  CHECK(thrown_by(foreign) == "bug: the engine threw what is no std::exception");
}

TEST_CASE("a program that SimGrid should not have been given is a bug, not a refusal of it") {
  Program program = both_send_first(1);
  program.wires[0].shared = true;
  program.wires[0].links = {0, 1, 0};  // a link is crossed again: no route of SimGrid
  const std::string told = kind_of([&] { run_program(program, EngineKind::SimGrid, TraceSink{}); });
  CHECK(told.starts_with("bug: "));
  CHECK(says(told, "routes of SimGrid"));
}

TEST_CASE("an Error after part of a trace is thrown, and the part was delivered") {
  const auto engine = [](const Program&, const TraceSink& sink) -> RunSummary {
    for (int i = 0; i < 1000; ++i) sink.span({.op = i});
    throw Error("later");
  };
  int spans = 0;
  const TraceSink sink{.span = [&](const Span& span) { CHECK(span.op == spans++); }};
  CHECK(error_of([&] { run_in_child({}, sink, engine); }) == "later");
  CHECK(spans == 1000);
}

TEST_CASE("a child that dies is reported, however it dies") {
  const auto leaves = [](const Program&, const TraceSink&) -> RunSummary { _exit(0); };
  const auto fails = [](const Program&, const TraceSink&) -> RunSummary { _exit(7); };
  const auto killed = [](const Program&, const TraceSink& sink) -> RunSummary {
    for (int i = 0; i < 100'000; ++i) sink.span({});
    std::raise(SIGKILL);
    return {};
  };
  const TraceSink sink{.span = [](const Span&) {}};
  for (const Engine engine : {Engine(leaves), Engine(fails), Engine(killed)}) {
    CHECK_THROWS_WITH_AS(run_in_child({}, sink, engine),
                         doctest::Contains("the engine's process died"), std::runtime_error);
  }
}

TEST_CASE("memory that runs out in a child, thrown or by an abort, has run out here") {
  const auto throws = [](const Program&, const TraceSink&) -> RunSummary {
    throw std::bad_alloc();
  };
  const auto aborts = [](const Program&, const TraceSink&) -> RunSummary {
    const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_AS, &none);
    std::abort();
  };
  for (const Engine engine : {Engine(throws), Engine(aborts)}) {
    CHECK_THROWS_AS(run_in_child({}, {}, engine), std::bad_alloc);
  }
}

/// Takes all the memory that this process can have: of every size, as allocators keep freed pieces
/// for pieces of their size.
void take_all_memory() {
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_AS, &none);
  for (std::size_t size = std::size_t{1} << 24; size > 1024; size /= 2) {
    while (std::malloc(size) != nullptr) {
    }
  }
  for (std::size_t size = 1040; size > 0; size -= 8) {
    while (std::malloc(size) != nullptr) {
    }
  }
}

TEST_CASE("a child without memory still tells what it did, record by record") {
  if (kSanitized) return;  // the address sanitizer ends a program whose memory runs out
  const auto engine = [](const Program&, const TraceSink& sink) -> RunSummary {
    take_all_memory();
    for (int i = 0; i < 10'000; ++i) sink.span({.op = i});
    throw std::bad_alloc();
  };
  int spans = 0;
  const TraceSink sink{.span = [&](const Span& span) { CHECK(span.op == spans++); }};
  CHECK_THROWS_AS(run_in_child({}, sink, engine), std::bad_alloc);
  CHECK(spans == 10'000);
}

TEST_CASE("a sink that throws ends the child and passes its exception on") {
  const auto endless = [](const Program&, const TraceSink& sink) -> RunSummary {
    for (;;) sink.span({});
  };
  const TraceSink sink{.span = [](const Span&) { throw Error("enough"); }};
  CHECK(error_of([&] { run_in_child({}, sink, endless); }) == "enough");
}

TEST_CASE("many SimGrid runs fit in one process, each from time 0") {
  const Program program = program_of(make_chain(3, "naive"));
  const Realised first = realise_simgrid(program);
  for (int i = 0; i < 5; ++i) CHECK(difference(first, realise_simgrid(program)) == "");
  CHECK(first.summary.makespan == Seconds(9));  // 3 stages of F, I and W, 1 s each
}

}  // namespace
}  // namespace interlock::failures_test
