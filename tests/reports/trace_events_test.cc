// Trace events: the rules of viewers hold for every schedule family, and the figures are the run's.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/trace_events.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/result/gzip.h"
#include "reports/traces/trace_tracks.h"
#include "tests/reports/support/trace_rules.h"

namespace interlock::trace_events_test {
namespace {

std::string whole(const TextSource& text) {
  std::string all;
  text([&](std::string_view piece) { all += piece; });
  return all;
}

ScenarioResult simulated(const std::string& text, const std::vector<std::string>& set = {}) {
  JsonValue document = parse_json(text, "test.json");
  for (const std::string& key : set) {
    const std::size_t equals = key.find('=');
    set_json(document, key.substr(0, equals), parse_override(key.substr(equals + 1), key), key);
  }
  return run_scenario(load_questions(document).at(0), true);
}

const char* const kFourStages = R"({
  "model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms", "output": "1 MiB",
    "stash": "4 MiB", "parameters": "16 MiB"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "10 GB/s", "latency": "3 us"}},
  "training": {"strategy": "global", "micro_batches": 8, "steps": 2}})";

const char* const kSequences = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 256, "attention_heads": 4,
    "sequence_length": 256, "vocab_size": 512},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "training": {"strategy": "global", "schedule": "terapipe", "global_batch_size": 8, "steps": 1}})";

const char* const kDivided = R"({
  "model": {"kind": "transformer", "layers": 4, "hidden_size": 256, "attention_heads": 8,
    "sequence_length": 256, "vocab_size": 512},
  "cluster": {"machine": "dgx-a100-80g", "devices": 8},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 16,
    "micro_batch_size": 1, "steps": 1}})";

const char* const kAttentionApart = R"({
  "model": {"kind": "transformer", "layers": 4, "hidden_size": 256, "attention_heads": 4,
    "sequence_length": 256, "vocab_size": 512, "attention": "fused"},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "training": {"strategy": "global", "schedule": "helixpipe", "global_batch_size": 8,
    "micro_batch_size": 1, "steps": 1}})";

/// A run under each schedule that makes its order itself.
std::map<std::string, ScenarioResult> runs_of_all_families() {
  std::map<std::string, ScenarioResult> runs;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.name == "file" || entry.name == "list") continue;
    const bool local = !entry.global() || entry.trains == Trains::Local;
    const std::string strategy = local ? "training.strategy=local" : "training.strategy=global";
    const std::string schedule = "training.schedule=" + entry.name;
    const bool apart = entry.layout == StageLayout::Helix;
    runs.emplace(entry.name, entry.slices ? simulated(kSequences)
                             : apart      ? simulated(kAttentionApart)
                                          : simulated(kFourStages, {strategy, schedule}));
  }
  return runs;
}

/// Nanoseconds in which tracks of this name are busy, by process.
std::map<int, std::int64_t> busy_times(const TraceFile& file, const std::string& track) {
  std::map<int, std::int64_t> busy;
  for (const auto& [place, slices] : file.slices) {
    if (!file.threads.at(place).starts_with(track)) continue;
    for (const TraceSlice& slice : slices) busy[place.first] += slice.end - slice.start;
  }
  return busy;
}

/// Messages between devices whose ends both take time; all of these are received in flushed steps.
int arrows_expected(const Measurement& measurement) {
  int arrows = 0;
  for (const Transfer& transfer : measurement.log.transfers) {
    const Channel& channel = measurement.program.channels[transfer.channel];
    arrows += channel.wire >= 0 && channel.cargo != Cargo::Copy;
  }
  return arrows;
}

/// Checks what every trace must be, as viewers and as trace analysis read it: rules kept, ops and
/// peaks those of the run.
TraceFile check_rules(const ScenarioResult& run) {
  const Measurement& measurement = run.measurement;
  TraceFile file = read_trace(whole(trace_events(run)));
  CHECK(file.fault == "");
  std::map<int, double> busy;
  for (const Span& span : measurement.log.spans) {
    busy[span.rank + 1] += (span.end - span.start).value();
  }
  const std::map<int, std::int64_t> drawn = busy_times(file, "compute");
  const double allowed = 1e-9 * static_cast<double>(measurement.log.spans.size());
  for (const auto& [process, seconds] : busy) {
    CHECK(std::abs(1e-9 * static_cast<double>(drawn.at(process)) - seconds) <= allowed);
  }
  for (const DeviceMetrics& device : measurement.metrics.devices) {
    double peak = 0;
    for (const auto& [time, bytes] : file.counters.at({device.rank + 1, "memory (bytes)"})) {
      peak = std::max(peak, bytes);
    }
    CHECK(peak == doctest::Approx(device.peak_memory.value()).epsilon(1e-9));
    CHECK(read_trace(whole(kineto_trace(run, device.rank))).fault == "");
  }
  return file;
}

}  // namespace

TEST_CASE("traces of every schedule family keep the rules of viewers, and hold every op and byte") {
  int families = 0;
  for (const auto& family : runs_of_all_families()) {
    CAPTURE(family.first);
    const ScenarioResult& run = family.second;
    const TraceFile file = check_rules(run);
    // Runs that never flush end with messages that are not used yet.
    // So do turns of a ring before the first op of a rank, and behind its last.
    const bool ring = run.plan.schedule.kind->layout == StageLayout::Ring;
    CHECK(file.arrows <= arrows_expected(run.measurement));
    if (ring) {
      CHECK(file.arrows > arrows_expected(run.measurement) / 2);
    } else if (run.plan.schedule.kind->flushes) {
      CHECK(file.arrows == arrows_expected(run.measurement));
    }
    ++families;
  }
  MESSAGE(families << " families");
  CHECK(families >= 20);
}

TEST_CASE("so do traces of strategies, of divided models, and of states that wait at hosts") {
  for (const char* strategy :
       {R"("pairwise")", R"({"kind": "interlocking", "n_wise": 4})", R"("greedy")",
        R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})", R"("forward-forward")"}) {
    CAPTURE(strategy);
    check_rules(simulated(kFourStages, {std::string("training.strategy=") + strategy}));
  }
  check_rules(simulated(kFourStages, {"training.recompute=full"}));
  check_rules(simulated(kFourStages, {"training.schedule=auto"}));
  for (const char* layout :
       {R"({"pipeline": 2, "data": 4})",
        R"({"pipeline": 2, "tensor": 4, "sequence_parallel": true})",
        R"({"pipeline": 2, "tensor": 2, "data": 2, "zero_stage": 1})",
        R"({"data": 8, "zero_stage": 3})", R"({"pipeline": 2, "context": 4})"}) {
    for (const char* fold : {R"("auto")", R"("none")"}) {
      CAPTURE(layout);
      CAPTURE(fold);
      check_rules(simulated(
          kDivided, {std::string("parallel=") + layout, std::string("simulate.fold=") + fold}));
    }
  }
  check_rules(
      simulated(kDivided, {R"(parallel={"pipeline": 2, "data": 4})", "training.optimizer=adam",
                           R"(training.offload={"optimizer": 1, "activations": 0.5})"}));
}

TEST_CASE("traces count the memory that an allocator reserves, and that libraries keep") {
  check_rules(simulated(kFourStages, {"training.framework.reserve=0.25"}));
  check_rules(simulated(kFourStages,
                        {R"(training.framework={"reserve": 0.25, "library_memory": "1 GiB"})"}));
}

TEST_CASE("a trace of GPipe on four devices has the times of its closed form") {
  // F = B / 2 = 2 ms a stage (two modules), M = 8, K = 4; messages of 1 MiB over 10 GB/s take
  // 0.104858 ms + 3 us. Busy in a step: M (F + B) = 8 * 6 = 48 ms a device; two steps: 96 ms.
  const ScenarioResult run = simulated(kFourStages, {"training.schedule=gpipe"});
  const TraceFile file = read_trace(whole(trace_events(run)));
  REQUIRE(file.fault == "");
  const auto steps = static_cast<std::int64_t>(run.measurement.program.steps);
  INFO("steps ", steps);
  for (const auto& [process, busy] : busy_times(file, "compute")) {
    CHECK(busy == steps * 48'000'000);
  }
  // Three links up and three down, each with a message a micro-batch.
  const std::map<int, std::int64_t> links = busy_times(file, "device");
  REQUIRE(links.size() == 1);
  CHECK(links.begin()->second ==
        doctest::Approx(48.0 * static_cast<double>(steps) * 104857.6).epsilon(1e-5));
  CHECK(file.arrows == 48 * steps);
  CHECK(file.processes.at(1) == "device 0 (stage 0)");
}

TEST_CASE(
    "messages of several losses of one micro-batch each have the ops that made and used them") {
  const ScenarioResult run =
      simulated(kFourStages, {R"(training.strategy={"kind": "interlocking", "n_wise": 3})"});
  const Program& program = run.measurement.program;
  const TraceLog& log = run.measurement.log;
  const std::vector<MessageEnds> ends = message_ends(program, log);
  std::map<std::pair<int, int>, int> of_batch;  // messages of a channel and micro-batch
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Transfer& transfer = log.transfers[i];
    ++of_batch[{transfer.channel, transfer.micro_batch}];
    REQUIRE(ends[i].made >= 0);
    CHECK(log.spans[ends[i].made].end <= transfer.sent);
    if (ends[i].used >= 0) CHECK(log.spans[ends[i].used].start >= transfer.arrival);
  }
  int most = 0;
  for (const auto& [place, count] : of_batch) most = std::max(most, count);
  CHECK(most == 2);
}

TEST_CASE("messages in line have the ops that they have when they are free") {
  for (const char* const batched : {"false", "true"}) {
    for (const char* const lines : {"rank", "pair"}) {
      const ScenarioResult run =
          simulated(kFourStages, {std::string(R"(training.schedule={"kind": "1f1b", )") +
                                  R"("message_order": ")" + lines + R"(", "batched_messages": )" +
                                  batched + "}"});
      const Program& program = run.measurement.program;
      const TraceLog& log = run.measurement.log;
      const std::vector<MessageEnds> ends = message_ends(program, log);
      REQUIRE(!ends.empty());
      for (std::size_t i = 0; i < ends.size(); ++i) {
        const Transfer& transfer = log.transfers[i];
        const Channel& channel = program.channels[transfer.channel];
        const auto is = [&](std::int32_t span, int stage) {
          REQUIRE(span >= 0);
          const OpInfo& op = program.ops[log.spans[span].op];
          CHECK(op.stage == stage);
          CHECK((op.kind == OpKind::F) == (channel.cargo == Cargo::Activation));
          CHECK(log.spans[span].micro_batch == transfer.micro_batch);
        };
        is(ends[i].made, channel.from_stage);
        is(ends[i].used, channel.to_stage);
      }
    }
  }
}

TEST_CASE("copies to hosts have tracks of their own, collectives one for each group") {
  const char* const offload = R"({
    "model": "gpt2-xl", "cluster": {"machine": "dgx-a100-80g", "devices": 4},
    "parallel": {"pipeline": 2, "data": 2},
    "training": {"strategy": "global", "global_batch_size": 16, "optimizer": "adam", "steps": 1,
                 "offload": {"optimizer": 1}}})";
  const ScenarioResult run = simulated(offload, {R"(simulate.fold=["tensor"])"});
  const TraceFile file = read_trace(whole(trace_events(run)));
  CHECK(file.fault == "");
  std::map<std::string, int> tracks;
  for (const auto& [place, slices] : file.slices) ++tracks[file.threads.at(place)];
  CHECK(tracks["copies to host"] == 4);
  CHECK(tracks["copies from host"] == 4);
  CHECK(tracks.count("data, devices 0, 1") == 1);
}

TEST_CASE("slices that overlap are dealt to as few tracks as hold them") {
  // [0, 4), [1, 2), [2, 6), [4, 5): at most two at a time.
  const auto tracks = without_overlap({{4, 5, 3}, {0, 4, 0}, {1, 2, 1}, {2, 6, 2}});
  // Touching within a nanosecond is rounding: 1 after 0 would need 0 to end at 2 at most.
  REQUIRE(tracks.size() == 2);
  const auto far = without_overlap({{0, 40, 0}, {10, 20, 1}, {20, 60, 2}, {40, 50, 3}});
  REQUIRE(far.size() == 2);
  CHECK(far[0].size() == 2);
  CHECK(far[0][1].start == 40);
  CHECK(far[1][0].start == 10);
  CHECK(far[1][1].end == 60);
  // Rounding: the second begins a nanosecond early, and is made to touch.
  const auto rounded = without_overlap({{0, 10, 0}, {9, 20, 1}});
  REQUIRE(rounded.size() == 1);
  CHECK(rounded[0][1].start == 10);
}

TEST_CASE("a time that nanoseconds cannot count is refused") {
  CHECK(nanoseconds(Seconds(1.5)) == 1'500'000'000);
  CHECK_THROWS_WITH_AS(nanoseconds(Seconds(1e10)),
                       doctest::Contains("a timeline in nanoseconds reaches 285 years"), Error);
}

TEST_CASE("compressed text is the text again, and damage is noticed") {
  const ScenarioResult run = simulated(kFourStages);
  const std::string text = whole(trace_events(run));
  const std::string packed = whole(gzip(trace_events(run)));
  CHECK(packed.size() < text.size() / 5);
  const auto expanded = [](const std::string& bytes, std::size_t piece) {
    std::size_t given = 0;
    const TextPieces pieces = gunzip(
        [&] {
          const std::size_t from = std::exchange(given, std::min(bytes.size(), given + piece));
          return std::string_view(bytes).substr(from, given - from);
        },
        "run.json.gz");
    std::string all;
    for (std::string_view next = pieces(); !next.empty(); next = pieces()) all += next;
    return all;
  };
  CHECK(expanded(packed, packed.size()) == text);
  CHECK(expanded(packed, 7) == text);
  CHECK(expanded(text, 1000) == text);  // what is not compressed is left as it is
  CHECK(packed == whole(gzip([&](const TextSink& out) { out(text); })));
  CHECK_THROWS_WITH_AS(expanded(packed.substr(0, packed.size() / 2), 4096),
                       "run.json.gz: compressed text is damaged or cut off", Error);
}

}  // namespace interlock::trace_events_test
