// A run of WeiPipe, told by the authors' loops.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/ring_by_hand.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace interlock {
namespace ring_by_hand {

enum Flow { Forward, Backward, Sums, Home, Flows };

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
  Flow flow = Forward;
  bool any = true;  // Post: anything is sent; Compute: it is one
};

class Ring {
 public:
  explicit Ring(const TestChain& chain)
      : chain_(chain), p_(chain.copies), rounds_(chain.micro_batches / p_), ranks_(p_) {
    for (int r = 0; r < p_; ++r) {
      for (int step = 0; step < chain.steps; ++step) write_step(r);
    }
  }

  RingRun run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < p_; ++r) {
        while (ranks_[r].next < ranks_[r].actions.size() && act(r)) moved = true;
      }
    }
    for (const Rank& rank : ranks_) CHECK(rank.next == rank.actions.size());
    return std::move(result_);
  }

 private:
  struct Rank {
    std::vector<Action> actions;
    std::size_t next = 0;
    double now = 0;
    std::array<Parcel, Flows> sends, receives;                // buffers
    std::array<std::size_t, Flows> posted = {}, waited = {};  // exchanges so far
    std::array<int, Flows> turns = {};
    int forwards = 0, backwards = 0, step = 0;
  };

  int owner(int chunk) const { return (p_ - chunk) % p_; }
  int turns() const { return rounds_ * p_ + p_ - 1; }

  void write_step(int r) {
    std::vector<Action>& to = ranks_[r].actions;
    const auto forward = [&](bool computes) {
      to.push_back({Action::Wait, Forward});
      to.push_back({Action::Post, Forward});
      to.push_back({Action::Keep});
      to.push_back({Action::Compute, Forward, computes});
    };
    const auto backward = [&](bool computes, bool sends) {
      to.push_back({Action::Wait, Backward});
      to.push_back({Action::Post, Backward});
      to.push_back({Action::Compute, Backward, computes});
      to.push_back({Action::Wait, Sums});
      to.push_back({Action::Add, Sums, computes});
      to.push_back({Action::Post, Sums, sends});
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
        (flow == Forward || flow == Backward ? state.weights : state.gradients).value();
    const Machine& machine = chain_.cluster.machines.front();
    double& free = wire_free_[{from, to}];
    free = std::max({free, *of.sent, *of.asked}) + size / machine.port_bandwidth.value();
    of.left = free;
    of.arrival = free + machine.port_latency.value();
    result_.bytes[{from, to}] += size;
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
        const Parcel& here = rank.sends[Forward];
        if (rank.turns[Backward] == 0 && here.chunk == (r + p_ - 1) % p_) {
          rank.receives[Backward] = here;
        }
        break;
      }
      case Action::Compute:
        if (action.any) compute(r, action.flow == Forward);
        break;
      case Action::Add: {
        Parcel& sum = rank.sends[Sums];
        CHECK(sum.chunk == rank.sends[Backward].chunk);
        if (action.any) sum.added.insert((rank.backwards - 1) / p_ * p_ + r);
        break;
      }
      case Action::Bring: {
        rank.sends[Home] = rank.receives[Home] = rank.sends[Sums];
        const int of = owner(rank.sends[Home].chunk);
        if (of != r) exchange(r, from_home(r), of, Home);
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
    if (rank.turns[flow] == 0 && flow == Forward) rank.receives[flow] = {owner_of_chunk(r)};
    if (rank.turns[flow] == 0 && flow == Sums) rank.receives[flow] = {rank.sends[Backward].chunk};
    if (!end_exchange(r, (r + p_ - 1) % p_, (r + 1) % p_, flow)) return false;
    rank.sends[flow] = rank.receives[flow];
    return true;
  }
  int owner_of_chunk(int r) const { return (p_ - r) % p_; }  // the chunk that r owns

  void post(int r, const Action& action) {
    Rank& rank = ranks_[r];
    const int turn = ++rank.turns[action.flow];
    if (action.flow == Forward && turn % p_ == 0) {
      rank.receives[Forward] = {owner_of_chunk(r)};
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
    CHECK(rank.sends[forward ? Forward : Backward].chunk == chunk);
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
    if (!end_exchange(r, from_home(r), owner(rank.sends[Home].chunk), Home)) return false;
    CHECK(rank.receives[Home].chunk == own);
    CHECK(static_cast<int>(rank.receives[Home].added.size()) == chain_.micro_batches);
    const StageCost& cost = chain_.costs[own];
    note(r, {OpKind::U, r * p_ + own, (rank.step + 1) * chain_.micro_batches - 1},
         (cost.update.time + cost.head_update.time).value());
    rank.turns = {};
    rank.forwards = rank.backwards = 0;
    ++rank.step;
    return true;
  }

  void note(int r, const std::tuple<OpKind, int, int>& op, double time) {
    result_.times[op] = {ranks_[r].now, ranks_[r].now + time};
    ranks_[r].now += time;
    result_.last = std::max(result_.last, ranks_[r].now);
  }

  const TestChain& chain_;
  int p_, rounds_;
  RingRun result_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, double> wire_free_;
  std::map<std::tuple<Flow, int, int>, std::vector<Meeting>> meetings_;
};

}  // namespace ring_by_hand

RingRun run_by_hand(const TestChain& chain) { return ring_by_hand::Ring(chain).run(); }

}  // namespace interlock
