// Chimera blocks: one row of a table of measured blocks; and any layer table as a model file.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "reports/imports/layer_tables.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kMebi = 1024.0 * 1024.0;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    while (!cell.empty() && (cell.back() == '\r' || cell.back() == ' ')) cell.pop_back();
    cells.push_back(cell);
  }
  return cells;
}

std::string quantity(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.12g %s", value, unit);
  return text;
}

/// The row of a table, read by the names of its columns.
struct Row {
  std::vector<std::string> columns, cells;
  std::string place;

  double at(const std::string& column) const {
    const auto found = std::find(columns.begin(), columns.end(), column);
    const auto index = static_cast<std::size_t>(found - columns.begin());
    if (index >= cells.size()) {
      throw Error(place + ": no column " + in_quotes(column) +
                  "; expected bs, time_f, time_b, mem_param and mem_act");
    }
    const std::string& cell = cells[index];
    double value = 0;
    const char* end = cell.data() + cell.size();
    const auto [rest, failed] = std::from_chars(cell.data(), end, value);
    if (failed != std::errc() || rest != end || !(value >= 0) || value > 1e12) {
      throw Error(place + ": " + column + ": expected a number, got " + in_quotes(cell));
    }
    return value;
  }
};

}  // namespace

std::vector<TableModule> read_chimera_blocks(const std::string& text, const std::string& file,
                                             const ChimeraChoice& choice) {
  std::istringstream lines(text);
  Row row = {.place = file + ":1"};
  std::string line, sizes;
  std::getline(lines, line);
  row.columns = cells_of(line);
  for (int number = 2; std::getline(lines, line); ++number) {
    row.cells = cells_of(line);
    if (row.cells.empty()) continue;
    row.place = file + ":" + std::to_string(number);
    const double batch = row.at("bs");
    if (batch == choice.batch) {
      return {{.name = "block",
               .repeat = choice.blocks,
               .forward = Seconds(row.at("time_f") / 1e3),
               .backward = Seconds(row.at("time_b") / 1e3),
               .output = choice.output,
               .stash = Bytes(row.at("mem_act") * kMebi),
               .parameters = Bytes(row.at("mem_param") * kMebi)}};
    }
    sizes += (sizes.empty() ? "" : ", ") + format_number(batch);
  }
  throw Error(file + ": no row of micro-batches of " + std::to_string(choice.batch) +
              (sizes.empty() ? "; expected a table of blocks" : "; expected one of " + sizes));
}

std::string profile_json(const std::vector<TableModule>& modules, const std::string& source) {
  Json list = Json::array();
  for (const TableModule& module : modules) {
    Json one = {{"name", clean_utf8(module.name)}};
    if (module.repeat > 1) one["repeat"] = module.repeat;
    const auto add = [&](const char* key, double value, const char* unit) {
      if (value > 0) one[key] = quantity(value, unit);
    };
    const bool weights = module.parameters > Bytes(0);
    const double half = module.backward.value() * 1e3 / (weights ? 2 : 1);
    add("forward", module.forward.value() * 1e3, "ms");
    add("backward_input", half, "ms");
    add("backward_weight", weights ? half : 0, "ms");
    add("output", module.output.value(), "B");
    add("stash", module.stash.value(), "B");
    add("parameters", module.parameters.value(), "B");
    list.push_back(one);
  }
  return Json({{"kind", "profile"}, {"source", clean_utf8(source)}, {"modules", list}}).dump(1) +
         "\n";
}

}  // namespace interlock
