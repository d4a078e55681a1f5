// HelixPipe: its order against the authors' loops, where attention runs, and how long a step is.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::helixpipe_test {
namespace {

/// The sizes of a run, in the words of the authors: loops are layers of a rank, repeats rounds.
struct Sizes {
  int ranks = 2, loops = 1, folds = 1, repeats = 1;
  int stages() const { return 2 * ranks * loops + 1; }
  int micro_batches() const { return ranks * folds * repeats; }
};

TestChain chain_of(const Sizes& sizes) {
  TestChain chain = make_laid_chain(sizes.ranks, "helixpipe", {}, sizes.loops);
  chain.policy.folds = sizes.folds;
  chain.micro_batches = chain.policy.update_every = sizes.micro_batches();
  return chain;
}

TEST_CASE("HelixPipe of 2 ranks, as text: stages of the second place count on from 5") {
  CHECK(to_text(schedule_of(chain_of({}))) ==
        "0F0 5F1 6F1 3F0 4F0 9F1 9B1 4B0 3B0 6B1 5B1 0B0 0U1 4U1\n"
        "1F0 2F0 7F1 8F1 8B1 7B1 2B0 1B0 2U1\n");
}

/// Walks the loops of attention_pipeline in attn_pipe_schedule.py for one rank, forward:
/// `attention` and `weights` get a repeat, a loop, the place of a micro-batch and its fold. A
/// rank's weights of loop `loops` are those behind the last layer; attention of loop l is that
/// before its weights. Attention of the last place follows the weights of its loop: it is that of
/// the next one.
template <class Attention, class Weights>
void walk(const Sizes& s, int rank, const Attention& attention, const Weights& weights) {
  const auto folds = [&](const auto& body) {
    for (int fold = 0; fold < s.folds; ++fold) body(fold);
  };
  if (rank == 0) folds([&](int fold) { weights(0, 0, 0, fold); });
  for (int repeat = 0; repeat < s.repeats; ++repeat) {
    for (int place = rank - 1; place >= 0; --place) {  // warm up
      folds([&](int fold) {
        attention(repeat, 0, place, fold);
        if (place == 0) weights(repeat, 0, 0, fold);
      });
    }
    for (int loop = 0; loop < s.loops; ++loop) {
      for (int place = s.ranks - 2; loop > 0 && place >= 0; --place) {  // steady
        folds([&](int fold) {
          attention(repeat, loop, place, fold);
          if (place == 0) weights(repeat, loop, 0, fold);
        });
      }
      for (int place = 1; place < s.ranks; ++place) {
        folds([&](int fold) {
          if (rank == 0 && loop == 0 && repeat > 0) weights(repeat - 1, s.loops, place, fold);
          weights(repeat, loop, place, fold);
          if (place == s.ranks - 1) attention(repeat, loop + 1, place, fold);
        });
      }
    }
    for (int place = s.ranks - 2; place >= rank; --place) {  // cool down
      folds([&](int fold) {
        attention(repeat, s.loops, place, fold);
        if (place > 0) return;
        weights(repeat, s.loops, 0, fold);
        if (repeat + 1 < s.repeats) weights(repeat + 1, 0, 0, fold);
      });
    }
  }
  for (int place = 1; rank == 0 && place < s.ranks; ++place) {
    folds([&](int fold) { weights(s.repeats - 1, s.loops, place, fold); });
  }
}

TEST_CASE("each rank runs what the authors' loops run, and goes back in reverse") {
  int checked = 0;
  for (int seed = 0; seed < cases(200); ++seed) {
    Random random(39, seed);
    const Sizes sizes = {random.integer(2, 6), random.integer(1, 4), random.integer(1, 3),
                         random.integer(1, 3)};
    const Schedule schedule = schedule_of(chain_of(sizes));
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      std::vector<std::pair<int, int>> forwards;  // stages of all copies, micro-batches
      const auto add = [&](int stage, int repeat, int place, int fold) {
        forwards.emplace_back(place * sizes.stages() + stage,
                              (repeat * sizes.ranks + place) * sizes.folds + fold);
      };
      walk(
          sizes, rank,
          [&](int repeat, int loop, int place, int fold) {
            // Rank r gets what rank r - 1 - place has sent: layer loop * ranks + r - 1 - place.
            add(2 * (loop * sizes.ranks + rank - 1 - place) + 1, repeat, place, fold);
          },
          [&](int repeat, int loop, int place, int fold) {
            add(2 * (loop * sizes.ranks + rank), repeat, place, fold);
          });
      std::vector<std::pair<int, int>> first, second;
      for (const Op& op : expand(schedule.ranks[rank].front())) {
        if (op.kind == OpKind::F) first.emplace_back(op.stage, op.micro_batch);
        if (op.kind == OpKind::B) second.emplace_back(op.stage, op.micro_batch);
      }
      INFO("seed " << seed << ", rank " << rank);
      CHECK(first == forwards);
      std::reverse(second.begin(), second.end());
      CHECK(second == forwards);
      ++checked;
    }
  }
  MESSAGE(checked << " ranks");
}

TEST_CASE("the attention of a layer runs on every rank, for another place on each") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    const Sizes sizes{.ranks = ranks, .loops = 2};
    const TestChain chain = chain_of(sizes);
    for (int stage = 0; stage < sizes.stages(); ++stage) {
      std::set<int> used;
      for (int place = 0; place < ranks; ++place) {
        used.insert(chain.rank_of_stage[place * sizes.stages() + stage]);
      }
      CHECK(used.size() == (stage % 2 == 1 ? static_cast<std::size_t>(ranks) : 1));
    }
  }
}

// Derivation. Let the stages with weights take P each, but the first a and the last c, a + c = P,
// attention A, and backwards twice as much: each rank works for n M (P + A) forward. Rank r > 0
// begins when the first stage is done for r - 1 places and for one micro-batch more; when it has
// attended for the last micro-batch of place r, the last stage is left for that one and for all of
// p - 1 - r places: it waits for ((r - 1) f + 1) a + ((p - 1 - r) f + 1) c at least. With one fold
// that is r a + (p - r) c; attention of a micro-batch that comes late moves from a rank to the next
// with the stage behind it, so that both waits are p - 1 stages long in all: (p - 1) P. With f
// folds a rank waits for no more than f times that. Going back is the same in reverse.
TEST_CASE("a step takes what a rank works, and p - 1 stages with weights beside, of one fold") {
  int exact = 0, bounded = 0;
  for (int seed = 0; seed < cases(300); ++seed) {
    Random random(40, seed);
    const Sizes sizes = {random.integer(2, 6), random.integer(1, 4), random.integer(1, 3),
                         random.integer(1, 3)};
    TestChain chain = chain_of(sizes);
    const int before = random.integer(1, 4), behind = random.integer(1, 4),
              attention = random.integer(1, 20);
    for (std::size_t i = 0; i < chain.costs.size(); ++i) {
      const int stage = static_cast<int>(i) % sizes.stages();
      const double time = stage % 2 == 1                ? attention
                          : stage == 0                  ? before
                          : stage == sizes.stages() - 1 ? behind
                                                        : before + behind;
      chain.costs[i] = {};
      chain.costs[i].forward = {Seconds(time), Flops(1)};
      chain.costs[i].backward_input = {Seconds(2 * time), Flops(1)};
    }
    const Realised run = realise(program_of(chain), run_native);
    double end = 0;
    for (const Span& span : run.log.spans) end = std::max(end, span.end.value());
    const int p = sizes.ranks, f = sizes.folds;
    const double works = sizes.loops * sizes.micro_batches() * (before + behind + attention);
    const double waits = end / 3 - works;
    INFO(p << " ranks, " << sizes.loops << " loops, " << f << " folds, " << sizes.repeats
           << " repeats; " << before << ", " << attention << ", " << behind);
    double least = 0;
    for (int r = 1; r < p; ++r) {
      least = std::max<double>(least, ((r - 1) * f + 1) * before + ((p - 1 - r) * f + 1) * behind);
    }
    CHECK(waits >= least - 1e-9);
    CHECK(waits <= (p - 1) * f * (before + behind) + 1e-9);
    ++bounded;
    if (f > 1) continue;
    CHECK(waits == doctest::Approx((p - 1) * (before + behind)));
    ++exact;
  }
  MESSAGE(bounded << " runs, " << exact << " of one fold");
}

}  // namespace
}  // namespace interlock::helixpipe_test
