// interlock list: the names that scenarios may use, and what they stand for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "hardware/cluster.h"
#include "models/model_graph.h"
#include "scenarios/framework_reader.h"
#include "sim/plan/catalogue.h"

namespace interlock {
namespace {

/// A name and what it stands for.
using Row = std::pair<std::string, std::string>;

JsonValue text_value(const std::string& text) {
  return {.kind = JsonValue::Kind::String, .text = text};
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  for (const std::string& name : zoo_names()) {
    const JsonValue value = text_value(name);
    Diagnostics diagnostics;
    const ModelGraph graph = build_model({&value, ""}, {}, diagnostics);
    diagnostics.throw_if_any();
    double parameters = 0;
    for (const Module& module : graph.modules) parameters += static_cast<double>(module.parameters);
    rows.emplace_back(name, std::to_string(graph.modules.size()) + " modules, " +
                                format_number(parameters) + " parameters");
  }
  return rows;
}

std::vector<Row> machine_rows() {
  std::vector<Row> rows;
  for (const std::string& name : catalogue_names()) {
    const JsonValue value = text_value(name);
    Diagnostics diagnostics;
    const Cluster cluster = read_cluster({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    rows.emplace_back(name, std::to_string(cluster.devices_per_node) + " x " + cluster.device.name +
                                ", " + format(cluster.device.memory) + " each, " +
                                format(cluster.port_bandwidth) + " to its neighbours");
  }
  return rows;
}

std::vector<Row> schedule_rows() {
  std::vector<Row> rows;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    const std::string trains = entry.any_strategy ? "all: "
                               : entry.global     ? "global: "
                               : entry.local      ? "local: "
                                                  : "local, interlocking: ";
    rows.emplace_back(entry.name, trains + entry.summary + " [" + entry.source + "]");
  }
  return rows;
}

std::vector<Row> framework_rows() {
  std::vector<Row> rows;
  for (const std::string& name : framework_names()) {
    const JsonValue value = text_value(name);
    Diagnostics diagnostics;
    const Framework framework = read_framework({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    rows.emplace_back(name, format(framework.kernel_issue) + " a kernel, " +
                                format(framework.exchange_issue) + " a collective, " +
                                (framework.fp32_gradients ? "fp32" : "16-bit") + " gradients");
  }
  return rows;
}

void print_rows(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.first.size());
  std::string text;
  for (const auto& [name, meaning] : rows) {
    text += name + std::string(width + 2 - name.size(), ' ') + meaning + "\n";
  }
  print(text);
}

}  // namespace

void list(const std::string& what) {
  struct Catalogue {
    const char* name;
    std::vector<Row> (*rows)();
  };
  constexpr Catalogue kCatalogues[] = {{"models", model_rows},
                                       {"machines", machine_rows},
                                       {"schedules", schedule_rows},
                                       {"frameworks", framework_rows}};
  for (const Catalogue& catalogue : kCatalogues) {
    if (what.empty())
      print(std::string(&catalogue == kCatalogues ? "" : "\n") + catalogue.name + "\n");
    if (what.empty() || what == catalogue.name) print_rows(catalogue.rows());
  }
}

}  // namespace interlock
