// interlock import: what other tools wrote, as models and scenarios.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/command_options.h"
#include "cli/parser/commands.h"
#include "hardware/networks/cluster_reader.h"
#include "hardware/networks/node_share.h"
#include "reports/imports/deepspeed_scenario.h"
#include "reports/imports/layer_tables.h"
#include "reports/imports/titan_scenario.h"
#include "reports/kineto/duration_table.h"
#include "reports/megatron/bridge_settings.h"
#include "reports/megatron/megatron_names.h"
#include "reports/megatron/megatron_scenario.h"
#include "reports/megatron/megatron_script.h"
#include "reports/result/scenario_json.h"
#include "reports/result/value_json.h"
#include "scenarios/load/question.h"

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

Cluster cluster_of(const ImportOptions& options) {
  const JsonValue machine = {.kind = JsonValue::Kind::String, .text = options.cluster};
  Diagnostics diagnostics;
  Cluster cluster = read_cluster({&machine, ""}, diagnostics);
  diagnostics.throw_if_any();
  return cluster;
}

std::string in_one_line(const char* what, const std::vector<std::string>& names) {
  std::string line = what;
  for (const std::string& name : names) line += " " + name;
  return names.empty() ? "" : line + "\n";
}

/// Returns why a scenario cannot be simulated; empty if it can.
std::string fault_of(const std::string& path) {
  try {
    load_questions(read_scenario_document(path, {}));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Says that `document` uses a part of each node; empty if it does not.
std::string share_of(const ImportOptions& options, const JsonValue& document) {
  const JsonValue& cluster = *document.find("cluster");
  if (cluster.find("devices_per_node") == nullptr) return "";
  return node_share_words(cluster_of(options).machines.front().devices_per_node,
                          static_cast<int>(cluster.find("devices")->number));
}

/// Writes a scenario, and tells what became of settings that are no key of it.
void write_scenario(const ImportOptions& options, const std::string& scenario,
                    const Settings& arguments) {
  const std::string folder = std::filesystem::path(options.out).parent_path().string();
  const JsonValue document = parse_json(scenario, "-");
  write_file(options.out, scenario_file(document, folder));
  const std::string fault = fault_of(options.out);
  std::vector<std::string> remarks;
  for (const auto& [name, message] : arguments.remarks()) remarks.push_back(name + ": " + message);
  write_json(options.json,
             json_file(json_object({{"format", json_text("interlock-written/1")},
                                    {"wrote", json_texts({options.out})},
                                    {"not_used", json_texts(arguments.unused())},
                                    {"not_predicted", json_texts(remarks)},
                                    {"unknown", json_texts(arguments.unknown())},
                                    {"fault", fault.empty() ? JsonValue() : json_text(fault)}})),
             options.quiet);
  if (!fault.empty() && options.json != "-") {
    tell("wrote " + options.out + ", which cannot be simulated as it stands:\n" + fault);
  }
  if (options.quiet || options.json == "-") return;
  if (const std::string share = share_of(options, document); !share.empty()) {
    tell("note: " + share);
  }
  print(in_one_line("not used, and without effect:", arguments.unused()));
  for (const std::string& remark : remarks) print("not predicted: " + remark + "\n");
  print(in_one_line("unknown, and left out:", arguments.unknown()));
  if (fault.empty()) tell("wrote " + options.out + "; interlock simulate " + options.out);
}

Surroundings surroundings(const ImportOptions& options) {
  const Cluster cluster = cluster_of(options);
  const auto said = [](int number) { return number > 0 ? std::optional(number) : std::nullopt; };
  return {.name = std::filesystem::path(options.traces.front()).stem().string(),
          .cluster = options.cluster,
          .device = front_device(cluster).name,
          .devices_per_node = cluster.machines.front().devices_per_node,
          .devices = said(options.devices),
          .vocab_size = said(options.vocab_size),
          .sequence_length = said(options.sequence_length),
          .micro_batch_size = said(options.micro_batch_size),
          .framework = options.framework,
          .model = options.model};
}

void import_megatron(const ImportOptions& options) {
  Settings settings(options.traces.front(), megatron_bearing, "--");
  read_megatron_script(settings, read_file(options.traces.front()));
  write_scenario(options, megatron_scenario(settings, surroundings(options)), settings);
}

void import_nemo(const ImportOptions& options) {
  Settings settings = read_bridge_settings(options.traces.front());
  write_scenario(options, megatron_scenario(settings, surroundings(options)), settings);
}

void import_primus(const ImportOptions& options) {
  PrimusSettings primus = read_primus_settings(options.traces.front());
  if (primus.needs_model && options.model.empty()) {
    throw Error(options.traces.front() +
                ": its model is a preset of Primus, which is in no folder above; expected import's "
                "--model: a name of interlock list models, or its config.json");
  }
  write_scenario(options, megatron_scenario(primus.settings, surroundings(options)),
                 primus.settings);
}

void import_titan(const ImportOptions& options) {
  Settings settings = read_titan_settings(options.traces.front());
  write_scenario(options, titan_scenario(settings, surroundings(options)), settings);
}

void import_deepspeed(const ImportOptions& options) {
  Settings settings = read_deepspeed_settings(options.traces.front());
  write_scenario(options, deepspeed_scenario(settings, surroundings(options)), settings);
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

/// A subcommand that makes a scenario of one file.
struct ScenarioKind {
  const char* name;
  const char* summary;
  const char* file;
  void (*import)(const ImportOptions&);
};

Command& add_scenario_kind(Command& command, ImportOptions& options, const ScenarioKind& kind) {
  Command& added = add_kind(command, options, kind.name, kind.summary, kind.import);
  added.add_words("FILE", &options.traces, kind.file, {.required = true, .words = 1});
  added.add("--cluster", &options.cluster, "machine of the catalogue, or its file", "MACHINE",
            {.required = true});
  added.add("--devices", &options.devices, "of all nodes, if the file does not say it", "N",
            {.least = 1});
  added.add("--model", &options.model, "in place of the file's: a name of the zoo, or a file",
            "MODEL");
  added.add("--sequence-length", &options.sequence_length, "tokens of a sample, with --model", "N",
            {.least = 1});
  added.add("--vocab-size", &options.vocab_size, "of the tokenizer", "N", {.least = 1});
  added.add("--framework", &options.framework,
            "entry of list frameworks, or none; default: by the file", "NAME");
  return added;
}

}  // namespace

void add_import(Command& command, ImportOptions& options) {
  add_kind(command, options, "kineto", "traces of PyTorch's profiler, as a model", import_kineto)
      .add_words("TRACES", &options.traces,
                 "files of export_chrome_trace, .json or .json.gz, one of each rank, or folders of "
                 "them",
                 {.required = true});
  add_scenario_kind(command, options,
                    {"megatron", "arguments of Megatron-LM, as a scenario",
                     "a launch script, or lines \"name: value\"", import_megatron});
  add_scenario_kind(command, options,
                    {"nemo", "a configuration of NeMo or Megatron-Bridge, as a scenario",
                     "its YAML, as they print it", import_nemo});
  add_scenario_kind(
      command, options,
      {"primus", "an experiment of Primus, as a scenario", "its YAML", import_primus});
  add_scenario_kind(command, options,
                    {"torchtitan", "a job of torchtitan, as a scenario", "its TOML", import_titan});
  add_scenario_kind(command, options,
                    {"deepspeed", "a configuration of DeepSpeed or accelerate, as a scenario",
                     "DeepSpeed's JSON, or accelerate's YAML", import_deepspeed})
      .add("--micro-batch-size", &options.micro_batch_size,
           "samples of a device, if the file does not say it", "N", {.least = 1});
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

/// Returns the traces that are named, and those of folders, but for the model that is made of them.
/// Throws: Error if a folder has none.
std::vector<std::string> trace_files(const ImportOptions& options) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const std::string& named : options.traces) {
    if (!std::filesystem::is_directory(named, failed)) {
      files.push_back(named);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(named, failed)) {
      const std::string path = entry.path().string();
      const bool trace = path.ends_with(".json") || path.ends_with(".json.gz");
      if (trace && !std::filesystem::equivalent(path, options.out, failed)) files.push_back(path);
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
    if (files.size() > before) continue;
    throw Error(named + ": holds no trace; expected files that end with .json or .json.gz");
  }
  return files;
}

void import_kineto(const ImportOptions& options) {
  DurationTable table;
  const std::vector<std::string> traces = trace_files(options);
  for (const std::string& trace : traces) add_trace(table, read_kineto_file(trace));
  if (table.parts.empty()) {
    throw Error(traces.front() +
                ": no range names a forward or a backward, no layers stand out among frames of "
                "nn.Module, and no kernels repeat as layers do; expected a trace recorded with "
                "torch.profiler.profile(with_stack=True), "
                "or with torch.profiler.record_function(\"forward layer 0\") around the forward of "
                "each layer or stage and (\"backward layer 0\") around its backward");
  }
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
  tell("wrote " + options.out + "; in a scenario: \"model\": \"" + options.out + "\"");
}

}  // namespace interlock
