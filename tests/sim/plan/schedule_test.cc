// Schedules as text, and what can be counted in them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/sim/support/test_chain.h"

namespace interlock::schedule_test {
namespace {

TestChain pipeline(std::string_view kind, int stages, int micro_batches, int steps = 1) {
  TestChain chain = make_chain(stages, kind);
  chain.micro_batches = micro_batches;
  chain.steps = steps;
  return chain;
}

/// All ops of a rank's sequences, one after the other.
std::vector<Op> ops_of(const std::vector<Sequence>& sequences) {
  std::vector<Op> ops;
  for (const Sequence& sequence : sequences) {
    for (const Op& op : expand(sequence)) ops.push_back(op);
  }
  return ops;
}

bool makes_weight_gradients(const Op& op) { return op.kind == OpKind::B || op.kind == OpKind::W; }

/// The most micro-batches that a sequence holds between their forward and weight gradients.
int most_held(const std::vector<Op>& ops) {
  int held = 0, most = 0;
  for (const Op& op : ops) {
    if (op.kind == OpKind::F) most = std::max(most, ++held);
    if (makes_weight_gradients(op)) --held;
  }
  return most;
}

TEST_CASE("1F1B of 6 micro-batches on 4 stages, as text") {
  CHECK(to_text(schedule_of(pipeline("1f1b", 4, 6))) ==
        "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0B3 0B4 0B5 0U5\n"
        "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5 1U5\n"
        "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2B5 2U5\n"
        "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3U5\n");
}

TEST_CASE("1F1B keeps at most p - s micro-batches on stage s") {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (int steps : {1, 2}) {
        const Schedule schedule = schedule_of(pipeline("1f1b", p, m, steps));
        for (int s = 0; s < p; ++s) {
          INFO("p " << p << ", m " << m << ", stage " << s);
          CHECK(most_held(ops_of(schedule.ranks[s])) == std::min(p - s, m));
        }
      }
    }
  }
}

TEST_CASE("GPipe of 3 micro-batches on 2 stages for 2 steps, as text") {
  CHECK(to_text(schedule_of(pipeline("gpipe", 2, 3, 2))) ==
        "0F0 0F1 0F2 0B0 0B1 0B2 0U2 0F3 0F4 0F5 0B3 0B4 0B5 0U5\n"
        "1F0 1F1 1F2 1B0 1B1 1B2 1U2 1F3 1F4 1F5 1B3 1B4 1B5 1U5\n");
}

TEST_CASE("GPipe keeps all micro-batches of a step on every stage") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 8; ++m) {
      const Schedule schedule = schedule_of(pipeline("gpipe", p, m, 2));
      for (const auto& rank : schedule.ranks) CHECK(most_held(ops_of(rank)) == m);
    }
  }
}

TEST_CASE("pairwise training of 4 stages, as text: gradients of loss 1 and 2 pass on") {
  TestChain chain = pipeline("eager", 4, 1);
  chain.strategy = n_wise(2);
  CHECK(to_text(schedule_of(chain)) ==
        "0F0 0B0 0U0\n"
        "1F0 1H0 1I0:1 1B0 1U0\n"
        "2F0 2H0 2I0:2 2B0 2U0\n"
        "3F0 3I0:3 3W0 3U0\n");
}

TEST_CASE("3-wise training with two in flight, as text: a sequence for even and one for odd") {
  TestChain chain = pipeline("eager", 3, 2, 2);
  chain.strategy = n_wise(3);
  chain.policy.in_flight = 2;
  chain.policy.update_every = 2;
  CHECK(to_text(schedule_of(chain)) ==
        "0F0 0B0 0F2 0B2 | 0F1 0B1 0U1 0F3 0B3 0U3\n"
        "1F0 1I0:2 1W0 1F2 1I2:2 1W2 | 1F1 1I1:2 1W1 1U1 1F3 1I3:2 1W3 1U3\n"
        "2F0 2I0:2 2W0 2F2 2I2:2 2W2 | 2F1 2I1:2 2W1 2U1 2F3 2I3:2 2W3 2U3\n");
}

TEST_CASE("the list form of 3-wise training with all heads, as text: every gradient, fused") {
  TestChain chain = pipeline("list", 4, 1);
  chain.strategy = n_wise(3, true);
  CHECK(to_text(schedule_of(chain)) ==
        "0F0 0H0 0I0:0 0I0:1 0B0 0U0\n"
        "1F0 1H0 1I0:1 1I0:2 1B0 1U0\n"
        "2F0 2H0 2I0:2 2B0 2U0\n"
        "3F0 3B0 3U0\n");
}

/// Ops by stage, kind, micro-batch and loss.
using Count = std::map<std::tuple<int, OpKind, int, int>, int>;

/// How often each op must occur, from the roles alone; of a backward in halves, as if it were one.
Count expected_ops(const TestChain& chain, const Schedule& schedule) {
  Count expected;
  const auto roles = roles_of(chain);
  const int every = update_every(chain), of_copy = schedule.stages / schedule.copies;
  for (int s = 0; s < schedule.stages; ++s) {
    for (int b = 0; b < schedule.micro_batches * schedule.steps; ++b) {
      // Chimera and BitPipe take units of p micro-batches, DualPipe a step; half of each goes
      // through a copy.
      const bool units =
          chain.policy.kind->name == "chimera" || chain.policy.kind->name == "bitpipe";
      const int unit = units ? static_cast<int>(schedule.ranks.size()) : schedule.micro_batches;
      const bool passes = b % unit * schedule.copies / unit == s / of_copy;
      // Ranks of a ring hold a copy each, of which micro-batch b runs on rank b mod p; chunk c is
      // updated on rank -c mod p.
      const bool ring = chain.policy.kind->name == "weipipe";
      const int copy = s / of_copy;
      // HelixPipe has a copy for each place of a round, and updates stages with weights of one.
      const bool helix = chain.policy.kind->name == "helixpipe";
      const bool updated = ring    ? (copy + s) % of_copy == 0
                           : helix ? copy == 0 && s % 2 == 0
                                   : true;
      if ((b + 1) % every == 0 && updated) expected[{s, OpKind::U, b, s}] = 1;
      const int place = b / chain.policy.folds % schedule.copies;
      if (ring ? b % schedule.copies != copy : helix ? place != copy : !passes) continue;
      expected[{s, OpKind::F, b, s}] = 1;
      if (chain.policy.vocabulary != VocabularySplit::Whole) {
        const int ranks = static_cast<int>(schedule.ranks.size());  // of a stage each, or two
        for (const auto kind : {OpKind::S, OpKind::T, OpKind::E, OpKind::G}) {
          const bool readout = kind == OpKind::S || kind == OpKind::T;
          if (readout ? s >= of_copy - ranks : s < ranks) expected[{s, kind, b, s}] = 1;
        }
      }
      if (roles[s].runs_next_part) expected[{s, OpKind::R, b, s}] = 1;
      if (roles[s].head) expected[{s, OpKind::H, b, s}] = 1;
      for (const Traversal& t : roles[s].traversals) {
        expected[{s, t.weights ? OpKind::B : OpKind::I, b, t.loss}] = 1;
      }
    }
  }
  return expected;
}

/// The ops of `schedule`, halves of a backward joined; a weight half must have its input half.
Count joined_ops(const TestChain& chain, const Schedule& schedule) {
  Count found;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const Op& op : ops_of(schedule.ranks[rank])) {
      CHECK(chain.rank_of_stage[op.stage] == static_cast<int>(rank));
      if (op.kind == OpKind::W && op.defers) continue;  // a part of a B that is there
      ++found[{op.stage, op.kind, op.micro_batch, op.loss}];
      if (op.kind != OpKind::W) continue;
      CHECK(found.erase({op.stage, OpKind::I, op.micro_batch, op.loss}) == 1);
      found.erase({op.stage, OpKind::W, op.micro_batch, op.loss});
      ++found[{op.stage, OpKind::B, op.micro_batch, op.loss}];
    }
  }
  return found;
}

TEST_CASE("every schedule holds each op of each stage and micro-batch once, on its stage's rank") {
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    Random random(91, seed);
    const TestChain chain = random_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    const Schedule schedule = schedule_of(chain);
    CHECK(joined_ops(chain, schedule) == expected_ops(chain, schedule));
  }
}

TEST_CASE("a sequence has one stage and, but for an update, finishes what it begins in order") {
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    Random random(92, seed);
    const TestChain chain = random_chain(random);
    if (!is_plain(chain) || chain.slices > 1) continue;
    INFO("seed " << seed << ": " << describe(chain));
    for (const auto& rank : schedule_of(chain).ranks) {
      for (const Sequence& sequence : rank) {
        std::set<int> stages;
        std::map<OpKind, int> latest;
        for (const Op& op : expand(sequence)) {
          stages.insert(op.stage);
          const auto [before, fresh] = latest.try_emplace(op.kind, op.micro_batch);
          CHECK(before->second <= op.micro_batch);
          before->second = op.micro_batch;
          if (of_vocabulary(op.kind)) continue;  // of forwards of other ranks
          if (op.kind != OpKind::F) CHECK(latest.at(OpKind::F) >= op.micro_batch);
        }
        CHECK(stages.size() <= 1);
      }
    }
  }
}

TEST_CASE("w in flight gives a stage w sequences, which take micro-batches in turn") {
  for (int w : {1, 2, 3}) {
    TestChain chain = pipeline("eager", 3, 1, 7);
    chain.policy.in_flight = w;
    const Schedule schedule = schedule_of(chain);
    for (const auto& rank : schedule.ranks) {
      REQUIRE(static_cast<int>(rank.size()) == w);
      for (int stream = 0; stream < w; ++stream) {
        for (const Op& op : expand(rank[stream])) CHECK(op.micro_batch % w == stream);
      }
    }
  }
}

TEST_CASE("letters are PyTorch's, and ours for heads and updates, in order of priority") {
  std::string letters;
  for (const auto kind : {OpKind::F, OpKind::H, OpKind::R, OpKind::I, OpKind::B, OpKind::W,
                          OpKind::U, OpKind::S, OpKind::T, OpKind::E, OpKind::G}) {
    letters += letter(kind);
  }
  CHECK(letters == "FHRIBWUSTEG");
}

TEST_CASE("the catalogue finds each schedule by its name, and no other") {
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    CHECK(find_schedule(entry.name) == &entry);
    CHECK((entry.make != nullptr));
    if (!entry.other_backward.empty()) {
      CHECK(schedule_named(entry.other_backward).other_backward == entry.name);
    }
  }
  CHECK(find_schedule("1f1b-x") == nullptr);
}

}  // namespace
}  // namespace interlock::schedule_test
