// Asks the file of a sweep for its best rows, and writes them for people and programs.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/ranking.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "reports/result/all_metrics.h"
#include "reports/sweeps/sweep_row.h"
#include "reports/sweeps/sweep_store.h"
#include "reports/terminal/layout.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

/// A condition of the user's may be one that never ends.
constexpr std::chrono::seconds kLongestQuery(30);

/// Tells whether the largest values of a column are the best; of a swept path none is.
bool more_is_better(const std::string& column) {
  const MetricRow* row = find_metric(column);
  return row != nullptr && row->better == Better::More;
}

std::size_t count_of(Database& database, const std::string& condition) {
  Statement count = database.prepare("SELECT count(*) FROM results WHERE " + condition);
  count.step();
  return static_cast<std::size_t>(number_or(count.cell(0), 0));
}

std::string default_column(Database& database) {
  for (const char* column : {"tokens_per_s", "samples_per_s"}) {
    if (count_of(database, std::string(column) + " IS NOT NULL") > 0) return column;
  }
  return "step_time_s";
}

std::vector<std::string> columns_of(Database& database) {
  std::vector<std::string> columns;
  const Statement all = database.prepare("SELECT * FROM results LIMIT 0");
  columns.reserve(static_cast<std::size_t>(all.columns()));
  for (int i = 0; i < all.columns(); ++i) columns.push_back(all.column_name(i));
  return columns;
}

std::string tail_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

bool has(const std::vector<std::string>& columns, const std::string& name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

std::string lowered(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// A short name of a column: that of its measure ("step_time"), the last key of a swept path
/// ("schedule"), or the column without its unit.
struct ShortName {
  std::string name, column;
};

/// Returns the short names that no column has, each once, as SQL tells names apart: in any case.
std::vector<ShortName> short_names(const std::vector<std::string>& columns) {
  std::vector<ShortName> names;
  std::set<std::string> taken;
  for (const std::string& column : columns) taken.insert(lowered(column));
  const auto add = [&](const std::string& name, const std::string& column) {
    if (taken.insert(lowered(name)).second) names.push_back({name, column});
  };
  for (const MetricRow& row : all_metrics()) {
    if (row.figure != nullptr && has(columns, row.key)) add(row.figure, row.key);
  }
  for (const std::string& column : columns) add(tail_of(column), column);
  for (const std::string unit : {"_s", "_bytes", "_j", "_w", "_per_s"}) {
    for (const std::string& column : columns) {
      if (column.ends_with(unit)) add(column.substr(0, column.size() - unit.size()), column);
    }
  }
  return names;
}

/// Says what to do about a name that no column of `path` has.
std::string unknown_column(const std::string& path, const std::string& name,
                           const std::vector<std::string>& columns) {
  const auto meant = nearest(name, columns);
  return path + " has no such column; " +
         (meant ? "did you mean " + in_quotes(*meant) + "?"
                : "interlock rank " + path + " --columns lists them");
}

/// Returns the column that `name` means: its own name or a short one.
std::string find_column(const std::string& path, const std::string& name,
                        const std::vector<std::string>& columns) {
  if (has(columns, name)) return name;
  for (const ShortName& each : short_names(columns)) {
    if (each.name == name) return each.column;
  }
  throw Error("--by " + in_quotes(name) + ": " + unknown_column(path, name, columns));
}

/// Returns the sentence for `why`, which SQLite says of the condition `where`; it may show words of
/// the statement around it.
std::string refused_condition(const std::string& why, const std::string& path,
                              const std::string& where, const std::vector<std::string>& columns) {
  const std::string said = "--where " + in_quotes(where) + ": ";
  const std::string unknown = "no such column: ";
  const std::size_t at = why.find(unknown);
  if (at != std::string::npos) {
    const std::size_t begin = at + unknown.size();
    const std::string name = why.substr(begin, why.find(" in --where", begin) - begin);
    return said + in_quotes(name) + ": " + unknown_column(path, name, columns);
  }
  for (const char* form : {"syntax error", "incomplete input", "unrecognized token", "several "}) {
    if (why.find(form) == std::string::npos) continue;
    return said + "is no condition of SQL; expected one, such as \"mfu > 0.4 AND step_time < 2\"";
  }
  return why;
}

/// Prepares `query`, whose condition may use short names.
Statement chosen_rows(Database& database, const RankQuery& query, const Ranking& ranking) {
  std::string all, named;
  for (const std::string& column : ranking.columns) {
    all += (all.empty() ? "" : ", ") + sql_name(column);
  }
  for (const ShortName& each : short_names(ranking.columns)) {
    named += ", " + sql_name(each.column) + " AS " + sql_name(each.name);
  }
  const std::string by = sql_name(ranking.by);
  // A comment in the condition ends with its line.
  const std::string sql = "SELECT " + all + " FROM (SELECT *" + named + " FROM results) WHERE (" +
                          (query.where.empty() ? "error IS NULL" : query.where) + "\n) ORDER BY " +
                          by + " IS NULL, " + by + (ranking.least_first ? "" : " DESC") + ", id" +
                          (query.top > 0 ? " LIMIT " + std::to_string(query.top) : "");
  try {
    return database.prepare(sql, "--where " + in_quotes(query.where));
  } catch (const Error& failure) {
    throw Error(refused_condition(failure.what(), database.path(), query.where, ranking.columns));
  }
}

std::string text_of(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return Json(*number).dump();
  return "";
}

std::string csv_field(const SqlValue& value) {
  std::string text = text_of(value);
  // Spreadsheets take a text that begins so for a formula.
  const bool formula = std::holds_alternative<std::string>(value) && !text.empty() &&
                       std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  if (formula) text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Scale samples_scale(const std::vector<double>& values) { return scale_of_numbers(values, "1/s"); }

Scale plain_scale(const std::vector<double>& values) { return scale_of_numbers(values, ""); }

/// A number that the table shows, in a unit for people.
struct Shown {
  const char *column, *head, *unit;
  double size;
  int decimals;
  Scale (*choose)(const std::vector<double>&) = nullptr;  // all three for its values, if not null
};
constexpr double kPercent = 0.01, kGiB = 1 << 30;
constexpr Shown kShown[] = {
    {"step_time_s", "Step time", "s", 1, 3, scale_of_seconds},
    {"tokens_per_s", "Tokens", "1/s", 1, 0},
    {"samples_per_s", "Samples", "1/s", 1, 3, samples_scale},
    {"busy", "Busy", "%", kPercent, 1},
    {"mfu", "MFU", "%", kPercent, 1},
    {"peak_memory_bytes", "Memory", "GiB", kGiB, 2},
    {"energy_j", "Energy", "J", 1, 3, scale_of_joules},
};

std::optional<std::size_t> column_at(const Ranking& ranking, const std::string& column) {
  const auto at = std::find(ranking.columns.begin(), ranking.columns.end(), column);
  if (at == ranking.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(at - ranking.columns.begin());
}

bool all_null(const Ranking& ranking, std::size_t column) {
  return std::all_of(ranking.rows.begin(), ranking.rows.end(), [&](const auto& row) {
    return std::holds_alternative<std::monostate>(row[column]);
  });
}

void add_column(const Ranking& ranking, std::size_t column, Column head, Grid& grid) {
  constexpr std::size_t kLongest = 60;
  for (const auto& row : ranking.rows) {
    if (std::holds_alternative<std::string>(row[column])) head.number = false;
  }
  grid.columns.push_back(std::move(head));
  for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
    grid.rows[i].push_back({printable(text_of(ranking.rows[i][column]), kLongest)});
  }
}

/// Returns how the values of `column`, which is none of those that are always shown, are written.
Shown shown_as(const std::string& column) {
  const MetricRow* row = find_metric(column);
  const char* head = row != nullptr && row->words != nullptr ? row->words : column.c_str();
  switch (row != nullptr ? row->kind : MetricKind::Count) {
    case MetricKind::Time:
      return {column.c_str(), head, "s", 1, 3, scale_of_seconds};
    case MetricKind::Size:
      return {column.c_str(), head, "B", 1, 0, scale_of_bytes};
    case MetricKind::Energy:
      return {column.c_str(), head, "J", 1, 3, scale_of_joules};
    case MetricKind::Share:
      return {column.c_str(), head, "%", kPercent, 1};
    default:
      return {column.c_str(), head, "", 1, 3, plain_scale};
  }
}

/// Returns the unit of a column, and one digit more than where plans are not ranked.
Scale unit_of(const Shown& shown, const std::vector<double>& values) {
  if (!shown.choose || values.empty()) return {shown.unit, shown.size, shown.decimals};
  Scale scale = shown.choose(values);
  ++scale.decimals;
  return scale;
}

void add_values(const Ranking& ranking, std::size_t column, const Shown& shown, Grid& grid) {
  std::vector<double> known;
  for (const auto& row : ranking.rows) {
    const double value = number_or(row[column], std::nan(""));
    if (!std::isnan(value)) known.push_back(value);
  }
  const Scale scale = unit_of(shown, known);
  grid.columns.push_back({shown.head, scale.unit});
  for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
    const double value = number_or(ranking.rows[i][column], std::nan(""));
    grid.rows[i].push_back({std::isnan(value) ? "" : scaled(value, scale)});
  }
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string summary(const Ranking& ranking) {
  std::string text = plural(ranking.total, "row") + " of " + std::to_string(ranking.points);
  if (ranking.unfit > 0) text += ", " + std::to_string(ranking.unfit) + " do not fit";
  if (ranking.failed > 0) text += ", " + std::to_string(ranking.failed) + " failed";
  text += "; shown: " + std::to_string(ranking.rows.size()) + ", by " + ranking.by + "\n";
  return ranking.first_failure.empty()
             ? text
             : text + "The first that failed, " + ranking.first_failure + "\n";
}

}  // namespace

Ranking rank_rows(const std::string& path, const RankQuery& query) {
  Ranking ranking;
  ranking.points = stored_identity(path).points;
  Database database(path, Database::Mode::Read);
  database.limit_time(kLongestQuery);
  ranking.columns = columns_of(database);
  ranking.by =
      query.by.empty() ? default_column(database) : find_column(path, query.by, ranking.columns);
  ranking.least_first = query.given_order ? query.least_first : !more_is_better(ranking.by);
  ranking.total = count_of(database, "1");
  ranking.failed = count_of(database, "step_time_s IS NULL");
  ranking.unfit = count_of(database, "error IS NOT NULL AND step_time_s IS NOT NULL");
  Statement failure = database.prepare(
      "SELECT id, error FROM results WHERE step_time_s IS NULL ORDER BY id LIMIT 1");
  if (failure.step()) {
    ranking.first_failure = "row " + text_of(failure.cell(0)) + ": " + text_of(failure.cell(1));
  }
  Statement rows = chosen_rows(database, query, ranking);
  while (rows.step()) {
    std::vector<SqlValue> row;
    row.reserve(static_cast<std::size_t>(rows.columns()));
    for (int i = 0; i < rows.columns(); ++i) row.push_back(rows.cell(i));
    ranking.rows.push_back(std::move(row));
  }
  return ranking;
}

namespace {

/// Returns `text` without the marks of Markdown: "hfu, [below](#flops)" is "hfu, below".
std::string plain(std::string_view text) {
  std::string words;
  while (!text.empty()) {
    const std::size_t end = text.starts_with("](") ? text.find(')') : std::string_view::npos;
    if (end != std::string_view::npos) {
      text.remove_prefix(end + 1);
      continue;
    }
    if (text[0] != '`' && text[0] != '[') words += text[0];
    text.remove_prefix(1);
  }
  return words;
}

}  // namespace

std::string column_lines(const std::string& path) {
  const SweepIdentity identity = stored_identity(path);
  Database database(path, Database::Mode::Read);
  const std::vector<std::string> columns = columns_of(database);
  std::size_t widest = 0;
  for (const std::string& column : columns) widest = std::max(widest, column.size());
  std::string text;
  for (const std::string& column : columns) {
    const MetricRow* row = find_metric(column);
    const bool swept = std::ranges::any_of(identity.paths, [&](const std::string& swept_path) {
      return column_of(swept_path) == column;
    });
    const std::string meaning = row != nullptr ? plain(row->meaning)
                                : swept        ? "what the sweep sets"
                                               : "";
    text += meaning.empty() ? column : pad(column, widest) + "  " + meaning;
    text += "\n";
  }
  return text;
}

std::string ranking_table(const Ranking& ranking, const std::vector<std::string>& paths,
                          const TableStyle& style) {
  Grid grid;
  grid.rows.resize(ranking.rows.size());
  add_column(ranking, 0, {"Row", ""}, grid);
  for (const std::string& path : paths) {
    const auto column = column_at(ranking, column_of(path));
    if (column) add_column(ranking, *column, {tail_of(path), ""}, grid);
  }
  bool by_shown = std::ranges::any_of(
      paths, [&](const std::string& path) { return column_of(path) == ranking.by; });
  for (const Shown& shown : kShown) {
    const auto column = column_at(ranking, shown.column);
    if (!column || all_null(ranking, *column)) continue;
    by_shown = by_shown || ranking.by == shown.column;
    add_values(ranking, *column, shown, grid);
  }
  const auto error = column_at(ranking, "error");
  if (error && !all_null(ranking, *error)) {
    add_column(ranking, *error, {"Error", "", false}, grid);
  }
  const auto by = column_at(ranking, ranking.by);
  if (!by_shown && by) {
    const bool words = std::any_of(ranking.rows.begin(), ranking.rows.end(), [&](const auto& row) {
      return std::holds_alternative<std::string>(row[*by]);
    });
    if (words) add_column(ranking, *by, {ranking.by, ""}, grid);
    if (!words) add_values(ranking, *by, shown_as(ranking.by), grid);
  }
  const bool any = !ranking.rows.empty();
  return (any ? lay_out(grid, style) + "\n" : "") + summary(ranking);
}

std::string ranking_csv(const Ranking& ranking) {
  std::string text;
  const auto add_line = [&](const auto& fields, auto&& field) {
    for (std::size_t i = 0; i < fields.size(); ++i) text += (i > 0 ? "," : "") + field(fields[i]);
    text += "\r\n";
  };
  add_line(ranking.columns, [](const std::string& name) { return csv_field(SqlValue(name)); });
  for (const auto& row : ranking.rows) add_line(row, csv_field);
  return text;
}

std::string ranking_json(const Ranking& ranking) {
  Json rows = Json::array();
  for (const auto& row : ranking.rows) {
    Json json;
    for (std::size_t i = 0; i < row.size(); ++i) {
      Json& cell = json[clean_utf8(ranking.columns[i])];
      std::visit(
          [&](const auto& value) {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::monostate>) {
              cell = nullptr;
            } else if constexpr (std::is_same_v<Value, std::string>) {
              cell = clean_utf8(value);  // e.g. the name of a file
            } else {
              cell = value;
            }
          },
          row[i]);
    }
    rows.push_back(std::move(json));
  }
  const Json document{{"format", "interlock-ranking/1"}, {"by", clean_utf8(ranking.by)},
                      {"points", ranking.points},        {"rows_total", ranking.total},
                      {"failed", ranking.failed},        {"unfit", ranking.unfit},
                      {"rows", std::move(rows)}};
  return document.dump(2) + "\n";
}

}  // namespace interlock
