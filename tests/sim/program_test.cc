// Programs: how cursors walk them, and what lowering writes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/program/cursor.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::program_test {
namespace {

/// (index, micro-batch) of every instruction of a stream.
using Walk = std::vector<std::pair<int, int>>;

Walk walk(const Program& program, const Stream& stream) {
  Walk walk;
  for (Cursor c(program, stream); !c.done(); c.next()) {
    walk.emplace_back(c.instruction().index, c.micro_batch());
  }
  return walk;
}

/// Walks the stream by nested loops.
Walk walk_by_loops(const Program& program, const Stream& stream) {
  Walk walk;
  auto segments = [&](int first, int end, int later) {
    for (int s = stream.first + first; s < stream.first + end; ++s) {
      const Segment& segment = program.segments[s];
      for (int iteration = 0; iteration < segment.repeats; ++iteration) {
        for (int i = segment.first; i < segment.first + segment.count; ++i) {
          const Instruction& instruction = program.instructions[i];
          walk.emplace_back(instruction.index,
                            instruction.micro_batch + later + iteration * segment.stride);
        }
      }
    }
  };
  segments(0, stream.lead, 0);
  for (int round = 0; round < stream.repeats; ++round) {
    segments(stream.lead, stream.count - stream.tail, round * stream.stride);
  }
  segments(stream.count - stream.tail, stream.count, 0);
  return walk;
}

TEST_CASE("a cursor walks a nested loop") {
  Program program;
  program.instructions = {
      {Opcode::Compute, 7, 0}, {Opcode::Compute, 8, 1}, {Opcode::Compute, 9, 5}};
  program.segments = {{0, 2, 2, 2}, {2, 1, 1, 1}};
  const Stream stream{0, 2, 2, 100};
  CHECK(walk(program, stream) == Walk{{7, 0},
                                      {8, 1},
                                      {7, 2},
                                      {8, 3},
                                      {9, 5},
                                      {7, 100},
                                      {8, 101},
                                      {7, 102},
                                      {8, 103},
                                      {9, 105}});
}

TEST_CASE("a cursor walks what comes before and after a loop once") {
  Program program;
  program.instructions = {
      {Opcode::Compute, 7, 0}, {Opcode::Compute, 8, 1}, {Opcode::Compute, 9, 50}};
  program.segments = {{0, 1, 2, 1}, {1, 1, 2, 2}, {2, 1, 2, 1}};
  const Walk before = {{7, 0}, {7, 1}}, after = {{9, 50}, {9, 51}};
  const Walk turns[] = {{{8, 1}, {8, 3}}, {{8, 11}, {8, 13}}, {{8, 21}, {8, 23}}};
  for (int repeats = 0; repeats <= 3; ++repeats) {
    Walk expected = before;
    for (int turn = 0; turn < repeats; ++turn) {
      expected.insert(expected.end(), turns[turn].begin(), turns[turn].end());
    }
    expected.insert(expected.end(), after.begin(), after.end());
    CHECK(walk(program, Stream{0, 3, repeats, 10, 1, 1}) == expected);
  }
}

TEST_CASE("a cursor steps over segments without instructions or repeats, wherever they stand") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(101, seed);
    Program program;
    for (int i = 0; i < 8; ++i) {
      program.instructions.push_back({Opcode::Compute, i, random.integer(0, 5)});
    }
    const int segments = random.integer(0, 6);
    for (int s = 0; s < segments; ++s) {
      const int first = random.integer(0, 7);
      program.segments.push_back({first, random.integer(0, 8 - first) * random.integer(0, 1),
                                  random.integer(0, 3), random.integer(0, 9)});
    }
    const int first = random.integer(0, segments);
    const Stream stream{first, random.integer(0, segments - first), random.integer(0, 3),
                        random.integer(0, 50)};
    INFO("seed " << seed);
    CHECK(walk(program, stream) == walk_by_loops(program, stream));
  }
}

TEST_CASE("a copied cursor goes its own way") {
  Program program;
  program.instructions = {{Opcode::Compute, 0, 0}, {Opcode::Compute, 1, 0}};
  program.segments = {{0, 2, 3, 1}};
  const Stream stream{0, 1, 1, 0};
  Cursor cursor(program, stream);
  cursor.next();
  Cursor copy = cursor;
  for (int i = 0; i < 4; ++i) copy.next();
  CHECK(cursor.instruction().index == 1);
  CHECK(cursor.micro_batch() == 0);
  CHECK(copy.instruction().index == 1);
  CHECK(copy.micro_batch() == 2);
}

void for_random_programs(
    int count, const std::function<void(const TestChain& chain, const Program& program)>& visit) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(count); ++seed) {
    Random random(102, seed);
    TestChain chain = random_chain(random);
    if (chain.strategy.readout_every > 0) chain.steps = 2 * chain.strategy.readout_every;
    INFO("seed " << seed << ": " << describe(chain));
    visit(chain, program_of(chain));
  }
}

TEST_CASE("a lowered stream computes the ops of its sequence, in their order") {
  for_random_programs(500, [](const TestChain& chain, const Program& program) {
    const Schedule schedule = schedule_of(chain);
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      const Rank& rank = program.ranks[r];
      const bool line = chain.policy.kind->layout == StageLayout::Ring && chain.copies > 1;
      REQUIRE(rank.streams == static_cast<int>(schedule.ranks[r].size()) + (line ? 1 : 0));
      for (int number = 0; number < rank.streams; ++number) {
        std::vector<Op> computed;
        for (Cursor c(program, program.streams[rank.first_stream + number]); !c.done(); c.next()) {
          if (c.instruction().code != Opcode::Compute) continue;
          const OpInfo& op = program.ops[c.instruction().index];
          // Lowering, not the schedule, adds what a backward runs again before it.
          if (op.kind == OpKind::R && !roles_of(chain)[op.stage].runs_next_part) continue;
          computed.push_back({op.kind, op.stage, c.micro_batch(), op.loss});
        }
        if (chain.strategy.recompute_shared_forward) continue;  // both kinds of R
        std::vector<Op> written;
        const bool has_ops = number < static_cast<int>(schedule.ranks[r].size());
        if (has_ops) written = expand(schedule.ranks[r][number]);
        // A pair runs one after the other; what a backward leaves out is told by its time.
        for (Op& op : written) op.overlaps_next = op.defers = false;
        CHECK(computed == written);
      }
    }
  });
}

/// Micro-batches that one side of a channel handles, and the streams that do.
struct ChannelSide {
  std::vector<int> micro_batches;
  std::set<int> streams;
};

std::map<int, ChannelSide> sides(const Program& program, Opcode code, bool from) {
  std::map<int, ChannelSide> found;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
      for (Cursor c(program, program.streams[s]); !c.done(); c.next()) {
        if (c.instruction().code != code) continue;
        const Channel& channel = program.channels[c.instruction().index];
        CHECK((from ? channel.from_rank : channel.to_rank) == static_cast<int>(r));
        ChannelSide& side = found[c.instruction().index];
        side.micro_batches.push_back(c.micro_batch());
        side.streams.insert(s);
      }
    }
  }
  return found;
}

bool neighbours(const Channel& channel) {
  return std::abs(channel.from_stage - channel.to_stage) == 1;
}

TEST_CASE("each send has one receive on the same channel, in the same order") {
  int messages = 0;
  for_random_programs(500, [&](const TestChain& chain, const Program& program) {
    auto sent = sides(program, Opcode::Send, true);
    auto received = sides(program, Opcode::Receive, false);
    REQUIRE(sent.size() == program.channels.size());
    REQUIRE(received.size() == program.channels.size());
    for (int c = 0; c < static_cast<int>(program.channels.size()); ++c) {
      CHECK(sent[c].micro_batches.size() == received[c].micro_batches.size());
      messages += static_cast<int>(sent[c].micro_batches.size());
      // Readouts are sent when a period begins and taken when it ends.
      if (chain.strategy.readout_every > 0 || !neighbours(program.channels[c])) continue;
      CHECK(sent[c].streams.size() == 1);
      CHECK(received[c].streams.size() == 1);
      CHECK(sent[c].micro_batches == received[c].micro_batches);
    }
  });
  CHECK(messages > 5000);
}

TEST_CASE("streams are numbered in the order of their ranks, segments in that of their streams") {
  for_random_programs(200, [](const TestChain&, const Program& program) {
    int streams = 0, segments = 0;
    for (const Rank& rank : program.ranks) {
      CHECK(rank.first_stream == streams);
      streams += rank.streams;
    }
    CHECK(streams == static_cast<int>(program.streams.size()));
    for (const Stream& stream : program.streams) {
      CHECK(stream.first == segments);
      segments += stream.count;
    }
    CHECK(segments == static_cast<int>(program.segments.size()));
  });
}

TEST_CASE("what a rank takes it gives back, and what it is sent it frees") {
  for_random_programs(500, [](const TestChain&, const Program& program) {
    double left = 0;
    int reads = 0;  // by heads of what their stage sends
    for (const Stream& stream : program.streams) {
      for (Cursor c(program, stream); !c.done(); c.next()) {
        const Instruction& i = c.instruction();
        if (i.code == Opcode::Send) reads += program.channels[i.index].read_by_head ? 1 : 0;
        if (i.code == Opcode::Free && program.buffers[i.index].message >= 0) {
          --reads;
          continue;
        }
        if (i.code == Opcode::Allocate) left += program.buffers[i.index].bytes.value();
        if (i.code == Opcode::Free) left -= program.buffers[i.index].bytes.value();
        const bool copied = i.code == Opcode::Send && program.channels[i.index].from_resident;
        if (copied) left += held_by_receiver(program.channels[i.index]).value();
        const int sent = i.code == Opcode::Record ? program.events[i.index].gives_back : -1;
        if (sent >= 0) left -= program.buffers[sent].bytes.value();  // when its collective is done
      }
    }
    // A message's bytes leave the sender and come to the receiver, so each cancels out, but for a
    // copy of what the sender keeps.
    CHECK(left == doctest::Approx(0).epsilon(1e-9));
    CHECK(reads == 0);
  });
}

TEST_CASE("durations are whole ticks, and the sum of all stays under 2^53 of them") {
  for_random_programs(500, [](const TestChain& chain, const Program& program) {
    const auto ticks = [&](Seconds duration) {
      const double count = std::nearbyint(duration.value() * program.ticks_per_second);
      CHECK(duration.value() == count / program.ticks_per_second);
      return static_cast<std::int64_t>(count);
    };
    std::int64_t sum = 0;
    for (const Stream& stream : program.streams) {
      for (Cursor c(program, stream); !c.done(); c.next()) {
        const int index = c.instruction().index;
        if (c.instruction().code == Opcode::Compute) sum += ticks(program.ops[index].duration);
        if (c.instruction().code == Opcode::Receive && program.channels[index].replay >= 0) {
          sum += ticks(program.ops[program.channels[index].replay].duration);  // once it is late
        }
        if (c.instruction().code == Opcode::Record) {
          for (int e = index; e >= 0 && program.events[e].collective >= 0;
               e = program.events[e].next) {
            const Collective& collective = program.collectives[program.events[e].collective];
            sum += ticks(collective.occupancy) + ticks(collective.latency);
          }
        }
        if (c.instruction().code != Opcode::Send) continue;
        const Channel& channel = program.channels[index];
        sum += ticks(channel.occupancy) + ticks(channel.latency);
      }
    }
    CHECK(sum < std::int64_t{1} << 53);
    // And the tick is no coarser than need be: a finer one would come within 2 of 2^53, or of 2^50
    // where wires share links.
    const bool shared = shares_links(program) || program.ignores_contention;
    const double finer = 10 * static_cast<double>(sum), most = shared ? 50 : 53;
    if (sum > 0 && program.ticks_per_second < 1e18) CHECK(finer >= std::exp2(most - 1));
    const double digits = std::log10(program.ticks_per_second);
    CHECK(digits == doctest::Approx(std::nearbyint(digits)));  // a power of ten
    for (const OpInfo& op : program.ops) {
      const bool whole = chain.slices == 1 && chain.policy.overlap == 0;
      if (op.kind != OpKind::F || !whole) continue;
      const Seconds asked = chain.costs[op.stage].forward.time;
      CHECK(std::abs((op.duration - asked).value()) <= 0.55 / program.ticks_per_second);
    }
  });
}

TEST_CASE("a block's second forward and what its backward runs again are ops of their own length") {
  TestChain chain = make_chain(1, "eager");
  chain.strategy = {.kind = StrategyKind::Overlapping, .recompute_shared_forward = true};
  chain.costs[0].next_forward = {Seconds(2), Flops(2)};
  chain.costs[0].recompute = {Seconds(4), Flops(4)};
  const Program program = program_of(chain);
  Seconds repeated;
  Flops flops;
  for (Cursor c(program, program.streams[0]); !c.done(); c.next()) {
    if (c.instruction().code != Opcode::Compute) continue;
    const OpInfo& op = program.ops[c.instruction().index];
    if (op.kind != OpKind::R) continue;
    CHECK_FALSE(op.useful);
    repeated += op.duration;
    flops += op.flops;
  }
  CHECK(repeated == Seconds(6));
  CHECK(flops == Flops(6));
}

TEST_CASE("tasks are computes, messages between ranks, and collectives of each that joins them") {
  for_random_programs(200, [](const TestChain&, const Program& program) {
    std::int64_t tasks = 0;
    for (const Stream& stream : program.streams) {
      for (Cursor c(program, stream); !c.done(); c.next()) {
        const Instruction& i = c.instruction();
        const bool message = i.code == Opcode::Send && program.channels[i.index].from_rank !=
                                                           program.channels[i.index].to_rank;
        tasks += i.code == Opcode::Compute || message ? 1 : 0;
        if (i.code == Opcode::Record && program.events[i.index].collective >= 0) ++tasks;
      }
    }
    CHECK(count_tasks(program) == tasks);
  });
}

TEST_CASE("code without memory leaves out Allocate and Free, and nothing else") {
  for_random_programs(200, [](const TestChain&, const Program& program) {
    const Code code = code_without_memory(program);
    for (const Stream& stream : program.streams) {
      Cursor short_one(code, stream);
      for (Cursor c(program, stream); !c.done(); c.next()) {
        const Opcode opcode = c.instruction().code;
        if (opcode == Opcode::Allocate || opcode == Opcode::Free) continue;
        REQUIRE_FALSE(short_one.done());
        CHECK(short_one.instruction() == c.instruction());
        CHECK(short_one.micro_batch() == c.micro_batch());
        short_one.next();
      }
      CHECK(short_one.done());
    }
  });
}

}  // namespace
}  // namespace interlock::program_test
