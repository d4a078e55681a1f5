// Writes results to files, all or none as far as that can be known beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/outputs.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/terminal.h"
#include "reports/result/gzip.h"
#include "reports/traces/chakra_trace.h"
#include "reports/traces/memory_snapshot.h"
#include "reports/traces/trace_events.h"
#include "reports/words/mesh_words.h"
#include "sim/workloads/chakra_file.h"

namespace interlock {
namespace {

/// An output option and the file it names.
using Output = std::pair<const char*, const std::string*>;

std::vector<Output> files_of(const CommandOptions& options) {
  std::vector<Output> files;
  if (!options.json.empty() && options.json != "-") files.push_back({"--json", &options.json});
  if (!options.report.empty()) files.push_back({"--report", &options.report});
  if (!options.svg.empty()) files.push_back({"--svg", &options.svg});
  if (!options.csv.empty() && options.csv != "-") files.push_back({"--csv", &options.csv});
  if (!options.trace.empty()) files.push_back({"--trace", &options.trace});
  if (!options.memory_snapshot.empty()) {
    files.push_back({"--memory-snapshot", &options.memory_snapshot});
  }
  return files;
}

/// A folder that exists, or can be made.
void check_folder(const char* option, const std::string& folder) {
  std::error_code failed;
  const std::string who = std::string(option) + " " + folder + ": ";
  if (std::filesystem::is_directory(folder, failed)) {
    if (access(folder.c_str(), W_OK) != 0) throw Error(who + "cannot write in this folder");
    return;
  }
  if (std::filesystem::exists(folder, failed)) throw Error(who + "is a file; expected a folder");
  check_output(option, folder);
}

/// Returns the order of a step, with the messages that --messages asks for.
std::string order_csv(const CommandOptions& options, const ScenarioResult& result) {
  const std::string& named = options.csv_messages;
  if (named == "none") return schedule_csv(result, TextMessages::None);
  return schedule_csv(result, named == "single" ? TextMessages::Single : TextMessages::Batched);
}

}  // namespace

void check_output(const char* option, const std::string& file) {
  const std::filesystem::path path(file);
  const std::string who = std::string(option) + " " + file + ": ";
  std::error_code failed;
  if (file == "-") throw Error(who + "- is no file here; expected the name of one");
  if (std::filesystem::is_directory(path, failed))
    throw Error(who + "is a folder; expected a file");
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(parent, failed)) {
    throw Error(who + "there is no folder " + in_quotes(parent.string()));
  }
  if (access(parent.c_str(), W_OK) != 0 && access(path.c_str(), W_OK) != 0) {
    throw Error(who + "cannot write in the folder " + in_quotes(parent.string()));
  }
  try {
    require_writable(file);
  } catch (const Error& error) {
    throw Error(std::string(option) + " " + error.what());
  }
}

void check_apart(const char* option, const std::string& path, const std::string& read) {
  std::error_code failed;
  const auto normal = [](const std::filesystem::path& file) { return file.lexically_normal(); };
  if (normal(path) != normal(read) && !std::filesystem::equivalent(path, read, failed)) return;
  throw Error(std::string(option) + " " + path + ": is what is read; expected another name");
}

void check_outputs(const CommandOptions& options) {
  const std::vector<Output> files = files_of(options);
  for (const Output& file : files) {
    check_output(file.first, *file.second);
    for (const std::string& input : options.inputs) check_apart(file.first, *file.second, input);
  }
  if (options.csv == "-" && options.json == "-") {
    throw Error("--csv and --json both name standard output; expected a file for one");
  }
  const std::string& trace = options.trace;
  if (!trace.empty() && !trace.ends_with(".json") && !trace.ends_with(".json.gz")) {
    throw Error("--trace " + trace + ": expected a name that ends with .json or .json.gz");
  }
  if (!options.memory_snapshot.empty() && !options.memory_snapshot.ends_with(".pickle")) {
    throw Error("--memory-snapshot " + options.memory_snapshot +
                ": expected a name that ends with .pickle");
  }
  if (!options.kineto.empty()) check_folder("--kineto", options.kineto);
  if (!options.chakra.empty()) {
    require_chakra("--chakra " + options.chakra);
    check_folder("--chakra", options.chakra);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (std::filesystem::path(*files[i].second).lexically_normal() ==
          std::filesystem::path(*files[j].second).lexically_normal()) {
        throw Error(std::string(files[i].first) + " and " + files[j].first + " name one file, " +
                    *files[i].second + "; expected two");
      }
    }
  }
}

void write_outputs(const CommandOptions& options, const std::vector<ScenarioResult>& results,
                   bool array) {
  // All texts are made before the first file is touched.
  std::vector<std::pair<std::string, std::string>> files;
  std::string json, csv;
  if (!options.json.empty()) json = array ? result_json(results) : result_json(results.front());
  if (!options.json.empty() && options.json != "-") files.emplace_back(options.json, json);
  if (!options.report.empty()) files.emplace_back(options.report, html_report(results));
  if (!options.svg.empty()) files.emplace_back(options.svg, svg_timeline(results.front()));
  if (!options.csv.empty()) csv = order_csv(options, results.front());
  if (!options.csv.empty() && options.csv != "-") files.emplace_back(options.csv, csv);
  write_traces(options, results.front());
  for (const auto& [path, text] : files) {
    write_file(path, text);
    if (!options.quiet) tell("wrote " + path);
  }
  if (options.json == "-") print(json.ends_with('\n') ? json : json + "\n");
  if (options.csv == "-") print(csv);
}

void write_json(const std::string& file, const std::string& json, bool quiet) {
  if (file.empty()) return;
  if (file == "-") return print(json.ends_with('\n') ? json : json + "\n");
  write_file(file, json);
  if (!quiet) tell("wrote " + file);
}

void check_json(const std::string& file) {
  if (!file.empty() && file != "-") check_output("--json", file);
}

void check_single(const CommandOptions& options, std::size_t scenarios) {
  const char* option = !options.svg.empty()               ? "--svg draws"
                       : !options.trace.empty()           ? "--trace holds"
                       : !options.memory_snapshot.empty() ? "--memory-snapshot holds"
                       : !options.kineto.empty()          ? "--kineto holds"
                       : !options.chakra.empty()          ? "--chakra holds"
                                                          : nullptr;
  if (option == nullptr || scenarios == 1) return;
  throw Error(std::string(option) + " one scenario, and there are " + std::to_string(scenarios) +
              "; use --report FILE.html, which shows them all, or leave one: a single file, and "
              "--set sweep=null --set PATH=VALUE if it has a sweep");
}

namespace {

void tell_written(const CommandOptions& options, const std::string& path) {
  if (!options.quiet) tell("wrote " + path);
}

/// A folder that an option names, made if need be. Takes back what was written there, unless all
/// of it was.
class OutputFolder {
 public:
  OutputFolder(const std::string& option, const std::string& name) : folder_(name) {
    std::error_code failed;
    made_ = std::filesystem::create_directory(name, failed);
    if (failed) throw Error(option + " " + name + ": " + failed.message());
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder() {
    if (whole_) return;
    std::error_code ignored;
    for (const std::string& path : written_) std::filesystem::remove(path, ignored);
    if (made_) std::filesystem::remove(folder_, ignored);
  }

  void write(const std::string& name, const TextSource& contents) {
    const std::string path = (folder_ / name).string();
    write_file(path, is_gzip_name(name) ? gzip(contents) : contents);
    written_.push_back(path);
  }
  void keep(const CommandOptions& options) {
    whole_ = true;
    for (const std::string& path : written_) tell_written(options, path);
  }

 private:
  std::filesystem::path folder_;
  bool made_ = false, whole_ = false;
  std::vector<std::string> written_;
};

void write_chakra(const CommandOptions& options, const ScenarioResult& result) {
  const std::vector<std::string> files = chakra_files(result);
  OutputFolder folder("--chakra", options.chakra);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    folder.write("rank." + std::to_string(rank) + ".et",
                 [&](const TextSink& out) { out(files[rank]); });
  }
  folder.keep(options);
}

void write_kineto(const CommandOptions& options, const ScenarioResult& result) {
  OutputFolder folder("--kineto", options.kineto);
  for (const DeviceMetrics& device : result.measurement.metrics.devices) {
    folder.write("rank-" + std::to_string(device.rank) + ".json.gz",
                 kineto_trace(result, device.rank));
  }
  folder.keep(options);
}

}  // namespace

void write_traces(const CommandOptions& options, const ScenarioResult& result) {
  if (!options.trace.empty()) {
    const TextSource text = trace_events(result);
    write_file(options.trace, is_gzip_name(options.trace) ? gzip(text) : text);
    tell_written(options, options.trace);
  }
  if (!options.memory_snapshot.empty()) {
    write_file(options.memory_snapshot, memory_snapshot(result));
    tell_written(options, options.memory_snapshot);
  }
  if (!options.chakra.empty()) write_chakra(options, result);
  if (!options.kineto.empty()) write_kineto(options, result);
}

void require_fit(const std::vector<ScenarioResult>& results) {
  for (const ScenarioResult& result : results) {
    const Metrics& metrics = result.measurement.metrics;
    if (metrics.fits_in_memory || metrics.devices.empty()) continue;
    const DeviceMetrics& fullest = fullest_device(metrics);
    const bool fits = !fullest.memory_capacity || fullest.peak_memory <= *fullest.memory_capacity;
    const Bytes needed = fits ? metrics.host_memory : fullest.peak_memory;
    const Bytes had = fits ? *metrics.host_capacity : *fullest.memory_capacity;
    throw Error(result.plan.question.name + ": does not fit in memory: " +
                (fits ? "the fullest host" : device_name(result.plan, fullest.rank)) + " needs " +
                format(needed) + " and has " + format(had) + ", so it lacks " +
                format(needed - had));
  }
}

}  // namespace interlock
