// The schema against files: it takes every scenario that is shipped, and refuses bad ones.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "scenarios/contract/json_schema.h"
#include "scenarios/load/question.h"
#include "tests/scenarios/schema/schema_checker.h"

namespace interlock::schema_corpus_test {
namespace {

namespace fs = std::filesystem;

const JsonValue& schema() {
  static const JsonValue value = json_schema();
  return value;
}

TEST_CASE("the schema takes every scenario that is shipped") {
  int files = 0;
  for (const char* folder : {"examples", "quickstart", "papers", "validation", "clusters"}) {
    for (const auto& entry : fs::directory_iterator(data_folder("scenarios") + "/" + folder)) {
      if (entry.path().extension() != ".json") continue;
      INFO(entry.path().string());
      CHECK(schema_problem(schema(), read_json_file(entry.path().string())) == "");
      ++files;
    }
  }
  CHECK(files > 50);
}

/// The mistakes that a schema cannot know: parts of a document that do not fit, or other files.
const std::set<std::string> kNeedsTheLoader = {
    "absurd",
    "architecture_of_no_device",
    "balanced_batch_of_1f1b",
    "bases_of_adam",
    "bases_of_parts",
    "batch_not_divisible",
    "batch_of_replicas",
    "bf16_layers_of_bf16",
    "bucket_of_nothing",
    "cast_lists",
    "cast_of_rebuilt",
    "cast_of_ring",
    "chimera_units",
    "choice_without_entries",
    "chunks_do_not_divide",
    "chunks_missing",
    "collectives_not_measured",
    "contention_without_rates",
    "context_all_to_all_divides_not",
    "context_all_to_all_in_a_ring",
    "context_all_to_all_missing",
    "context_of_sequence",
    "degrees_absurd",
    "degrees_no_divisor",
    "degrees_too_few",
    "degrees_too_many",
    "depth_of_line",
    "disconnected_sites",
    "dualpipe_odd_ranks",
    "dualpipe_too_few",
    "dualpipe_v_split",
    "entries_beside_latents",
    "entries_without_places",
    "error_feedback_of_1f1b",
    "experts_do_not_divide",
    "experts_of_dense_model",
    "frozen_readout",
    "full_layers",
    "gradient_every_global",
    "gradient_every_in_lists",
    "gradient_every_no_divisor",
    "groups_of_no_heads",
    "hanayo_half_wave",
    "hash_layers_without_experts",
    "heads_of_profile",
    "host_of_nothing",
    "idle_rank",
    "in_flight_for_1f1b",
    "interleaved_rounds",
    "jobs_beside_each_other",
    "jobs_of_other_machine",
    "jobs_without_room",
    "latents_without_experts",
    "leaves_not_filled",
    "life_of_nothing",
    "lora_of_mlp",
    "micro_batch_of_replica",
    "missing_model_file",
    "module_stages_beside_a_list",
    "module_stages_do_not_divide",
    "more_ranks_than_devices",
    "more_stages_than_modules",
    "muon_of_parts",
    "n_wise_for_local",
    "no_batch",
    "no_cube",
    "no_memory",
    "no_speed",
    "no_square",
    "no_squares",
    "noise_of_local",
    "offload_of_slices",
    "offload_without_host",
    "order_circle",
    "order_micro_batches",
    "order_missing",
    "order_misspelt",
    "order_of_1f1b",
    "order_of_local",
    "order_placement",
    "order_ranks",
    "order_twice",
    "order_without_file",
    "overlapping_mean",
    "partition_sum",
    "partition_too_long",
    "phases_and_barrier",
    "precision_of_device",
    "predictions_of_1f1b",
    "predictions_of_parts",
    "predictions_without_moment",
    "recompute_group_of_local",
    "recompute_part_of_others",
    "round_of_gpipe",
    "round_too_short",
    "schedule_of_global",
    "schedule_of_local",
    "shard_does_not_divide",
    "shard_without_zero",
    "slices_of_images",
    "slices_of_profile",
    "slices_sum",
    "spatial_and_context",
    "spatial_and_split_brain",
    "spatial_of_transformer",
    "spatial_too_many",
    "stage_layouts_straggler",
    "streams_behind_norms",
    "sweep_of_unknown_key",
    "sweep_too_large",
    "sweep_with_one_bad_value",
    "tensor_of_heads",
    "tensor_of_profile",
    "tensor_of_zoo_model",
    "torus_of_other_size",
    "unknown_machine",
    "unknown_model",
    "update_every",
    "weights_of_4_bits",
    "weights_of_8_bits",
    "workload_not_there",
    "workload_of_one_file",
    "workload_precision",
};

TEST_CASE("the schema refuses every bad scenario but those that only fit badly together") {
  int refused = 0;
  std::set<std::string> taken;
  for (const auto& entry : fs::directory_iterator(BAD_FOLDER)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    std::string problem;
    try {
      problem = schema_problem(schema(), read_json_file(entry.path().string()));
    } catch (const Error& error) {
      problem = error.what();  // no JSON at all
    }
    if (problem.empty()) {
      taken.insert(name);
    } else {
      ++refused;
    }
  }
  MESSAGE(refused << " refused by the schema, " << taken.size() << " left to the loader");
  for (const std::string& name : taken) {
    INFO(name << " is bad, but the schema takes it");
    CHECK(kNeedsTheLoader.count(name) == 1);
  }
  for (const std::string& name : kNeedsTheLoader) {
    INFO(name << " is refused by the schema, or gone: strike it off the list");
    CHECK(taken.count(name) == 1);
  }
}

TEST_CASE("a key too many, a wrong name and a plain number for a quantity are refused") {
  const auto problem = [](const std::string& text) {
    return schema_problem(schema(), parse_json(text, ""));
  };
  const std::string good = R"({"model": "gpt2", "cluster": "dgx-h100",
    "training": {"strategy": "global", "global_batch_size": 8)";
  CHECK(problem(good + "}}") == "");
  CHECK(problem(good + ", \"stepz\": 1}}") == "/training/stepz: unknown");
  CHECK(problem(good + ", \"precision\": \"fp9\"}}") != "");
  CHECK(problem(good + ", \"steps\": 0}}") != "");
  CHECK(problem(R"({"model": "gpt2", "cluster": 5, "training": {"strategy": "global"}})") != "");
  CHECK(problem(R"({"model": "gpt2", "cluster": "dgx-h100"})") != "");
}

}  // namespace
}  // namespace interlock::schema_corpus_test
