// PipeOffload's order against an event list of its cells, and which stash leaves by lifetime.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/offload.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::pipeoffload_test {
namespace {

/// An op of a chunk in the event list of PipeOffload.
struct CellOp {
  int cell = 0;
  char kind = 'F';
  int chunk = 0, micro_batch = 0;
};

/// Walks a step of PipeOffload cell by cell, each rank's ops in the order of their cells and each
/// as soon as it has what it needs, all of unit time. Cells are written down micro-batch by
/// micro-batch: forwards of a chunk follow each other 3v cells apart, those of the next chunk begin
/// 3k later, or 3k + 3 where that would meet another chunk's.
class EventList {
 public:
  EventList(int p, int v, int m) : p_(p), v_(v), order_(p), next_(p, 0), free_(p, 0) {
    std::vector<int> cell_of_chunk = {0};
    for (std::vector<bool> taken(v, false); static_cast<int>(cell_of_chunk.size()) < v;) {
      taken[cell_of_chunk.back() / 3 % v] = true;
      int cell = cell_of_chunk.back() + 3 * ((p + 1) / 2);
      while (taken[cell / 3 % v]) cell += 3;
      cell_of_chunk.push_back(cell);
    }
    for (int rank = 0; rank < p; ++rank) {
      const int back = rank + cell_of_chunk.back() + 3 * (p - 1 - rank) + 1;
      for (int b = 0; b < m; ++b) {
        for (int c = 0; c < v; ++c) {
          const int first = back + cell_of_chunk[v - 1 - c] + 3 * v * b;
          order_[rank].push_back({rank + cell_of_chunk[c] + 3 * v * b, 'F', c, b});
          order_[rank].push_back({first, 'I', c, b});
          order_[rank].push_back({first + 1, 'W', c, b});
        }
      }
      std::sort(order_[rank].begin(), order_[rank].end(),
                [](const CellOp& x, const CellOp& y) { return x.cell < y.cell; });
    }
  }

  /// Returns the span of rank 0 and, in chunks, the most that a rank keeps of those from `chunk`
  /// on.
  std::pair<int, int> run(int chunk) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < p_; ++rank) {
        while (next_[rank] < order_[rank].size() && step(rank)) moved = true;
      }
    }
    int most = 0;
    for (const std::vector<CellOp>& ops : order_) {
      int kept = 0;
      for (const CellOp& op : ops) {
        kept += op.chunk < chunk ? 0 : op.kind == 'F' ? 1 : op.kind == 'W' ? -1 : 0;
        most = std::max(most, kept);
      }
    }
    for (int rank = 0; rank < p_; ++rank) REQUIRE(next_[rank] == order_[rank].size());
    return {*std::max_element(free_.begin(), free_.end()), most};
  }

 private:
  bool step(int rank) {
    const CellOp& op = order_[rank][next_[rank]];
    const int stage = op.chunk * p_ + rank, last = p_ * v_ - 1;
    int ready = 0;
    if (op.kind == 'F' && stage > 0) {
      ready = end_of('F', stage - 1, op.micro_batch);
    } else if (op.kind == 'I') {
      ready = stage < last ? end_of('I', stage + 1, op.micro_batch)
                           : end_of('F', stage, op.micro_batch);
    }
    if (ready < 0) return false;
    free_[rank] = std::max(free_[rank], ready) + 1;
    ends_[{op.kind, stage, op.micro_batch}] = free_[rank];
    ++next_[rank];
    return true;
  }

  int end_of(char kind, int stage, int micro_batch) const {
    const auto found = ends_.find({kind, stage, micro_batch});
    return found == ends_.end() ? -1 : found->second;
  }

  int p_, v_;
  std::vector<std::vector<CellOp>> order_;
  std::vector<std::size_t> next_;
  std::vector<int> free_;
  std::map<std::tuple<char, int, int>, int> ends_;
};

/// The time of a run, and the most stash that a rank keeps.
std::pair<double, double> span_and_stash(const TestChain& chain) {
  Realised run = realise(program_of(chain), run_native);
  CHECK(run.deadlock == "");
  std::sort(run.log.memory.begin(), run.log.memory.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time, a.bytes) < std::tie(b.time, b.bytes);  // room is made first
  });
  double end = 0, most = 0;
  for (const Span& span : run.log.spans) end = std::max(end, span.end.value());
  std::map<int, double> held;
  for (const MemoryChange& change : run.log.memory) {
    if (change.memory_class != MemoryClass::Stash) continue;
    double& of_rank = held[change.rank];
    of_rank += change.bytes;
    most = std::max(most, of_rank);
  }
  return {end, most};
}

TEST_CASE(
    "PipeOffload takes as long as its event list and keeps as much; later chunks keep little") {
  for (int p : {1, 2, 3, 4, 5, 8}) {
    for (int v : {1, 2, 3, 4}) {
      for (int m : {1, p, 2 * p, 3 * p + 1}) {
        TestChain chain = make_laid_chain(p, "pipeoffload", {.stash = 1}, v);
        chain.micro_batches = m;
        const auto [end, most] = EventList(p, v, m).run(0);
        const auto [simulated, held] = span_and_stash(chain);
        INFO(describe(chain));
        CHECK(simulated == end);
        CHECK(held == most);
        // With the half of the chunks that live longest more than half of the stash is gone.
        if (p > 1 && v % 2 == 0 && m > 2 * p)
          CHECK(EventList(p, v, m).run(v / 2).second * 2 < most);
      }
    }
  }
}

/// Returns how long a rank is busy between each forward and its backward, on average, by stage.
std::map<int, double> lifetimes_of(const Program& program, const TraceLog& log, int rank) {
  std::vector<Span> spans;
  for (const Span& span : log.spans) {
    if (span.rank == rank) spans.push_back(span);
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start < b.start; });
  std::map<int, std::vector<double>> all;
  for (std::size_t f = 0; f < spans.size(); ++f) {
    const OpInfo& forward = program.ops[spans[f].op];
    if (forward.kind != OpKind::F) continue;
    double busy = 0;
    for (std::size_t b = f + 1; b < spans.size(); ++b) {
      const OpInfo& op = program.ops[spans[b].op];
      const bool own = op.stage == forward.stage && spans[b].micro_batch == spans[f].micro_batch;
      if (own && (op.kind == OpKind::I || op.kind == OpKind::B)) break;
      busy += (spans[b].end - spans[b].start).value();
    }
    all[forward.stage].push_back(busy);
  }
  std::map<int, double> mean;
  for (const auto& [stage, times] : all) {
    for (const double time : times) mean[stage] += time / static_cast<double>(times.size());
  }
  return mean;
}

TEST_CASE("by lifetime the stash of those stages leaves that a rank keeps it longest of") {
  int whole = 0, part = 0;
  const int trials = cases(60);
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial), 61);
    const std::vector<std::string_view> kinds = {"interleaved", "pipeoffload", "zb-v",
                                                 "breadth-first", "v-half"};
    const std::string_view kind = kinds[random.integer(0, 4)];
    const int ranks = random.integer(1, 4);
    const bool loops = kind != "zb-v" && kind != "v-half";
    TestChain chain = make_laid_chain(ranks, kind, {}, loops ? random.integer(1, 4) : 2);
    chain.micro_batches = 2 * ranks * random.integer(1, 2);
    chain.policy.update_every = chain.micro_batches;
    for (StageCost& stage : chain.costs) {
      stage.forward.time = Seconds(random.integer(1, 4));
      stage.backward_input.time = Seconds(random.integer(1, 4));
      stage.backward_weight.time = Seconds(random.integer(1, 4));
      stage.stash = Bytes(random.integer(1, 8));
    }
    const double share = random.integer(0, 4) / 4.0;
    std::vector<StageCost> stages = chain.costs;
    for (StageCost& stage : stages) stage.host_stash = stage.stash * share;
    offload_by_lifetime(share, schedule_of(chain), stages);
    const Program program = program_of(chain);
    const Realised run = realise(program, run_native);
    INFO(describe(chain));
    for (int rank = 0; rank < ranks; ++rank) {
      const std::map<int, double> lifetimes = lifetimes_of(program, run.log, rank);
      double all = 0, gone = 0;
      for (const auto& [stage, lifetime] : lifetimes) {
        const double stash = stages[stage].stash.value(), host = stages[stage].host_stash.value();
        all += stash;
        gone += host;
        whole += host == stash && share > 0 ? 1 : 0;
        part += host > 0 && host < stash ? 1 : 0;
        // If anything of a stage stays, nothing leaves of one that lives shorter.
        for (const auto& [other, shorter] : lifetimes) {
          if (shorter < lifetime * (1 - 1e-9) && host < stash) {
            CHECK(stages[other].host_stash == Bytes(0));
          }
        }
      }
      CHECK(gone == doctest::Approx(share * all));
    }
  }
  CHECK(whole > 0);
  CHECK(part > 0);
}

}  // namespace
}  // namespace interlock::pipeoffload_test
