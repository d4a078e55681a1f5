// Reads "workload": execution traces, a file for each rank, which bring their own order and sizes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/text.h"
#include "hardware/networks/cluster_reader.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "sim/workloads/chakra_file.h"
#include "sim/workloads/execution_trace.h"

namespace interlock {
namespace {

constexpr const char* kRank = "%d";
constexpr int kMostTracedRanks = 65'536;

/// Returns the files that `pattern` stands for, from rank 0 on.
std::vector<std::string> files_of(const std::string& pattern) {
  const std::size_t at = pattern.find(kRank);
  if (at == std::string::npos || pattern.find(kRank, at + 1) != std::string::npos) {
    throw Error("expected a path with one " + in_quotes(kRank) +
                " for the number of the rank, e.g. \"traces/rank.%d.et\"");
  }
  std::vector<std::string> files;
  for (int rank = 0; rank < kMostTracedRanks; ++rank) {
    std::string file = pattern;
    file.replace(at, std::string(kRank).size(), std::to_string(rank));
    std::error_code failed;
    if (!std::filesystem::exists(file, failed)) {
      if (files.empty()) throw Error("there is no file " + in_quotes(file) + ", of rank 0");
      break;
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// Sets the durations of computations whose trace gives their work alone to those of a roofline.
void price(const Cluster& cluster, Precision precision, std::vector<ExecutionTrace>& traces) {
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    ExecutionTrace& trace = traces[rank];
    const Device& device = machine_of(cluster, static_cast<int>(rank)).device;
    for (ExecutionNode& node : trace.nodes) {
      const bool works = node.flops > Flops(0) || node.bytes > Bytes(0);
      if (node.kind != NodeKind::Compute || node.op || node.duration > Seconds(0) || !works)
        continue;
      const Work work{.op_class = OpClass::Gemm, .flops = node.flops, .bytes = node.bytes};
      node.duration = time_of(work, device, precision);
    }
  }
}

/// Returns the run in the files at `path`; `named` is how the user calls them.
TraceWorkload read_chakra_files(const std::string& path, const std::string& named,
                                const Cluster& cluster, std::optional<Precision> precision) {
  const std::vector<std::string> files = files_of(path);
  require_chakra(path);
  std::vector<ExecutionTrace> traces;
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    traces.push_back(read_chakra(files[rank], static_cast<int>(rank)));
  }
  if (precision) price(cluster, *precision, traces);
  TraceWorkload workload{.files = named,
                         .program = std::make_shared<const Program>(lower_traces(traces, cluster)),
                         .precision = precision,
                         .notes = notes_on(traces)};
  if (const auto& steps = traces.front().steps) workload.steps = *steps;
  return workload;
}

/// Returns the layout of a recorded run: a pipeline rank for each file.
Layout layout_of(const Program& program) {
  Layout layout{.stages = program.stages};
  layout.mesh.degree(Dimension::Pipeline) = static_cast<int>(program.ranks.size());
  return layout;
}

}  // namespace

namespace {

std::optional<Precision> read_precision(Section& workload, const std::optional<Cluster>& cluster) {
  const auto node = workload.get("precision");
  if (!node) return std::nullopt;
  const auto precision = static_cast<Precision>(workload.choice("precision", 0));
  if (!cluster) return precision;
  const auto unable =
      std::find_if(cluster->machines.begin(), cluster->machines.end(),
                   [&](const Machine& machine) { return !supports(machine.device, precision); });
  if (!have_rates(*cluster)) {
    report(workload.diagnostics(), *node,
           "the devices have no speed, so nothing can be priced on them; expected a machine such "
           "as \"dgx-a100-80g\", or no \"precision\"");
  } else if (unable != cluster->machines.end()) {
    report(workload.diagnostics(), *node,
           unable->device.name + " does not compute in this precision; expected " +
               join_choices(supported_precisions(unable->device)));
  }
  return precision;
}

}  // namespace

Question load_workload(const JsonNode& document, Diagnostics& diagnostics) {
  Question question;
  question.file = document.value->file ? *document.value->file : "";
  Section section(contract_object(""), document, diagnostics);
  section.get("$schema");
  section.get("sweep");
  question.name = section.text("name", default_name(*document.value));
  for (const char* key : {"model", "parallel", "partition", "training", "variation", "run", "swarm",
                          "goal", "search", "jobs"}) {
    const auto node = section.get(key);
    if (!node) continue;
    report(diagnostics, *node,
           "the workload says itself what is computed, and where; expected no " + in_quotes(key) +
               " beside it");
  }
  std::optional<Cluster> cluster;
  if (const auto node = section.require("cluster", "a machine's name, a path, or an object")) {
    const Mistakes mistakes(diagnostics);
    cluster = read_cluster(*node, diagnostics);
    if (!mistakes.none()) cluster.reset();
  }
  if (const auto quality = section.get("quality")) check_quality(*quality, diagnostics);
  if (const auto node = section.get("simulate")) {
    question.simulation = read_simulate(*node, diagnostics);
  }
  Section workload(contract_object("workload"), *section.get("workload"), diagnostics);
  const auto chakra = workload.require("chakra", "the path of the files, with %d for the rank");
  const std::optional<Precision> precision = read_precision(workload, cluster);
  std::optional<std::string> pattern;
  if (chakra) pattern = read_text(*chakra, diagnostics);
  workload.finish();
  section.finish();
  if (!cluster || !diagnostics.empty()) return question;
  question.cluster = std::move(*cluster);
  try {
    TraceWorkload read =
        read_chakra_files(resolved_path(*chakra->value), *pattern, question.cluster, precision);
    question.layout = layout_of(*read.program);
    question.workload = std::move(read);
  } catch (const Error& error) {
    report(diagnostics, *chakra, error.what());
  }
  return question;
}

}  // namespace interlock
