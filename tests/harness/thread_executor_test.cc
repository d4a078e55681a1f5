// Threads: what they do is an order that the program allows, and their trace is what they did.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "sim/measure/memory.h"
#include "tests/harness/support/happens_before.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::thread_executor_test {
namespace {

/// Notes work in the order in which it happens.
class Notebook {
 public:
  explicit Notebook(const Program& program) : program_(program), finder_(program) {}

  Workload workload() {
    Workload workload;
    workload.compute = [this](int op, int micro_batch) {
      note(rank_of(op), {Opcode::Compute, op, micro_batch});
    };
    workload.send = [this](int channel, int micro_batch) {
      note(program_.channels[channel].from_rank, {Opcode::Send, channel, micro_batch});
    };
    workload.receive = [this](int channel, int micro_batch) {
      note(program_.channels[channel].to_rank, {Opcode::Receive, channel, micro_batch});
    };
    return workload;
  }
  const std::vector<Issue>& order() const { return order_; }
  bool strayed() const { return strayed_; }

 private:
  int rank_of(int op) const {
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      const auto& stages = program_.ranks[r].stages;
      const int stage = program_.ops[op].stage;
      if (std::find(stages.begin(), stages.end(), stage) != stages.end()) return int(r);
    }
    return -1;
  }
  void note(int rank, const Instruction& instruction) {
    const std::scoped_lock lock(mutex_);
    const auto [code, index, micro_batch] = instruction;
    const int stream = finder_.stream_of(rank, code, index, micro_batch);
    strayed_ = strayed_ || stream < 0;
    if (stream >= 0) order_.push_back({stream, instruction});
  }

  const Program& program_;
  std::mutex mutex_;
  StreamFinder finder_;
  std::vector<Issue> order_;
  bool strayed_ = false;
};

struct Threaded {
  TraceLog log;
  ThreadRun run;
  std::string error;
};

Threaded thread(const Program& program, const Workload& workload = {},
                const ThreadOptions& options = {}) {
  Threaded result;
  try {
    result.run = run_threads(program, workload, options, log_sink(result.log));
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

/// Ops wait for as long as the program says that they take; the last moment they spin.
Workload waiting_workload(const Program& program) {
  Workload workload;
  workload.compute = [&program](int op, int) {
    const std::chrono::duration<double> duration(program.ops[op].duration.value());
    const auto end = std::chrono::steady_clock::now() + duration;
    std::this_thread::sleep_until(end - std::chrono::microseconds(50));
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  return workload;
}

/// Durations and latencies so short that tests do not wait.
Program in_a_hurry(Program program, double factor) {
  for (OpInfo& op : program.ops) op.duration = op.duration * factor;
  for (Channel& channel : program.channels) {
    channel.occupancy = channel.occupancy * factor;
    channel.latency = channel.latency * factor;
  }
  return program;
}

TEST_CASE("threads do nothing before what it depends on, or deadlock where engines do") {
  int ended = 0, deadlocked = 0, several = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(831, seed);
    const TestChain chain = seed % 3 == 0 ? random_choosing_chain(random) : random_chain(random);
    const Program program = program_of(chain);
    if (!why_not_executable(program).empty()) continue;
    INFO("seed " << seed << ": " << describe(chain));
    Notebook notebook(program);
    const Threaded threaded = thread(program, notebook.workload());
    if (!chooses_order(program)) {
      CHECK(threaded.error.empty() == realise(program, run_native).deadlock.empty());
    }
    CHECK_FALSE(notebook.strayed());
    ++(threaded.error.empty() ? ended : deadlocked);
    if (!threaded.error.empty()) {
      CHECK(threaded.error.find("the schedule deadlocks") != std::string::npos);
      continue;
    }
    several += chooses_order(program) ? 1 : 0;
    CHECK(broken_rule(program, notebook.order(), Listed::Work) == "");
    CHECK(threaded.run.summary.tasks == count_tasks(program));
    CHECK(threaded.run.samples.size() == threaded.log.spans.size());
  }
  CHECK(ended > 150);
  CHECK(deadlocked > 3);
  CHECK(several > 60);
}

TEST_CASE("the trace of threads comes in order, one op at a time on each rank") {
  TestChain chain = make_chain(3, "1f1b");
  chain.micro_batches = 8;
  chain.steps = 3;
  const Program program = program_of(chain);
  Seconds last;
  std::vector<Seconds> end(program.ranks.size());
  const auto comes = [&](Seconds time) {
    CHECK(time >= last);
    last = time;
  };
  const TraceSink sink{.span =
                           [&](const Span& span) {
                             comes(span.start);
                             CHECK(span.start >= end[span.rank]);
                             CHECK(span.exposed <= span.start - end[span.rank]);
                             end[span.rank] = span.end;
                           },
                       .transfer = [&](const Transfer& transfer) { comes(transfer.sent); },
                       .memory = [&](const MemoryChange& change) { comes(change.time); }};
  run_threads(program, {}, {}, sink);
}

/// Whose order no clock decides: one device in one order, or one op at a time.
std::vector<TestChain> clockless_chains() {
  std::vector<TestChain> chains;
  for (std::uint64_t seed = 0; seed < 700; ++seed) {
    Random random(832, seed);
    TestChain chain = random_chain(random);
    if (seed % 20 == 0) {
      chain = make_chain(random.integer(2, 5), "naive");
      draw_costs(chain, random);
      chain.micro_batches = random.integer(1, 3);
      chain.steps = 2;
    }
    const auto [least, most] =
        std::minmax_element(chain.rank_of_stage.begin(), chain.rank_of_stage.end());
    if (seed % 20 == 0 || *least == *most) chains.push_back(chain);
  }
  return chains;
}

/// Messages that take no time come where they come in engines; real ops always take some; and whole
/// bytes add up alike in any order.
void make_comparable(Program& program) {
  const auto whole = [](Bytes bytes) { return Bytes(std::round(bytes.value())); };
  for (OpInfo& op : program.ops) op.duration = std::max(op.duration, Seconds(1));
  for (Buffer& buffer : program.buffers) buffer.bytes = whole(buffer.bytes);
  for (Channel& channel : program.channels) {
    channel.occupancy = {};
    channel.bytes = whole(channel.bytes);
    if (channel.received) channel.received = whole(*channel.received);
  }
}

TEST_CASE("a run on threads holds as much memory as a simulated one, to the byte") {
  int compared = 0;
  for (TestChain& chain : clockless_chains()) {
    chain.cluster.machines.front().port_latency = {};
    Program program = program_of(chain);
    if (chooses_order(program) || !why_not_executable(program).empty()) continue;
    make_comparable(program);
    INFO(describe(chain));
    const Realised engine = realise(program, run_native);
    if (!engine.deadlock.empty()) continue;
    const Threaded threaded = thread(program);
    MemoryTracker simulated(program), measured(program);
    for (const MemoryChange& change : engine.log.memory) simulated.add(change);
    for (const MemoryChange& change : threaded.log.memory) measured.add(change);
    const auto theirs = simulated.finish(), ours = measured.finish();
    for (std::size_t r = 0; r < ours.size(); ++r) {
      CHECK(ours[r].total == theirs[r].total);
      CHECK(ours[r].allocated == theirs[r].allocated);
      CHECK(ours[r].at_peak == theirs[r].at_peak);
      CHECK(ours[r].stash == theirs[r].stash);
    }
    ++compared;
  }
  CHECK(compared > 60);
}

TEST_CASE("emulated links deliver no sooner than their wire can, first in, first out") {
  TestChain chain = make_chain(std::vector<ChainStage>(3, {.output = 1000}), "gpipe");
  chain.micro_batches = 4;
  chain.cluster.machines.front().port_latency = Seconds(0.5);
  const Program program = in_a_hurry(program_of(chain), 1e-3);  // 1 ms each, and 0.5 ms
  const Threaded threaded =
      thread(program, waiting_workload(program), {.emulate_links = true, .stop = nullptr});
  REQUIRE(threaded.error == "");
  std::vector<Seconds> free(program.wires.size());
  for (const Transfer& transfer : threaded.log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    CHECK(transfer.start >= transfer.sent);
    CHECK(transfer.start >= free[channel.wire]);
    const double way = (transfer.arrival - transfer.start).value();
    CHECK(way == doctest::Approx((channel.occupancy + channel.latency).value()));
    free[channel.wire] = transfer.end;
  }
  for (const Span& span : threaded.log.spans) {
    const OpInfo& op = program.ops[span.op];
    if (op.kind != OpKind::F || op.stage == 0) continue;
    for (const Transfer& transfer : threaded.log.transfers) {
      const Channel& channel = program.channels[transfer.channel];
      if (channel.to_stage != op.stage || channel.cargo != Cargo::Activation) continue;
      if (transfer.micro_batch == span.micro_batch) CHECK(span.start >= transfer.arrival);
    }
  }
}

TEST_CASE("what a workload throws ends the run and leaves through it") {
  TestChain chain = make_chain(4, "1f1b");
  chain.micro_batches = 50;
  const Program program = program_of(chain);
  Workload workload;
  workload.compute = [&](int op, int micro_batch) {
    if (program.ops[op].stage == 2 && micro_batch == 7) throw Error("the loss is not a number");
  };
  CHECK(thread(program, workload).error == "the loss is not a number");
}

TEST_CASE("a run that is stopped says so and tells what it did") {
  TestChain chain = make_chain(2, "gpipe");
  chain.steps = 1000;
  const Program program = program_of(chain);
  std::atomic<bool> stop = false;
  std::atomic<int> ops = 0;
  Workload workload;
  workload.compute = [&](int, int) {
    if (++ops >= 100) stop = true;  // a rank that overtakes the one that counted to 100, too
  };
  const Threaded threaded = thread(program, workload, {.emulate_links = false, .stop = &stop});
  CHECK(threaded.error == "");
  CHECK(threaded.run.stopped);
  CHECK(threaded.log.spans.size() >= 100);
  CHECK(threaded.log.spans.size() <= 102);
  // Also where every rank waits: a rank at work ends its op, the other sleeps.
  stop = false;
  workload.compute = [&](int, int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  };
  CHECK(thread(program, workload, {.emulate_links = false, .stop = &stop}).run.stopped);
  CHECK_FALSE(thread(program).run.stopped);
}

TEST_CASE("ops that wait for their durations take about as long as simulated ones") {
  for (const std::string_view kind : {"gpipe", "1f1b", "zb-h1", "eager", "interleaved"}) {
    TestChain chain = kind == "interleaved"
                          ? make_laid_chain(2, kind)
                          : make_chain(std::vector<ChainStage>(3, {.head = 0.5}), kind);
    chain.micro_batches = 4;
    chain.steps = 4;
    const Program program = program_of(chain);
    const Program hurried = in_a_hurry(program, 1e-3);
    TraceLog simulated;
    const Seconds makespan = run_native(program, log_sink(simulated)).makespan;
    const Threaded threaded = thread(hurried, waiting_workload(hurried));
    REQUIRE(threaded.error == "");
    const auto engine = measure_trace(program, simulated, 1, {.steps = 2}).metrics;
    const auto real = measure_trace(hurried, threaded.log, 1, {.steps = 2}).metrics;
    const double ratio = real.step_time.value() * 1e3 / engine.step_time.value();
    MESSAGE(schedule_named(kind).name << ": step " << ratio << " of the simulated, busy "
                                      << real.busy << " for " << engine.busy);
    // Ops last their durations at least, and wait for the same.
    CHECK(threaded.run.summary.makespan * 1e3 > makespan * 0.99);
  }
}

}  // namespace
}  // namespace interlock::thread_executor_test
