// Database: SQLite without its handles, and its errors in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace interlock {

/// A value in a table; nothing, a number, or a text.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

class Statement;

/// An open file. Every member throws Error with the file's name and what to do, if it fails.
class Database {
 public:
  enum class Mode { Read, Write, Create };  // Create: if it is not there
  Database(std::string path, Mode mode);

  /// Ends queries that still run `most` from now.
  void limit_time(std::chrono::seconds most);
  /// Runs statements that give nothing back.
  void run(const std::string& sql);
  /// Puts what is in the log into the file, and keeps none from now on. Returns false if it stays,
  /// since another program uses the file.
  bool join_log();
  /// Prepares a statement. `told`: what an error shows in the place of `sql`; empty: `sql`.
  Statement prepare(const std::string& sql, const std::string& told = "");
  const std::string& path() const { return path_; }
  /// Throws: Error with what SQLite says of a call that returned `code`.
  [[noreturn]] void fail(int code, const std::string& sql) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  using Clock = std::chrono::steady_clock;
  std::string path_;
  std::unique_ptr<Clock::time_point> end_;  // which SQLite has the address of
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement of a database, which must outlive it.
class Statement {
 public:
  /// Sets parameter `index`, from 1.
  void bind(int index, const SqlValue& cell);
  /// Steps to the next row; returns false after the last one, when it can be bound and run again.
  bool step();
  /// Returns the value in `column` of the row, from 0.
  SqlValue cell(int column) const;
  int columns() const;
  std::string column_name(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Returns `name` as SQL writes the name of a column or a table.
std::string sql_name(std::string_view name);

/// Returns the number in a cell, or `otherwise`.
double number_or(const SqlValue& cell, double otherwise);
std::string text_or(const SqlValue& cell, const std::string& otherwise);

}  // namespace interlock
