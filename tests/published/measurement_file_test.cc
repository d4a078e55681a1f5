// Files of measurements: what rows become, and every mistake of a file at once.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/measurement_file.h"

#include <doctest/doctest.h>

#include "tests/base/thrown.h"

namespace interlock::measurement_file_test {
namespace {

/// A file with one table, of which `parts` are everything but the scenario.
std::string file_with(const std::string& parts) {
  return R"({"kind": "measurements", "title": "T", "source": {"paper": "P"}, "tables": [
    {"name": "t", "scenario": {"model": "gpt2", "training": {"schedule": "1f1b", "steps": 1}},
)" + parts +
         "}]}";
}

MeasurementFile read_text_file(const std::string& text) {
  return read_measurements(parse_json(text, "x.json"), "x");
}

TEST_CASE("a row is the table's scenario with its cells set") {
  const MeasurementFile file = read_text_file(file_with(
      R"("columns": ["id", "group", "series", "training.schedule.chunks", "model", "training.steps",
                     "measured.step_time_s", "measured.peak_memory_bytes"],
         "rows": [["a", "g", "s", 3, {"base": "gpt2", "layers": 2}, null, 1.5, null],
                  ["b", null, null, 2, "gpt2-xl", 4, null, 7]])"));
  REQUIRE(file.tables.size() == 1);
  const std::vector<MeasuredRow>& rows = file.tables[0].rows;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].id == "a");
  CHECK(rows[0].group == "g");
  CHECK(rows[0].series == "s");
  const JsonValue* training = rows[0].document.find("training");
  CHECK(training->find("schedule")->find("kind")->text == "1f1b");  // the name became an object
  CHECK(training->find("schedule")->find("chunks")->number == 3);
  CHECK(training->find("steps") == nullptr);  // null leaves the key out
  CHECK(rows[0].document.find("model")->find("layers")->number == 2);
  CHECK(rows[0].document.find("name")->text == "a");
  CHECK(rows[1].document.find("model")->text == "gpt2-xl");
  CHECK(rows[1].document.find("training")->find("steps")->number == 4);
  CHECK(rows[0].measured == std::map<Measurand, double>{{Measurand::StepTime, 1.5}});
  CHECK(rows[1].measured == std::map<Measurand, double>{{Measurand::PeakMemory, 7}});
}

TEST_CASE("fitted rows are named, or chosen by what their cells hold") {
  const std::string columns =
      R"("columns": ["id", "training.steps", "measured.step_time_s"],
         "rows": [["a", 1, 1], ["b", 2, 1], ["c", 3, 1]], "remarks": {"b": "because"}, )";
  const auto fitted = [&](const std::string& rows) {
    const MeasurementFile file = read_text_file(
        file_with(columns + R"("fitted": [{"parameters": "p", "rows": )" + rows + "}]"));
    std::string ids;
    for (const MeasuredRow& row : file.tables[0].rows) {
      if (row.fitted == "p") ids += row.id;
    }
    CHECK(file.tables[0].rows[1].remark == "because");
    return ids;
  };
  CHECK(fitted(R"(["a", "c"])") == "ac");
  CHECK(fitted(R"("all")") == "abc");
  CHECK(fitted(R"({"training.steps": 2})") == "b");
  CHECK(fitted(R"({"training.steps": [1, 2, 5]})") == "ab");
  CHECK(fitted(R"({"training.steps": 7})") == "");
}

TEST_CASE("what a source leaves open is a list of candidates on top of the row") {
  const MeasurementFile file = read_text_file(file_with(
      R"("columns": ["candidates", "id", "training.steps", "measured.step_time_s"],
         "rows": [[{"one": {"training.micro_batch_size": 1},
                    "two": {"training.micro_batch_size": 2}},
                   "a", 5, 1]])"));
  const std::vector<CandidateScenario>& candidates = file.tables[0].rows[0].candidates;
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[1].name == "two");
  CHECK(candidates[1].document.find("training")->find("micro_batch_size")->number == 2);
  CHECK(candidates[1].document.find("training")->find("steps")->number == 5);
}

TEST_CASE("every mistake of a file is told at once") {
  const std::string message = thrown([] {
    read_text_file(
        R"({"kind": "measurement", "source": {"papers": "P"}, "notes": "n", "tables": [
  {"name": "t", "target": {"step_time": {}}, "scenario": {}, "columns": ["id"], "rows": [[1]]},
  {"name": "u", "scenario": {}, "columns": ["id", "measured.step_time_s", "measured.speed_up"],
   "rows": [["a", 1, 2], ["a", 0, null], ["b", "x", null], ["c", 1]],
   "fitted": [{"rows": ["z"]}], "more": 1}]})");
  });
  for (const char* part :
       {"x.json:1: /kind: unknown name \"measurement\"", "/source/papers: unknown key",
        "/source: missing key \"paper\"", "x.json:1: /notes: expected a list of texts",
        "x.json:2: /tables/0/target/step_time: unknown key",
        "x.json:2: /tables/0/columns: expected a column \"id\", and one that begins with",
        "x.json:4: /tables/1/rows/1/1: expected more than 0, or null: not measured",
        "/tables/1/rows/2/1: expected a number",
        "/tables/1/rows/3: expected a list of 3 values, one a column",
        "x.json:5: /tables/1/more: unknown key"}) {
    CAPTURE(message);
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

TEST_CASE("rows that cannot be judged are refused") {
  const std::string message = thrown([] {
    read_text_file(file_with(
        R"("columns": ["id", "base", "measured.speed_up", "measured.tflops_per_device"],
           "rows": [["a", null, 2, null], ["a", "a", 2, 3], ["", "z", 2, null]],
           "fitted": [{"parameters": "p", "rows": {"model": 1}},
                      {"parameters": "q", "rows": ["y"]}],
           "remarks": {"v": "w"})"));
  });
  CAPTURE(message);
  for (const char* part :
       {"rows/0: is compared with a base", "rows/1: a second row \"a\"",
        "rows/1: tflops_per_device needs flops_per_step", "rows/2: expected an id",
        "no column \"model\"", "no row \"y\"", "no row \"v\""}) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

TEST_CASE("a second column of one name, and an unknown quantity, are refused") {
  const auto message = [](const std::string& columns) {
    return thrown([&] {
      read_text_file(file_with("\"columns\": [" + columns + "], \"rows\": [[1, 2, 3]]"));
    });
  };
  CHECK(message(R"("id", "measured.step_time_s", "id")").find("a second column \"id\"") !=
        std::string::npos);
  CHECK(message(R"("id", "measured.step_time_ms", "x")").find("unknown quantity; expected") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::measurement_file_test
