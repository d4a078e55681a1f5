// interlock list: the names that scenarios may use, and what they stand for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "models/layers/model_graph.h"
#include "models/model_file.h"
#include "reports/result/value_json.h"
#include "scenarios/load/read_framework.h"
#include "sim/plan/schedules/catalogue.h"

namespace interlock {
namespace {

/// A name, what it stands for in words, and the same for programs.
struct Row {
  std::string name, meaning;
  std::vector<JsonMember> facts;
};

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  for (const std::string& name : zoo_names()) {
    const JsonValue value = json_text(name);
    Diagnostics diagnostics;
    const ModelGraph graph = build_model({&value, ""}, {}, diagnostics);
    diagnostics.throw_if_any();
    double parameters = 0;
    for (const Module& module : graph.modules) parameters += static_cast<double>(module.parameters);
    rows.push_back({name,
                    std::to_string(graph.modules.size()) + " modules, " +
                        format_number(parameters) + " parameters",
                    {{"modules", json_number(static_cast<double>(graph.modules.size()))},
                     {"parameters", json_number(parameters)}}});
  }
  return rows;
}

std::vector<Row> machine_rows() {
  std::vector<Row> rows;
  for (const std::string& name : catalogue_names()) {
    const JsonValue value = json_text(name);
    Diagnostics diagnostics;
    const Cluster cluster = read_cluster({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    rows.push_back({name,
                    std::to_string(cluster.devices_per_node) + " x " + cluster.device.name + ", " +
                        format(cluster.device.memory) + " each, " + format(cluster.port_bandwidth) +
                        " to its neighbours",
                    {{"devices_per_node", json_number(cluster.devices_per_node)},
                     {"device", json_text(cluster.device.name)},
                     {"memory_bytes", json_number(cluster.device.memory.value())},
                     {"bandwidth_bytes_per_s", json_number(cluster.port_bandwidth.value())}}});
  }
  return rows;
}

std::vector<Row> schedule_rows() {
  std::vector<Row> rows;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    const std::string trains = name_of(entry.trains);
    rows.push_back({entry.name,
                    trains + ": " + entry.summary + " [" + entry.source + "]",
                    {{"trains", json_text(trains)},
                     {"summary", json_text(entry.summary)},
                     {"source", json_text(entry.source)}}});
  }
  return rows;
}

std::vector<Row> framework_rows() {
  std::vector<Row> rows;
  for (const std::string& name : framework_names()) {
    const JsonValue value = json_text(name);
    Diagnostics diagnostics;
    const Framework framework = read_framework({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    const std::string gradients = framework.fp32_gradients ? "fp32" : "16-bit";
    rows.push_back(
        {name,
         format(framework.kernel_issue) + " a kernel, " + format(framework.exchange_issue) +
             " a collective, " + gradients + " gradients",
         {{"kernel_issue_s", json_number(framework.kernel_issue.value())},
          {"backward_issue_s",
           json_number(framework.backward_issue.value_or(framework.kernel_issue).value())},
          {"exchange_issue_s", json_number(framework.exchange_issue.value())},
          {"collective_sms", json_number(framework.collective_sms)},
          {"message_copies_bytes_per_s", json_number(framework.message_copies.value())},
          {"gradients", json_text(gradients)}}});
  }
  return rows;
}

void print_rows(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string text;
  for (const Row& row : rows) {
    text += row.name + std::string(width + 2 - row.name.size(), ' ') + row.meaning + "\n";
  }
  print(text);
}

JsonValue rows_json(std::vector<Row> rows) {
  JsonValue list = json_list({});
  for (Row& row : rows) {
    row.facts.insert(row.facts.begin(), {"name", json_text(row.name)});
    list.items.push_back(json_object(std::move(row.facts)));
  }
  return list;
}

}  // namespace

void list(const std::string& what, const std::string& json, bool quiet) {
  struct Catalogue {
    const char* name;
    std::vector<Row> (*rows)();
  };
  constexpr Catalogue kCatalogues[] = {{"models", model_rows},
                                       {"machines", machine_rows},
                                       {"schedules", schedule_rows},
                                       {"frameworks", framework_rows}};
  check_json(json);
  JsonValue all = json_object({{"format", json_text("interlock-list/1")}});
  for (const Catalogue& catalogue : kCatalogues) {
    if (!what.empty() && what != catalogue.name) continue;
    const std::vector<Row> rows = catalogue.rows();
    all.members.push_back({catalogue.name, rows_json(rows)});
    if (json == "-" || (quiet && !json.empty())) continue;
    if (what.empty()) {
      print(std::string(&catalogue == kCatalogues ? "" : "\n") + catalogue.name + "\n");
    }
    print_rows(rows);
  }
  write_json(json, json_file(all), quiet);
}

}  // namespace interlock
