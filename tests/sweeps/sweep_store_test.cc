// The file of a sweep: rows go in and come out, other files are refused.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/sweep_store.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reports/report.h"
#include "reports/sweeps/ranking.h"
#include "tests/cli/child_program.h"
#include "tests/scenarios/documents.h"

namespace interlock::sweep_store_test {
namespace {

const std::string kSweep =
    R"(sweep={"training.micro_batches": [4, 8], "parallel.pipeline": [2, 4, 5]})";

struct Sweep {
  JsonValue written = document(kFourModules, {kSweep});
  Diagnostics diagnostics;
  SweepPlan plan{written, kMostInTurn, diagnostics};
  SweepIdentity identity = identity_of(written, plan);
  SweepRow row(std::size_t id) const { return run_sweep_row(plan, id, {"four.json", {}}); }
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a row has the result's figures, or what went wrong") {
  const Sweep sweep;
  const auto columns = sweep_columns(sweep.plan.paths());
  const auto cell = [&](const SweepRow& row, const char* column) {
    return row.cells[place_of(columns, column)];
  };
  const SweepRow row = sweep.row(5);  // 8 micro-batches, 4 ranks
  const Question scenario = loaded({"training.micro_batches=8", "parallel.pipeline=4"});
  const ScenarioResult result = run_scenario(scenario, false);
  const auto json = nlohmann::json::parse(result_json(result));
  CHECK(number_or(cell(row, "step_time_s"), 0) == json["step_time_s"].get<double>());
  CHECK(number_or(cell(row, "busy"), 0) == json["utilisation"]["busy"].get<double>());
  CHECK(number_or(cell(row, "training.micro_batches"), 0) == 8);
  CHECK(number_or(cell(row, "parallel.pipeline"), 0) == 4);
  CHECK(std::holds_alternative<std::monostate>(cell(row, "error")));
  CHECK(text_or(cell(row, "command"), "") ==
        "interlock simulate four.json --set sweep=null --set training.micro_batches=8 --set "
        "parallel.pipeline=4");
  const SweepRow wrong = sweep.row(3);  // 5 ranks of 4 devices
  CHECK(text_or(cell(wrong, "error"), "").find("/parallel/pipeline") != std::string::npos);
  CHECK(std::holds_alternative<std::monostate>(cell(wrong, "step_time_s")));
  CHECK(text_or(cell(wrong, "name"), "") == "test | micro_batches=4 | pipeline=5");
  const SweepRow crashed = failed_row(sweep.plan, 1, {"four.json", {}}, "one\nanother");
  CHECK(text_or(cell(crashed, "error"), "") == "one; another");
  const SweepRow set = failed_row(sweep.plan, 1, {"four.json", {}},
                                  "--set training.steps: /training/steps: is 0\n--set: a\nb: /c");
  CHECK(text_or(cell(set, "error"), "") == "/training/steps: is 0; --set: a; b: /c");
}

TEST_CASE("every figure of a result is a column or stands in the details") {
  const Sweep sweep;
  const SweepRow row = sweep.row(1);
  const auto details = nlohmann::json::parse(row.details);
  const auto columns = sweep_columns(sweep.plan.paths());
  const ScenarioResult result =
      run_scenario(loaded({"training.micro_batches=4", "parallel.pipeline=2"}), false);
  const auto document = nlohmann::json::parse(result_json(result));
  for (auto item = document.begin(); item != document.end(); ++item) {
    const std::string& key = item.key();
    CAPTURE(key);
    bool column = false;
    for (const std::string& known : columns) column = column || known == key;
    const bool elsewhere = key == "scenario" || key == "format" || key == "sweep";
    CHECK((column || details.contains(key) || elsewhere));
  }
}

TEST_CASE("a plan that does not fit has its figures and says so") {
  Sweep sweep;
  sweep.written =
      document(kFourModules, {kSweep, "cluster.memory=1 MB", "model.modules.0.parameters=1 GB"});
  const SweepPlan plan(sweep.written, kMostInTurn, sweep.diagnostics);
  const SweepRow row = run_sweep_row(plan, 1, {"four.json", {}});
  const auto columns = sweep_columns(plan.paths());
  CHECK(text_or(row.cells[place_of(columns, "error")], "").starts_with("does not fit: "));
  CHECK(number_or(row.cells[place_of(columns, "step_time_s")], 0) > 0);
}

TEST_CASE("a row survives the way through bytes and the file") {
  const Folder folder;
  const Sweep sweep;
  const SweepRow row = unpacked(packed(sweep.row(2)));
  {
    SweepStore store(folder.path("s.db"), sweep.identity);
    store.add(row);
    CHECK(store.done() == std::vector<bool>{false, true, false, false, false, false});
  }
  const Ranking all = rank_rows(folder.path("s.db"), {.by = "id", .where = "1"});
  REQUIRE(all.rows.size() == 1);
  const std::vector<SqlValue>& back = all.rows[0];
  REQUIRE(back.size() == row.cells.size() + 1);
  CHECK(number_or(back[0], 0) == 2);
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    CAPTURE(all.columns[i + 1]);
    CHECK(back[i + 1] == row.cells[i]);
  }
  Database database(folder.path("s.db"), Database::Mode::Read);
  Statement details = database.prepare("SELECT result FROM details WHERE id = 2");
  REQUIRE(details.step());
  CHECK(text_or(details.cell(0), "") == row.details);
}

TEST_CASE("a file of another sweep, of no sweep, or in use is refused") {
  const Folder folder;
  const Sweep sweep;
  const std::string file = folder.path("s.db");
  {
    const SweepStore store(file, sweep.identity);
    CHECK(message_of([&] {
            SweepStore second(file, sweep.identity);
          }).find("another interlock writes this file") != std::string::npos);
  }
  SweepIdentity other = sweep.identity;
  other.document += " ";
  CHECK(message_of([&] { SweepStore store(file, other); }).find("holds another sweep") !=
        std::string::npos);
  const std::string text = folder.path(folder.file("notes.txt", std::string(5000, 'x')));
  CHECK(message_of([&] {
          SweepStore store(text, sweep.identity);
        }).find("expected a database that interlock sweep wrote") != std::string::npos);
  CHECK(message_of([&] { rank_rows(folder.path("none.db"), {}); }).find("there is no such file") !=
        std::string::npos);
  Database plain(folder.path("plain.db"), (folder.file("plain.db", ""), Database::Mode::Write));
  plain.run("CREATE TABLE cats(name)");
  CHECK(message_of([&] {
          SweepStore store(folder.path("plain.db"), sweep.identity);
        }).find("holds no sweep") != std::string::npos);
}

TEST_CASE("a database that was damaged, a folder, and a query without end are refused") {
  const Folder folder;
  const Sweep sweep;
  const std::string file = folder.path("s.db");
  { SweepStore(file, sweep.identity).add(sweep.row(1)); }
  const auto damaged = [&](const std::string& key, const std::string& value) {
    const Folder copies;
    const std::string copy = copies.path("copy.db");
    std::filesystem::copy_file(file, copy);
    Database(copy, Database::Mode::Write)
        .run("UPDATE sweep SET value = '" + value + "' WHERE key = '" + key + "'");
    const std::string ranked = message_of([&] { rank_rows(copy, {}); });
    CHECK(message_of([&] { SweepStore store(copy, sweep.identity); }) == ranked);
    return ranked.find("says no usable \"" + key + "\"") != std::string::npos;
  };
  for (const char* points : {"", "six", "-1", "99999999999999999999", "10000000000", "6 7"}) {
    CHECK(damaged("points", points));
  }
  for (const char* paths : {"", "[", "{}", "[1]", "null"}) CHECK(damaged("paths", paths));
  CHECK(message_of([&] {
          rank_rows(folder.path(), {});
        }).find("is a folder; expected a database") != std::string::npos);
  Database database(file, Database::Mode::Read);
  database.limit_time(std::chrono::seconds(0));
  Statement endless = database.prepare(
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
  CHECK(message_of([&] { endless.step(); }).find("the query took too long") != std::string::npos);
}

TEST_CASE("texts that are no UTF-8, as names of files may be, are JSON all the same") {
  Ranking ranking;
  ranking.by = "\xff";
  ranking.columns = {"source", "\xfe"};
  ranking.rows = {{std::string("a\xff.json"), std::string("\xc3")}};
  const std::string json = ranking_json(ranking);
  CHECK(json.find("\"source\": \"a\uFFFD.json\"") != std::string::npos);
  CHECK(json.find("\"\uFFFD\": \"\uFFFD\"") != std::string::npos);
}

TEST_CASE("texts that a spreadsheet would take for formulas are quoted; numbers are not") {
  Ranking ranking;
  ranking.columns = {"name", "step_time_s", "error"};
  ranking.rows.push_back({std::string("=cmd|' /C calc'!A0"), -1.5, std::string("a, \"b\"")});
  CHECK(ranking_csv(ranking) ==
        "name,step_time_s,error\r\n'=cmd|' /C calc'!A0,-1.5,\"a, \"\"b\"\"\"\r\n");
}

TEST_CASE("rows are ranked by what is good, or as asked; failures are counted") {
  const Folder folder;
  const Sweep sweep;
  {
    SweepStore store(folder.path("s.db"), sweep.identity);
    for (std::size_t id = 1; id <= 6; ++id) store.add(sweep.row(id));
  }
  const auto ids = [&](const RankQuery& query) {
    std::vector<double> found;
    for (const auto& row : rank_rows(folder.path("s.db"), query).rows) {
      found.push_back(number_or(row[0], 0));
    }
    return found;
  };
  // Steps of M micro-batches in K stages of 4/K ms an op take (M + K - 1) 3 * 4/K ms by 1F1B.
  CHECK(ids({}) == std::vector<double>{2, 1, 5, 4});  // 21, 30, 33, 54 ms
  CHECK(ids({.by = "step_time_s", .given_order = true}) == std::vector<double>{4, 5, 1, 2});
  CHECK(ids({.by = "busy"}).front() == 4);  // 8 of 9 slots
  CHECK(ids({.where = "\"parallel.pipeline\" = 2", .top = 1}) == std::vector<double>{1});
  const Ranking ranking = rank_rows(folder.path("s.db"), {});
  CHECK(ranking.failed == 2);
  CHECK(ranking.points == 6);
  CHECK(message_of([&] {
          rank_rows(folder.path("s.db"), {.by = "step_tme_s"});
        }).find("did you mean \"step_time_s\"?") != std::string::npos);
  CHECK(message_of([&] { rank_rows(folder.path("s.db"), {.where = "cats > 1"}); }).find("cats") !=
        std::string::npos);
}

TEST_CASE("a table of ranks has the unit of its largest figures, and four digits of the smallest") {
  const auto table = [](double slow, double fast) {
    Ranking ranking;
    ranking.columns = {"id", "step_time_s", "energy_j"};
    ranking.by = "step_time_s";
    for (const double time : {fast, slow}) {
      ranking.rows.push_back({std::int64_t{1}, time, 1e4 * time});
    }
    return ranking_table(ranking, {}, {});
  };
  CHECK(table(10.4503, 10.1809).find("10.18") != std::string::npos);
  CHECK(table(10.4503, 10.1809).find("104.5") != std::string::npos);  // kJ
  CHECK(table(0.8119, 0.8009).find("800.9") != std::string::npos);    // ms
}

}  // namespace
}  // namespace interlock::sweep_store_test
