// Puts results together from the tables `results` and `details` of a sweep's file.
// SPDX-License-Identifier: Apache-2.0
#include "reports/sweeps/stored_results.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "reports/sweeps/sweep_store.h"

namespace interlock {
namespace {

JsonValue value_of(const SqlValue& cell) {
  const double number = number_or(cell, 0);
  const bool text = std::holds_alternative<std::string>(cell);
  return text ? json_text(text_or(cell, "")) : json_number(number);
}

}  // namespace

bool is_database(const std::string& path) {
  constexpr std::string_view kFirst = "SQLite format 3";
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;  // a pipe is read but once
  std::array<char, kFirst.size()> bytes{};
  std::ifstream file(path, std::ios::binary);
  return file.read(bytes.data(), bytes.size()) &&
         std::string_view(bytes.data(), bytes.size()) == kFirst;
}

std::vector<JsonValue> stored_results(const std::string& path) {
  const SweepIdentity identity = stored_identity(path);
  Database database(path, Database::Mode::Read);
  std::string columns;
  for (const std::string& swept : identity.paths) columns += ", r." + sql_name(column_of(swept));
  Statement rows = database.prepare("SELECT r.id, d.result" + columns +
                                    " FROM results r JOIN details d ON d.id = r.id "
                                    "WHERE d.result IS NOT NULL ORDER BY r.id");
  const auto file = std::make_shared<const std::string>(path);
  std::vector<JsonValue> results;
  while (rows.step()) {
    const std::string place = path + ", row " + std::to_string(int(number_or(rows.cell(0), 0)));
    JsonValue result = parse_json(text_or(rows.cell(1), ""), place);
    result.file = file;  // of one file, as gains are compared; what is wrong in it names its row
    JsonValue swept = json_object({});
    for (std::size_t i = 0; i < identity.paths.size(); ++i) {
      swept.members.push_back({identity.paths[i], value_of(rows.cell(static_cast<int>(i) + 2))});
    }
    result.members.push_back({"format", json_text("interlock-result/1")});
    result.members.push_back({"sweep", std::move(swept)});
    results.push_back(std::move(result));
  }
  if (results.empty()) {
    throw Error(path + ": has no result yet; expected one, see interlock rank " + path);
  }
  return results;
}

}  // namespace interlock
