// interlock rank and interlock merge: what the file of a sweep says.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/sweep_commands.h"
#include "reports/sweeps/ranking.h"
#include "reports/sweeps/sweep_store.h"

namespace interlock {
namespace {

RankQuery query_of(const RankOptions& options) {
  return {.by = options.by,
          .least_first = options.order == "least",
          .given_order = !options.order.empty(),
          .where = options.where,
          .top = static_cast<std::size_t>(options.top)};
}

/// Copies the rows of `parts` into the file `whole`, which may not be there yet. Returns how many
/// of each were new.
std::vector<std::size_t> taken_into(const std::string& whole, const SweepIdentity& identity,
                                    const std::vector<std::string>& parts) {
  bool leaves_nothing = !std::filesystem::exists(whole);  // if it fails
  try {
    SweepStore store(whole, identity);
    std::vector<std::size_t> taken = store.take(parts);
    leaves_nothing = false;
    store.close();
    return taken;
  } catch (const Error&) {
    for (const char* part : {"", "-wal", "-shm", "-journal"}) {
      std::error_code ignored;
      if (leaves_nothing) std::filesystem::remove(whole + part, ignored);
    }
    throw;
  }
}

void add_ranking(Command& command, RankOptions& options) {
  command.add("--by", &options.by, "column to rank by; else tokens or samples a second", "COLUMN");
  command.add("--order", &options.order, "least or most first; else as is good for it", "TEXT",
              {.choices = {"least", "most"}});
  command.add("--top", &options.top, "rows to print; 0: all", "N",
              {.shows_default = true, .least = 0, .most = 1'000'000'000});
  command.add("--csv", &options.csv, "write all rows and columns; - for standard output",
              "FILE.csv");
  command.add("--json", &options.json, "write the ranked rows; - for standard output", "FILE");
  command.add("--quiet,-q", &options.quiet, "print only what is asked for by name");
}

}  // namespace

void add_rank(Command& command, RankOptions& options) {
  command.add_words("DATABASE", &options.database, "file of interlock sweep", {.required = true});
  add_ranking(command, options);
  command.add("--where", &options.where,
              "rows to rank, in SQL; else those without an error (\"mfu > 0.4\")", "EXPRESSION");
  command.add("--columns", &options.columns, "tell the columns that rows have, and no rows");
}

void add_merge(Command& command, MergeOptions& options) {
  command.add_words("DATABASE", &options.rank.database, "file to put the parts into",
                    {.required = true});
  command.add_words("PARTS", &options.parts, "files of interlock sweep --shard",
                    {.required = true});
  add_ranking(command, options.rank);
}

void check_rank(const RankOptions& options, const std::vector<std::string>& read) {
  for (const auto& [option, file] : {std::pair("--csv", options.csv), {"--json", options.json}}) {
    if (file.empty() || file == "-") continue;
    check_output(option, file);
    check_apart(option, file, options.database);
    for (const std::string& other : read) check_apart(option, file, other);
  }
  if (options.csv.empty() || options.csv != options.json) return;
  if (options.csv == "-") {
    throw Error("--csv and --json both name standard output; expected a file for one");
  }
  throw Error("--csv and --json name one file, " + options.csv + "; expected two");
}

void rank(const RankOptions& options) {
  check_rank(options);
  const bool csv_printed = options.csv == "-", json_printed = options.json == "-";
  if (options.columns) return print(column_lines(options.database));
  const SweepIdentity identity = stored_identity(options.database);
  const Ranking best = rank_rows(options.database, query_of(options));
  if (!options.csv.empty()) {
    RankQuery all = {.by = "id", .least_first = true, .given_order = true, .where = "1"};
    if (!options.where.empty()) all = query_of(options);
    all.top = 0;
    const std::string csv = ranking_csv(rank_rows(options.database, all));
    if (csv_printed) print(csv);
    if (!csv_printed) write_file(options.csv, csv);
  }
  if (json_printed) {
    print(ranking_json(best));
  } else if (!options.json.empty()) {
    write_file(options.json, ranking_json(best));
  }
  if (!options.quiet && !json_printed && !csv_printed) {
    print(ranking_table(best, identity.paths, terminal_style()));
  }
}

void merge(const MergeOptions& options) {
  check_rank(options.rank, options.parts);
  const SweepIdentity identity = stored_identity(options.parts.front());
  for (const std::string& part : options.parts) {
    std::error_code failed;
    if (std::filesystem::equivalent(part, options.rank.database, failed)) {
      throw Error(part + ": is the file to merge into; expected it once, first");
    }
    stored_identity(part);  // all are looked at before any is merged
  }
  const std::string& whole = options.rank.database;
  const std::vector<std::size_t> taken = taken_into(whole, identity, options.parts);
  for (std::size_t i = 0; i < taken.size() && !options.rank.quiet; ++i) {
    tell(options.parts[i] + ": " + std::to_string(taken[i]) + " new row" +
         (taken[i] == 1 ? "" : "s"));
  }
  rank(options.rank);
}

}  // namespace interlock
