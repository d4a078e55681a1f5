// interlock sweep, merge and rank as a planner types them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/sweeps/ranking.h"
#include "tests/cli/child_program.h"
#include "tests/sweeps/started_program.h"

namespace interlock::sweep_command_test {
namespace {

using Json = nlohmann::json;

TEST_CASE(
    "what is typed is swept; the best rows are printed; every row runs again by its command") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const Outcome run =
      run_program({"sweep", "four.json", "--set", "training.strategy=local,pairwise", "--set",
                   "training.micro_batches=1..3", "--csv", "all.csv"},
                  folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("6 rows of 6; shown: 6, by step_time_s") != std::string::npos);
  CHECK(run.err.starts_with("four.db: 6 rows in "));
  CHECK(rows_in(folder.path("four.db")) == 6);
  const Ranking rows = rank_rows(folder.path("four.db"), {.by = "id", .where = "1"});
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(rows.columns.begin(), rows.columns.end(), name) -
                                    rows.columns.begin());
  };
  const std::string bin = std::filesystem::path(INTERLOCK_PROGRAM).parent_path();
  for (const auto& row : rows.rows) {
    const std::string command = text_or(row[column("command")], "");
    CAPTURE(command);
    const Outcome again =
        run_shell("PATH='" + bin + "':$PATH; " + command + " --json - -q", folder.path());
    REQUIRE(again.exit_code == 0);
    const Json result = Json::parse(again.out);
    CHECK(result["step_time_s"].get<double>() == number_or(row[column("step_time_s")], 0));
    CHECK(result["utilisation"]["busy"].get<double>() == number_or(row[column("busy")], 0));
  }
  const Outcome csv = run_shell("head -c 200 all.csv; wc -l < all.csv", folder.path());
  CHECK(csv.out.starts_with("id,name,training.strategy,training.micro_batches,error,step_time_s,"));
  CHECK(csv.out.ends_with("7\n"));
}

TEST_CASE("a sweep's file is drawn as the results of compare are") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const auto run = [&](const std::string& command) {
    return run_shell("'" INTERLOCK_PROGRAM "' " + command, folder.path());
  };
  const std::string swept = " --set training.strategy=local,pairwise --set training.micro_batches=";
  REQUIRE(run("sweep four.json" + swept + "1..3 -q").exit_code == 0);
  const std::string one = kPairwise;
  folder.file("sweep.json", one.substr(0, one.rfind('}')) + R"(,
    "sweep": {"training.strategy": ["local", "pairwise"], "training.micro_batches": [1, 2, 3]}})");
  const Outcome compared = run("compare sweep.json --json all.json");
  INFO(compared.err);
  REQUIRE(compared.exit_code == 0);
  for (const char* figure : {"table", "table:step_time", "table:memory"}) {
    const Outcome stored = run(std::string("report four.db --out - --figure ") + figure);
    INFO(stored.err);
    CHECK(stored.out == run(std::string("report all.json --out - --figure ") + figure).out);
    CHECK(std::count(stored.out.begin(), stored.out.end(), '\n') >= 4);
  }
  REQUIRE(run("report four.db --figure page --out page.html").exit_code == 0);
  const std::string page = run_shell("cat page.html", folder.path()).out;
  CHECK(page.find("class=\"heat\"") != std::string::npos);
  CHECK(page.find("Pareto front") != std::string::npos);
  CHECK(run("report four.db --figure page --out page.svg").err.find("ends with .html") !=
        std::string::npos);
  CHECK(run("report four.db --figure timeline --out t.svg").exit_code == 2);
}

TEST_CASE("rank names its columns, with or without units, and never shows its own SQL") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  REQUIRE(run_program({"sweep", "four.json", "--set", "training.strategy=local,pairwise", "-q"},
                      folder.path())
              .exit_code == 0);
  const auto rank = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"rank", "four.db"};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all, folder.path());
  };
  const std::string columns = rank({"--columns"}).out;
  CHECK(columns.find("\ntraining.strategy") != std::string::npos);
  CHECK(columns.find("\nstep_time_s  ") != std::string::npos);
  CHECK(columns.find_first_of("`[") == std::string::npos);
  const std::string csv = rank({"--csv", "-"}).out;
  CHECK(csv.starts_with("id,name,training.strategy,"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  for (const char* by : {"step_time", "step_time_s", "strategy", "exposed_communication"}) {
    CAPTURE(by);
    CHECK(rank({"--by", by}).exit_code == 0);
  }
  CHECK(rank({"--by", "step_time"}).out == rank({"--by", "step_time_s"}).out);
  const Outcome wrong = rank({"--where", "mfu >"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("--where \"mfu >\"") != std::string::npos);
  CHECK(wrong.err.find("SELECT") == std::string::npos);
  CHECK(wrong.err.find("near") == std::string::npos);
  for (const char* where : {"1); DROP TABLE results; --", "1); --", "mfu > 'a", "1; SELECT 2"}) {
    CAPTURE(where);
    const Outcome refused = rank({"--where", where, "--top", "1"});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("is no condition of SQL") != std::string::npos);
    CHECK(refused.err.find("ORDER") == std::string::npos);
  }
  CHECK(rank({"--where", "step_tme_s > 0"}).err.find("did you mean \"step_time_s\"?") !=
        std::string::npos);
  // The names that --by takes, and a comment.
  const std::string all = rank({"--where", "step_time_s > 0"}).out;
  for (const char* where : {"step_time > 0", "exposed_communication >= 0 -- all", "memory > 0"}) {
    CAPTURE(where);
    CHECK(rank({"--where", where}).out == all);
  }
  CHECK(rank({"--where", "strategy = 'local'", "--csv", "-"}).out.find(",local,") !=
        std::string::npos);
  CHECK(rank({"--by", "nonsense"}).err.find("--columns lists them") != std::string::npos);
  CHECK(rank({"--csv", "-", "--json", "-"}).exit_code == 2);
}

TEST_CASE("no option writes over the rows of a sweep, or over its scenario") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const std::vector<std::string> sweep = {"sweep", "four.json", "--set",
                                          "training.strategy=local,pairwise", "-q"};
  const auto run = [&](std::vector<std::string> words, const std::string& option,
                       const std::string& file) {
    words.insert(words.end(), {option, file});
    return run_program(words, folder.path());
  };
  REQUIRE(run_program(sweep, folder.path()).exit_code == 0);
  for (const char* option : {"--csv", "--json"}) {
    CAPTURE(option);
    const std::string told = std::string(option) + " ./four.db: is what is read; expected another";
    CHECK(run({"rank", "four.db"}, option, "./four.db").err.starts_with(told));
    CHECK(run(sweep, option, "./four.db").err.starts_with(told));
    CHECK(run({"merge", "whole.db", "four.db"}, option, "./four.db").err.starts_with(told));
    CHECK(run(sweep, option, "four.json").exit_code == 2);
    CHECK(run({"simulate", "four.json"}, "--json", "four.json").exit_code == 2);
  }
  CHECK(folder.files() == std::vector<std::string>{"four.db", "four.json"});
  CHECK(rows_in(folder.path("four.db")) == 2);
  CHECK(run({"sweep", "four.json", "-q"}, "--csv", "-").exit_code == 2);  // nothing is swept
  CHECK(run(sweep, "--csv", "-").out == run({"rank", "four.db"}, "--csv", "-").out);
}

TEST_CASE("keys are swept together, and by factors, from the command line") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const Outcome run = run_program(
      {"sweep", "four.json", "--set", "training.micro_batches,training.steps=[[2, 3], [4, 5]]",
       "--set", "simulate.seed=1..8x2", "--csv", "all.csv", "-q"},
      folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(rows_in(folder.path("four.db")) == 8);  // 2 pairs x seeds 1, 2, 4 and 8
  const Ranking rows = rank_rows(folder.path("four.db"), {.by = "id", .where = "1"});
  const auto command = static_cast<std::size_t>(
      std::find(rows.columns.begin(), rows.columns.end(), "command") - rows.columns.begin());
  std::size_t together = 0;
  for (const auto& row : rows.rows) {
    const std::string text = text_or(row[command], "");
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    const bool small = has("micro_batches=2") && has("steps=3");
    const bool large = has("micro_batches=4") && has("steps=5");
    together += small || large ? 1 : 0;
  }
  CHECK(together == 8);
  const Outcome wrong = run_program(
      {"sweep", "four.json", "--set", "training.micro_batches,training.steps=[[2, 3, 4]]"},
      folder.path());
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("a list with one for each") != std::string::npos);
}

TEST_CASE("a sweep that is there is not run again, one that grew is another") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const std::vector<std::string> command = {"sweep", "four.json", "--set", "training.steps=1,2"};
  CHECK(run_program(command, folder.path()).exit_code == 0);
  const Outcome again = run_program(command, folder.path());
  CHECK(again.exit_code == 0);
  CHECK(again.err == "four.db: all rows are there\n");
  const Outcome other =
      run_program({"sweep", "four.json", "--set", "training.steps=1,2,3"}, folder.path());
  CHECK(other.exit_code == 2);
  CHECK(other.err ==
        "four.db: holds another sweep, of 2 scenarios; expected the one of this file and these "
        "--set, or --db with another file\n");
  CHECK(folder.files() == std::vector<std::string>{"four.db", "four.json"});
}

TEST_CASE("of one path that is swept twice the later --set counts") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const std::vector<std::string> command = {
      "sweep", "four.json", "--set", "training.steps=1,2", "--set", "training.steps=3,4,5"};
  const Outcome outcome = run_program(command, folder.path());
  CHECK(outcome.err.starts_with("four.db: 3 rows in"));
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("shards put together are the whole") {
  const Folder folder;
  folder.file("sweep.json", swept_scenario(100));
  REQUIRE(run_program({"sweep", "sweep.json", "--db", "whole.db", "-q"}, folder.path()).exit_code ==
          0);
  for (const char* part : {"1", "2", "3"}) {
    REQUIRE(run_program({"sweep", "sweep.json", "--db", std::string("part") + part + ".db",
                         "--shard", std::string(part) + "/3", "-q"},
                        folder.path())
                .exit_code == 0);
  }
  CHECK(rows_in(folder.path("part1.db")) == 34);  // 1, 4, ... 100
  const Outcome merged =
      run_program({"merge", "all.db", "part1.db", "part2.db", "part3.db"}, folder.path());
  INFO(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(rows_of(folder.path("all.db")) == rows_of(folder.path("whole.db")));
  const Outcome twice = run_program({"merge", "all.db", "part2.db"}, folder.path());
  CHECK(twice.err == "part2.db: 0 new rows\n");
}

TEST_CASE("parts that do not belong together are refused, and nothing is merged") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const auto part = [&](const std::string& steps, const std::string& file) {
    REQUIRE(
        run_program({"sweep", "four.json", "--set", "training.steps=" + steps, "--db", file, "-q"},
                    folder.path())
            .exit_code == 0);
  };
  part("1,2", "a.db");
  part("1,3", "b.db");
  const Outcome other = run_program({"merge", "all.db", "a.db", "b.db", "-q"}, folder.path());
  CHECK(other.exit_code == 2);
  CHECK(other.err.find("holds another sweep") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path("all.db")));
  // A figure that was changed by hand.
  std::filesystem::copy(folder.path("a.db"), folder.path("c.db"));
  Database(folder.path("c.db"), Database::Mode::Write)
      .run("UPDATE results SET step_time_s = 1 WHERE id = 2");
  const Outcome changed = run_program({"merge", "a.db", "c.db"}, folder.path());
  CHECK(changed.exit_code == 2);
  CHECK(changed.err.find("row 2 has another step_time_s") != std::string::npos);
  // The first part's rows do not stay where the second one is refused.
  REQUIRE(run_program({"sweep", "four.json", "--set", "training.steps=1,2", "--shard", "1/2",
                       "--db", "one.db", "-q"},
                      folder.path())
              .exit_code == 0);
  const auto rows = [&] {
    Database database(folder.path("one.db"), Database::Mode::Read);
    Statement count = database.prepare("SELECT count(*) FROM results");
    count.step();
    return std::get<std::int64_t>(count.cell(0));
  };
  REQUIRE(rows() == 1);
  CHECK(run_program({"merge", "one.db", "a.db", "c.db"}, folder.path()).exit_code == 2);
  CHECK(rows() == 1);
}

TEST_CASE("nonsense is refused in one sentence, and leaves no file") {
  const Folder folder;
  folder.file("four.json", kPairwise);
  const auto said = [&](const std::vector<std::string>& words) {
    const Outcome outcome = run_program(words, folder.path());
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const std::string two = "training.steps=1,2";
  CHECK(said({"sweep", "four.json"}).find("nothing is swept; expected a \"sweep\"") !=
        std::string::npos);
  CHECK(said({"sweep", "-", "--set", two}).find("standard input cannot be swept") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", two, "--shard", "9/8"}).find("expected PART/PARTS") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", two, "--db", "none/s.db"}).find("no folder") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", two, "--db", "/proc/s.db"}).find("/proc/s.db") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", "training.stesp=8..1"}).find("never gets from") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", "trainin.steps=1,2"}).find("leads to no key") !=
        std::string::npos);
  CHECK(said({"sweep", "four.json", "--set", "training.stesp=1,2"}).find("no scenario of the") ==
        0);
  CHECK(said({"rank", "four.json"}).find("four.json") != std::string::npos);
  CHECK(said({"rank", "none.db"}).find("there is no such file") != std::string::npos);
  CHECK(said({"merge", "all.db", "none.db"}).find("there is no such file") != std::string::npos);
  CHECK(folder.files() == std::vector<std::string>{"four.json"});
}

TEST_CASE("links that are shared are swept too, by the native engine unless SimGrid is asked for") {
  const Folder folder;
  const Outcome run = run_program(
      {"sweep", std::string(SCENARIOS_FOLDER) + "/examples/gpt2-xl-1f1b.json", "--db", "s.db",
       "--set", "training.micro_batch_size=1,2", "--set", "training.schedule=1f1b,gpipe", "-q"},
      folder.path());
  INFO(run.err);
  CHECK(run.exit_code == 0);
  const Ranking rows = rank_rows(folder.path("s.db"), {.where = "engine = 'native'"});
  CHECK(rows.rows.size() == 4);
  const Outcome simgrid = run_program(
      {"sweep", std::string(SCENARIOS_FOLDER) + "/examples/gpt2-xl-1f1b.json", "--db", "t.db",
       "--set", "training.micro_batch_size=1,2", "--set", "simulate.engine=simgrid", "-q"},
      folder.path());
  INFO(simgrid.err);
  CHECK(rank_rows(folder.path("t.db"), {.where = "engine = 'simgrid'"}).rows.size() == 2);
}

}  // namespace
}  // namespace interlock::sweep_command_test
