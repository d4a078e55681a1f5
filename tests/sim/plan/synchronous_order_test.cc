// Orders of the synchronous schedules beyond GPipe and 1F1B: as text, against PyTorch, and counted.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::synchronous_order_test {
namespace {

const std::vector<std::string_view> kAnywhere = {"eager-1f1b", "zb-h1", "zb-h2"};
const std::vector<std::string_view> kLoops = {"interleaved", "breadth-first", "interleaved-zb",
                                              "pipeoffload"};

TestChain pipeline(std::string_view kind, int ranks, int micro_batches, int chunks = 0) {
  TestChain chain = make_laid_chain(ranks, kind, {}, chunks);
  chain.micro_batches = micro_batches;
  return chain;
}

std::string text_of(std::string_view kind, int ranks, int micro_batches, int chunks = 0) {
  return to_text(schedule_of(pipeline(kind, ranks, micro_batches, chunks)));
}

/// Visits every schedule at many sizes: 1 to 5 ranks, 1 to 3 chunks, 1 to 12 micro-batches.
template <class Visit>
void for_sizes(Visit visit) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int m = 1; m <= 12; ++m) {
      for (const std::string_view kind : kAnywhere) visit(pipeline(kind, ranks, m));
      for (const std::string_view kind : {"zb-v", "v-half", "v-min"}) {
        visit(pipeline(kind, ranks, m));
      }
      for (const std::string_view kind : kLoops) {
        for (int chunks = 1; chunks <= 3; ++chunks) {
          const auto problem = schedule_named(kind).problem;
          if (problem && !problem({ranks, ranks * chunks, m}).empty()) continue;
          visit(pipeline(kind, ranks, m, chunks));
        }
      }
    }
  }
}

TEST_CASE("eager 1F1B of 6 micro-batches on 3 stages, as text") {
  CHECK(text_of("eager-1f1b", 3, 6) ==
        "0F0 0F1 0F2 0F3 0F4 0B0 0F5 0B1 0B2 0B3 0B4 0B5 0U5\n"
        "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5 1U5\n"
        "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2U5\n");
}

TEST_CASE("interleaved 1F1B of 4 micro-batches on 2 ranks with 2 chunks, as text") {
  CHECK(text_of("interleaved", 2, 4) ==
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3 0U3 2U3\n"
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3 1U3 3U3\n");
}

TEST_CASE("interleaved 1F1B of 5 micro-batches in rounds of 3 and 2, as text") {
  TestChain chain = pipeline("interleaved", 2, 5);
  chain.policy.round = 3;
  CHECK(
      to_text(schedule_of(chain)) ==
      "0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4 0U4 2U4\n"
      "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4 1U4 3U4\n");
}

TEST_CASE("breadth-first of 3 micro-batches on 2 ranks with 2 chunks, as text") {
  CHECK(text_of("breadth-first", 2, 3) ==
        "0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2 0U2 2U2\n"
        "1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2 1U2 3U2\n");
}

TEST_CASE("ZB-H1 of 4 micro-batches on 3 stages, as text: stage s makes W s micro-batches late") {
  CHECK(text_of("zb-h1", 3, 4) ==
        "0F0 0F1 0F2 0I0:2 0W0 0F3 0I1:2 0W1 0I2:2 0W2 0I3:2 0W3 0U3\n"
        "1F0 1F1 1I0:2 1F2 1I1:2 1W0 1F3 1I2:2 1W1 1I3:2 1W2 1W3 1U3\n"
        "2F0 2I0:2 2F1 2I1:2 2F2 2I2:2 2W0 2F3 2I3:2 2W1 2W2 2W3 2U3\n");
}

TEST_CASE("ZB-H2 of 6 micro-batches on 3 stages, as text: stage s makes W 2s micro-batches late") {
  CHECK(
      text_of("zb-h2", 3, 6) ==
      "0F0 0F1 0F2 0F3 0F4 0I0:2 0W0 0F5 0I1:2 0W1 0I2:2 0W2 0I3:2 0W3 0I4:2 0W4 0I5:2 0W5 0U5\n"
      "1F0 1F1 1F2 1I0:2 1F3 1I1:2 1F4 1I2:2 1W0 1F5 1I3:2 1W1 1I4:2 1W2 1I5:2 1W3 1W4 1W5 1U5\n"
      "2F0 2I0:2 2F1 2I1:2 2F2 2I2:2 2F3 2I3:2 2F4 2I4:2 2W0 2F5 2I5:2 2W1 2W2 2W3 2W4 2W5 2U5\n");
}

TEST_CASE("ZB-V of 4 micro-batches on 2 ranks, as text; of 2 on 3 the missing ones are left out") {
  CHECK(text_of("zb-v", 2, 4) ==
        "0F0 0F1 0F2 3F0 3I0:3 3W0 3F1 3I1:3 3W1 0F3 0I0:3 0W0 3F2 3I2:3 3W2 0I1:3 0W1 3F3 3I3:3 "
        "3W3 0I2:3 0W2 0I3:3 0W3 0U3 3U3\n"
        "1F0 2F0 1F1 2F1 2I0:3 2W0 1F2 1I0:3 1W0 2F2 2I1:3 2W1 1F3 1I1:3 1W1 2F3 2I2:3 2W2 1I2:3 "
        "2I3:3 1I3:3 1W2 2W3 1W3 1U3 2U3\n");
  CHECK(text_of("zb-v", 3, 2) ==
        "0F0 0F1 5F0 5I0:5 5W0 5F1 5I1:5 5W1 0I0:5 0W0 0I1:5 0W1 0U1 5U1\n"
        "1F0 1F1 4F0 4F1 4I0:5 4W0 4I1:5 4W1 1I0:5 1W0 1I1:5 1W1 1U1 4U1\n"
        "2F0 3F0 2F1 3F1 3I0:5 3W0 2I0:5 2W0 3I1:5 3W1 2I1:5 2W1 2U1 3U1\n");
}

/// Returns the forwards and input halves of each rank in the authors' letters: F and B of the way
/// down (forwards of the first stage of a rank, gradients of its second), f and b of the way up.
std::string authors_text(std::string_view kind, int ranks, int micro_batches) {
  std::string text;
  for (const auto& rank : schedule_of(pipeline(kind, ranks, micro_batches)).ranks) {
    for (const Op& op : expand(rank.front())) {
      if (op.kind != OpKind::F && op.kind != OpKind::I) continue;
      const bool second = op.stage >= ranks;
      const char letter = op.kind == OpKind::F ? (second ? 'f' : 'F') : (second ? 'B' : 'b');
      text += letter + std::to_string(op.micro_batch) + ' ';
    }
    text.back() = '\n';
  }
  return text;
}

TEST_CASE("V-half and V-min of 7 micro-batches on 3 ranks go as their authors' code prints them") {
  // github.com/sail-sg/zero-bubble-pipeline-parallelism at 39f2c18, zbv_greedy.py, run for these
  // sizes with unit costs; it divides weight halves between stages otherwise, in the same cells.
  CHECK(authors_text("v-half", 3, 7) ==
        "F0 F1 F2 f0 B0 f1 B1 b0 F3 f2 B2 b1 F4 f3 B3 b2 F5 f4 B4 b3 F6 f5 B5 b4 f6 B6 b5 b6\n"
        "F0 F1 f0 f1 B0 F2 b0 B1 f2 F3 b1 B2 f3 F4 b2 B3 f4 F5 b3 B4 f5 F6 b4 B5 f6 b5 B6 b6\n"
        "F0 f0 F1 f1 B0 b0 F2 f2 B1 b1 F3 f3 B2 b2 F4 f4 B3 b3 F5 f5 B4 b4 F6 f6 B5 b5 B6 b6\n");
  CHECK(authors_text("v-min", 3, 7) ==
        "F0 F1 F2 f0 B0 f1 b0 B1 f2 F3 b1 B2 f3 F4 b2 B3 f4 F5 b3 B4 f5 F6 b4 B5 f6 B6 b5 b6\n"
        "F0 F1 f0 f1 B0 b0 F2 B1 f2 b1 F3 B2 f3 b2 F4 B3 f4 b3 F5 B4 f5 b4 F6 B5 f6 b5 B6 b6\n"
        "F0 f0 F1 f1 B0 b0 F2 f2 B1 b1 F3 f3 B2 b2 F4 f4 B3 b3 F5 f5 B4 b4 F6 f6 B5 b5 B6 b6\n");
}

/// Returns each rank's passes as F, B (an input half) or W, the chunk, and the micro-batch. A
/// backward without a stage below, which has both halves, is B and W.
std::string passes_text(int ranks, int micro_batches, int chunks) {
  std::string text;
  for (const auto& rank :
       schedule_of(pipeline("pipeoffload", ranks, micro_batches, chunks)).ranks) {
    for (const Op& op : expand(rank.front())) {
      const std::string of =
          std::to_string(op.stage / ranks) + '.' + std::to_string(op.micro_batch) + ' ';
      if (op.kind == OpKind::F) text += 'F' + of;
      if (op.kind == OpKind::I || op.kind == OpKind::B) text += 'B' + of;
      if (op.kind == OpKind::W || op.kind == OpKind::B) text += 'W' + of;
    }
    text.back() = '\n';
  }
  return text;
}

TEST_CASE("PipeOffload goes as its authors' code prints it with groups of one") {
  // github.com/sail-sg/zero-bubble-pipeline-parallelism at 39f2c18, group_interleaved_1f1b.py,
  // GroupBuildingBlockScheduler(3, 5, chunk_num=2) and (4, 4, chunk_num=2); here one apart is even.
  CHECK(passes_text(3, 5, 2) ==
        "F0.0 F0.1 F1.0 F0.2 F1.1 B1.0 W1.0 F0.3 F1.2 B1.1 W1.1 F0.4 B0.0 W0.0 F1.3 B1.2 W1.2 "
        "B0.1 W0.1 F1.4 B1.3 W1.3 B0.2 W0.2 B1.4 W1.4 B0.3 W0.3 B0.4 W0.4\n"
        "F0.0 F0.1 F1.0 F0.2 B1.0 W1.0 F1.1 F0.3 B1.1 W1.1 F1.2 B0.0 W0.0 F0.4 B1.2 W1.2 F1.3 "
        "B0.1 W0.1 B1.3 W1.3 F1.4 B0.2 W0.2 B1.4 W1.4 B0.3 W0.3 B0.4 W0.4\n"
        "F0.0 F0.1 F1.0 B1.0 W1.0 F0.2 F1.1 B1.1 W1.1 F0.3 B0.0 W0.0 F1.2 B1.2 W1.2 F0.4 B0.1 "
        "W0.1 F1.3 B1.3 W1.3 B0.2 W0.2 F1.4 B1.4 W1.4 B0.3 W0.3 B0.4 W0.4\n");
  CHECK(passes_text(4, 4, 2) ==
        "F0.0 F0.1 F1.0 F0.2 F1.1 F0.3 B1.0 W1.0 F1.2 B1.1 W1.1 F1.3 B0.0 W0.0 B1.2 W1.2 B0.1 "
        "W0.1 B1.3 W1.3 B0.2 W0.2 B0.3 W0.3\n"
        "F0.0 F0.1 F1.0 F0.2 F1.1 B1.0 W1.0 F0.3 F1.2 B1.1 W1.1 B0.0 W0.0 F1.3 B1.2 W1.2 B0.1 "
        "W0.1 B1.3 W1.3 B0.2 W0.2 B0.3 W0.3\n"
        "F0.0 F0.1 F1.0 F0.2 B1.0 W1.0 F1.1 F0.3 B1.1 W1.1 F1.2 B0.0 W0.0 B1.2 W1.2 F1.3 B0.1 "
        "W0.1 B1.3 W1.3 B0.2 W0.2 B0.3 W0.3\n"
        "F0.0 F0.1 F1.0 B1.0 W1.0 F0.2 F1.1 B1.1 W1.1 F0.3 B0.0 W0.0 F1.2 B1.2 W1.2 B0.1 W0.1 "
        "F1.3 B1.3 W1.3 B0.2 W0.2 B0.3 W0.3\n");
}

/// The rows of PyTorch's file by column, empty where idle. Its alphabet is the old one, in which B
/// is the input half; ours says I.
std::vector<std::vector<std::string>> published_rows() {
  std::istringstream lines(read_file(DATA_FOLDER "/pytorch_zb1p_2rank_2stagep_compute.csv"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) {
      for (char& c : cell) c = c == 'B' ? 'I' : c;
      row.push_back(cell);
    }
  }
  return rows;
}

TEST_CASE("interleaved zero bubble of 8 micro-batches on 2 ranks is PyTorch's, cell for cell") {
  const auto rows = published_rows();
  REQUIRE(rows.size() == 2);
  const Program program = program_of(pipeline("interleaved-zb", 2, 8));
  const Realised run = realise(program, run_native);
  std::map<std::string, int> start;  // of each op, in slots
  std::vector<std::vector<std::string>> order(2);
  std::vector<Span> spans = run.log.spans;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  for (const Span& span : spans) {
    const OpInfo& op = program.ops[span.op];
    if (op.kind == OpKind::U) continue;
    const std::string cell =
        std::to_string(op.stage) + letter(op.kind) + std::to_string(span.micro_batch);
    start[cell] = static_cast<int>(span.start.value());
    order[span.rank].push_back(cell);
  }
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> published;
    for (std::size_t column = 0; column < rows[rank].size(); ++column) {
      const std::string& cell = rows[rank][column];
      if (cell.empty()) continue;
      published.push_back(cell);
      // PyTorch's generator puts the idle slot of rank 0 before the op that need not wait, 2F1.
      CHECK(start.at(cell) == static_cast<int>(column) - (cell == "2F1" ? 1 : 0));
    }
    CHECK(order[rank] == published);
  }
  CHECK(run.summary.makespan == Seconds(49));  // the columns of the file
}

TEST_CASE("every op comes once, on the rank of its stage, and updates come last") {
  for_sizes([](TestChain chain) {
    chain.steps = 2;
    INFO(describe(chain));
    const Schedule schedule = schedule_of(chain);
    const int total = chain.micro_batches * chain.steps;
    std::map<std::tuple<int, OpKind, int>, int> found;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      REQUIRE(schedule.ranks[rank].size() == 1);
      int step = 0;  // by the updates that were made
      for (const Op& op : expand(schedule.ranks[rank].front())) {
        ++found[{op.stage, op.kind, op.micro_batch}];
        CHECK(chain.rank_of_stage[op.stage] == static_cast<int>(rank));
        const auto stages = std::count(chain.rank_of_stage.begin(), chain.rank_of_stage.end(),
                                       static_cast<int>(rank));
        if (op.kind == OpKind::U)
          ++step;
        else
          CHECK(step == op.micro_batch / chain.micro_batches * stages);
      }
    }
    std::map<std::tuple<int, OpKind, int>, int> expected;
    const int stages = static_cast<int>(chain.rank_of_stage.size());
    for (int s = 0; s < stages; ++s) {
      for (int b = 0; b < total; ++b) {
        expected[{s, OpKind::F, b}] = 1;
        if (chain.policy.split_backward) {
          expected[{s, OpKind::I, b}] = expected[{s, OpKind::W, b}] = 1;
        } else {
          expected[{s, OpKind::B, b}] = 1;
        }
        if ((b + 1) % chain.micro_batches == 0) expected[{s, OpKind::U, b}] = 1;
      }
    }
    CHECK(found == expected);
  });
}

TEST_CASE("every order ends, with and without a barrier, and engines agree on each op") {
  for_sizes([](TestChain chain) {
    chain.steps = 2;
    for (const bool barrier : {false, true}) {
      chain.policy.barrier = barrier;
      INFO(describe(chain));
      const Program program = program_of(chain);
      const Realised sweep = realise(program, run_longest_path);
      CHECK(sweep.deadlock == "");
      CHECK(difference(sweep, realise(program, run_event_loop)) == "");
    }
  });
}

TEST_CASE("with one chunk interleaved is 1F1B and breadth-first is GPipe") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int m = 1; m <= 12; ++m) {
      CHECK(text_of("interleaved", ranks, m, 1) == text_of("1f1b", ranks, m));
      CHECK(text_of("breadth-first", ranks, m, 1) == text_of("gpipe", ranks, m));
      // Zero bubble in rounds of one chunk begins alike and holds back as much.
      if (m % ranks == 0) {
        CHECK(text_of("interleaved-zb", ranks, m, 1) == text_of("zb-h1", ranks, m));
      }
    }
  }
}

/// Ops that are written down for the fullest rank.
std::size_t written_ops(const TestChain& chain) {
  std::size_t most = 0;
  for (const auto& rank : schedule_of(chain).ranks) {
    std::size_t ops = 0;
    for (const Run& run : rank.front().runs) ops += run.ops.size();
    most = std::max(most, ops);
  }
  return most;
}

TEST_CASE("an order is as long as its pattern, however many micro-batches there are") {
  for (int ranks : {2, 4, 8}) {
    for (const std::string_view kind :
         {"eager-1f1b", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "breadth-first", "interleaved",
          "interleaved-zb", "pipeoffload"}) {
      const std::size_t some = written_ops(pipeline(kind, ranks, 128 * ranks));
      INFO(schedule_named(kind).name << " on " << ranks << " ranks: " << some << " ops");
      CHECK(written_ops(pipeline(kind, ranks, 1024 * ranks)) == some);
      // Interleaved: a round of 2p turns, of up to 3 ops, in up to 5 forms.
      CHECK(some <= static_cast<std::size_t>(std::max(40, 30 * ranks)));
    }
  }
}

TEST_CASE("rounds that are not whole are refused with numbers that are") {
  const auto problem = schedule_named("interleaved").problem;
  CHECK(problem({4, 8, 8}) == "");
  CHECK(problem({4, 4, 10}) == "");  // one chunk
  const std::string start =
      "takes micro-batches through its chunks in rounds of one for each rank; expected a multiple "
      "of 4 such as ";
  CHECK(problem({4, 8, 10}) == start + "8 or 12, got 10");
  CHECK(problem({4, 8, 3}) == start + "4, got 3");
  CHECK(problem({.ranks = 4, .stages = 8, .micro_batches = 10, .round = 6}) == "");
  CHECK(problem({.ranks = 4, .stages = 8, .micro_batches = 10, .round = 5}) == "");
  CHECK(problem({.ranks = 4, .stages = 8, .micro_batches = 10, .round = 3}) ==
        "has a \"round\" that leaves ranks waiting, or is longer than a step; expected from 4, the "
        "ranks, to the 10 micro-batches, got 3");
  CHECK(problem({.ranks = 4, .stages = 8, .micro_batches = 10, .round = 8}) ==
        "has a last round of 2 micro-batches, fewer than ranks, which wait; expected a \"round\" "
        "that leaves none or 4 of 10, got 8");
}

}  // namespace
}  // namespace interlock::synchronous_order_test
