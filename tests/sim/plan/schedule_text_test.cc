// The text form of schedules: others' files, round trips, and every way of being wrong.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/schedule_text.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::schedule_text_test {
namespace {

std::string pytorch_file(const std::string& name) { return read_file(DATA_FOLDER "/" + name); }

/// Returns the mistake in `text`; "" if it is right.
std::string mistake_of(const std::string& text) {
  try {
    parse_schedule_text(text, "x.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// `text` without its empty cells.
std::string without_idle(std::string text) {
  for (std::size_t at = text.find(",,"); at != text.npos; at = text.find(",,")) text.erase(at, 1);
  for (std::size_t at = text.find("\n,"); at != text.npos; at = text.find("\n,")) {
    text.erase(at + 1, 1);
  }
  return text;
}

std::string replaced(std::string text, char from, char to) {
  for (char& c : text) c = c == from ? to : c;
  return text;
}

TEST_CASE("PyTorch's DualPipeV of 4 ranks is read as it stands and written as it stood") {
  const std::string text = pytorch_file("pytorch_dualpipev_4rank_10mb.csv");
  const StepOrder order = parse_schedule_text(text, "x.csv");
  CHECK(order.stages == 8);
  CHECK(order.copies == 1);
  CHECK(order.micro_batches == 10);
  CHECK(order.rank_of_stage == std::vector{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(order.ranks[0][17].overlaps_next);  // the first pair, by its place in the file
  CHECK(schedule_text(order) == text + (text.ends_with('\n') ? "" : "\n"));
}

TEST_CASE("PyTorch's interleaved zero bubble is read in the old alphabet, where B is half") {
  const std::string text = pytorch_file("pytorch_zb1p_2rank_2stagep_compute.csv");
  const StepOrder order = parse_schedule_text(text, "x.csv");
  CHECK(order.stages == 4);
  CHECK(order.micro_batches == 8);
  CHECK(order.rank_of_stage == std::vector{0, 1, 0, 1});
  // Written in the new alphabet: the same cells, but I for B, and idle slots left out.
  const std::string expected = replaced(without_idle(text), 'B', 'I');
  CHECK(schedule_text(order) == expected + (expected.ends_with('\n') ? "" : "\n"));
}

TEST_CASE("a B without a W stays a whole backward beside Bs that are halves") {
  CHECK(schedule_text(parse_schedule_text("0F0,0F1,0B0,0W0,0B1\n", "x.csv")) ==
        "0F0,0F1,0I0,0W0,0B1\n");
}

TEST_CASE("every flushed global schedule survives being written and read") {
  int checked = 0;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    // The text form has no more than two copies of a model; these have one a rank.
    const bool named =
        entry.name != "file" && entry.name != "auto" && !updates_one_copy(entry.layout);
    if (!entry.global() || !entry.flushes || !named) continue;
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        INFO(entry.name << " on " << ranks << " ranks, " << micro_batches << " micro-batches");
        TestChain chain = make_laid_chain(ranks, entry.name);
        chain.micro_batches = micro_batches;
        const int stages = static_cast<int>(chain.rank_of_stage.size()) / chain.copies;
        if (entry.problem && !entry.problem({ranks, stages, micro_batches}).empty()) continue;
        const StepOrder order = first_step(schedule_of(chain));
        REQUIRE(!find_mistake(order));
        const StepOrder again = parse_schedule_text(schedule_text(order), "x.csv");
        CHECK(again.copies == order.copies);
        CHECK(again.rank_of_stage == order.rank_of_stage);
        for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
          std::vector<Op> ops = order.ranks[rank];
          std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::U; });
          CHECK(again.ranks[rank] == ops);
        }
        ++checked;
      }
    }
  }
  MESSAGE(checked << " schedules");
  CHECK(checked >= 100);
}

TEST_CASE("a read order, as a schedule, has the ops of the text and an update a stage, in runs") {
  const std::string text = pytorch_file("pytorch_dualpipev_4rank_10mb.csv");
  const StepOrder order = parse_schedule_text(text, "x.csv");
  TestChain chain = make_laid_chain(4, "dualpipe-v");
  chain.micro_batches = order.micro_batches;
  chain.policy.kind = &schedule_named("file");
  chain.policy.order = std::make_shared<const std::vector<std::vector<Op>>>(order.ranks);
  const Schedule schedule = schedule_of(chain);
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    REQUIRE(schedule.ranks[rank].size() == 1);
    std::vector<Op> ops = expand(schedule.ranks[rank].front());
    CHECK(schedule.ranks[rank].front().runs.size() < order.ranks[rank].size() / 2);
    for (const int stage : {7 - static_cast<int>(rank), static_cast<int>(rank)}) {
      CHECK(ops.back() == Op{OpKind::U, stage, 9, stage});
      ops.pop_back();
    }
    CHECK(ops == order.ranks[rank]);
  }
}

TEST_CASE("two copies of the model are told apart by the ranks that their micro-batches pass") {
  const StepOrder order = parse_schedule_text("0F0,1F1,1B1,0B0\n1F0,1B0,0F1,0B1\n", "x.csv");
  CHECK(order.copies == 2);
  CHECK(order.rank_of_stage == std::vector{0, 1, 1, 0});
  CHECK(order.ranks[0] == std::vector<Op>{{OpKind::F, 0, 0, 0},
                                          {OpKind::F, 3, 1, 3},
                                          {OpKind::B, 3, 1, 3},
                                          {OpKind::B, 0, 0, 1}});
}

TEST_CASE("communication and sharding that fit the compute are dropped") {
  CHECK(schedule_text(parse_schedule_text(
            "0UNSHARD,0F0,0SEND_F0,0RESHARD,0RECV_B0,0UNSHARD,0B0,0REDUCE_GRAD\n"
            "1RECV_F0,1F0,1B0,1SEND_B0\n",
            "x.csv")) == "0F0,0B0\n1F0,1B0\n");
}

/// Interleaved 1F1B of 4 micro-batches on 2 ranks with 2 stages each.
StepOrder interleaved_order() {
  TestChain chain = make_laid_chain(2, "interleaved");
  chain.micro_batches = 4;
  return first_step(schedule_of(chain));
}

TEST_CASE("messages stand where PyTorch puts them, alone or in batches") {
  // Rank 0 as pull request 175572 of pytorch/pytorch prints it, less UNSHARD, RESHARD and
  // REDUCE_GRAD, which part 2SEND_B3 from 0RECV_B2 there.
  const std::string batched = schedule_text(interleaved_order(), TextMessages::Batched);
  CHECK(batched.substr(0, batched.find('\n')) ==
        "0F0,(0SEND_F0;2RECV_F0)BATCH_P2P,0F1,(0SEND_F1;2RECV_F1)BATCH_P2P,2F0,2SEND_F0,2F1,"
        "(2SEND_F1;2RECV_B0)BATCH_P2P,0F2,0SEND_F2,2B0,(2SEND_B0;2RECV_B1)BATCH_P2P,0F3,"
        "(0SEND_F3;2RECV_F2)BATCH_P2P,2B1,(2SEND_B1;0RECV_B0)BATCH_P2P,2F2,"
        "(2SEND_F2;2RECV_F3)BATCH_P2P,0B0,0RECV_B1,2F3,2SEND_F3,0B1,2RECV_B2,2B2,"
        "(2SEND_B2;2RECV_B3)BATCH_P2P,2B3,(2SEND_B3;0RECV_B2)BATCH_P2P,0B2,0RECV_B3,0B3");
  std::string single = schedule_text(interleaved_order(), TextMessages::Single);
  CHECK(single.starts_with("0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,"));
}

TEST_CASE("an order is the same with messages or without, in every form of the text") {
  const std::string plain = schedule_text(interleaved_order());
  for (const TextMessages form : {TextMessages::Single, TextMessages::Batched}) {
    const std::string text = schedule_text(interleaved_order(), form);
    CHECK(text != plain);
    CHECK(schedule_text(parse_schedule_text(text, "x.csv")) == plain);
  }
  // In a V the last rank keeps what it hands on: no message between stages 1 and 2.
  TestChain chain = make_laid_chain(2, "v-half");
  chain.micro_batches = 3;
  const std::string v = schedule_text(first_step(schedule_of(chain)), TextMessages::Single);
  CHECK(v.find("1SEND_F") == std::string::npos);
  CHECK(v.find("2SEND_B") == std::string::npos);
  CHECK(v.find("2SEND_F0") != std::string::npos);
  CHECK(mistake_of("0F0,(0SEND_F0;0F1)BATCH_P2P\n").find("is no op") != std::string::npos);
  CHECK(mistake_of("0F0,(0SEND_F0;1F0)OVERLAP_F_B\n").find("is no op") != std::string::npos);
  CHECK(mistake_of("0F0,(0SEND_F0)BATCH_P2P,0B0\n").find("has no stage at its other end") !=
        std::string::npos);
}

TEST_CASE("a mistake is one sentence with line and cell, and the cell is marked in its rows") {
  CHECK(
      mistake_of("0F0,0F1,0B0,0B1\n1F0,1B1,1F1,1B0\n") ==
      "x.csv:2: cell 2, \"1B1\": waits for 1F1, which comes later on rank 1; expected an order in "
      "which a rank can go on\n"
      "  rank 0  0F0  0F1  0B0  0B1\n"
      "  rank 1  1F0  1B1  1F1  1B0\n"
      "               ^^^");
  CHECK(
      mistake_of("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n") ==
      "x.csv:1: cell 2, \"0B0\": waits for 1B0, which comes later on rank 1; on rank 1, 1F1 waits "
      "for 0F1, which comes later on rank 0; expected an order in which a rank can go on\n"
      "  rank 0  0F0  0B0  0F1  0B1\n"
      "               ^^^\n"
      "  rank 1  1F1  1B1  1F0  1B0");
  CHECK(mistake_of("0F0,0F1,0F2,0F3,0F4,0F5,0B0,0B1,0B2,0B3,0B4,,oops,0B5\n") ==
        "x.csv:1: cell 13, \"oops\": is no op; expected stage, letter and micro-batch, e.g. 0F1\n"
        "  rank 0  ...  0B2  0B3  0B4  .  oops  0B5\n"
        "                                 ^^^^");
}

TEST_CASE("each kind of mistake has its words") {
  const auto begins = [](const std::string& text, const std::string& words) {
    CAPTURE(text);
    const std::string mistake = mistake_of(text);
    CHECK(mistake.substr(0, mistake.find('\n')) == words);
  };
  begins("", "x.csv: holds no op; expected a row for each rank, e.g. 0F0,0B0");
  begins("0F0,0B0\n,\n0F1,0B1\n",
         "x.csv:2: rank 1 runs nothing; expected an op such as 0F0 in every row");
  begins("0F0,0F0,0B0\n", "x.csv:1: cell 2, \"0F0\": is run a second time; expected every op once");
  begins("0F0,0I0\n", "x.csv:1: cell 2, \"0I0\": has no W; expected it after the I");
  begins("0F0,0W0\n", "x.csv:1: cell 2, \"0W0\": has no I; expected it before the W");
  begins("0F0\n",
         "x.csv:1: cell 1, \"0F0\": has no backward; expected a B, or an I and a W, after it");
  begins(
      "0F0,0B0,0I0,0W0\n",
      "x.csv:1: cell 3, \"0I0\": is half of a backward that 0B0 makes whole; expected one or the "
      "other");
  begins("0F0,0W0,0I0\n",
         "x.csv:1: cell 2, \"0W0\": waits for 0I0, which comes later on rank 0; expected an order "
         "in which a rank can go on");
  begins("0B0,1F0\n1B0\n",
         "x.csv:1: cell 1, \"0B0\": is of micro-batch 0, but 0F0 is nowhere; expected every "
         "micro-batch on every stage");
  begins("0F0,1B0\n1F0,0B0\n",
         "x.csv:1: cell 2, \"1B0\": is on rank 0; expected it on rank 1, which runs its forward");
  begins("0F0,0B0,0F2,0B2\n",
         "x.csv:1: cell 3, \"0F2\": counts micro-batches to 2, and no op is of number 1; expected "
         "no gap");
  begins("0F0,0B0\n2F0,2B0\n",
         "x.csv:2: cell 1, \"2F0\": counts stages to 2, and no op is of number 1; expected no gap");
  begins(
      "0F0,1F1,0B0,1B1\n1F0,1B0,0F1,0B1,0F2,1F2,1B2,0B2\n",
      "x.csv:2: cell 5, \"0F2\": is on rank 1, but micro-batch 0 has stage 0 on rank 0; expected "
      "one rank for a stage, or two whole copies of the model");
  begins("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n",
         "x.csv:2: cell 1, \"1F1\": overtakes the message of 0F0, which is sent first; expected "
         "neighbouring stages to take micro-batches in one order");
  begins("0F0,0F1,0B1,0B0\n1F0,1F1,1B0,1B1\n",
         "x.csv:1: cell 3, \"0B1\": overtakes the message of 1B0, which is sent first; expected "
         "neighbouring stages to take micro-batches in one order");
  begins("0F9999999,0B0\n",
         "x.csv:1: cell 1, \"0F9999999\": is no op; expected stage, letter and micro-batch, "
         "e.g. 0F1");
}

TEST_CASE("communication that contradicts the compute has its words too") {
  const auto begins = [](const std::string& text, const std::string& words) {
    CAPTURE(text);
    const std::string mistake = mistake_of(text);
    CHECK(mistake.substr(0, mistake.find('\n')) == words);
  };
  begins("0F0,0SEND_F0,0B0\n1F0,1B0\n",
         "x.csv:1: cell 2, \"0SEND_F0\": has no other end; expected 1RECV_F0 on some rank");
  begins("0SEND_F0,0F0,0B0\n1RECV_F0,1F0,1B0\n",
         "x.csv:1: cell 1, \"0SEND_F0\": stands before what it belongs to; expected the forward of "
         "stage 0 for micro-batch 0 before it");
  begins("0F0,0SEND_F0,0B0\n1F0,1RECV_F0,1B0\n",
         "x.csv:2: cell 2, \"1RECV_F0\": stands after what it belongs to; expected the forward of "
         "stage 1 for micro-batch 0 after it");
  begins("0F0,0SEND_B0,0B0\n1F0,1B0\n",
         "x.csv:1: cell 2, \"0SEND_B0\": has no stage at its other end; expected a neighbour of "
         "stage 0");
  begins("1UNSHARD,0F0,0B0\n1F0,1B0\n",
         "x.csv:1: cell 1, \"1UNSHARD\": is about nothing that rank 0 runs; expected one of its "
         "stages and micro-batches");
}

/// A good text with a cell, a character or a row damaged.
std::string mutated(std::string text, Random& random) {
  constexpr std::string_view kTelling = "0123456789FIWB,;()\n_U \xff";
  const auto place = [&] { return random.integer(0, static_cast<int>(text.size()) - 1); };
  for (int change = random.integer(1, 3); change > 0 && !text.empty(); --change) {
    const int at = place();
    switch (random.integer(0, 3)) {
      case 0:
        text[at] = kTelling[random.integer(0, static_cast<int>(kTelling.size()) - 1)];
        break;
      case 1:
        text.erase(at, random.integer(1, 6));
        break;
      case 2:
        text.insert(at, text.substr(place(), random.integer(1, 12)));
        break;
      default:
        std::swap(text[at], text[place()]);
    }
  }
  return text;
}

TEST_CASE("10,000 damaged texts are read, or refused in one sentence that names the file") {
  const std::vector<std::string> good = {
      pytorch_file("pytorch_dualpipev_4rank_10mb.csv"),
      pytorch_file("pytorch_zb1p_2rank_2stagep_compute.csv"), "0F0,1F1,1B1,0B0\n1F0,1B0,0F1,0B1\n",
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n"};
  int read = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    Random random(17, seed);
    const std::string text = mutated(good[seed % good.size()], random);
    const std::string mistake = mistake_of(text);
    if (mistake.empty()) {
      ++read;
      CHECK(!find_mistake(parse_schedule_text(text, "x.csv")));
      continue;
    }
    ++refused;
    INFO("seed " << seed << ": " << mistake);
    CHECK(mistake.starts_with("x.csv:"));
    const std::string sentence = mistake.substr(0, mistake.find('\n'));
    CHECK(sentence.find("; expected ") != std::string::npos);
  }
  MESSAGE(read << " read, " << refused << " refused");
  CHECK(read > 100);
  CHECK(refused > 5'000);
}

}  // namespace
}  // namespace interlock::schedule_text_test
