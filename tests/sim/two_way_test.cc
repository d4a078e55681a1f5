// DualPipe, DualPipeV, Chimera and Hanayo: their orders against published ones, slots and counts.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::two_way_test {
namespace {

constexpr std::string_view kTwoWays[] = {"dualpipe", "dualpipe-v", "chimera", "bitpipe", "hanayo"};

TestChain pipeline(std::string_view kind, int ranks, int micro_batches, int steps = 1,
                   const ChainStage& stage = {}) {
  TestChain chain = make_laid_chain(ranks, kind, stage);
  chain.micro_batches = micro_batches;
  chain.steps = steps;
  return chain;
}

std::vector<Op> ops_of(const Schedule& schedule, int rank) {
  REQUIRE(schedule.ranks[rank].size() == 1);
  return expand(schedule.ranks[rank].front());
}

std::string cell(const Op& op) {
  return std::to_string(op.stage) + letter(op.kind) + std::to_string(op.micro_batch);
}

/// A row of PyTorch's text form; updates are not part of it.
std::string pytorch_row(const std::vector<Op>& ops) {
  std::string row;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == OpKind::U) continue;
    row += row.empty() ? "" : ",";
    if (!ops[i].overlaps_next) {
      row += cell(ops[i]);
    } else {
      row += "(" + cell(ops[i]) + ";" + cell(ops[i + 1]) + ")OVERLAP_F_B";
      ++i;
    }
  }
  return row;
}

TEST_CASE("DualPipeV of 10 micro-batches on 4 ranks is PyTorch's, cell for cell") {
  std::istringstream published(read_file(DATA_FOLDER "/pytorch_dualpipev_4rank_10mb.csv"));
  const Schedule schedule = schedule_of(pipeline("dualpipe-v", 4, 10));
  for (int rank = 0; rank < 4; ++rank) {
    std::string row;
    REQUIRE(std::getline(published, row));
    CHECK(pytorch_row(ops_of(schedule, rank)) == row);
  }
}

TEST_CASE("DualPipe of 8 micro-batches on 4 ranks, as text; stages 4 to 7 are the second copy") {
  const Schedule schedule = schedule_of(pipeline("dualpipe", 4, 8));
  CHECK(
      to_text(schedule) ==
      "0F0 0F1 0F2 7F4 7I4:7 7W4 7F5 0F3 7B5 7F6 0B0 7B6 7F7 0B1 7B7 0I2:3 0W2 0I3:3 0W3 0U7 7U7\n"
      "1F0 6F4 1F1 6F5 1F2 6B4 6F6 1B0 1F3 6B5 6F7 1B1 6B6 1B2 6I7:7 1I3:3 6W7 1W3 1U7 6U7\n"
      "5F4 2F0 5F5 2F1 5F6 2B0 2F2 5B4 5F7 2B1 2F3 5B5 2B2 5B6 2I3:3 5I7:7 2W3 5W7 5U7 2U7\n"
      "4F4 4F5 4F6 3F0 3I0:3 3W0 3F1 4F7 3B1 3F2 4B4 3B2 3F3 4B5 3B3 4I6:7 4W6 4I7:7 4W7 4U7 "
      "3U7\n");
}

TEST_CASE("the first half of DualPipe's ranks does what DualPipeV does on as many ranks") {
  for (int half = 1; half <= 5; ++half) {
    for (int each = 2 * half; each <= 2 * half + 5; ++each) {
      const Schedule whole = schedule_of(pipeline("dualpipe", 2 * half, 2 * each));
      const Schedule cut = schedule_of(pipeline("dualpipe-v", half, each));
      for (int rank = 0; rank < half; ++rank) {
        // The way up of the V is copy 1, whose stage 0 is on the last rank of the other half.
        const auto on_cut = [&](Op op) {
          if (op.stage >= 2 * half) {
            op.stage = 2 * half - 1 - rank;
            op.micro_batch -= each;
          }
          return cell(op) + (op.overlaps_next ? "&" : "");
        };
        std::string of_whole, of_cut;
        for (const Op& op : ops_of(whole, rank)) {
          if (op.kind != OpKind::U) of_whole += on_cut(op) + " ";
        }
        for (const Op& op : ops_of(cut, rank)) {
          if (op.kind != OpKind::U) of_cut += cell(op) + (op.overlaps_next ? "& " : " ");
        }
        INFO("half " << half << ", each " << each << ", rank " << rank);
        CHECK(of_whole == of_cut);
      }
    }
  }
}

TEST_CASE("Chimera of 4 micro-batches on 4 ranks, as text; stages 4 to 7 are the second copy") {
  CHECK(to_text(schedule_of(pipeline("chimera", 4, 4))) ==
        "0F0 0F1 7F2 7B2 7F3 7B3 0B0 0B1 0U3 7U3\n"
        "1F0 6F2 1F1 6F3 6B2 1B0 6B3 1B1 1U3 6U3\n"
        "5F2 2F0 5F3 2F1 2B0 5B2 2B1 5B3 5U3 2U3\n"
        "4F2 4F3 3F0 3B0 3F1 3B1 4B2 4B3 4U3 3U3\n");
}

TEST_CASE("Hanayo of 4 micro-batches in one wave on 2 ranks, as text") {
  // In cells of a forward and a backward: 0F0 - 0F1 3F0,3B0 0F2 3F1,3B1 0F3,0B0 3F2,3B2 0B1 ...
  CHECK(to_text(schedule_of(pipeline("hanayo", 2, 4))) ==
        "0F0 0F1 3F0 3B0 0F2 3F1 3B1 0F3 0B0 3F2 3B2 0B1 3F3 3B3 0B2 0B3 0U3 3U3\n"
        "1F0 2F0 1F1 2F1 2B0 1F2 1B0 2F2 2B1 1F3 1B1 2F3 2B2 1B2 2B3 1B3 1U3 2U3\n");
}

TEST_CASE("Hanayo of 2 micro-batches in two waves on 2 ranks, as text") {
  TestChain waves = make_laid_chain(2, "hanayo", {}, 4);
  waves.micro_batches = 2;
  CHECK(to_text(schedule_of(waves)) ==
        "0F0 0F1 3F0 4F0 3F1 4F1 7F0 7B0 7F1 7B1 4B0 3B0 4B1 3B1 0B0 0B1 0U1 3U1 4U1 7U1\n"
        "1F0 2F0 1F1 2F1 5F0 6F0 5F1 6F1 6B0 5B0 6B1 5B1 2B0 1B0 2B1 1B1 1U1 2U1 5U1 6U1\n");
}

TEST_CASE("Chimera with F = B fills 2M of its 2M + p - 2 slots on every rank") {
  // Count: a unit of p micro-batches gives a rank 2p passes. The last backward of unit 0 ends on
  // rank 0 at 2p - 1 + 2 (p/2 - 1) + 1 = 3p - 2, and each further unit comes 2p later: in all
  // 2p (M/p - 1) + 3p - 2 = 2M + p - 2, of which 2M are passes.
  for (int p = 2; p <= 10; p += 2) {
    for (int units = 1; units <= 4; ++units) {
      const int m = units * p;
      const ChainStage equal{.forward = 1, .backward_input = 0.5, .backward_weight = 0.5};
      const Program program = program_of(pipeline("chimera", p, m, 1, equal));
      const Realised run = realise(program, run_native);
      INFO("p " << p << ", M " << m << ": 2M + p - 2 = " << 2 * m + p - 2);
      CHECK(run.summary.makespan == Seconds(2 * m + p - 2));
      std::map<int, std::set<int>> taken;
      for (const Span& span : run.log.spans) {
        const OpInfo& op = program.ops[span.op];
        if (op.kind == OpKind::U) continue;
        // Micro-batch k of a unit: k < p/2 goes down, the others up; F passes stage s after s
        // slots, and B comes back as if reflected at the end. Nothing runs late; what can, runs
        // early.
        const int unit = span.micro_batch / p, k = span.micro_batch % p;
        const int s = model_stage(program, op.stage);
        const int pass = op.kind == OpKind::F ? s : 2 * p - 1 - s;
        const int slot = 2 * p * unit + 2 * (k % (p / 2)) + pass;
        CHECK((op.stage < p) == (k < p / 2));
        CHECK(span.start <= Seconds(slot));
        taken[span.rank].insert(slot);
      }
      for (const auto& [rank, slots] : taken) CHECK(static_cast<int>(slots.size()) == 2 * m);
    }
  }
}

TEST_CASE(
    "every op of every micro-batch occurs once, on the copy that the micro-batch goes through") {
  for (const std::string_view kind : kTwoWays) {
    for (int p = 2; p <= 8; p += 2) {
      for (int m = 2 * p; m <= 5 * p; m += p) {
        const TestChain chain = pipeline(kind, p, m, 2);
        const Schedule schedule = schedule_of(chain);
        std::map<std::tuple<int, int>, std::string> letters;  // of (stage, micro-batch)
        for (int rank = 0; rank < p; ++rank) {
          for (const Op& op : ops_of(schedule, rank)) {
            CHECK(chain.rank_of_stage[op.stage] == rank);
            letters[{op.stage, op.micro_batch}] += letter(op.kind);
          }
        }
        INFO(schedule_named(kind).name << ", p " << p << ", M " << m);
        const int stages = schedule.stages / schedule.copies;
        std::size_t passes = 0;
        for (const auto& [place, found] : letters) {
          const auto [stage, micro_batch] = place;
          const bool last = micro_batch % m == m - 1;
          const std::string own =
              last && found.back() == 'U' ? found.substr(0, found.size() - 1) : found;
          if (own.empty()) continue;  // the other copy's update
          ++passes;
          CHECK((own == "FB" || own == "FIW"));
          if (kind == "dualpipe") CHECK((stage < stages) == (micro_batch % m < m / 2));
        }
        CHECK(passes == static_cast<std::size_t>(2 * m * stages));
        for (int stage = 0; stage < schedule.stages; ++stage) {
          CHECK(letters[{stage, m - 1}].back() == 'U');
          CHECK(letters[{stage, 2 * m - 1}].back() == 'U');
        }
      }
    }
  }
}

}  // namespace
}  // namespace interlock::two_way_test
