// A vocabulary divided among the ranks of 1F1B: its order, and its times against lists of events.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::vocabulary_test {
namespace {

/// A chain with parts of the vocabulary; sizes in bytes, links of 1000 bytes a second.
struct Case {
  int ranks = 2, micro_batches = 4, barriers = 1;
  std::vector<double> forward, backward;  // of each rank
  double s = 1, t = 1, e = 0.5, g = 0.25, hidden = 100, statistics = 10, kept = 7, update = 0;
};

TestChain chain_of(const Case& c, double stash = 0) {
  std::vector<ChainStage> stages;
  for (int s = 0; s < c.ranks; ++s) {
    stages.push_back({.forward = c.forward.empty() ? 1 : c.forward[s],
                      .backward_input = c.backward.empty() ? 2 : c.backward[s],
                      .backward_weight = 0,
                      .update = c.update,
                      .stash = stash});
  }
  TestChain chain = make_chain(stages, "1f1b");
  const auto op = [](double seconds) { return OpCost{Seconds(seconds), Flops(1), Flops(1)}; };
  for (StageCost& stage : chain.costs) {
    stage.vocabulary = {.s = op(c.s),
                        .t = op(c.t),
                        .e = op(c.e),
                        .g = op(c.g),
                        .hidden = Bytes(c.hidden),
                        .statistics = Bytes(c.statistics),
                        .kept = Bytes(c.kept)};
  }
  chain.micro_batches = chain.policy.update_every = c.micro_batches;
  chain.policy.vocabulary =
      c.barriers == 1 ? VocabularySplit::OneBarrier : VocabularySplit::TwoBarriers;
  chain.contention = false;
  return chain;
}

struct Step {
  char kind = 'F';
  int micro_batch = 0;
  bool operator==(const Step&) const = default;
};

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

/// Returns the order of a rank in the schedule of `chain`, for one step, but for updates.
std::vector<Step> order_of(const TestChain& chain, int rank) {
  std::vector<Step> order;
  for (const Op& op : expand(schedule_of(chain).ranks[rank][0])) {
    if (op.kind != OpKind::U) order.push_back({letter(op.kind), op.micro_batch});
  }
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

/// By kind, rank, micro-batch.
using Times = std::map<std::tuple<char, int, int>, double>;

/// Returns when each op of some steps ends, by the rules of the paper alone. Sums are those of all
/// ranks, in the order in which all of them join; broadcasts those of their sender.
class EventList {
 public:
  EventList(const Case& c, const TestChain& chain, int steps) : c_(c), m_(c.micro_batches) {
    TestChain of_step = chain;
    of_step.steps = 1;
    for (int rank = 0; rank < c.ranks; ++rank) {
      orders_.emplace_back();
      for (int step = 0; step < steps; ++step) {
        for (const Step& one : order_of(of_step, rank)) {
          orders_[rank].push_back({one.kind, one.micro_batch + step * m_});
        }
        orders_[rank].push_back({'U', (step + 1) * m_ - 1});
      }
    }
    free_.resize(c.ranks, 0);
    next_.resize(c.ranks, 0);
  }

  Times run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < c_.ranks; ++rank) moved = advance(rank) || moved;
    }
    return ends_;
  }
  bool is_done() const {
    for (int rank = 0; rank < c_.ranks; ++rank) {
      if (next_[rank] < orders_[rank].size()) return false;
    }
    return true;
  }

 private:
  bool advance(int rank) {
    if (next_[rank] == orders_[rank].size()) return false;
    const auto [kind, b] = orders_[rank][next_[rank]];
    const double ready = ready_at(kind, rank, b);
    if (ready < 0) return false;
    const double end = free_[rank] = std::max(free_[rank], ready) + time_of(kind, rank);
    ends_[{kind, rank, b}] = end;
    ++next_[rank];
    if (kind == 'E') join('e', b, end, c_.hidden);
    if (kind == 'S') join('l', b, end, c_.statistics + (c_.barriers == 1 ? c_.hidden : 0));
    if (kind == 'T' && c_.barriers == 2) join('h', b, end, c_.hidden);
    if (kind == 'F' && rank == c_.ranks - 1) spread('x', b, end, last_sent_);
    if (kind == 'B' && rank == 0) spread('y', b, end, first_sent_);
    return true;
  }
  double ready_at(char kind, int rank, int b) const {
    const int last = c_.ranks - 1;
    if (kind == 'F') return rank == 0 ? done('e', b) : ended('F', rank - 1, b);
    if (kind == 'B' && rank < last) return ended('B', rank + 1, b);
    if (kind == 'B') return done(c_.barriers == 1 ? 'l' : 'h', b);
    if (kind == 'S') return rank == last ? ended('F', last, b) : done('x', b);
    if (kind == 'T') return done('l', b);
    if (kind == 'G') return rank == 0 ? ended('B', 0, b) : done('y', b);
    return 0;
  }
  double ended(char kind, int rank, int b) const {
    const auto found = ends_.find({kind, rank, b});
    return found == ends_.end() ? -1 : found->second;
  }
  double done(char what, int b) const {
    const auto found = done_.find({what, b});
    return found == done_.end() ? -1 : found->second;
  }
  double time_of(char kind, int rank) const {
    const std::map<char, double> times = {{'F', c_.forward[rank]},
                                          {'B', c_.backward[rank]},
                                          {'S', c_.s},
                                          {'T', c_.t},
                                          {'E', c_.e},
                                          {'G', c_.g},
                                          {'U', c_.update}};
    return times.at(kind);
  }
  /// Two trees carry half of the bytes each: down, or up and down.
  void join(char what, int b, double at, double bytes) {
    Joined& joined = joined_[{what, b}];
    joined.last = std::max(joined.last, at);
    if (++joined.ranks < c_.ranks) return;
    summed_ = std::max(summed_, joined.last) + bytes / 1000;
    done_[{what, b}] = summed_;
  }
  void spread(char what, int b, double at, double& sent) {
    sent = std::max(sent, at) + c_.hidden / 1000 / (c_.ranks > 2 ? 2 : 1);
    done_[{what, b}] = sent;
  }

  struct Joined {
    int ranks = 0;
    double last = 0;
  };
  const Case& c_;
  int m_;
  std::vector<std::vector<Step>> orders_;
  std::vector<double> free_;
  std::vector<std::size_t> next_;
  std::map<std::pair<char, int>, Joined> joined_;
  std::map<std::pair<char, int>, double> done_;
  double summed_ = 0, last_sent_ = 0, first_sent_ = 0;
  Times ends_;
};

Case random_case(Random& random) {
  Case c = {.ranks = random.integer(2, 9),
            .micro_batches = random.integer(1, 16),
            .barriers = random.integer(1, 2),
            .s = 2 * random.uniform(),
            .t = 2 * random.uniform(),
            .e = random.uniform(),
            .g = random.uniform(),
            .hidden = 1 + 1500 * random.uniform(),
            .statistics = 1 + 300 * random.uniform(),
            .update = random.uniform()};
  for (int s = 0; s < c.ranks; ++s) {
    c.forward.push_back(0.1 + 3 * random.uniform());
    c.backward.push_back(0.1 + 5 * random.uniform());
  }
  return c;
}

TEST_CASE("every op of 1F1B with parts of the vocabulary ends when the list of events says") {
  for (int seed = 0; seed < cases(120); ++seed) {
    Random random(2411, static_cast<std::uint64_t>(seed));
    const Case c = random_case(random);
    TestChain chain = chain_of(c);
    chain.steps = 3;
    EventList list(c, chain, chain.steps);
    const Times ends = list.run();
    INFO("seed " << seed << ": " << describe(chain));
    REQUIRE(list.is_done());
    const Program program = program_of(chain);
    const Realised realised = realise(program, run_native);
    REQUIRE(realised.deadlock == "");
    CHECK(realised.log.spans.size() == ends.size());
    for (const Span& span : realised.log.spans) {
      const char kind = letter(program.ops[span.op].kind);
      const auto found = ends.find({kind, span.rank, span.micro_batch});
      REQUIRE(found != ends.end());
      CHECK(span.end.value() == doctest::Approx(found->second).epsilon(1e-9));
    }
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

// But for the first S, and G after G.
TEST_CASE("what is broadcast has a buffer beside the op before the one that reads it") {
  for (const int barriers : {1, 2}) {
    const Program program =
        program_of(chain_of({.ranks = 4, .micro_batches = 12, .barriers = barriers}));
    for (std::size_t r = 0; r < 4; ++r) {
      const std::string text = buffers_of(program, program.ranks[r]);
      INFO(barriers << " barriers, rank " << r << ": " << text);
      int readers = 0;
      const auto op_before = [&](std::size_t at) { return text.find_last_of("EFBSTG", at - 1); };
      for (std::size_t at = text.find('S') + 1; at < text.size(); ++at) {
        const bool reads = (text[at] == 'S' && r < 3) || (text[at] == 'G' && r > 0);
        if (!reads || (text[at] == 'G' && text[at - 1] == 'G')) continue;
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
