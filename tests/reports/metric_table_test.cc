// The table of metrics: names that are unique, and pages that know every row.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "base/file.h"
#include "reports/result/all_metrics.h"
#include "reports/sweeps/sweep_row.h"

namespace interlock::metric_table_test {
namespace {

std::string page(const std::string& name) { return read_file(DOCS_FOLDER "/" + name); }

}  // namespace

TEST_CASE("no two metrics have a key, a place in the result or a figure's name in common") {
  std::set<std::string> keys, pointers, figures;
  for (const MetricRow& row : all_metrics()) {
    INFO(row.key);
    CHECK(keys.insert(row.key).second);
    if (row.pointer) CHECK(pointers.insert(row.pointer).second);
    if (row.figure) CHECK(figures.insert(row.figure).second);
    CHECK((row.figure == nullptr || row.words != nullptr));
  }
  CHECK(find_metric("busy") != nullptr);
  CHECK(find_metric("bussy") == nullptr);
}

TEST_CASE("docs/result.md says what every metric of a step means, in the words of the table") {
  const std::string text = page("result.md");
  for (const MetricRow& row : step_metrics()) {
    if (row.pointer == nullptr) continue;
    const std::string line = "\n| `" + std::string(row.key) + "` | " + row.meaning + " |\n";
    INFO("docs/result.md lacks this line: " << line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("docs/sweeps.md names every column of a database") {
  const std::string text = page("sweeps.md");
  for (const std::string& column : sweep_columns({})) {
    INFO(column);
    CHECK(text.find("`" + column + "`") != std::string::npos);
  }
}

}  // namespace interlock::metric_table_test
