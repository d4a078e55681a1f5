// Readers that are tried: what a command reads, read as it does, without its output.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/json/json.h"
#include "hardware/devices/calibration_reader.h"
#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "reports/imports/deepspeed_scenario.h"
#include "reports/imports/layer_tables.h"
#include "reports/imports/titan_scenario.h"
#include "reports/kineto/duration_table.h"
#include "reports/kineto/kineto_events.h"
#include "reports/megatron/bridge_settings.h"
#include "reports/megatron/megatron_names.h"
#include "reports/megatron/megatron_scenario.h"
#include "reports/megatron/megatron_script.h"
#include "reports/result/result_file.h"
#include "reports/sweeps/ranking.h"
#include "reports/sweeps/stored_results.h"
#include "reports/sweeps/sweep_store.h"
#include "scenarios/load/question.h"
#include "scenarios/ranges/published_errors.h"
#include "sim/plan/orders/schedule_text.h"
#include "sim/runs/outages.h"
#include "sim/workloads/chakra_file.h"
#include "sim/workloads/execution_trace.h"

namespace interlock::fuzz {
namespace {

JsonValue document(const Input& input) { return parse_json(input.text, input.path); }

void read_scenario(const Input& input) { load_questions(document(input)); }

void read_override(const Input& input) { parse_override(input.text, "--set a=" + input.text); }

void read_model(const Input& input) {
  const JsonValue value = document(input);
  Diagnostics diagnostics;
  build_model({&value, ""}, {}, diagnostics);
  diagnostics.throw_if_any();
}

void read_machine(const Input& input) {
  const JsonValue value = document(input);
  Diagnostics diagnostics;
  read_cluster({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
}

void read_calibrated(const Input& input) {
  const JsonValue value = document(input);
  Diagnostics diagnostics;
  read_calibration({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
}

void read_order(const Input& input) { parse_schedule_text(input.text, input.path); }

void read_outages(const Input& input) { parse_outage_trace(input.text, input.path); }

void read_errors(const Input& input) { read_published_errors(input.path); }

void read_results(const Input& input) { read_result_files({document(input)}); }

Surroundings around(const char* model = "") {
  return {.name = "x",
          .cluster = "dgx-h100",
          .device = "h100",
          .devices_per_node = 8,
          .devices = 64,
          .vocab_size = {},
          .sequence_length = {},
          .micro_batch_size = {},
          .framework = "",
          .model = model};
}

/// Checks that an importer wrote JSON, whatever it was made of.
void check_scenario(const std::string& scenario) { parse_json(scenario, "scenario"); }

void read_megatron(const Input& input) {
  Settings settings(input.path, megatron_bearing, "--");
  read_megatron_script(settings, input.text);
  check_scenario(megatron_scenario(settings, around()));
}

void read_nemo(const Input& input) {
  Settings settings = read_bridge_settings(input.path);
  check_scenario(megatron_scenario(settings, around()));
}

void read_primus(const Input& input) {
  PrimusSettings primus = read_primus_settings(input.path);
  check_scenario(
      megatron_scenario(primus.settings, around(primus.needs_model ? "llama-3-8b" : "")));
}

void read_titan(const Input& input) {
  Settings settings = read_titan_settings(input.path);
  check_scenario(titan_scenario(settings, around()));
}

void read_deepspeed(const Input& input) {
  Settings settings = read_deepspeed_settings(input.path);
  check_scenario(deepspeed_scenario(settings, around("llama-3-8b")));
}

void read_pipedream(const Input& input) {
  for (const bool cells : {false, true}) {
    check_scenario(profile_json(read_pipedream_graph(input.text, input.path, cells), input.path));
  }
}

void read_chimera(const Input& input) {
  check_scenario(profile_json(
      read_chimera_blocks(input.text, input.path, {.batch = 1, .blocks = 4, .output = Bytes(1e6)}),
      input.path));
}

void read_profile_trace(const Input& input) {
  DurationTable table;
  add_trace(table, read_kineto_file(input.path));
  order_parts(table);
  check_scenario(duration_json(table));
  duration_report(table, {});
}

Cluster small_cluster() {
  const JsonValue name = json_text("dgx-h100");
  Diagnostics diagnostics;
  return read_cluster({&name, ""}, diagnostics);
}

void read_chakra_trace(const Input& input) {
  static const Cluster cluster = small_cluster();
  const std::vector<ExecutionTrace> traces = {read_chakra(input.path, 0)};
  notes_on(traces);
  lower_traces(traces, cluster);
}

void read_database(const Input& input) {
  if (!is_database(input.path)) return;
  stored_identity(input.path);
  column_lines(input.path);
  const Ranking ranking = rank_rows(input.path, {});
  ranking_csv(ranking);
  ranking_json(ranking);
  read_result_files(stored_results(input.path));
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"calibration", ".json", read_calibrated},
      {"chakra", ".et", read_chakra_trace},
      {"chimera", ".csv", read_chimera},
      {"database", ".db", read_database},
      {"deepspeed", ".json", read_deepspeed},
      {"accelerate", ".yaml", read_deepspeed},
      {"errors", ".json", read_errors},
      {"kineto", ".json", read_profile_trace},
      {"kineto-gz", ".json.gz", read_profile_trace},
      {"machine", ".json", read_machine},
      {"megatron", ".sh", read_megatron},
      {"model", ".json", read_model},
      {"nemo", ".yaml", read_nemo},
      {"order", ".csv", read_order},
      {"outages", ".csv", read_outages},
      {"override", ".txt", read_override},
      {"pipedream", ".txt", read_pipedream},
      {"primus", ".yaml", read_primus},
      {"result", ".json", read_results},
      {"scenario", ".json", read_scenario},
      {"torchtitan", ".toml", read_titan},
  };
  return all;
}

TextFolder::TextFolder() {
  const std::string memory = "/dev/shm";
  path_ = std::filesystem::is_directory(memory) ? memory
                                                : std::filesystem::temp_directory_path().string();
  path_ += "/interlock-fuzz-XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr, "a folder is made in " + path_);
}

TextFolder::~TextFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TextFolder::read(const Reader& reader, const std::string& text) const {
  const Input input = {text, path_ + "/input" + reader.ending};
  const int file = ::open(input.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
  CHECK(written == static_cast<ssize_t>(text.size()), "the text is written");
  try {
    reader.read(input);
  } catch (const Error& mistake) {
    CHECK(mistake.what()[0] != '\0', "an Error says something");
  }
}

}  // namespace interlock::fuzz
