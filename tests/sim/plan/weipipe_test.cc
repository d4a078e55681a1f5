// WeiPipe: its turns against the authors' loops, its step, its traffic and its memory.
// SPDX-License-Identifier: Apache-2.0
//
// The authors' program is told again action by action (forward_backward_step, weight_flow and
// grad_flow of weipipe.py), with chunks that know what they are: each op checks that the weights at
// hand are those of its chunk, and each update that all micro-batches are in its sum. A transfer
// begins when its sender has posted it and its receiver has posted a buffer for it, and both wait
// for it before they post the next one of its flow. Two things are as they must be for more than
// two ranks: a rank keeps the weights that its backwards begin with when they first pass, and a sum
// ends with the owner of its chunk.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::weipipe_test {
namespace {

enum Flow { kForward, kBackward, kSums, kHome, kFlows };

struct Parcel {
  int chunk = -1;
  std::set<int> added = {};  // micro-batches, of a sum
};

/// A send and the receive that it meets.
struct Meeting {
  Parcel parcel;
  std::optional<double> sent, asked;
  double left = 0, arrival = 0;
  bool over() const { return sent && asked; }
};

struct Action {
  enum Kind { Wait, Post, Compute, Add, Keep, Bring, Update } kind = Wait;
  Flow flow = kForward;
  bool any = true;  // Post: anything is sent; Compute: it is one
};

struct Times {
  double start = 0, end = 0;
};

class Ring {
 public:
  explicit Ring(const TestChain& chain)
      : chain_(chain), p_(chain.copies), rounds_(chain.micro_batches / p_), ranks_(p_) {
    for (int r = 0; r < p_; ++r) {
      for (int step = 0; step < chain.steps; ++step) write_step(r);
    }
  }

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < p_; ++r) {
        while (ranks_[r].next < ranks_[r].actions.size() && act(r)) moved = true;
      }
    }
    for (const Rank& rank : ranks_) CHECK(rank.next == rank.actions.size());
  }

  std::map<std::tuple<OpKind, int, int>, Times> times;  // kind, stage, micro-batch
  std::map<std::pair<int, int>, double> bytes;          // by ranks
  double last = 0;

 private:
  struct Rank {
    std::vector<Action> actions;
    std::size_t next = 0;
    double now = 0;
    std::array<Parcel, kFlows> sends, receives;                // buffers
    std::array<std::size_t, kFlows> posted = {}, waited = {};  // exchanges so far
    std::array<int, kFlows> turns = {};
    int forwards = 0, backwards = 0, step = 0;
  };

  int owner(int chunk) const { return (p_ - chunk) % p_; }
  int turns() const { return rounds_ * p_ + p_ - 1; }

  void write_step(int r) {
    std::vector<Action>& to = ranks_[r].actions;
    const auto forward = [&](bool computes) {
      to.push_back({Action::Wait, kForward});
      to.push_back({Action::Post, kForward});
      to.push_back({Action::Keep});
      to.push_back({Action::Compute, kForward, computes});
    };
    const auto backward = [&](bool computes, bool sends) {
      to.push_back({Action::Wait, kBackward});
      to.push_back({Action::Post, kBackward});
      to.push_back({Action::Compute, kBackward, computes});
      to.push_back({Action::Wait, kSums});
      to.push_back({Action::Add, kSums, computes});
      to.push_back({Action::Post, kSums, sends});
    };
    for (int i = 0; i < r; ++i) forward(false);
    for (int i = 0; i < p_ - r; ++i) forward(true);
    for (int i = 0; i < r; ++i) backward(false, true), forward(true);
    for (int i = 0; i < (rounds_ - 1) * p_; ++i) backward(true, true), forward(true);
    for (int i = 0; i < p_ - 1 - r; ++i) backward(true, true), forward(false);
    for (int i = 0; i < p_; ++i) backward(i <= r, i != p_ - 1);
    to.push_back({Action::Bring});
    to.push_back({Action::Update});
  }

  Meeting& meeting(Flow flow, int from, int to, std::size_t number) {
    std::vector<Meeting>& all = meetings_[{flow, from, to}];
    if (all.size() <= number) all.resize(number + 1);
    return all[number];
  }

  /// Posts a send to rank `to` and a receive from rank `from`.
  void exchange(int r, int from, int to, Flow flow) {
    const std::size_t number = ranks_[r].posted[flow]++;
    Meeting& out = meeting(flow, r, to, number);
    out.parcel = ranks_[r].sends[flow];
    out.sent = ranks_[r].now;
    if (out.over()) carry(r, to, flow, out);
    Meeting& in = meeting(flow, from, r, number);
    in.asked = ranks_[r].now;
    if (in.over()) carry(from, r, flow, in);
  }

  void carry(int from, int to, Flow flow, Meeting& of) {
    const Footprint& state = chain_.costs[of.parcel.chunk].state;
    const double size =
        (flow == kForward || flow == kBackward ? state.weights : state.gradients).value();
    const Machine& machine = chain_.cluster.machines.front();
    double& free = wire_free_[{from, to}];
    free = std::max({free, *of.sent, *of.asked}) + size / machine.port_bandwidth.value();
    of.left = free;
    of.arrival = free + machine.port_latency.value();
    bytes[{from, to}] += size;
  }

  /// Waits for both ends of the last exchange of a flow; false if it is not over.
  bool end_exchange(int r, int from, int to, Flow flow) {
    Rank& rank = ranks_[r];
    if (rank.waited[flow] == rank.posted[flow]) return true;
    const std::size_t number = rank.waited[flow];
    CHECK(number + 1 == rank.posted[flow]);
    const Meeting out = meeting(flow, r, to, number), in = meeting(flow, from, r, number);
    if (!out.over() || !in.over()) return false;
    rank.now = std::max({rank.now, out.left, in.arrival});
    rank.receives[flow] = in.parcel;
    ++rank.waited[flow];
    return true;
  }

  bool act(int r) {
    Rank& rank = ranks_[r];
    const Action action = rank.actions[rank.next];
    bool done = true;
    switch (action.kind) {
      case Action::Wait:
        done = wait(r, action.flow);
        break;
      case Action::Post:
        post(r, action);
        break;
      case Action::Keep: {
        const Parcel& here = rank.sends[kForward];
        if (rank.turns[kBackward] == 0 && here.chunk == (r + p_ - 1) % p_) {
          rank.receives[kBackward] = here;
        }
        break;
      }
      case Action::Compute:
        if (action.any) compute(r, action.flow == kForward);
        break;
      case Action::Add: {
        Parcel& sum = rank.sends[kSums];
        CHECK(sum.chunk == rank.sends[kBackward].chunk);
        if (action.any) sum.added.insert((rank.backwards - 1) / p_ * p_ + r);
        break;
      }
      case Action::Bring: {
        rank.sends[kHome] = rank.receives[kHome] = rank.sends[kSums];
        const int of = owner(rank.sends[kHome].chunk);
        if (of != r) exchange(r, from_home(r), of, kHome);
        break;
      }
      case Action::Update:
        done = update(r);
    }
    rank.next += done ? 1 : 0;
    return done;
  }

  /// Waits for what the turn before asked for. Sums begin with nothing.
  bool wait(int r, Flow flow) {
    Rank& rank = ranks_[r];
    if (rank.turns[flow] == 0 && flow == kForward) rank.receives[flow] = {owner_of_chunk(r)};
    if (rank.turns[flow] == 0 && flow == kSums) rank.receives[flow] = {rank.sends[kBackward].chunk};
    if (!end_exchange(r, (r + p_ - 1) % p_, (r + 1) % p_, flow)) return false;
    rank.sends[flow] = rank.receives[flow];
    return true;
  }
  int owner_of_chunk(int r) const { return (p_ - r) % p_; }  // the chunk that r owns

  void post(int r, const Action& action) {
    Rank& rank = ranks_[r];
    const int turn = ++rank.turns[action.flow];
    if (action.flow == kForward && turn % p_ == 0) {
      rank.receives[kForward] = {owner_of_chunk(r)};
      return;
    }
    if (p_ == 1 || !action.any || turn == turns()) return;
    exchange(r, (r + p_ - 1) % p_, (r + 1) % p_, action.flow);
  }

  /// Returns where the sum of the chunk ends that rank r owns: with who has its last turn.
  int from_home(int r) const { return (owner_of_chunk(r) + p_ - 1) % p_; }

  void compute(int r, bool forward) {
    Rank& rank = ranks_[r];
    int& done = forward ? rank.forwards : rank.backwards;
    const int chunk = forward ? done % p_ : p_ - 1 - done % p_;
    CHECK(rank.sends[forward ? kForward : kBackward].chunk == chunk);
    const StageCost& cost = chain_.costs[chunk];
    if (!forward) rank.now += cost.recompute.time.value();
    const double time = forward ? cost.forward.time.value()
                                : (cost.backward_input.time + cost.backward_weight.time).value();
    const int micro_batch = rank.step * chain_.micro_batches + done / p_ * p_ + r;
    note(r, {forward ? OpKind::F : OpKind::B, r * p_ + chunk, micro_batch}, time);
    ++done;
  }

  bool update(int r) {
    Rank& rank = ranks_[r];
    const int own = owner_of_chunk(r);
    if (!end_exchange(r, from_home(r), owner(rank.sends[kHome].chunk), kHome)) return false;
    CHECK(rank.receives[kHome].chunk == own);
    CHECK(static_cast<int>(rank.receives[kHome].added.size()) == chain_.micro_batches);
    const StageCost& cost = chain_.costs[own];
    note(r, {OpKind::U, r * p_ + own, (rank.step + 1) * chain_.micro_batches - 1},
         (cost.update.time + cost.head_update.time).value());
    rank.turns = {};
    rank.forwards = rank.backwards = 0;
    ++rank.step;
    return true;
  }

  void note(int r, const std::tuple<OpKind, int, int>& op, double time) {
    times[op] = {ranks_[r].now, ranks_[r].now + time};
    ranks_[r].now += time;
    last = std::max(last, ranks_[r].now);
  }

  const TestChain& chain_;
  int p_, rounds_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, double> wire_free_;
  std::map<std::tuple<Flow, int, int>, std::vector<Meeting>> meetings_;
};

TestChain chain_of(int ranks, int rounds, const ChainStage& stage = {}) {
  TestChain chain = make_laid_chain(ranks, "weipipe", stage);
  chain.micro_batches = chain.policy.update_every = rounds * ranks;
  return chain;
}

/// Returns the bytes that went from rank to rank.
std::map<std::pair<int, int>, double> bytes_of(const Program& program, const TraceLog& log) {
  std::map<std::pair<int, int>, double> bytes;
  for (const Transfer& transfer : log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    if (channel.wire >= 0) bytes[{channel.from_rank, channel.to_rank}] += channel.bytes.value();
  }
  return bytes;
}

TEST_CASE("WeiPipe of 2 ranks and of 3, as text") {
  CHECK(to_text(schedule_of(chain_of(2, 1))) ==
        "0F0 1F0 1B0 0B0 0U1\n"
        "2F1 3F1 3B1 2B1 3U1\n");
  // Rank 1 owns chunk 2, which is stage 3 + 2 there, and rank 2 owns chunk 1: 6 + 1.
  CHECK(to_text(schedule_of(chain_of(3, 2))) ==
        "0F0 1F0 2F0 2B0 0F3 1B0 1F3 0B0 2F3 2B3 1B3 0B3 0U5\n"
        "3F1 4F1 5F1 5B1 3F4 4B1 4F4 3B1 5F4 5B4 4B4 3B4 5U5\n"
        "6F2 7F2 8F2 8B2 6F5 7B2 7F5 6B2 8F5 8B5 7B5 6B5 7U5\n");
}

TEST_CASE("each op has its chunk's weights at hand, when the authors' loops bring them") {
  int messages = 0;
  for (int seed = 0; seed < cases(300); ++seed) {
    Random random(371, seed);
    TestChain chain = random_chain(random, "weipipe");
    chain.policy.barrier = false;
    if (chain.copies == 1) continue;  // has no messages
    INFO("seed " << seed << ": " << describe(chain));
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    REQUIRE(run.deadlock == "");
    Ring ring(chain);
    ring.run();
    std::size_t found = 0;
    const double allowed = 1e-9 * ring.last;
    for (const Span& span : run.log.spans) {
      const OpInfo& op = program.ops[span.op];
      if (op.kind == OpKind::R) continue;
      ++found;
      const auto at = ring.times.find({op.kind, op.stage, span.micro_batch});
      REQUIRE(at != ring.times.end());
      CHECK(std::abs(span.start.value() - at->second.start) <= allowed);
      CHECK(std::abs(span.end.value() - at->second.end) <= allowed);
    }
    CHECK(found == ring.times.size());
    CHECK(run.summary.makespan.value() == doctest::Approx(ring.last).epsilon(1e-9));
    std::map<std::pair<int, int>, double> bytes = bytes_of(program, run.log);
    for (const auto& [ranks, size] : ring.bytes) {
      CHECK(bytes[ranks] == doctest::Approx(size).epsilon(1e-9));
    }
    CHECK(bytes.size() == ring.bytes.size());
    messages += static_cast<int>(run.log.transfers.size());
    CHECK(difference(run, realise(program, run_event_loop)) == "");
    if (seed % 20 == 0) CHECK(difference(run, realise_simgrid(program), 1e-9) == "");
  }
  CHECK(messages > 10000);
}

/// Returns how long a device idles in a step where messages take no time. The first rank's turns of
/// forwards take a forward each from the first one on; the last rank, which sends to it and so is
/// at most one turn ahead, begins its own in turn p - 1. The end of a step mirrors that with
/// backwards. With a single round the one's backwards are beside the other's forwards.
double idle_of(int p, int rounds, double forward, double backward) {
  if (p <= 2) return 0;
  if (rounds > 1) return (p - 2) * (forward + backward);
  return forward + backward + (p - 3) * std::max(forward, backward);
}

TEST_CASE("where messages take no time, a step takes (m + p - 2) (F + B) and an update") {
  for (int p = 1; p <= 8; ++p) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      for (const double forward : {1, 4, 9}) {
        TestChain chain =
            chain_of(p, rounds,
                     {.forward = forward, .backward_input = 3, .backward_weight = 1, .update = 5});
        chain.steps = 3;
        const Realised run = realise(program_of(chain), run_native);
        const double idle = idle_of(p, rounds, forward, 4);
        INFO("p " << p << ", rounds " << rounds << ", F " << forward << ", B 4, U 5");
        CHECK(run.summary.makespan.value() ==
              doctest::Approx(3 * (rounds * p * (forward + 4) + idle + 5)));
      }
    }
  }
}

// The first forward of all but the first rank waits for weights; every later chunk comes beside the
// op before. The last sum goes a hop further when its backward is done, and then home.
TEST_CASE("weights that take w, and sums that take g, make a step w + 2g longer") {
  constexpr double kForward = 4, kBackward = 8, kBandwidth = 1000;  // of a chain's links
  for (int p = 2; p <= 8; ++p) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      for (const double w : {0.5, 1.0, 2.0}) {
        for (const double g : {0.0, 0.25, 2.0}) {
          TestChain chain =
              chain_of(p, rounds, {.forward = kForward, .backward_input = 4, .backward_weight = 4});
          for (StageCost& cost : chain.costs) {
            cost.state.weights = Bytes(w * kBandwidth);
            cost.state.gradients = Bytes(g * kBandwidth);
          }
          const Realised run = realise(program_of(chain), run_native);
          const double compute = rounds * p * (kForward + kBackward);
          const double idle = idle_of(p, rounds, kForward, kBackward);
          INFO("p " << p << ", rounds " << rounds << ", w " << w << ", g " << g);
          CHECK(run.summary.makespan.value() == doctest::Approx(compute + idle + w + 2 * g));
        }
      }
    }
  }
}

TEST_CASE("a rank sends m(2 - 1/p) + 2p - 4 chunks in a step, and m + p - 2 sums and one home") {
  constexpr double kWeights = 1000, kSums = 1;
  for (int p = 2; p <= 7; ++p) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      TestChain chain = chain_of(p, rounds);
      for (StageCost& cost : chain.costs) {
        cost.state.weights = Bytes(kWeights);
        cost.state.gradients = Bytes(kSums);
        cost.output = Bytes(12345);  // activations stay
      }
      chain.steps = 2;
      const Program program = program_of(chain);
      const auto bytes = bytes_of(program, realise(program, run_native).log);
      for (int r = 0; r < p; ++r) {
        double sent = 0;
        for (int to = 0; to < p; ++to) {
          if (bytes.contains({r, to})) sent += bytes.at({r, to});
        }
        const int m = rounds * p, home = 2 * r == p - 1 ? 0 : 1;
        INFO("p " << p << ", m " << m << ", rank " << r);
        CHECK(sent == 2 * ((2 * m - rounds + 2 * p - 4) * kWeights + (m + p - 2 + home) * kSums));
      }
    }
  }
}

TEST_CASE("a rank keeps its own chunk, four to pass on, three of gradients, and p stashes") {
  constexpr double kStash = 100;
  for (int p = 2; p <= 6; ++p) {
    TestChain chain = chain_of(p, 3, {.stash = kStash});
    for (int stage = 0; stage < p * p; ++stage) {
      const double chunk = stage % p + 1;  // the last is the largest
      chain.costs[stage].state = {Bytes(10 * chunk), Bytes(20 * chunk), Bytes(60 * chunk)};
    }
    const Program program = program_of(chain);
    const Metrics metrics = measure(programs_of(chain), {}, false).metrics;
    for (int r = 0; r < p; ++r) {
      INFO("p " << p << ", rank " << r);
      const auto& resident = program.ranks[r].resident;
      const double own = (p - r) % p + 1;
      const auto at = [&](MemoryClass of) { return resident[static_cast<int>(of)].value(); };
      CHECK(at(MemoryClass::Weights) == 10 * own);
      CHECK(at(MemoryClass::Gradients) == 20 * own);
      CHECK(at(MemoryClass::Optimizer) == 60 * own);
      CHECK(at(MemoryClass::Communication) == 4 * 10 * p + 3 * 20 * p);
      CHECK(metrics.devices[r].peak_stash.value() == p * kStash);
    }
  }
}

}  // namespace
}  // namespace interlock::weipipe_test
