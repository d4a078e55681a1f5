// The list of events: when each op ends, by the rules of the paper alone.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/divided_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tests/sim/support/realised.h"

namespace interlock::divided_vocabulary {

TestChain chain_of(const Case& c, double stash) {
  std::vector<ChainStage> stages;
  const auto of_stage = [](const std::vector<double>& times, int stage, double otherwise) {
    return times.empty() ? otherwise : times[stage];
  };
  for (int s = 0; s < c.ranks * (c.v ? 2 : 1); ++s) {
    stages.push_back({.forward = of_stage(c.forward, s, 1),
                      .backward_input = of_stage(c.backward, s, c.v ? 1 : 2),
                      .backward_weight = of_stage(c.weight, s, c.v ? 1 : 0),
                      .update = c.update,
                      .stash = stash});
  }
  TestChain chain = c.v ? make_laid_chain(c.ranks, "v-half")
                        : make_chain(stages, c.slices > 0 ? "slimpipe" : "1f1b");
  if (c.v) chain.costs = make_chain(stages, "v-half").costs;
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
  chain.slices = std::max(1, c.slices);
  const std::vector<StageCost> of_slice = chain.costs;
  for (int slice = 1; slice < chain.slices; ++slice) {
    chain.costs.insert(chain.costs.end(), of_slice.begin(), of_slice.end());
  }
  return chain;
}

/// Returns the order of a rank in the schedule of `chain`, for one step, but for updates.
std::vector<Step> order_of(const TestChain& chain, int rank) {
  std::vector<Step> order;
  for (const Op& op : expand(schedule_of(chain).ranks[rank][0])) {
    const bool of_stage = chain.policy.kind->name == "v-half" && !of_vocabulary(op.kind);
    if (op.kind == OpKind::U) continue;
    order.push_back({letter(op.kind), op.micro_batch, of_stage ? op.stage : -1});
  }
  return order;
}

namespace {

/// By kind, stage, micro-batch; parts of the vocabulary by rank.
using Times = std::map<std::tuple<char, int, int>, double>;

/// Returns when each op of some steps ends, by the rules of the paper alone. Sums are those of all
/// ranks, in the order in which all of them join; broadcasts those of their sender.
class EventList {
 public:
  EventList(const Case& c, const TestChain& chain, int steps)
      : c_(c), m_(c.micro_batches * std::max(1, c.slices)) {
    TestChain of_step = chain;
    of_step.steps = 1;
    for (int rank = 0; rank < c.ranks; ++rank) {
      orders_.emplace_back();
      for (int step = 0; step < steps; ++step) {
        for (const Step& one : order_of(of_step, rank)) {
          orders_[rank].push_back({one.kind, one.micro_batch + step * m_, one.stage});
        }
        orders_[rank].push_back({'U', (step + 1) * m_ - 1, rank});
        if (c.v) orders_[rank].push_back({'U', (step + 1) * m_ - 1, 2 * c.ranks - 1 - rank});
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
    const auto [kind, b, stage] = orders_[rank][next_[rank]];
    const int at = stage < 0 ? rank : stage;
    const double ready = ready_at(kind, at, b);
    if (ready < 0) return false;
    const double end = free_[rank] = std::max(free_[rank], ready) + time_of(kind, at);
    ends_[{kind, at, b}] = end;
    ++next_[rank];
    if (kind == 'E') join('e', b, end, c_.hidden);
    if (kind == 'S') join('l', b, end, c_.statistics + (c_.barriers == 1 ? c_.hidden : 0));
    if (kind == 'T' && c_.barriers == 2) join('h', b, end, c_.hidden);
    if (kind == 'F' && at == last_stage()) spread('x', b, end, c_.v ? first_sent_ : last_sent_);
    if (kind == back() && at == 0) spread('y', b, end, first_sent_);
    return true;
  }
  int last_stage() const { return c_.ranks * (c_.v ? 2 : 1) - 1; }
  char back() const { return c_.v ? 'I' : 'B'; }
  double ready_at(char kind, int at, int b) const {
    const int last = last_stage(), sender = c_.v ? 0 : last;
    if (kind == 'F') return at == 0 ? done('e', b) : ended('F', at - 1, b);
    if (kind == back() && at < last) return ended(kind, at + 1, b);
    if (kind == back()) return done(c_.barriers == 1 ? 'l' : 'h', b);
    if (kind == 'W') return ended('I', at, b);
    if (kind == 'S') return at == sender ? ended('F', last, b) : done('x', b);
    if (kind == 'T') return done('l', b);
    if (kind == 'G') return at == 0 ? ended(back(), 0, b) : done('y', b);
    return 0;
  }
  double ended(char kind, int at, int b) const {
    const auto found = ends_.find({kind, at, b});
    return found == ends_.end() ? -1 : found->second;
  }
  double done(char what, int b) const {
    const auto found = done_.find({what, b});
    return found == done_.end() ? -1 : found->second;
  }
  double time_of(char kind, int at) const {
    if (kind == 'F') return c_.forward[at];
    if (kind == back()) return c_.backward[at];
    if (kind == 'W') return c_.weight[at];
    const std::map<char, double> times = {
        {'S', c_.s}, {'T', c_.t}, {'E', c_.e}, {'G', c_.g}, {'U', c_.update}};
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

}  // namespace

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

Case random_v_case(Random& random) {
  Case c = random_case(random);
  c.v = true;
  c.forward.clear();
  c.backward.clear();
  for (int s = 0; s < 2 * c.ranks; ++s) {
    c.forward.push_back(0.1 + 3 * random.uniform());
    c.backward.push_back(0.1 + 3 * random.uniform());
    c.weight.push_back(0.1 + 2 * random.uniform());
  }
  return c;
}

std::string fault_of_events(const Case& c, const TestChain& chain) {
  EventList list(c, chain, chain.steps);
  const Times ends = list.run();
  if (!list.is_done()) return "the list comes to a stand";
  const Program program = program_of(chain);
  const Realised realised = realise(program, run_native);
  if (!realised.deadlock.empty()) return realised.deadlock;
  if (realised.log.spans.size() != ends.size()) return "another number of ops";
  for (const Span& span : realised.log.spans) {
    const OpInfo& op = program.ops[span.op];
    const char kind = letter(op.kind);
    const int at = of_vocabulary(op.kind) ? span.rank : op.stage;
    const auto found = ends.find({kind, at, span.micro_batch});
    const double end = span.end.value();
    if (found == ends.end() || std::abs(end - found->second) > 1e-9 * (1 + end)) {
      return std::string(1, kind) + std::to_string(span.micro_batch) + " of rank " +
             std::to_string(span.rank) + " ends at " + std::to_string(end);
    }
  }
  return "";
}

}  // namespace interlock::divided_vocabulary
