// The file of a sweep: made, opened again, written row by row, put together from parts.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/sweep_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "reports/result/scenario_json.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "interlock-sweep/1";

/// "?1, ?2, ..."
std::string parameters(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) text += (i > 1 ? ", ?" : "?") + std::to_string(i);
  return text;
}

std::string column_list(const std::vector<std::string>& columns) {
  std::string text = "id";
  for (const std::string& column : columns) text += ", " + sql_name(column);
  return text;
}

std::string insert_into_results(const std::vector<std::string>& columns) {
  return "INSERT OR REPLACE INTO results(" + column_list(columns) + ") VALUES(" +
         parameters(columns.size() + 1) + ")";
}

/// Returns what is stored under `key` beside the rows; nothing if the file is empty.
std::optional<std::string> stored(Database& database, const std::string& key) {
  Statement tables = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sweep'");
  if (!tables.step()) return std::nullopt;
  Statement statement = database.prepare("SELECT value FROM sweep WHERE key = ?1");
  statement.bind(1, key);
  if (!statement.step()) return std::nullopt;
  return text_or(statement.cell(0), "");
}

[[noreturn]] void refuse_damaged(const Database& database, const char* key) {
  throw Error(database.path() + ": its table \"sweep\" says no usable \"" + key +
              "\"; expected a database as interlock sweep wrote it");
}

std::size_t stored_points(Database& database) {
  constexpr std::size_t kMostPoints = 1'000'000'000;
  const std::string text = stored(database, "points").value_or("");
  std::size_t points = 0;
  const char* const past = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), past, points);
  const bool whole = failed == std::errc() && rest == past;
  if (!whole || points > kMostPoints) refuse_damaged(database, "points");
  return points;
}

std::vector<std::string> stored_paths(Database& database) {
  const Json list = Json::parse(stored(database, "paths").value_or(""), nullptr, false);
  const bool texts = list.is_array() && std::ranges::all_of(list, &Json::is_string);
  if (!texts) refuse_damaged(database, "paths");
  return list.get<std::vector<std::string>>();
}

SweepIdentity read_identity(Database& database) {
  const auto format = stored(database, "format");
  if (!format) {
    throw Error(database.path() + ": holds no sweep; expected a file that interlock sweep wrote");
  }
  if (*format != kFormat) {
    throw Error(database.path() + ": holds " + in_quotes(*format) + "; expected " +
                in_quotes(kFormat) + ", that of this version");
  }
  SweepIdentity identity;
  identity.document = stored(database, "document").value_or("");
  identity.points = stored_points(database);
  identity.paths = stored_paths(database);
  return identity;
}

void create(Database& database, const SweepIdentity& identity,
            const std::vector<std::string>& columns) {
  Statement other = database.prepare("SELECT name FROM sqlite_master");
  if (other.step()) read_identity(database);  // throws
  std::string sql = "BEGIN IMMEDIATE; CREATE TABLE results(id INTEGER PRIMARY KEY";
  for (const std::string& column : columns) sql += ", " + sql_name(column);
  database.run(sql +
               ");"
               "CREATE TABLE details(id INTEGER PRIMARY KEY, result TEXT);"
               "CREATE TABLE sweep(key TEXT PRIMARY KEY, value TEXT);");
  Statement insert = database.prepare("INSERT INTO sweep VALUES(?1, ?2)");
  const auto say = [&](const char* key, const std::string& value) {
    insert.bind(1, std::string(key));
    insert.bind(2, value);
    insert.step();
  };
  say("format", kFormat);
  say("document", identity.document);
  say("points", std::to_string(identity.points));
  say("paths", Json(identity.paths).dump());
  say("columns", column_list(columns));
  database.run("COMMIT");
}

void check_identity(Database& database, const SweepIdentity& identity,
                    const std::vector<std::string>& columns) {
  const SweepIdentity there = read_identity(database);
  if (there.document != identity.document || there.points != identity.points) {
    throw Error(database.path() + ": holds another sweep, of " + std::to_string(there.points) +
                " scenarios; expected the one of this file and these --set, or --db with another "
                "file");
  }
  if (stored(database, "columns") != column_list(columns)) {
    throw Error(database.path() +
                ": was written by another version, whose columns are others; expected --db with "
                "another file");
  }
}

/// Returns the file of a sweep, made if need be.
Database opened(const std::string& path, const SweepIdentity& identity,
                const std::vector<std::string>& columns) {
  Database database(path, Database::Mode::Write);
  const bool there = stored(database, "format").has_value();
  if (there) check_identity(database, identity, columns);  // what is refused stays as it is
  // A commit is in the file's log when it returns: it outlives the program, and with the log synced
  // now and then a crash of the machine leaves a whole file too.
  database.prepare("PRAGMA journal_mode = WAL").step();
  database.run("PRAGMA synchronous = NORMAL");
  database.run("PRAGMA wal_autocheckpoint = 8000");  // pages; half the time of SQLite's own 1000
  if (!there) create(database, identity, columns);
  return database;
}

}  // namespace

SweepIdentity identity_of(const JsonValue& document, const SweepPlan& plan) {
  Json json = value_json(document);
  json.erase("$schema");
  return {json.dump(), plan.paths(), plan.size()};
}

FileLock::FileLock(const std::string& path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw Error(path + ": cannot be written: " + std::strerror(errno));
  // Those who worked for a program that was killed still have it for a moment.
  constexpr int kTries = 40;
  constexpr unsigned kPause = 50'000;  // us
  for (int i = 0; i < kTries; ++i) {
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    ::usleep(kPause);
  }
  ::close(file_);
  throw Error(path +
              ": another interlock writes this file; expected to be alone, or --db with another");
}

FileLock::~FileLock() { ::close(file_); }

SweepStore::SweepStore(const std::string& path, const SweepIdentity& identity)
    : lock_(path),
      columns_(sweep_columns(identity.paths)),
      database_(opened(path, identity, columns_)),
      insert_(database_.prepare(insert_into_results(columns_))),
      insert_details_(database_.prepare("INSERT OR REPLACE INTO details VALUES(?1, ?2)")) {}

std::vector<bool> SweepStore::done(bool but_failed) {
  const std::size_t points = stored_points(database_);
  std::vector<bool> done(points, false);
  Statement ids =
      database_.prepare(std::string("SELECT id FROM results") +
                        (but_failed ? " WHERE error IS NULL OR step_time_s IS NOT NULL" : ""));
  while (ids.step()) {
    const auto id = static_cast<std::size_t>(number_or(ids.cell(0), 0));
    if (id >= 1 && id <= points) done[id - 1] = true;
  }
  return done;
}

void SweepStore::close() {
  try {
    database_.join_log();
  } catch (const Error& failed) {
    throw Error(failed.what() + ("; keep " + database_.path()) + "-wal beside it, if it is there");
  }
}

SweepStore::~SweepStore() {
  try {
    close();
  } catch (const Error&) {  // it was thrown before, or something worse was
    return;
  }
}

void SweepStore::insert(const SweepRow& row) {
  insert_.bind(1, static_cast<std::int64_t>(row.id));
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    insert_.bind(static_cast<int>(i) + 2, row.cells[i]);
  }
  insert_.step();
  insert_details_.bind(1, static_cast<std::int64_t>(row.id));
  insert_details_.bind(2, row.details.empty() ? SqlValue() : SqlValue(row.details));
  insert_details_.step();
}

// If something fails, what began here ends undone with the file.
void SweepStore::add(const SweepRow& row) {
  database_.run("BEGIN IMMEDIATE");
  insert(row);
  database_.run("COMMIT");
}

std::vector<std::size_t> SweepStore::take(const std::vector<std::string>& paths) {
  std::vector<std::size_t> taken;
  taken.reserve(paths.size());
  database_.run("BEGIN IMMEDIATE");
  for (const std::string& path : paths) taken.push_back(take_rows(path));
  database_.run("COMMIT");
  return taken;
}

std::size_t SweepStore::take_rows(const std::string& path) {
  Database other(path, Database::Mode::Read);
  const SweepIdentity there = read_identity(other);
  if (there.document != stored(database_, "document") ||
      stored(other, "columns") != column_list(columns_)) {
    throw Error(path + ": holds another sweep than " + database_.path() +
                "; expected parts of one sweep, made by one version");
  }
  const std::vector<bool> known = done();
  Statement mine =
      database_.prepare("SELECT " + column_list(columns_) + " FROM results WHERE id = ?1");
  Statement rows = other.prepare("SELECT " + column_list(columns_) +
                                 ", (SELECT result FROM details d WHERE d.id = r.id) FROM results "
                                 "r ORDER BY id");
  const std::size_t wall_time = place_of(columns_, "wall_time_s");
  std::size_t taken = 0;
  while (rows.step()) {
    SweepRow row;
    row.id = static_cast<std::size_t>(number_or(rows.cell(0), 0));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      row.cells.push_back(rows.cell(static_cast<int>(i) + 1));
    }
    row.details = text_or(rows.cell(static_cast<int>(columns_.size()) + 1), "");
    if (row.id < 1 || row.id > known.size()) {
      throw Error(path + ": row " + std::to_string(row.id) + " is none of this sweep");
    }
    if (!known[row.id - 1]) {
      insert(row);
      ++taken;
      continue;
    }
    mine.bind(1, static_cast<std::int64_t>(row.id));
    mine.step();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i == wall_time || mine.cell(static_cast<int>(i) + 1) == row.cells[i]) continue;
      throw Error(path + ": row " + std::to_string(row.id) + " has another " + columns_[i] +
                  " than in " + database_.path() + "; expected parts of one sweep");
    }
    mine.step();
  }
  return taken;
}

SweepIdentity stored_identity(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(path + ": there is no such file; expected one that interlock sweep wrote");
  }
  Database database(path, Database::Mode::Read);
  return read_identity(database);
}

}  // namespace interlock
