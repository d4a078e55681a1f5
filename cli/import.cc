// interlock import: what other tools wrote, as models and scenarios.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/command_options.h"
#include "cli/parser/commands.h"
#include "hardware/networks/cluster_reader.h"
#include "reports/imports/layer_tables.h"
#include "reports/imports/megatron_scenario.h"
#include "reports/kineto/duration_table.h"
#include "reports/result/value_json.h"

namespace interlock {
namespace {

/// Refuses a target that cannot be written, or that is one of the traces: these took long to
/// record.
void check_target(const ImportOptions& options, const std::string& kind) {
  if (!options.out.ends_with(".json")) {
    throw Error("--out " + options.out + ": expected a name that ends with .json");
  }
  check_output("--out", options.out);
  check_json(options.json);
  std::error_code failed;
  for (const std::string& trace : options.traces) {
    if (std::filesystem::equivalent(trace, options.out, failed)) {
      const char* what = kind == "kineto" ? " is one of the traces" : " is what is read";
      throw Error("--out " + options.out + what + "; expected another name");
    }
  }
}

std::string file_name(const ImportOptions& options) {
  return std::filesystem::path(options.traces.front()).filename().string();
}

void write_model(const ImportOptions& options, const std::vector<TableModule>& modules,
                 const char* of) {
  write_file(options.out, profile_json(modules, file_name(options) + of));
  std::size_t count = 0;
  Seconds forward, backward;
  for (const TableModule& module : modules) {
    count += static_cast<std::size_t>(module.repeat);
    forward += module.forward * module.repeat;
    backward += module.backward * module.repeat;
  }
  write_json(options.json,
             json_file(json_object({{"format", json_text("interlock-written/1")},
                                    {"wrote", json_texts({options.out})},
                                    {"modules", json_number(static_cast<double>(count))},
                                    {"forward_s", json_number(forward.value())},
                                    {"backward_s", json_number(backward.value())}})),
             options.quiet);
  if (options.quiet || options.json == "-") return;
  print(std::to_string(count) + " modules, forward " + format(forward) + ", backward " +
        format(backward) + "\n");
  tell("wrote " + options.out + "; in a scenario: \"model\": \"" + options.out + "\"");
}

void import_pipedream(const ImportOptions& options) {
  const std::string& file = options.traces.front();
  write_model(options, read_pipedream_graph(read_file(file), file, options.cells),
              ", a graph of PipeDream's profiler");
}

void import_chimera(const ImportOptions& options) {
  const std::string& file = options.traces.front();
  const auto output = parse_quantity(options.output);
  if (!output || output->dimension != WrittenQuantity::Dimension::Size || output->value < 0) {
    throw Error("--output " + options.output + ": expected a size, e.g. \"6 MiB\"");
  }
  write_model(options,
              read_chimera_blocks(read_file(file), file,
                                  {options.batch, options.blocks, Bytes(output->value)}),
              ", a table of Chimera's measured blocks");
}

void import_megatron(const ImportOptions& options) {
  const JsonValue machine = {.kind = JsonValue::Kind::String, .text = options.cluster};
  Diagnostics diagnostics;
  const Cluster cluster = read_cluster({&machine, ""}, diagnostics);
  diagnostics.throw_if_any();
  const std::string& file = options.traces.front();
  MegatronArguments arguments(read_file(file), file);
  const std::string scenario = megatron_scenario(
      arguments,
      {.name = std::filesystem::path(file).stem().string(),
       .cluster = options.cluster,
       .devices_per_node = cluster.devices_per_node,
       .devices = options.devices > 0 ? std::optional(options.devices) : std::nullopt,
       .vocab_size = options.vocab_size > 0 ? std::optional(options.vocab_size) : std::nullopt});
  write_file(options.out, scenario);
  write_json(options.json,
             json_file(json_object({{"format", json_text("interlock-written/1")},
                                    {"wrote", json_texts({options.out})},
                                    {"not_used", json_texts(arguments.unused())}})),
             options.quiet);
  if (options.quiet || options.json == "-") return;
  std::string unused;
  for (const std::string& name : arguments.unused()) unused += " --" + name;
  if (!unused.empty()) print("not used:" + unused + "\n");
  tell("wrote " + options.out + "; interlock simulate " + options.out);
}

Command& add_kind(Command& command, ImportOptions& options, const char* kind, const char* summary,
                  void (*import)(const ImportOptions&)) {
  Command& added = command.add_command(kind, summary, [&options, kind, import] {
    check_target(options, kind);
    import(options);
  });
  added.add("--out", &options.out, "where to", "FILE.json", {.required = true});
  added.add("--quiet,-q", &options.quiet, "print nothing");
  add_json(added, options.json, "write what was made as JSON; - for standard output");
  return added;
}

}  // namespace

void add_import(Command& command, ImportOptions& options) {
  add_kind(command, options, "kineto", "traces of PyTorch's profiler, as a model", import_kineto)
      .add_words("TRACES", &options.traces,
                 "files of export_chrome_trace, .json or .json.gz, one of each rank",
                 {.required = true});
  Command& megatron = add_kind(command, options, "megatron",
                               "arguments of Megatron-LM, as a scenario", import_megatron);
  megatron.add_words("FILE", &options.traces, "a launch script, or lines \"name: value\"",
                     {.required = true, .words = 1});
  megatron.add("--cluster", &options.cluster, "machine of the catalogue, or its file", "MACHINE",
               {.required = true});
  megatron.add("--devices", &options.devices, "of all nodes, if the script does not say it", "N",
               {.least = 1});
  megatron.add("--vocab-size", &options.vocab_size, "of the tokenizer", "N", {.least = 1});
  Command& pipedream = add_kind(command, options, "pipedream",
                                "a graph of PipeDream's profiler, as a model", import_pipedream);
  pipedream.add_words("FILE", &options.traces, "graph.txt", {.required = true, .words = 1});
  pipedream.add("--cells", &options.cells,
                "one module for what lies between two places with one tensor");
  Command& chimera = add_kind(command, options, "chimera",
                              "a table of Chimera's measured blocks, as a model", import_chimera);
  chimera.add_words("FILE", &options.traces, "a .csv of Chimera's prof folder",
                    {.required = true, .words = 1});
  chimera.add("--batch", &options.batch, "samples of a micro-batch: the row", "N",
              {.required = true});
  chimera.add("--blocks", &options.blocks, "of the model", "N",
              {.required = true, .least = 1, .most = 100'000});
  chimera.add("--output", &options.output, "tensor between blocks, which no table has", "SIZE",
              {.required = true});
}

void import_kineto(const ImportOptions& options) {
  DurationTable table;
  for (const std::string& trace : options.traces) add_trace(table, read_kineto_file(trace));
  order_parts(table);
  write_file(options.out, duration_json(table));
  write_json(
      options.json,
      json_file(json_object({{"format", json_text("interlock-written/1")},
                             {"wrote", json_texts({options.out})},
                             {"parts", json_number(static_cast<double>(table.parts.size()))}})),
      options.quiet);
  if (options.quiet || options.json == "-") return;
  print(duration_report(table, terminal_style()));
  tell("wrote " + options.out +
       (table.parts.empty() ? "" : "; in a scenario: \"model\": \"" + options.out + "\""));
}

}  // namespace interlock
