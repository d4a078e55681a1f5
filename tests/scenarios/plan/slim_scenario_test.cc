// SlimPipe from a scenario: the bytes that its ranks trade, what that evens out, what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/program/cursor.h"
#include "tests/scenarios/documents.h"

namespace interlock::slim_scenario_test {
namespace {

// A slice is 256 tokens of two samples if there are four: 512 rows of 512 numbers, 512 KiB.
const std::string kModel = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
            "vocab_size": 512, "sequence_length": 1024, "attention": "fused"},
  "cluster": {"kind": "uniform", "devices": 4, "device": "v100-32g",
              "link": {"bandwidth": "25 GB/s"}},
  "partition": [3, 2, 2, 3],
  "training": {"strategy": "global", "schedule": "slimpipe", "global_batch_size": 8,
               "micro_batch_size": 2, "precision": "fp16", "steps": 2}
})";
const std::string kWritten = R"(training.schedule={"kind": "slimpipe", "slices": )";
const std::string kAlone = R"(, "context_exchange": false})";

Question slim(const Overrides& overrides) {
  return load_questions(document(kModel, overrides)).front();
}

Program program_of(const Overrides& overrides) { return lower_plan(make_plan(slim(overrides)), 1); }

Metrics run(const Overrides& overrides) {
  return run_scenario(slim(overrides), false).measurement.metrics;
}

/// The messages of traded attention: from and to which rank, bytes, and bytes that devices hold.
using Traded = std::set<std::tuple<int, int, double, double>>;
Traded traded(const Overrides& overrides) {
  Traded found;
  for (const Channel& channel : program_of(overrides).channels) {
    if (channel.cargo != Cargo::Context) continue;
    found.insert({channel.from_rank, channel.to_rank, channel.bytes.value(),
                  held_by_receiver(channel).value()});
  }
  return found;
}

TEST_CASE("a slice of keys and values goes with queries and outputs, for each layer") {
  const double kib = 1024, tensor = 512 * kib, statistics = 512 * 8 * 4;
  const double asked = 3 * tensor, merged = tensor + statistics;  // forward
  const double returned = 5 * tensor + statistics, gradients = 3 * tensor;
  // In a turn with slices 3, 2, 1 and 0 the first is one and a half from the mean; rank 0 has it at
  // first, rank 1 when rank 0 is at slice 0 again, and so on.
  const Traded found = traded({kWritten + "4}"});
  for (const double layer : {asked, returned}) {
    CHECK(found.contains({0, 3, 2 * layer, layer}));
    CHECK(found.contains({1, 0, 2 * layer, layer}));
  }
  for (const double layer : {merged, gradients}) {
    CHECK(found.contains({3, 0, 2 * layer, layer}));
    CHECK(found.contains({0, 1, 2 * layer, layer}));
  }
  const Traded again = traded({kWritten + "4}", "training.recompute=full"});
  CHECK(again.contains({0, 3, 2 * (returned + asked), returned}));  // one pass after the other
  CHECK(again.contains({3, 0, 2 * (gradients + merged), gradients}));
  CHECK(traded({kWritten + "4}", "model.kv_heads=2"})
            .contains({0, 3, 2 * 1.5 * tensor, 1.5 * tensor}));
  CHECK(traded({kWritten + "4" + kAlone}).empty());
  // Stages of three blocks and one trade one; stages without blocks trade nothing.
  CHECK(traded({kWritten + "4}", "partition=[4, 2, 2, 2]"}).contains({0, 3, asked, asked}));
  for (const auto& [from, to, bytes, held] : traded({kWritten + "4}", "partition=[1, 4, 4, 1]"})) {
    CHECK(from + to == 3);
    CHECK(from * to == 2);
  }
  CHECK(traded({kWritten + "4}", "model.attention=retention"}).empty());
}

/// Returns the time of the forward of `stage` for a slice of the second of some micro-batches.
double forward_time(const Overrides& overrides, int stage, int slice) {
  const Program program = program_of(overrides);
  for (const Stream& stream : program.streams) {
    for (Cursor c(program, stream); !c.done(); c.next()) {
      if (c.instruction().code != Opcode::Compute || c.micro_batch() != 16 + slice) continue;
      const OpInfo& op = program.ops[c.instruction().index];
      if (op.stage == stage && op.kind == OpKind::F) return op.duration.value();
    }
  }
  return 0;
}

TEST_CASE("trading evens turns out, and leaves flops and stash as they were") {
  for (const std::string chunks : {"", R"(, "chunks": 2)"}) {
    const Overrides both = {"model.sequence_length=65536", "training.global_batch_size=3",
                            "training.micro_batch_size=1",
                            chunks.empty() ? "partition=[3, 2, 2, 3]" : "partition=balanced"};
    Overrides with = both, without = both;
    with.push_back(kWritten + "16" + chunks + "}");
    without.push_back(kWritten + "16" + chunks + kAlone);
    // Rank 3 is at slice 12 when rank 0 is at slice 15, and makes one of its 15 parts. When rank 1
    // is there, rank 0 is at slice 0 of the next micro-batch, and makes 7; or, with two chunks, at
    // slice 12 again, and makes one.
    CHECK(forward_time(with, 0, 15) == doctest::Approx(forward_time(without, 0, 14)));
    CHECK(forward_time(with, 1, 15) ==
          doctest::Approx(forward_time(without, 1, chunks.empty() ? 8 : 14)));
    const Metrics one = run(with), other = run(without);
    CHECK(one.step_time < other.step_time);
    CHECK(*one.mfu * one.step_time.value() ==
          doctest::Approx(*other.mfu * other.step_time.value()));
    for (std::size_t r = 0; r < one.devices.size(); ++r) {
      CHECK(one.devices[r].peak_stash == other.devices[r].peak_stash);
    }
  }
}

TEST_CASE("who makes attention for another works longer, however wide the layers are") {
  const Overrides wide = {"model.hidden_size=8192", "model.attention_heads=64",
                          "model.sequence_length=4096", "training.recompute=full",
                          kWritten + "16}"};
  Overrides alone = wide;
  alone.back() = kWritten + "16" + kAlone;
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(forward_time(wide, stage, 0) > forward_time(alone, stage, 0));
    CHECK(forward_time(wide, stage, 15) < forward_time(alone, stage, 15));
  }
}

TEST_CASE("a vocabulary that all ranks work on leaves the flops, and the last rank less to do") {
  const Overrides whole = {"model.vocab_size=131072", "model.sequence_length=4096",
                           kWritten + "16}"};
  Overrides divided = whole;
  divided.back() = kWritten + R"(16, "vocabulary": "vocab-1"})";
  const Metrics one = run(divided), other = run(whole);
  CHECK(one.step_time < 0.7 * other.step_time);
  CHECK(*one.mfu * one.step_time.value() == doctest::Approx(*other.mfu * other.step_time.value()));
  const auto weights = [](const Metrics& metrics, std::size_t rank) {
    return metrics.devices[rank].memory[static_cast<int>(MemoryClass::Weights)].value();
  };
  double all = 0, before = 0;
  for (std::size_t rank = 0; rank < one.devices.size(); ++rank) {
    all += weights(one, rank);
    before += weights(other, rank);
    if (rank > 0) CHECK(weights(one, rank) == doctest::Approx(weights(one, 1)).epsilon(1e-3));
  }
  CHECK(before - all == doctest::Approx(131072 * 512 * 2));  // the last rank's copy of a tied table
}

TEST_CASE(
    "a name alone cuts into four slices a rank or as many more as are even, or a token each") {
  CHECK(make_plan(slim({"model.sequence_length=1000"})).slices.size() == 20);
  CHECK(make_plan(slim({})).slices.size() == 16);
  CHECK(make_plan(slim({"model.sequence_length=10"})).slices.size() == 10);
}

std::string refused(const Overrides& overrides) { return mistakes_of(document(kModel, overrides)); }

bool says(const std::string& message, const std::string& part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}

TEST_CASE("what ranks that trade attention cannot do is refused with what they can") {
  CHECK(says(refused({kWritten + "\"balanced\"}"}), "cuts sequences evenly; expected a number"));
  CHECK(says(refused({kWritten + "[512, 512]}"}), "cuts sequences evenly; expected a number"));
  CHECK(says(refused({kWritten + R"(8, "equal_in": "time"})"}), "expected \"tokens\""));
  for (const std::string key : {R"("queue": "rendezvous")", R"("copies": "compute_stream")"}) {
    const std::string message = refused({kWritten + "8, " + key + "}"});
    CHECK((says(message, "expected \"unlimited\"") || says(message, "expected \"overlapped\"")));
    CHECK(!says(message, "context_exchange"));  // which would make them wait for each other
  }
  CHECK(says(refused({kWritten + R"(8, "early_recompute": true})", "training.recompute=full"}),
             "expected false, or \"context_exchange\" false"));
  CHECK(says(refused({kWritten + R"(8, "vocabulary": "vocab-2"})"}), "expected \"vocab-1\""));
  CHECK(says(
      refused({kWritten + R"(8, "chunks": 2, "vocabulary": "vocab-1"})", "partition=balanced"}),
      "ranks of one stage each"));
  CHECK(says(refused({kWritten + R"(3, "chunks": 2})", "partition=balanced"}),
             "expected from 4 \"slices\" on, got 3"));
  CHECK(says(refused({R"(training.schedule={"kind": "slimpipe", "chunks": 2})",
                      "partition=balanced", "model.sequence_length=3"}),
             "got 3, one for each token of a sequence; \"chunks\" 1"));
  CHECK(says(refused({"model.sequence_length=1000", kWritten + "16}"}),
             "16 slices of 1000 tokens differ in length"));
  CHECK(says(refused({"model.sequence_length=1000", kWritten + "16}"}), "as 20 do, or"));
  CHECK(says(refused({"model.sequence_length=1009"}), "that divide the tokens or \"context"));
  CHECK(refused({"model.sequence_length=1009", kWritten + "16" + kAlone}).empty());
  CHECK(says(refused({"model.bidirectional=true", "model.readout=masked-lm"}),
             "attend to some that a slice cannot read"));
  CHECK(says(refused({R"(training.schedule={"kind": "seq1f1b", "context_exchange": true})"}),
             "expected it with \"slimpipe\""));
  CHECK(says(refused({"training.micro_batch_size=balanced"}),
             "or the schedule \"terapipe\" or \"seq1f1b\""));
}

}  // namespace
}  // namespace interlock::slim_scenario_test
