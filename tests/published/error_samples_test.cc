// Errors of published rows, as ranges take them, against ratios worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/error_samples.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"

namespace interlock::error_samples_test {
namespace {

MeasuredRow row_on(const std::string& machine, std::map<Measurand, double> measured,
                   const std::string& training = "") {
  const std::string text = R"({"model": "gpt2", "cluster": {"machine": ")" + machine +
                           R"(", "devices": 8}, "parallel": {"data": 8},
      "training": {"strategy": "global", "global_batch_size": 8, "precision": "fp16")" +
                           training + "}}";
  MeasuredRow row{.id = machine, .measured = std::move(measured)};
  row.flops_per_step = 16e12;
  row.document = parse_json(text, "row.json");
  return row;
}

/// Returns the prediction of any row: 2 s a step of 8 devices, 10 samples and 100 tokens a second.
RowPrediction prediction() {
  return {.values = {.step_time = 2,
                     .samples_per_s = 10,
                     .tokens_per_s = 100,
                     .devices = 8,
                     .peak_memory = 1e9}};
}

Accuracy judged(std::vector<MeasuredRow> rows, std::vector<RowPrediction> predictions) {
  MeasuredTable table{.name = "t"};
  table.rows = std::move(rows);
  MeasurementFile file{.name = "f"};
  file.tables.push_back(std::move(table));
  return judge({file}, {{std::move(predictions)}});
}

TEST_CASE("a ratio is measured over predicted step time, whatever tells the time of whole steps") {
  // 1 TFLOP/s a device is predicted; less of anything a second is a longer step.
  const auto tables =
      error_tables(judged({row_on("dgx-a100-80g", {{Measurand::StepTime, 2.5}}),
                           row_on("dgx-a100-80g", {{Measurand::SamplesPerS, 20}}),
                           row_on("dgx-a100-80g", {{Measurand::TokensPerS, 80}}),
                           row_on("dgx-a100-80g", {{Measurand::TflopsPerDevice, 3}})},
                          {prediction(), prediction(), prediction(), prediction()}));
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].source == "f: t");
  CHECK(tables[0].ratios == std::vector<double>{0.3333, 0.5, 1.25, 1.25});  // sorted, four decimals
}

TEST_CASE("rows that were fitted on, refused, or tell no step have no part in ranges") {
  MeasuredRow fitted = row_on("dgx-a100-80g", {{Measurand::StepTime, 3}});
  fitted.fitted = "launch overhead";
  const auto tables =
      error_tables(judged({fitted, row_on("dgx-a100-80g", {{Measurand::StepTime, 3}}),
                           row_on("dgx-a100-80g", {{Measurand::PeakMemory, 1e9}}),
                           row_on("dgx-a100-80g", {{Measurand::StepTime, 4}})},
                          {prediction(), {.problem = "no"}, prediction(), prediction()}));
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].ratios == std::vector<double>{2});
}

TEST_CASE("each generation and framework of a published table is a table, with what its rows had") {
  const std::map<Measurand, double> two = {{Measurand::StepTime, 2}};
  const auto tables = error_tables(
      judged({row_on("dgx-a100-80g", two), row_on("dgx-a100-40g", two, R"(, "schedule": "gpipe")"),
              row_on("dgx-a100-80g", two, R"(, "framework": "nemo")"), row_on("dgx-h100", two)},
             {prediction(), prediction(), prediction(), prediction()}));
  REQUIRE(tables.size() == 3);
  CHECK(tables[0].generation == "A100");
  CHECK(tables[0].framework.empty());
  CHECK(tables[0].ratios.size() == 2);
  CHECK(tables[0].schedules.size() == 2);
  CHECK(tables[0].strategies == std::vector<std::string>{"global"});
  CHECK(tables[0].precisions == std::vector<std::string>{"fp16"});
  CHECK(tables[0].devices == 8);
  CHECK(tables[1].framework == "nemo");
  CHECK(tables[2].generation == "H100");
}

ErrorTable table_of(const std::string& source, double ratio, int rows) {
  return {
      source,     "A100",   "nemo",   8,
      {"global"}, {"1f1b"}, {"bf16"}, std::vector<double>(static_cast<std::size_t>(rows), ratio)};
}

TEST_CASE("what is written is what ranges read") {
  const std::vector<ErrorTable> tables = {table_of("a: \"one\"", 0.9321, 3),
                                          table_of("b: two", 1, 1)};
  const std::string path =
      (std::filesystem::temp_directory_path() / "interlock-error-tables.json").string();
  write_file(path, errors_json({tables, 1.75}, "interlock \\ validate"));
  const PublishedErrors errors = read_published_errors(path);
  const std::vector<ErrorTable>& read = errors.tables;
  CHECK(errors.widening == 1.75);
  std::filesystem::remove(path);
  REQUIRE(read.size() == 2);
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].source == tables[i].source);
    CHECK(read[i].generation == tables[i].generation);
    CHECK(read[i].framework == tables[i].framework);
    CHECK(read[i].devices == tables[i].devices);
    CHECK(read[i].strategies == tables[i].strategies);
    CHECK(read[i].schedules == tables[i].schedules);
    CHECK(read[i].precisions == tables[i].precisions);
    CHECK(read[i].ratios == tables[i].ratios);
  }
}

TEST_CASE("ranges are widened until the stated share of another source's rows is within") {
  // b: 0.8, 1 and 1.25 in equal parts: its 80 % range is 0.8 to 1.25, 1 in the middle, and the n-th
  // of a's rows, 1.25 to the n, is within its n-th power. a's range is 1.25 to 1.25^9 about 1.25^5:
  // its lower end reaches 1 with 5 / 4 and 0.8 with 6 / 4. 80 % of both tables, which weigh alike,
  // are all of b's rows and six of a's ten.
  ErrorTable a = table_of("a: one", 1, 0), b = table_of("b: one", 1, 0);
  for (int i = 1; i <= 10; ++i) a.ratios.push_back(std::pow(1.25, i));
  for (const double ratio : {0.8, 1.0, 1.25}) b.ratios.insert(b.ratios.end(), 5, ratio);
  CHECK(widening_of({a, b}) == doctest::Approx(6));
  CHECK(widening_of({b, b}) == 1);
  CHECK(widening_of({a}) == 1);
}

TEST_CASE("a source has no part in the range that its rows are tried on") {
  // The range of b alone, 20 rows of 0.91 ... 1.10, is 0.92 to 1.08. Both tables of a are left
  // out.
  ErrorTable wide = table_of("b: one", 1, 0);
  for (int i = 1; i <= 20; ++i) wide.ratios.push_back(0.9 + 0.01 * i);
  const std::vector<ErrorTable> tables = {table_of("a: one", 1, 30), table_of("a: two", 2, 10),
                                          wide};
  const std::vector<Coverage> lines = leave_one_out(tables);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].source == "a: one (A100, nemo)");
  CHECK(lines[0].basis == "published runs (A100, nemo): 20 rows of 1 table");
  CHECK(lines[0].within == 30);
  CHECK(lines[1].within == 0);
  CHECK(lines[1].rows == 10);
  MESSAGE(
      "b's own rows meet the ratios of a, half 1 and half 2 by weight: 1.00 to 1.10 lie within");
  CHECK(lines[2].basis == "published runs (A100, nemo): 40 rows of 2 tables");
  CHECK(lines[2].within == 11);
  const std::string words = coverage_words(lines);
  CHECK(words.find("all rows: 41 of 60, 68.3 %; mean over tables: 51.7 %\n") != std::string::npos);
  MESSAGE("one source alone has nothing to be tried on");
  CHECK(coverage_words(leave_one_out({wide})) == "no table has a range without its own source\n");
}

/// As docs/ranges.md has it: "| rows of | on | within | range from |".
std::string row_of(const Coverage& line) {
  const std::string basis = "published runs (";  // of a kind; else "published runs: "
  const std::size_t on = line.source.rfind(" (");
  std::string from = line.basis.substr(line.basis.find("published runs") + 14);
  if (line.basis.starts_with(basis)) {
    from = line.basis.substr(basis.size());
    from.erase(from.rfind("): "), 1);
  } else {
    from = "all devices" + from;
  }
  return "| " + line.source.substr(0, on) + " | " +
         line.source.substr(on + 2, line.source.size() - on - 3) + " | " +
         std::to_string(line.within) + " of " + std::to_string(line.rows) + " | " + from + " |\n";
}

TEST_CASE("docs/ranges.md counts what lies within the ranges of the shipped errors") {
  const std::string page = read_file(SOURCE_FOLDER "/docs/ranges.md");
  const std::vector<Coverage> lines = leave_one_out(published_errors().tables);
  CHECK(published_errors().widening ==
        doctest::Approx(widening_of(published_errors().tables)).epsilon(1e-4));
  int rows = 0, within = 0;
  double shares = 0;
  for (const Coverage& line : lines) {
    CAPTURE(row_of(line));
    CHECK(page.find(row_of(line)) != std::string::npos);
    rows += line.rows;
    within += line.within;
    shares += static_cast<double>(line.within) / line.rows;
  }
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)); };
  const std::string sum = "**" + percent(static_cast<double>(within) / rows) + " % of all rows (" +
                          std::to_string(within) + " of " + std::to_string(rows) + "), " +
                          percent(shares / static_cast<double>(lines.size())) +
                          " % on average over tables";
  CAPTURE(sum);
  CHECK(page.find(sum) != std::string::npos);
}

}  // namespace
}  // namespace interlock::error_samples_test
