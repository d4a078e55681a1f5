// Messages that share links: what must hold whatever the engine makes of contention.
// SPDX-License-Identifier: Apache-2.0
//
// Each device has one port up and one down; messages to or from several neighbours share them.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::shared_links_test {
namespace {

constexpr double kOne = 1 + 1e-9;

struct SharedRun {
  const Program& program;
  const Realised& realised;
  const std::vector<int>& links_of(const Transfer& transfer) const {
    return program.wires[program.channels[transfer.channel].wire].links;
  }
  bool uses(const Transfer& transfer, int link) const {
    const auto& links = links_of(transfer);
    return std::find(links.begin(), links.end(), link) != links.end();
  }
  Seconds alone(const Transfer& transfer) const {
    return program.channels[transfer.channel].occupancy;
  }
};

/// Runs of random chains whose devices hang on one switch, where links are shared.
void for_shared_runs(const std::function<void(const SharedRun&)>& visit) {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(181, seed);
    TestChain chain = random_chain(random);
    chain.cluster.mesh = false;
    for (StageCost& cost : chain.costs) cost.output += Bytes(500);
    const Program program = program_of(chain);
    if (!shares_links(program)) continue;
    const Realised realised = realise_simgrid(program);
    if (!realised.deadlock.empty()) continue;
    ++runs;
    INFO("seed " << seed << ": " << describe(chain));
    visit({program, realised});
  }
  CHECK(runs > 30);
}

TEST_CASE("no message is faster than alone, and latency follows it") {
  for_shared_runs([](const SharedRun& run) {
    for (const Transfer& t : run.realised.log.transfers) {
      CHECK(t.start >= t.sent);
      CHECK((t.end - t.start).value() * kOne + 1e-9 >= run.alone(t).value());
      const Seconds latency = run.program.channels[t.channel].latency;
      CHECK((t.arrival - t.end).value() == doctest::Approx(latency.value()).epsilon(1e-9));
    }
  });
}

TEST_CASE("a message that meets no other on its links takes its time alone") {
  int alone = 0;
  for_shared_runs([&](const SharedRun& run) {
    const auto& transfers = run.realised.log.transfers;
    for (const Transfer& t : transfers) {
      const bool meets = std::any_of(transfers.begin(), transfers.end(), [&](const Transfer& o) {
        if (&o == &t || o.end <= t.start || o.start >= t.end) return false;
        const auto& links = run.links_of(t);
        return std::any_of(links.begin(), links.end(), [&](int l) { return run.uses(o, l); });
      });
      if (meets) continue;
      ++alone;
      CHECK((t.end - t.start).value() ==
            doctest::Approx(run.alone(t).value()).epsilon(1e-9).scale(1));
    }
  });
  CHECK(alone > 300);
}

TEST_CASE("a link carries no more than its bandwidth between any two instants") {
  int shared = 0;
  for_shared_runs([&](const SharedRun& run) {
    for (int link = 0; link < static_cast<int>(run.program.links.size()); ++link) {
      std::vector<Transfer> used;
      for (const Transfer& t : run.realised.log.transfers) {
        if (run.uses(t, link)) used.push_back(t);
      }
      for (const Transfer& first : used) {
        for (const Transfer& last : used) {
          if (last.end <= first.start) continue;
          double bytes = 0;
          for (const Transfer& t : used) {
            const bool inside = t.start >= first.start && t.end <= last.end;
            if (inside) bytes += run.program.channels[t.channel].bytes.value();
          }
          const double possible =
              run.program.links[link].bandwidth.value() * (last.end - first.start).value();
          CHECK(bytes <= possible * kOne + 1e-6);
          shared += bytes > 0.999 * possible && first.channel != last.channel ? 1 : 0;
        }
      }
    }
  });
  CHECK(shared > 10);  // full for a while, by messages of several channels
}

TEST_CASE("messages of one pair of ranks never overlap on the way, nor overtake each other") {
  for_shared_runs([](const SharedRun& run) {
    std::vector<std::vector<Transfer>> wires(run.program.wires.size());
    for (const Transfer& t : run.realised.log.transfers) {
      wires[run.program.channels[t.channel].wire].push_back(t);
    }
    for (auto& transfers : wires) {
      std::sort(transfers.begin(), transfers.end(), [](const Transfer& a, const Transfer& b) {
        return std::tie(a.start, a.end) < std::tie(b.start, b.end);
      });
      for (std::size_t i = 1; i < transfers.size(); ++i) {
        CHECK(transfers[i - 1].end <= transfers[i].start);
        CHECK(transfers[i - 1].sent <= transfers[i].sent);
      }
    }
  });
}

TEST_CASE("sharing a port makes no run shorter than wires of its own would") {
  // Compares fixed orders only: where ranks choose, a delay may lead to a luckier order.
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(182, seed);
    TestChain chain = random_chain(random);
    const Realised own = realise(program_of(chain), run_native);
    chain.cluster.mesh = false;
    const Program program = program_of(chain);
    if (chooses_order(program) || !own.deadlock.empty()) continue;
    const Realised shared = realise_simgrid(program);
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(shared.deadlock == "");
    CHECK(shared.summary.makespan.value() * kOne >= own.summary.makespan.value());
    compared += shares_links(program) ? 1 : 0;
  }
  CHECK(compared > 15);
}

}  // namespace
}  // namespace interlock::shared_links_test
