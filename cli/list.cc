// interlock list and interlock schema: the names and the keys that scenarios may use.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "hardware/devices/device_reader.h"
#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "models/layers/model_graph.h"
#include "models/model_file.h"
#include "reports/result/value_json.h"
#include "scenarios/contract/json_schema.h"
#include "scenarios/contract/read_framework.h"
#include "scenarios/contract/reference_page.h"
#include "sim/plan/schedules/catalogue.h"

namespace interlock {
namespace {

constexpr double kAnyLength = 1024;  // tokens

/// A name, what it stands for in words, and the same for programs.
struct Row {
  std::string name, meaning;
  std::vector<JsonMember> facts;
};

/// Returns the graph of a name of the zoo or a file. Files of models without a length of samples,
/// which parameters do not depend on, get one.
ModelGraph model_of(const std::string& name) {
  const JsonValue value = json_text(name);
  Diagnostics diagnostics;
  ModelGraph graph = build_model({&value, ""}, {}, diagnostics);
  if (diagnostics.empty()) return graph;
  const JsonValue longer =
      json_object({{"base", value}, {"sequence_length", json_number(kAnyLength)}});
  Diagnostics others;
  graph = build_model({&longer, ""}, {}, others);
  if (!others.empty()) diagnostics.throw_if_any();
  return graph;
}

/// Returns the rows of `files`, or of the zoo if there are none.
std::vector<Row> model_rows(const std::vector<std::string>& files) {
  std::vector<Row> rows;
  for (const std::string& name : files.empty() ? zoo_names() : files) {
    const ModelGraph graph = model_of(name);
    for (const std::string& note : graph.notes) {
      if (!files.empty()) tell("note: " + name + ": " + note);
    }
    double parameters = 0, experts = 0;
    for (const Module& module : graph.modules) {
      parameters += static_cast<double>(module.parameters);
      experts += static_cast<double>(module.expert_parameters);
    }
    std::string words = std::to_string(graph.modules.size()) + " modules, " +
                        format_number(parameters) + " parameters";
    if (experts > 0) words += ", " + format_number(experts) + " of them in experts";
    rows.push_back({name,
                    words,
                    {{"modules", json_number(static_cast<double>(graph.modules.size()))},
                     {"parameters", json_number(parameters)},
                     {"expert_parameters", json_number(experts)}}});
  }
  return rows;
}

/// Returns the precision that a device computes fastest in 16 bits, or else in fp32.
Precision usual_precision(const Device& device) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    if (supports(device, precision)) return precision;
  }
  return Precision::Fp32;
}

FlopsPerSecond usual_peak(const Device& device) {
  const auto index = static_cast<std::size_t>(usual_precision(device));
  return device.peak[index].value_or(FlopsPerSecond(0));
}

/// "989 TFLOP/s in bf16, 79.1 GiB at 3.35 TB/s".
std::string device_words(const Device& device) {
  return format(usual_peak(device)) + " in " +
         precision_names()[static_cast<std::size_t>(usual_precision(device))] + ", " +
         format(device.memory) + " at " + format(device.memory_bandwidth);
}

std::vector<JsonMember> device_facts(const Device& device) {
  std::vector<JsonMember> peaks;
  for (const std::string& name : supported_precisions(device)) {
    const auto found = std::find(precision_names().begin(), precision_names().end(), name);
    const auto& peak = device.peak[static_cast<std::size_t>(found - precision_names().begin())];
    peaks.push_back({name, json_number(peak->value())});
  }
  return {{"device", json_text(device.name)},
          {"architecture", json_text(device.architecture)},
          {"memory_bytes", json_number(device.memory.value())},
          {"memory_bandwidth_bytes_per_s", json_number(device.memory_bandwidth.value())},
          {"peak_flops_per_s", json_object(std::move(peaks))},
          {"efficiencies_of", json_text(device.borrowed ? device.borrowed->from : "its own")}};
}

std::vector<Row> device_rows() {
  std::vector<Row> rows;
  for (const std::string& name : device_names()) {
    const JsonValue value = json_text(name);
    Diagnostics diagnostics;
    const Device device = read_device({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    std::string words = device_words(device);
    if (!device.architecture.empty()) words += "; " + device.architecture;
    if (device.borrowed) words += "; efficiencies of " + device.borrowed->from;
    rows.push_back({name, words, device_facts(device)});
  }
  return rows;
}

/// "370 of 450 GB/s", or "450 GB/s" where messages reach all of it.
std::string reached_words(BytesPerSecond reached, BytesPerSecond stated) {
  return reached < stated ? format(reached) + " of " + format(stated) : format(reached);
}

/// Returns what each of the others is reached with, where each pair has a link of its own.
std::string pair_words(const Machine& machine) {
  const bool pairs = machine.has_pair_links();
  return pairs ? ", " + format(machine.pair_bandwidth) + " to each" : "";
}

/// Tells a machine's devices, and the links between them.
std::string machine_words(const Cluster& cluster) {
  const Machine& machine = cluster.machines.front();
  std::string words = device_words(machine.device) + "; links " +
                      reached_words(machine.port_bandwidth, machine.port_stated);
  words += pair_words(machine);
  if (const auto* torus = std::get_if<Torus>(&cluster.network)) {
    words += "; a torus of " + shape(*torus);
  }
  if (machine.cards_per_node > 0) {
    words += "; " + std::to_string(machine.cards_per_node) +
             (machine.cards_per_node == 1 ? " card of " : " cards of ") +
             reached_words(machine.card_bandwidth, machine.card_stated);
  }
  return words;
}

std::vector<Row> machine_rows(bool devices) {
  std::vector<Row> rows;
  for (const std::string& name : catalogue_names()) {
    const JsonValue value = json_text(name);
    Diagnostics diagnostics;
    const Cluster cluster = read_cluster({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    const Machine& machine = cluster.machines.front();
    const std::string device =
        std::to_string(machine.devices_per_node) + " x " + machine.device.name;
    std::vector<JsonMember> facts = device_facts(machine.device);
    facts.insert(facts.begin(), {"devices_per_node", json_number(machine.devices_per_node)});
    facts.push_back({"bandwidth_bytes_per_s", json_number(machine.port_bandwidth.value())});
    facts.push_back({"stated_bandwidth_bytes_per_s", json_number(machine.port_stated.value())});
    facts.push_back({"pair_bandwidth_bytes_per_s", json_number(machine.pair_bandwidth.value())});
    rows.push_back(
        {name,
         device + ", " +
             (devices ? machine_words(cluster)
                      : format(machine.device.memory) + " each, " + format(machine.port_bandwidth) +
                            " to its neighbours" + pair_words(machine)),
         std::move(facts)});
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
    const std::string gradients = framework.keeps_made_gradients ? "fp32 and 16-bit"
                                  : framework.fp32_gradients     ? "fp32"
                                  : framework.copies_gradients   ? "16-bit, for updates fp32"
                                                                 : "16-bit";
    rows.push_back(
        {name,
         format(framework.kernel_issue) + " a kernel, " + format(framework.exchange_issue) +
             " a collective, " + gradients + " gradients",
         {{"kernel_issue_s", json_number(framework.kernel_issue.value())},
          {"backward_issue_s",
           json_number(framework.backward_issue.value_or(framework.kernel_issue).value())},
          {"expert_issue_s", json_number(framework.expert_issue.value())},
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

void list(const std::string& what, const std::vector<std::string>& files, bool devices,
          const std::string& json, bool quiet) {
  struct Catalogue {
    const char* name;
    std::function<std::vector<Row>()> rows;
  };
  const Catalogue catalogues[] = {{"models", [&] { return model_rows(files); }},
                                  {"machines", [=] { return machine_rows(devices); }},
                                  {"devices", device_rows},
                                  {"schedules", schedule_rows},
                                  {"frameworks", framework_rows}};
  if (!files.empty() && what != "models") {
    throw Error("list " + what + " takes no files; expected interlock list models " +
                files.front());
  }
  check_json(json);
  JsonValue all = json_object({{"format", json_text("interlock-list/1")}});
  for (const Catalogue& catalogue : catalogues) {
    if (!what.empty() && what != catalogue.name) continue;
    const std::vector<Row> rows = catalogue.rows();
    all.members.push_back({catalogue.name, rows_json(rows)});
    if (json == "-" || (quiet && !json.empty())) continue;
    if (what.empty()) {
      print(std::string(&catalogue == catalogues ? "" : "\n") + catalogue.name + "\n");
    }
    print_rows(rows);
  }
  write_json(json, json_file(all), quiet);
}

void schema(const std::string& json, bool quiet, bool reference) {
  check_json(json);
  const std::string text = json_file(json_schema());
  if (reference) {
    print(reference_page());
  } else if (json.empty()) {
    print(text);
  }
  write_json(json, text, quiet);
}

}  // namespace interlock
