// A vocabulary divided among the ranks of 1F1B: its order, and its times against lists of events.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/support/divided_vocabulary.h"
#include "tests/sim/support/realised.h"
#include "tests/support/cases.h"

namespace interlock::vocabulary_test {
namespace {

using namespace divided_vocabulary;

/// Returns the order of a rank as the reference program finds it: it counts what has been run, and
/// shifts ranks against each other until a pass no longer lies within the last stage's backward.
std::vector<Step> counted_order(int p, int m, int barriers, int rank) {
  constexpr int kForward = 1, kBackward = 2;
  const int more = barriers - 1;
  std::vector<bool> pass_first = {true};
  for (int offset = 0; static_cast<int>(pass_first.size()) < p;) {
    const bool fits = offset - kForward >= -kBackward;
    if (!fits) pass_first.push_back(false);
    offset += fits ? -kForward : kBackward - kForward;
    if (static_cast<int>(pass_first.size()) < p) pass_first.push_back(true);
  }
  std::reverse(pass_first.begin(), pass_first.end());
  std::vector<int> warm_passes(p, 0);
  for (int r = p - 2; r >= 0; --r) {
    warm_passes[r] = warm_passes[r + 1] + (!pass_first[r + 1] && pass_first[r] ? 0 : 1);
  }
  std::vector<Step> order;
  int forwards = 0, embedded = 0, turned = 0, passes = 0;
  const auto next = [&](char kind, int& count) {
    if (count < m) order.push_back({kind, count++});
  };
  const auto pass = [&] {
    if (passes > m - 2 + barriers) return;
    if (passes > 0) order.push_back({'T', passes - 1});
    if (passes < m) order.push_back({'S', passes});
    if (passes++ >= warm_passes[0] + more) next('E', embedded);
  };
  for (int i = 0; i <= rank; ++i) next('E', embedded);
  for (int i = 0; i < p - rank; ++i) {
    next('E', embedded);
    next('F', forwards);
  }
  pass();
  if (barriers == 2) next('E', embedded);
  next('F', forwards);
  if (barriers == 2) {
    pass();
    next('F', forwards);
  }
  for (int i = 0; i < warm_passes[rank]; ++i) pass();
  for (int b = 0; b < m; ++b) {
    const bool turns = passes >= warm_passes[0] + 2 + more;
    order.push_back({'B', b});
    if (!pass_first[rank]) next('F', forwards);
    pass();
    if (turns) next('G', turned);
    if (pass_first[rank]) next('F', forwards);
  }
  while (turned < m) next('G', turned);
  if (barriers == 1) order.push_back({'T', m - 1});
  return order;
}

TEST_CASE("ranks run parts of the vocabulary in the order that the reference program counts out") {
  for (int p = 2; p <= 24; ++p) {
    for (const int barriers : {1, 2}) {
      for (const int m : {p + 4, 2 * p + 5, 50}) {
        const TestChain chain = chain_of({.ranks = p, .micro_batches = m, .barriers = barriers});
        for (int rank = 0; rank < p; ++rank) {
          INFO(p << " ranks, " << m << " micro-batches, " << barriers << " barriers, rank "
                 << rank);
          CHECK(order_of(chain, rank) == counted_order(p, m, barriers, rank));
        }
      }
    }
  }
}

TEST_CASE("every op of 1F1B with parts of the vocabulary ends when the list of events says") {
  for (int seed = 0; seed < cases(120); ++seed) {
    Random random(2411, static_cast<std::uint64_t>(seed));
    const Case c = random_case(random);
    TestChain chain = chain_of(c);
    chain.steps = 3;
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(fault_of_events(c, chain) == "");
  }
}

/// Returns the order of a rank of SlimPipe as the authors' program counts it out: where the first
/// rank and the last one are, of all slices of a step, while forwards and backwards go on.
std::vector<Step> counted_slim_order(int p, int n, int m, int rank) {
  const int all = n * m;
  std::vector<Step> order;
  const auto reversed = [n](int k) { return k / n * n + n - 1 - k % n; };
  int flying = 0, forwards = 0, backwards = 0, turned = 0, first = rank, last = rank - p + 1;
  const int wanted = n + 2 * (p - rank - 1);
  for (int b = 0; b < rank && b < all; ++b) order.push_back({'E', b});
  while (backwards < all) {
    if (first < all) order.push_back({'E', first});
    const bool forward = forwards < all && flying < wanted;
    if (forward) order.push_back({'F', forwards++}), ++flying;
    if (last >= 0 && last < all) order.push_back({'S', last});
    ++first, ++last;
    if (last >= n && last < all + n) order.push_back({'T', reversed(last - n)});
    // The authors' program goes back when as many slices fly as are wanted; a step that is too
    // short for that leaves it to the turn.
    const bool back = all >= wanted ? backwards < all && (flying >= wanted || forwards == all)
                                    : last >= n + p - 1 - rank;
    if (back) order.push_back({'B', reversed(backwards++)}), --flying;
    if (first >= n + 2 * (p - 1) && turned < all) order.push_back({'G', reversed(turned++)});
  }
  while (turned < all) order.push_back({'G', reversed(turned++)});
  return order;
}

TEST_CASE("SlimPipe runs parts of the vocabulary where its authors' program counts them out") {
  for (const int p : {2, 3, 5, 8}) {
    for (const int n : {p, 2 * p, 3 * p + 1}) {
      for (const int m : {1, 2, 5}) {
        const Case c = {.ranks = p, .micro_batches = m, .barriers = 2, .slices = n};
        for (int rank = 0; rank < p; ++rank) {
          INFO(p << " ranks, " << n << " slices, " << m << " micro-batches, rank " << rank);
          CHECK(order_of(chain_of(c), rank) == counted_slim_order(p, n, m, rank));
        }
      }
    }
  }
}

TEST_CASE("every op of SlimPipe with parts of the vocabulary ends when the list of events says") {
  for (int seed = 0; seed < cases(60); ++seed) {
    Random random(2504, static_cast<std::uint64_t>(seed));
    Case c = random_case(random);
    c.barriers = 2;
    c.micro_batches = random.integer(1, 4);
    c.slices = c.ranks + random.integer(0, c.ranks);
    c.hidden = c.statistics = 1e-9;  // so that it is all one in which order sums come
    TestChain chain = chain_of(c);
    chain.steps = 2;
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(fault_of_events(c, chain) == "");
  }
}

Metrics measured(const TestChain& chain) {
  return measure(programs_of(chain), {.steps = 3}, false).metrics;
}

TEST_CASE("where parts are as long as they may be, no rank ever waits between its turns") {
  // B = 2 F, and a pass no longer than F: a turn is F + B + pass on every rank at once, and the
  // ramps are those of 1F1B but for a forward, or two, ahead of the first backward of the last.
  for (const int p : {2, 4, 7, 8, 16}) {
    for (const int barriers : {1, 2}) {
      Case c = {.ranks = p, .barriers = barriers};
      c.s = c.t = c.e = c.g = 0.1;
      c.hidden = c.statistics = 1e-6;
      const auto step = [&](int m) {
        c.micro_batches = m;
        return measured(chain_of(c)).step_time.value();
      };
      INFO(p << " ranks, " << barriers << " barriers");
      CHECK(step(8 * p) - step(7 * p) == doctest::Approx(p * 3.4).epsilon(1e-6));
    }
  }
}

TEST_CASE("a rank keeps one stash more than 1F1B does for each barrier, and logits of passes") {
  constexpr double kStash = 100;
  for (const int p : {2, 3, 4, 8}) {
    for (const int barriers : {1, 2}) {
      Case c = {.ranks = p, .micro_batches = 4 * p, .barriers = barriers};
      c.kept = 0;
      c.hidden = c.statistics = 1e-6;  // held while they are added up
      const Metrics m = measured(chain_of(c, kStash));
      for (int s = 0; s < p; ++s) {
        INFO(p << " ranks, " << barriers << " barriers, rank " << s);
        CHECK(m.devices[s].peak_memory.value() ==
              doctest::Approx((p - s + barriers) * kStash).epsilon(1e-6));
      }
    }
  }
}

/// Returns what a rank does in one step: the ops that it computes, and "+" and "-" where it takes
/// and gives back buffers for what others broadcast.
std::string buffers_of(const Program& program, const Rank& rank) {
  std::string text;
  const Stream& stream = program.streams[rank.first_stream];
  for (int s = stream.first; s < stream.first + stream.count; ++s) {
    const Segment& segment = program.segments[s];
    std::string turn;
    for (int i = segment.first; i < segment.first + segment.count; ++i) {
      const Instruction& one = program.instructions[i];
      if (one.code == Opcode::Compute) turn += letter(program.ops[one.index].kind);
      const bool memory = one.code == Opcode::Allocate || one.code == Opcode::Free;
      if (!memory) continue;
      const Buffer& buffer = program.buffers[one.index];
      if (buffer.memory_class != MemoryClass::Communication) continue;
      const bool sum = program.instructions[i + 1].code == Opcode::Record;  // given back by itself
      if (!sum) turn += one.code == Opcode::Allocate ? "+" : "-";
    }
    for (int k = 0; k < segment.repeats; ++k) text += turn;
  }
  return text;
}

// But for the first S of 1F1B, and G after G at its end.
TEST_CASE("what is broadcast has a buffer beside the op before the one that reads it") {
  for (const auto& [slices, barriers] : {std::pair(0, 1), {0, 2}, {4, 2}, {6, 2}}) {
    const Program program = program_of(chain_of({.ranks = 4,
                                                 .micro_batches = slices > 0 ? 3 : 12,
                                                 .barriers = barriers,
                                                 .slices = slices}));
    for (std::size_t r = 0; r < 4; ++r) {
      const std::string text = buffers_of(program, program.ranks[r]);
      INFO(slices << " slices, " << barriers << " barriers, rank " << r << ": " << text);
      int readers = 0;
      const auto op_before = [&](std::size_t at) { return text.find_last_of("EFBSTG", at - 1); };
      for (std::size_t at = slices > 0 ? 1 : text.find('S') + 1; at < text.size(); ++at) {
        const bool reads = (text[at] == 'S' && r < 3) || (text[at] == 'G' && r > 0);
        if (!reads || (slices == 0 && text[at] == 'G' && text[at - 1] == 'G')) continue;
        ++readers;
        CHECK(text[at - 1] == '-');
        const std::size_t before = op_before(at), from = op_before(before);
        CHECK(text.substr(from, before - from).find('+') != std::string::npos);
      }
      CHECK(readers >= 8);
      CHECK(std::ranges::count(text, '+') == readers);
      CHECK(std::ranges::count(text, '-') == readers);
    }
  }
}

TEST_CASE("each micro-batch has three sums or two, and two broadcasts, of the bytes of the paper") {
  for (const int barriers : {1, 2}) {
    const Case c = {.ranks = 4, .micro_batches = 6, .barriers = barriers};
    const Program program = program_of(chain_of(c));
    const Realised realised = realise(program, run_native);
    std::map<std::pair<CollectiveKind, double>, int> seen;
    for (const CollectiveSpan& span : realised.log.collectives) {
      const Collective& one = program.collectives[span.collective];
      ++seen[{one.kind, one.bytes.value()}];
    }
    std::map<std::pair<CollectiveKind, double>, int> wanted = {
        {{CollectiveKind::Broadcast, c.hidden}, 2 * 6}};
    using enum CollectiveKind;
    wanted[{AllReduce, c.hidden}] = (barriers == 1 ? 1 : 2) * 6;
    wanted[{AllReduce, c.statistics + (barriers == 1 ? c.hidden : 0)}] = 6;
    CHECK(seen == wanted);
  }
}

}  // namespace
}  // namespace interlock::vocabulary_test
