// Op durations out of traces: hand-made ones like PyTorch's, and our own read back.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/duration_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/traces/trace_events.h"
#include "reports/words/op_words.h"
#include "tests/reports/support/made_trace.h"

namespace interlock::duration_table_test {
namespace {

DurationTable table_of(const std::vector<KinetoEvents>& traces) {
  DurationTable table;
  for (const KinetoEvents& events : traces) add_trace(table, events);
  order_parts(table);
  return table;
}

const OpSamples& samples(const DurationTable& table, const std::string& part, Phase phase) {
  for (const MeasuredPart& one : table.parts) {
    if (one.name == part) return one.phases[static_cast<std::size_t>(phase)];
  }
  static const OpSamples none;
  return none;
}

/// In microseconds.
std::vector<double> busy(const DurationTable& table, const std::string& part, Phase phase) {
  std::vector<double> micros;
  for (const double time : samples(table, part, phase).busy) micros.push_back(time * 1e6);
  return micros;
}

using Micros = std::vector<double>;

bool near(const Micros& found, const Micros& expected) {
  return found.size() == expected.size() &&
         std::equal(found.begin(), found.end(), expected.begin(),
                    [](double a, double b) { return std::abs(a - b) < 1e-6; });
}

/// A step of a pipeline stage as PyTorch records it: nested operators, launches by runtime and
/// driver, the backward on a thread of its own, messages, copies, and what else lies in such files.
MadeTrace stage_step() {
  MadeTrace trace;
  trace.events.push_back(
      R"({"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}})");
  trace.events.push_back(
      R"({"ph": "i", "s": "g", "name": "Start", "pid": "Traces", "tid": "T", "ts": 1.5})");
  trace.range("ProfilerStep#4", R"("ts": 0.5, "dur": 300)");
  trace.range("forward stage 1 micro-batch 0", R"("ts": 10, "dur": 50)");
  trace.event("python_function", "nn.Module: Linear", "100", R"("ts": 11, "dur": 30)",
              R"("Python id": 1, "Python parent id": null)");
  trace.op("aten::linear", "100", R"("ts": 12, "dur": 18)",
           R"("External id": 5, "Sequence number": 7, "Fwd thread id": 0)");
  trace.op("aten::addmm", "100", R"("ts": 14, "dur": 14)", R"("External id": 6)");
  trace.launch("100", "20.5", 900);
  trace.kernel("gemm", 7, R"("ts": 40.125, "dur": 10.25)",
               R"("correlation": 900, "External id": 6)");
  trace.event("cuda_driver", "cuLaunchKernel", "100", R"("ts": 35, "dur": 2)",
              R"("correlation": 901)");
  trace.kernel("relu", 7, R"("ts": 55.5, "dur": 4.5)", R"("correlation": 901)");
  trace.launch("100", "36", 902);
  trace.kernel("gemm", 8, R"("ts": 45, "dur": 8)", R"("correlation": 902, "External id": 6)");
  trace.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 20,
               R"("ts": 60, "dur": 40)",
               R"("correlation": 903, "In msg nelems": 1024, "dtype": "BFloat16")");
  trace.range("backward stage 1", R"("ts": 100, "dur": 100)");
  trace.op("autograd::engine::evaluate_function: AddmmBackward0", "200", R"("ts": 110, "dur": 40)",
           R"("External id": 20, "Sequence number": 7, "Fwd thread id": 1)");
  trace.launch("200", "120", 910);
  trace.kernel("gemm", 7, R"("ts": 130, "dur": 20)", R"("correlation": 910, "External id": 21)");
  trace.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "200",
           R"("ts": 160, "dur": 10)", R"("External id": 22)");
  trace.launch("200", "161", 911);
  trace.kernel("add", 7, R"("ts": 170, "dur": 2)", R"("correlation": 911, "External id": 22)");
  trace.range("Optimizer.step#Adam.step", R"("ts": 210, "dur": 30)");
  trace.op("aten::_foreach_add_", "100", R"("ts": 215, "dur": 5)", R"("External id": 30)");
  trace.kernel("adam", 7, R"("ts": 250, "dur": 6)", R"("External id": 30)");
  trace.kernel("lonely", 7, R"("ts": 270, "dur": 3)", R"("correlation": 0)");
  trace.event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "7", R"("ts": 280, "dur": 4)",
              R"("device": 0, "stream": 7, "bytes": 4096)");
  trace.event("gpu_user_annotation", "forward stage 1", "7", R"("ts": 40.125, "dur": 20)",
              R"("External id": 1)");
  trace.events.push_back(trace.events[8]);
  trace.kernel("unfinished", 7, R"("ts": 290)", R"("correlation": 930)");
  return trace;
}

const char* const kFourStages = R"({
  "model": {"kind": "profile", "modules": [
    {"repeat": 7, "forward": "1.25 ms", "backward_input": "1.5 ms", "backward_weight": "1 ms",
     "update": "0.125 ms", "head": "0.5 ms", "output": "1 MiB", "stash": "4 MiB"},
    {"forward": "3 ms", "backward_input": "2 ms", "backward_weight": "1.001 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "10 GB/s", "latency": "3 us"}},
  "training": {"strategy": "global", "micro_batches": 8, "steps": 2}})";

ScenarioResult simulated(const std::string& text, const std::vector<std::string>& set) {
  JsonValue document = parse_json(text, "test.json");
  for (const std::string& key : set) {
    const std::size_t equals = key.find('=');
    set_json(document, key.substr(0, equals), parse_override(key.substr(equals + 1), key), key);
  }
  return run_scenario(load_questions(document).at(0), true);
}

std::vector<KinetoEvents> exported(const ScenarioResult& run) {
  std::vector<KinetoEvents> traces;
  for (const DeviceMetrics& device : run.measurement.metrics.devices) {
    std::string text;
    kineto_trace(run, device.rank)([&](std::string_view piece) { text += piece; });
    traces.push_back(read_kineto(in_pieces(text, 4096), std::to_string(device.rank) + ".json"));
  }
  return traces;
}

/// Returns the program's time of each op that was executed: by part and phase, sorted, in
/// microseconds.
std::map<std::pair<std::string, std::string>, Micros> program_durations(const ScenarioResult& run) {
  const Program& program = run.measurement.program;
  const TraceLog& log = run.measurement.log;
  std::map<std::pair<std::string, std::string>, Micros> durations;
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[span.op];
    const std::string part = "stage " + std::to_string(model_stage(program, op.stage));
    durations[{part, category(op.kind)}].push_back(op.duration.value() * 1e6);
  }
  for (auto& [op, times] : durations) std::sort(times.begin(), times.end());
  return durations;
}

void check_read_back(const ScenarioResult& run) {
  const DurationTable table = table_of(exported(run));
  std::size_t ops = 0;
  for (const MeasuredPart& part : table.parts) {
    for (const OpSamples& phase : part.phases) ops += phase.busy.empty() ? 0 : 1;
  }
  const auto expected = program_durations(run);
  CHECK(ops == expected.size());
  for (const auto& entry : expected) {
    const std::string& part = entry.first.first;
    const std::string& kind = entry.first.second;
    const Micros& times = entry.second;
    CAPTURE(part);
    CAPTURE(kind);
    Micros found;
    for (int phase = 0; phase < kPhases; ++phase) {
      if (name_of(static_cast<Phase>(phase)) != kind) continue;
      found = busy(table, part, static_cast<Phase>(phase));
    }
    std::sort(found.begin(), found.end());
    INFO(found.size(), " of ", times.size());
    REQUIRE(found.size() == times.size());
    // Starts and ends are nanoseconds.
    for (std::size_t i = 0; i < times.size(); ++i) CHECK(std::abs(found[i] - times[i]) <= 0.0021);
  }
  CHECK(table.other_kernels == Seconds(0));
}

}  // namespace

TEST_CASE("kernels of a stage are found through launches, operators and threads") {
  // forward: [40.125, 50.375] and [45, 53] on two streams, [55.5, 60]: 12.875 + 4.5 us,
  // span 19.875. backward: 20 + 2 us on autograd's thread, inside the main thread's range. Update:
  // 6 us.
  const DurationTable table = table_of({events_of(stage_step())});
  REQUIRE(table.parts.size() == 1);
  CHECK(near(busy(table, "stage 1", Phase::Forward), {17.375}));
  CHECK(samples(table, "stage 1", Phase::Forward).spans.at(0) == doctest::Approx(19.875e-6));
  CHECK(near(busy(table, "stage 1", Phase::Backward), {22}));
  CHECK(near(busy(table, "stage 1", Phase::Update), {6}));
  CHECK(table.steps == 1);
}

TEST_CASE("what cannot be used is counted, and its share of the time told") {
  // Kernels: 10.25 + 4.5 + 8 + 20 + 2 + 6 = 50.75 us in ops, 3 elsewhere; 40 us nccl, 4 us copies.
  const DurationTable table = table_of({events_of(stage_step())});
  CHECK(table.in_ops.value() == doctest::Approx(50.75e-6));
  CHECK(table.other_kernels.value() == doctest::Approx(3e-6));
  CHECK(table.communication.value() == doctest::Approx(40e-6));
  CHECK(table.copies.value() == doctest::Approx(4e-6));
  CHECK(table.without_time == 1);
  CHECK(table.duplicates == 1);
  CHECK(table.messages.at("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)").bytes ==
        std::vector<double>{2048});
  CHECK(table.kernels.at("gemm").durations.size() == 3);
  const std::string report = duration_report(table, {});
  CAPTURE(report);
  for (const char* words : {"1 module from 1 trace, 1 step", "In ops         51.9%", "lonely",
                            "40.9%", "Left out: 1 event without a time or a duration, 1 duplicate.",
                            "measured whole", "Sizes are not in a trace"}) {
    CAPTURE(words);
    CHECK(report.find(words) != std::string::npos);
  }
}

TEST_CASE("forwards named by layer are enough for backwards by layer") {
  // Sequence numbers 3 and 4 lead from the backward operators to the forwards of layers 0 and 1.
  MadeTrace trace;
  trace.range("forward layer 0", R"("ts": 0, "dur": 9)");
  trace.op("aten::linear", "100", R"("ts": 1, "dur": 5)",
           R"("External id": 1, "Sequence number": 3, "Fwd thread id": 0)");
  trace.kernel("gemm", 7, R"("ts": 10, "dur": 4)", R"("External id": 1)");
  trace.range("forward layer 1", R"("ts": 20, "dur": 9)");
  trace.op("aten::linear", "100", R"("ts": 21, "dur": 5)",
           R"("External id": 2, "Sequence number": 4, "Fwd thread id": 0)");
  trace.kernel("gemm", 7, R"("ts": 30, "dur": 5)", R"("External id": 2)");
  trace.op("AddmmBackward0", "200", R"("ts": 40, "dur": 9)",
           R"("External id": 3, "Sequence number": 4, "Fwd thread id": 1)");
  trace.op("aten::mm", "200", R"("ts": 41, "dur": 5)", R"("External id": 4)");
  trace.kernel("gemm", 7, R"("ts": 50, "dur": 10)", R"("External id": 4)");
  trace.op("AddmmBackward0", "200", R"("ts": 60, "dur": 9)",
           R"("External id": 5, "Sequence number": 3, "Fwd thread id": 1)");
  trace.kernel("gemm", 7, R"("ts": 70, "dur": 8)", R"("External id": 5)");
  for (const bool around : {false, true}) {
    CAPTURE(around);
    // A range around the whole backward knows less than they do.
    if (around) trace.range("backward stage 0", R"("ts": 39, "dur": 40)");
    const DurationTable table = table_of({events_of(trace)});
    CHECK(near(busy(table, "layer 0", Phase::Forward), {4}));
    CHECK(near(busy(table, "layer 1", Phase::Forward), {5}));
    CHECK(near(busy(table, "layer 1", Phase::Backward), {10}));
    CHECK(near(busy(table, "layer 0", Phase::Backward), {8}));
    CHECK(table.parts.size() == 2);
  }
}

TEST_CASE("the innermost range counts, and a whole file is called by its rank") {
  MadeTrace trace;
  trace.range("forward", R"("ts": 0, "dur": 100)");
  trace.range("forward layer 0", R"("ts": 10, "dur": 20)");
  trace.launch("100", "15", 1);
  trace.kernel("gemm", 7, R"("ts": 20, "dur": 4)", R"("correlation": 1)");
  trace.launch("100", "50", 2);
  trace.kernel("loss", 7, R"("ts": 60, "dur": 3)", R"("correlation": 2)");
  trace.range("update", R"("ts": 110, "dur": 5)");
  trace.launch("100", "111", 3);
  trace.kernel("adam", 7, R"("ts": 120, "dur": 8)", R"("correlation": 3)");
  const DurationTable table = table_of({events_of(trace)});
  CHECK(near(busy(table, "layer 0", Phase::Forward), {4}));
  CHECK(near(busy(table, "rank 3", Phase::Forward), {3}));
  // An optimiser's time is shared among the parts of its process.
  CHECK(near(busy(table, "layer 0", Phase::Update), {4}));
  CHECK(near(busy(table, "rank 3", Phase::Update), {4}));
}

TEST_CASE("medians and 95th percentiles are those of the samples") {
  // 21 forwards of 1 to 21 us: the median is the 11th, 95 % of the way is the 20th.
  MadeTrace trace;
  for (int i = 1; i <= 21; ++i) {
    const std::string at = std::to_string(100 * i);
    trace.range("forward stage 0", "\"ts\": " + at + ", \"dur\": 5");
    trace.launch("100", at, i);
    trace.kernel("gemm", 7, "\"ts\": " + at + ", \"dur\": " + std::to_string(1 + 8 * i % 21),
                 "\"correlation\": " + std::to_string(i));
  }
  const std::string text = duration_json(table_of({events_of(trace)}));
  const auto json = nlohmann::json::parse(text);
  CHECK(json["modules"][0]["forward"] == "0.011 ms");
  const auto& op = json["measured"]["ops"][0];
  CHECK(op["n"] == 21);
  CHECK(op["median_s"].get<double>() == doctest::Approx(11e-6));
  CHECK(op["p95_s"].get<double>() == doctest::Approx(20e-6));
  CHECK(op["total_s"].get<double>() == doctest::Approx(231e-6));
}

TEST_CASE("a half of a backward that was not measured is the rest of the whole") {
  // One part by whole backwards of 9 us and input halves of 5, one by wholes alone.
  MadeTrace trace;
  for (const std::string name :
       {"backward stage 0", "backward_input stage 0", "backward stage 1"}) {
    const std::string at = std::to_string(100 * trace.events.size());
    const std::string number = std::to_string(trace.events.size() + 1);
    trace.range(name, "\"ts\": " + at + ", \"dur\": 5");
    trace.launch("100", at, std::stoi(number));
    trace.kernel("gemm", 7, "\"ts\": " + at + ", \"dur\": " + (name[8] == '_' ? "5" : "9"),
                 "\"correlation\": " + number);
  }
  const DurationTable table = table_of({events_of(trace)});
  REQUIRE(table.parts.size() == 2);
  const ModuleTimes both = module_times(table.parts[0]), whole = module_times(table.parts[1]);
  CHECK(both.backward_input.value() == doctest::Approx(5e-6));
  CHECK(both.backward_weight.value() == doctest::Approx(4e-6));
  CHECK_FALSE(both.halved);
  CHECK(whole.backward_input == whole.backward_weight);
  CHECK(whole.backward_weight.value() == doctest::Approx(4.5e-6));
  CHECK(whole.halved);
}

TEST_CASE("without names there are kernels and no modules") {
  MadeTrace trace;
  trace.range("Optimizer.step#SGD.step", R"("ts": 0, "dur": 5)");
  trace.launch("100", "1", 1);
  trace.kernel("sgd", 7, R"("ts": 2, "dur": 4)", R"("correlation": 1)");
  const DurationTable table = table_of({events_of(trace)});
  CHECK(table.parts.empty());
  CHECK(table.other_kernels.value() == doctest::Approx(4e-6));
  CHECK(nlohmann::json::parse(duration_json(table))["measured"]["kernels"].size() == 1);
}

/// A frame of nn.Module, with a kernel of 1 us at its start if `launch` is not 0.
void add_frame(MadeTrace& trace, const std::string& name, int start, int length, int launch = 0) {
  trace.event("python_function", "nn.Module: " + name, "100",
              "\"ts\": " + std::to_string(start) + ", \"dur\": " + std::to_string(length),
              "\"Python id\": " + std::to_string(trace.events.size()));
  if (launch == 0) return;
  trace.launch("100", std::to_string(start), launch);
  trace.kernel("gemm", 7, "\"ts\": " + std::to_string(start) + ", \"dur\": 1",
               "\"correlation\": " + std::to_string(launch));
}

TEST_CASE("frames of nn.Module make modules where the loop names none") {
  // Embedding, three blocks of two linear layers each, a norm: five modules, at the depth of the
  // blocks. A block's two kernels of 1 us are 2 us of forward.
  MadeTrace trace;
  add_frame(trace, "GPT_0", 0, 100);
  add_frame(trace, "Embedding_0", 1, 9, 1);
  for (int block = 0; block < 3; ++block) {
    const int start = 10 + 20 * block;
    add_frame(trace, "Block_" + std::to_string(block), start, 18);
    add_frame(trace, "Linear_" + std::to_string(2 * block), start + 1, 7, 10 + 2 * block);
    add_frame(trace, "Linear_" + std::to_string(2 * block + 1), start + 9, 7, 11 + 2 * block);
  }
  add_frame(trace, "LayerNorm_0", 80, 5, 2);
  const DurationTable table = table_of({events_of(trace)});
  REQUIRE(table.parts.size() == 5);
  const std::string names[] = {"embedding 0", "block 0", "block 1", "block 2", "layernorm 0"};
  const double times[] = {1e-6, 2e-6, 2e-6, 2e-6, 1e-6};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(table.parts[i].name == names[i]);
    CHECK(module_times(table.parts[i]).forward.value() == doctest::Approx(times[i]));
  }
  // A range of the loop's own has the last word.
  trace.range("forward stage 0", R"("ts": 0, "dur": 99)");
  CHECK(table_of({events_of(trace)}).parts.size() == 1);
}

TEST_CASE("our own traces read back have the durations of the program") {
  for (const std::string schedule : {"naive", "gpipe", "1f1b", "zb-h1", "zb-v", "interleaved"}) {
    CAPTURE(schedule);
    check_read_back(simulated(kFourStages, {"training.schedule=" + schedule}));
  }
  for (const std::string strategy :
       {R"("local")", R"("pairwise")", R"({"kind": "interlocking", "n_wise": 3})"}) {
    CAPTURE(strategy);
    check_read_back(simulated(kFourStages, {"training.strategy=" + strategy}));
  }
  check_read_back(simulated(kFourStages, {"training.recompute=full"}));
}

TEST_CASE("a step simulated with an imported table takes as long as the step it came from") {
  const std::vector<std::string> bare = {"training.schedule=1f1b", "cluster.link.latency=0 s",
                                         "model.modules.0.output=0 B"};
  const ScenarioResult run = simulated(kFourStages, bare);
  const std::string table = duration_json(table_of(exported(run)));
  const ScenarioResult again =
      simulated(kFourStages, {bare[0], bare[1], "model=null", "model=" + table});
  CHECK(again.plan.partition.stages() == 4);
  CHECK(again.measurement.metrics.step_time.value() ==
        doctest::Approx(run.measurement.metrics.step_time.value()).epsilon(1e-9));
}

}  // namespace interlock::duration_table_test
