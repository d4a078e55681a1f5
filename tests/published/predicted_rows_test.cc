// Rows predicted by worker processes, against a closed form and against whole steps.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "validate/published/accuracy.h"
#include "validate/published/long_step.h"

namespace interlock::predicted_rows_test {
namespace {

constexpr const char* kPipeline =
    R"({"model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
         "backward_input": "1 ms", "backward_weight": "1 ms"}]},
        "cluster": {"kind": "uniform", "devices": 8, "memory": "80 GiB",
                    "link": {"bandwidth": "100 GB/s"}},
        "parallel": {"pipeline": 4},
        "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 4, "steps": 1}})";

/// A table whose truth is (M + K - 1) (f + b) 8 / K: 8 modules of 1 + 2 ms in K stages.
MeasurementFile pipelines() {
  std::string rows;
  for (const int k : {1, 2, 4, 8}) {
    for (const int m : {1, 3, 8, 64, 301}) {
      const double truth = (m + k - 1) * 3e-3 * 8 / k;
      rows += (rows.empty() ? "" : ", ") + std::string("[\"") + std::to_string(k) + "x" +
              std::to_string(m) + "\", \"all\", " + std::to_string(k) + ", " + std::to_string(m) +
              ", " + std::to_string(truth) + "]";
    }
  }
  const std::string text =
      R"({"kind": "measurements", "source": {"paper": "a closed form"}, "tables": [
         {"name": "pipelines", "target": {"step_time_s": {"max": 1e-9, "spearman": 1, "orders": 1}},
          "columns": ["id", "series", "parallel.pipeline", "training.micro_batches",
                      "measured.step_time_s"], "scenario": )" +
      std::string(kPipeline) + ", \"rows\": [" + rows + "]}]}";
  return read_measurements(parse_json(text, "pipelines.json"), "pipelines");
}

TEST_CASE("a table made by a closed form is predicted without an error, by any number of workers") {
  for (const int jobs : {1, 3}) {
    CAPTURE(jobs);
    const Accuracy accuracy = judge({pipelines()}, RowJobs{jobs});
    REQUIRE(accuracy.values.size() == 20);
    for (const JudgedValue& value : accuracy.values) {
      const std::string& id = accuracy.files[0].tables[0].rows[value.row].id;
      CAPTURE(id);
      CAPTURE(value.problem);
      REQUIRE(value.predicted.has_value());
      CHECK(std::abs(value.error()) < 1e-9);
    }
    CHECK(reaches_targets(accuracy));
    CHECK(accuracy.lines[0].summary.order.pairs_right == accuracy.lines[0].summary.order.pairs);
  }
}

TEST_CASE("times of passes: of the stage in the middle, and means over stages") {
  const std::string text =
      R"({"kind": "measurements", "source": {"paper": "a closed form"}, "tables": [
         {"name": "passes", "columns": ["id", "measured.forward_s", "measured.mean_forward_s",
            "measured.mean_backward_input_s", "measured.mean_backward_weight_s"],
          "scenario": {"model": {"kind": "profile", "modules": [
              {"repeat": 3, "forward": "1 ms", "backward_input": "2 ms",
               "backward_weight": "3 ms"},
              {"forward": "7 ms", "backward_input": "4 ms", "backward_weight": "8 ms"}]},
            "cluster": {"kind": "uniform", "devices": 2, "memory": "80 GiB",
                        "link": {"bandwidth": "100 GB/s"}},
            "parallel": {"pipeline": 2}, "partition": [3, 1],
            "training": {"strategy": "global", "schedule": "zb-h1", "micro_batches": 4}},
          "rows": [["three and one", 7e-3, 5e-3, 5e-3, 8.5e-3]]}]})";
  const Accuracy accuracy =
      judge({read_measurements(parse_json(text, "passes.json"), "passes")}, RowJobs{1});
  REQUIRE(accuracy.values.size() == 4);
  for (const JudgedValue& value : accuracy.values) {
    CAPTURE(value.problem);
    CHECK(std::abs(value.error()) < 1e-9);
  }
}

TEST_CASE("between steps the last rank holds what its libraries and its allocator keep, too") {
  const std::string text =
      R"({"kind": "measurements", "source": {"paper": "a closed form"}, "tables": [
         {"name": "held", "columns": ["id", "measured.last_held_bytes"],
          "scenario": {"model": {"kind": "profile", "modules": [
              {"repeat": 2, "forward": "1 ms", "backward_input": "2 ms",
               "backward_weight": "3 ms"}]},
            "cluster": {"kind": "uniform", "devices": 2, "memory": "80 GiB",
                        "link": {"bandwidth": "100 GB/s"}},
            "training": {"strategy": "global", "schedule": "1f1b", "micro_batches": 4,
              "framework": {"reserve": 0.25, "library_memory": "100 MB"}}},
          "rows": [["no weights", 125e6]]}]})";
  const Accuracy accuracy =
      judge({read_measurements(parse_json(text, "held.json"), "held")}, RowJobs{1});
  REQUIRE(accuracy.values.size() == 1);
  CHECK(std::abs(accuracy.values[0].error()) < 1e-9);
}

TEST_CASE("between steps each stage of the last rank has its last input, and the gradient of it") {
  // Stages 1 and 3 of four lie on the last rank: each has 5 MB of the stage before, twice.
  const std::string text =
      R"({"kind": "measurements", "source": {"paper": "a closed form"}, "tables": [
         {"name": "held", "columns": ["id", "measured.last_held_bytes"],
          "scenario": {"model": {"kind": "profile", "modules": [
              {"repeat": 4, "forward": "1 ms", "backward_input": "2 ms",
               "backward_weight": "3 ms", "output": "5 MB"}]},
            "cluster": {"kind": "uniform", "devices": 2, "memory": "80 GiB",
                        "link": {"bandwidth": "100 GB/s"}},
            "parallel": {"pipeline": 2, "stages": 4},
            "training": {"strategy": "global", "micro_batches": 4,
              "schedule": {"kind": "interleaved", "chunks": 2}}},
          "rows": [["two stages", 20e6]]}]})";
  const Accuracy accuracy =
      judge({read_measurements(parse_json(text, "held.json"), "held")}, RowJobs{1});
  REQUIRE(accuracy.values.size() == 1);
  CAPTURE(accuracy.values[0].problem);
  CHECK(std::abs(accuracy.values[0].error()) < 1e-9);
}

TEST_CASE("a row that is refused says why, and others are predicted all the same") {
  MeasurementFile file = pipelines();
  JsonValue ranks{.kind = JsonValue::Kind::Number, .number = 9};
  set_json(file.tables[0].rows[2].document, "parallel.pipeline", ranks, "test");
  const Accuracy accuracy = judge({file}, RowJobs{2});
  CHECK(accuracy.values[2].problem.find("/parallel/pipeline") != std::string::npos);
  CHECK(accuracy.lines[0].summary.refused == 1);
  CHECK(accuracy.lines[0].summary.errors.count == 19);
}

TEST_CASE("of candidates the fastest that fits is taken") {
  MeasuredRow row = pipelines().tables[0].rows[0];
  const auto candidate = [&](const char* name, int pipeline, const char* memory) {
    CandidateScenario made{name, row.document};
    set_json(made.document, "parallel.pipeline",
             {.kind = JsonValue::Kind::Number, .number = static_cast<double>(pipeline)}, "test");
    set_json(made.document, "training.micro_batches",
             {.kind = JsonValue::Kind::Number, .number = 4}, "test");
    set_json(made.document, "model.modules.0.stash", parse_override("\"1 GiB\"", "test"), "test");
    set_json(made.document, "cluster.memory", parse_override(memory, "test"), "test");
    return made;
  };
  // 4 micro-batches take 96, 60, 42 and 33 ms in 1, 2, 4 and 8 stages; one of 9 is refused.
  row.candidates = {candidate("two", 2, "\"80 GiB\""), candidate("nine", 9, "\"80 GiB\""),
                    candidate("four", 4, "\"80 GiB\""), candidate("eight, full", 8, "\"1 GiB\"")};
  const RowPrediction prediction = predict_row(row);
  CHECK(prediction.choice == "four");
  CHECK(prediction.values.step_time == doctest::Approx(42e-3));
}

TEST_CASE("long steps by two shorter ones take as long as whole ones") {
  // Two nodes of one link each, which replicas and stages share: times settle only nearly.
  const char* shared = R"({"name": "x", "model": {"kind": "transformer", "layers": 6,
      "hidden_size": 256, "attention_heads": 4, "vocab_size": 1024, "sequence_length": 128},
    "cluster": {"kind": "machine", "device": "a100-80g", "devices_per_node": 4,
      "port": {"latency": "3 us", "bandwidth": "100 GB/s"},
      "cards": {"per_node": 1, "latency": "10 us", "bandwidth": "10 GB/s"}, "nodes": 2},
    "parallel": {"pipeline": 2, "data": 2, "tensor": 2},
    "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 256,
      "micro_batch_size": 1, "steps": 1}})";
  for (const char* schedule :
       {"\"1f1b\"", "\"gpipe\"", "\"zb-h1\"", R"({"kind": "interleaved", "chunks": 2})"}) {
    CAPTURE(schedule);
    JsonValue document = parse_json(shared, "shared.json");
    set_json(document, "training.schedule", parse_override(schedule, "test"), "test");
    const Question scenario = load_questions(document).front();
    const bool shortened = shorter_steps(lay_out(scenario)).has_value();
    CHECK(shortened == (std::string(schedule) != "\"gpipe\""));
    const LongStepResult result = run_long_step(lay_out(scenario));
    const Metrics whole = run_scenario(scenario, false).measurement.metrics;
    CHECK(result.step_time.value() == doctest::Approx(whole.step_time.value()).epsilon(1e-3));
    CHECK(result.result.measurement.metrics.devices[0].peak_memory == whole.devices[0].peak_memory);
  }
}

TEST_CASE("steps that are short, or whose order is written down, stay whole") {
  const auto shortened = [](const char* path, const char* value) {
    JsonValue document = parse_json(kPipeline, "p.json");
    set_json(document, "training.micro_batches", parse_override("400", "test"), "test");
    set_json(document, path, parse_override(value, "test"), "test");
    return shorter_steps(lay_out(load_questions(document).front())).has_value();
  };
  CHECK(shortened("training.schedule", "1f1b"));
  CHECK_FALSE(shortened("training.micro_batches", "40"));
  CHECK_FALSE(shortened("training.schedule", "pipedream"));
}

}  // namespace
}  // namespace interlock::predicted_rows_test
