// SQLite behind Database and Statement.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/database.h"

#include <sqlite3.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace interlock {
namespace {

constexpr int kPatience = 5000;  // ms, for another program that reads or writes

/// Returns what to do about an error; empty if nothing is known.
const char* advice(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "; free some room and type the same command again, what is there is kept";
    case SQLITE_IOERR:
      return "; is the disk full? what is there is kept";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return "; expected a file that can be written, in a folder that can be";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return "; expected a database that interlock sweep wrote";
    case SQLITE_INTERRUPT:
      return ": the query took too long; expected a condition on the columns of one row";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another program writes it, expected to be alone";
    default:
      return "";
  }
}

}  // namespace

Database::Database(std::string path, Mode mode) : path_(std::move(path)) {
  const int flags = mode == Mode::Read    ? SQLITE_OPEN_READONLY
                    : mode == Mode::Write ? SQLITE_OPEN_READWRITE
                                          : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  std::error_code failed;
  if (std::filesystem::is_directory(path_, failed)) {
    throw Error(path_ + ": is a folder; expected a database that interlock sweep wrote");
  }
  refuse_pipe(path_);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code, "");
  sqlite3_busy_timeout(handle, kPatience);
  sqlite3_extended_result_codes(handle, 1);
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

void Database::fail(int code, const std::string& sql) const {
  const std::string why = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const bool ours = (code & 0xff) == SQLITE_ERROR && !sql.empty();
  throw Error(path_ + ": " + why + (ours ? " in " + sql : "") + advice(code));
}

void Database::limit_time(std::chrono::seconds most) {
  constexpr int kInstructions = 1'000'000;  // some milliseconds
  end_ = std::make_unique<Clock::time_point>(Clock::now() + most);
  const auto too_late = [](void* end) {
    return Clock::now() > *static_cast<const Clock::time_point*>(end) ? 1 : 0;
  };
  sqlite3_progress_handler(handle_.get(), kInstructions, too_late, end_.get());
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sql);
}

bool Database::join_log() {
  const std::string sql = "PRAGMA journal_mode = DELETE";
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) return false;
  if (code != SQLITE_OK) fail(code, sql);
  return true;
}

Statement Database::prepare(const std::string& sql, const std::string& told) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, &rest);
  if (code != SQLITE_OK) fail(code, told.empty() ? sql : told);
  Statement prepared{*this, statement};
  if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    throw Error(path_ + ": several statements in " + (told.empty() ? sql : told));
  }
  return prepared;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int index, const SqlValue& cell) {
  sqlite3_stmt* statement = statement_.get();
  int code = SQLITE_OK;
  if (const auto* number = std::get_if<double>(&cell)) {
    code = sqlite3_bind_double(statement, index, *number);
  } else if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    code = sqlite3_bind_int64(statement, index, *whole);
  } else if (const auto* text = std::get_if<std::string>(&cell)) {
    code = sqlite3_bind_text(statement, index, text->data(), static_cast<int>(text->size()),
                             SQLITE_TRANSIENT);
  } else {
    code = sqlite3_bind_null(statement, index);
  }
  if (code != SQLITE_OK) database_->fail(code, "");
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(statement_.get());
  if (code != SQLITE_DONE) database_->fail(code, "");
  return false;
}

SqlValue Statement::cell(int column) const {
  sqlite3_stmt* statement = statement_.get();
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return {};
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

std::string Statement::column_name(int column) const {
  return sqlite3_column_name(statement_.get(), column);
}

std::string sql_name(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

double number_or(const SqlValue& cell, double otherwise) {
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  return otherwise;
}

std::string text_or(const SqlValue& cell, const std::string& otherwise) {
  const auto* text = std::get_if<std::string>(&cell);
  return text ? *text : otherwise;
}

}  // namespace interlock
