// A vocabulary on the ranks of V-half: its order, bubble and stash, its times by lists of events.
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

namespace interlock::v_vocabulary_test {
namespace {

using namespace divided_vocabulary;

/// A pass of the reference program: F, I or W of the stage on the way down (0) or up (1), or a part
/// of the vocabulary; sorted by time, then as the program lists them.
struct Timed {
  int at = 0, listed = 0, index = 0;
  Step step;
  bool operator<(const Timed& other) const {
    return std::tie(at, listed, index) < std::tie(other.at, other.listed, other.index);
  }
};

/// Returns the order of each rank as the reference program makes it, for an even number of ranks:
/// passes in the order of their cells, run as early as can be; parts of the vocabulary listed
/// behind them with times that the last forwards on rank 0 give; all sorted by when they begin.
std::vector<std::vector<Step>> sorted_orders(int p, int m, int barriers) {
  const int shift = (p % 2 == 0 ? 3 : 0) + 6 * barriers;
  std::vector<std::vector<std::pair<int, int>>> orders(p);  // (ranks, passes) kind, micro-batch
  for (int r = 0; r < p; ++r) {
    std::map<int, std::pair<int, int>> cells;
    const int first[] = {2 * r, 3 * p - r - 2, 3 * p + shift + 2 * r - 1, 6 * p + shift - r - 2};
    for (int kind = 0; kind < 4; ++kind) {
      for (int b = 0; b < m; ++b) cells[first[kind] + 6 * b] = {kind, b};
    }
    int waiting[] = {0, 0}, made[] = {0, 0};
    const auto add_weight = [&] {
      const int w = waiting[0] > 0 ? 0 : 1;
      if (waiting[w] == 0) return;
      --waiting[w];
      orders[r].emplace_back(4 + w, made[w]++);
    };
    for (int cell = 0, last = cells.rbegin()->first; cell <= last; ++cell) {
      const auto found = cells.find(cell);
      if (found == cells.end()) {
        add_weight();
        continue;
      }
      orders[r].push_back(found->second);
      if (found->second.first >= 2) ++waiting[found->second.first - 2];
    }
    while (waiting[0] + waiting[1] > 0) add_weight();
  }
  std::map<std::tuple<int, int, int>, int> ends;  // rank, kind, micro-batch
  std::vector<std::vector<Timed>> timed(p);
  std::vector<std::size_t> next(p, 0);
  std::vector<int> free(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < p; ++r) {
      for (; next[r] < orders[r].size(); ++next[r]) {
        const auto [kind, b] = orders[r][next[r]];
        std::tuple<int, int, int> needed = {r, kind >= 4 ? kind - 2 : kind - 1, b};
        if ((kind == 0 || kind == 2) && r > 0) needed = {r - 1, kind, b};
        if ((kind == 1 || kind == 3) && r < p - 1) needed = {r + 1, kind, b};
        const bool enters = kind == 0 && r == 0;
        if (!enters && ends.count(needed) == 0) break;
        const int start = std::max(free[r], enters ? 0 : ends[needed]);
        ends[{r, kind, b}] = free[r] = start + 1;
        const bool up = kind == 1 || kind == 2 || kind == 4;
        const Step step = {"FFIIWW"[kind], b, up ? 2 * p - 1 - r : r};
        timed[r].push_back({start, 0, static_cast<int>(next[r]), step});
        moved = true;
      }
    }
  }
  const auto readout_at = [&](int b) { return ends.at({0, 1, b}) + 1; };
  const int kept = p / 2 + 1, whole = *std::max_element(free.begin(), free.end());
  std::vector<std::vector<Step>> result(p);
  for (int r = 0; r < p; ++r) {
    for (int b = 0; b < m; ++b) {
      const bool late = b >= m - kept - 2;
      timed[r].push_back({b < kept ? b - m : readout_at(b - kept), 1, b, {'E', b}});
      timed[r].push_back({b + 1 < m ? readout_at(b + 1) : readout_at(b) + 4, 2, b, {'T', b}});
      timed[r].push_back({readout_at(b), 3, b, {'S', b}});
      timed[r].push_back({late ? whole + b : readout_at(b + kept + 2), 4, b, {'G', b}});
    }
    std::sort(timed[r].begin(), timed[r].end());
    for (const Timed& one : timed[r]) result[r].push_back(one.step);
  }
  return result;
}

// With an odd number of ranks the first one would stand for ever: it begins a forward ahead of the
// part of the embedding that the forward reads. So it would in a step of few micro-batches.
TEST_CASE("ranks of V-half run parts of the vocabulary where the reference program sorts them") {
  for (const int p : {2, 4, 6, 8, 16}) {
    for (const int barriers : {1, 2}) {
      for (const int m : {p / 2 + 2, p + 1, p + 8, p + 9, 3 * p + 20}) {
        const TestChain chain =
            chain_of({.ranks = p, .micro_batches = m, .barriers = barriers, .v = true});
        const auto wanted = sorted_orders(p, m, barriers);
        for (int rank = 0; rank < p; ++rank) {
          INFO(p << " ranks, " << m << " micro-batches, " << barriers << " barriers, rank "
                 << rank);
          CHECK(order_of(chain, rank) == wanted[rank]);
        }
      }
    }
  }
}

TEST_CASE("every op of V-half with parts of the vocabulary ends when the list of events says") {
  for (int seed = 0; seed < cases(120); ++seed) {
    Random random(2412, static_cast<std::uint64_t>(seed));
    const Case c = random_v_case(random);
    TestChain chain = chain_of(c);
    chain.steps = 2;
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(fault_of_events(c, chain) == "");
  }
}

Metrics measured(const TestChain& chain) {
  return measure(programs_of(chain), {.steps = 3}, false).metrics;
}

TEST_CASE("parts without length leave V-half (7p + 2)/2 cells idle, and three more by a barrier") {
  for (int p = 2; p <= 12; ++p) {
    for (const int barriers : {1, 2}) {
      for (const int m : {p + 6, 5 * p + 20}) {
        Case c = {.ranks = p, .micro_batches = m, .barriers = barriers, .v = true};
        c.s = c.t = c.e = c.g = c.hidden = c.statistics = 0;
        const int idle = (7 * p + (p % 2 == 0 ? 2 : -1)) / 2 + 3 * (barriers - 1);
        INFO(p << " ranks, " << m << " micro-batches, " << barriers << " barriers");
        CHECK(measured(chain_of(c)).step_time.value() == doctest::Approx(6 * m + idle));
      }
    }
  }
}

TEST_CASE("each micro-batch adds its six cells and its four parts to a long step of V-half") {
  for (const int p : {2, 5, 8}) {
    for (const int barriers : {1, 2}) {
      Case c = {.ranks = p, .barriers = barriers, .v = true};
      c.s = c.t = c.e = c.g = 0.1;
      c.hidden = c.statistics = 1e-6;
      const auto step = [&](int m) {
        c.micro_batches = m;
        return measured(chain_of(c)).step_time.value();
      };
      INFO(p << " ranks, " << barriers << " barriers");
      CHECK(step(9 * p) - step(8 * p) == doctest::Approx(p * 6.4).epsilon(1e-6));
    }
  }
}

TEST_CASE("a rank of V-half keeps one micro-batch more for each barrier") {
  constexpr double kStash = 50;  // of a stage, half of a rank's share
  for (int p = 2; p <= 9; ++p) {
    for (const int barriers : {1, 2}) {
      Case c = {.ranks = p, .micro_batches = 4 * p, .barriers = barriers, .v = true};
      c.kept = 0;
      c.hidden = c.statistics = 1e-6;  // held while they are added up
      const Metrics m = measured(chain_of(c, kStash));
      INFO(p << " ranks, " << barriers << " barriers");
      for (const DeviceMetrics& device : m.devices) {
        INFO("device " << device.rank);
        CHECK(device.peak_memory.value() ==
              doctest::Approx((p / 2 + 1 + barriers) * 2 * kStash).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("ranks of a V have as many sums and broadcasts as ranks of one stage each") {
  for (const int barriers : {1, 2}) {
    const Case c = {.ranks = 4, .micro_batches = 6, .barriers = barriers, .v = true};
    const Program program = program_of(chain_of(c));
    std::map<CollectiveKind, int> seen;
    for (const CollectiveSpan& span : realise(program, run_native).log.collectives) {
      ++seen[program.collectives[span.collective].kind];
    }
    CHECK(seen == std::map<CollectiveKind, int>{{CollectiveKind::Broadcast, 2 * 6},
                                                {CollectiveKind::AllReduce, (1 + barriers) * 6}});
  }
}

}  // namespace
}  // namespace interlock::v_vocabulary_test
