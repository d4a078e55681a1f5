// Ranking: the rows of a sweep's file, chosen and put in order, as a table or CSV.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "reports/sweeps/database.h"

namespace interlock {

/// The rows that are asked for, and their order.
struct RankQuery {
  std::string by;            // a column, with or without its unit; empty: tokens or samples a
                             // second, else step time
  bool least_first = false;  // or else as is good for the column
  bool given_order = false;  // least_first was asked for
  std::string where;         // an SQL expression; empty: rows without an error
  std::size_t top = 0;       // rows; 0: all
};

/// Example: gpipe and 1f1b, each with 4 and with 8 micro-batches, by step_time: rows 1 and 3 (21
/// ms), then 2 and 4 (33 ms); by "step_time_s", least_first, total 4, points 4.
struct Ranking {
  std::string by;
  bool least_first = false;
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
  std::size_t total = 0, failed = 0, unfit = 0;  // rows of the file; of these with errors
  std::size_t points = 0;                        // of the whole sweep
  std::string first_failure;                     // "row 3: ..."; empty: none
};

/// Throws: Error if a column is none, or the expression is wrong.
Ranking rank_rows(const std::string& path, const RankQuery& query);

/// Returns a line for each column: its name, and what it means.
std::string column_lines(const std::string& path);

/// Returns the best rows: what was swept, the numbers that matter, why others failed, for a
/// terminal.
std::string ranking_table(const Ranking& ranking, const std::vector<std::string>& paths,
                          const TableStyle& style);
/// Returns all columns of all rows; RFC 4180.
std::string ranking_csv(const Ranking& ranking);
std::string ranking_json(const Ranking& ranking);

}  // namespace interlock
