// Titan scenario: a job of torchtitan, as its TOML says it, as a scenario.
// SPDX-License-Identifier: Apache-2.0
//
// Models are "name" and "flavor"; those that our zoo has are known, others need import's --model.
// Source: pytorch/torchtitan @ 238fa99, torchtitan/config/job_config.py (the last version that is
// configured by TOML).
#pragma once

#include <string>

#include "reports/imports/settings.h"
#include "reports/imports/surroundings.h"

namespace interlock {

/// How torchtitan calls a model of our zoo, and a schedule. A flavour that the zoo has twice is
/// read as the first. Its Llama 4 Scout is none of ours: queries and keys have no norms there.
struct TitanModel {
  const char* name;
  const char* flavor;
  const char* ours;
};
struct TitanSchedule {
  const char* theirs;
  const char* ours;
};
inline constexpr TitanModel kTitanModels[] = {{"llama3", "8B", "llama-3-8b"},
                                              {"llama3", "70B", "llama-3-70b"},
                                              {"llama3", "70B", "llama-3.3-70b"},
                                              {"llama3", "405B", "llama-3.1-405b"},
                                              {"llama4", "17bx128e_irope", "llama-4-maverick"},
                                              {"deepseek_v3", "236B", "deepseek-v2"},
                                              {"deepseek_v3", "671B", "deepseek-v3"},
                                              {"gpt_oss", "20b", "gpt-oss-20b"},
                                              {"gpt_oss", "120b", "gpt-oss-120b"},
                                              {"qwen3", "8B", "qwen3-8b"},
                                              {"qwen3", "32B", "qwen3-32b"},
                                              {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
                                              {"qwen3", "235B-A22B", "qwen3-235b-a22b"}};
inline constexpr TitanSchedule kTitanSchedules[] = {{"1F1B", "1f1b"},
                                                    {"GPipe", "gpipe"},
                                                    {"Interleaved1F1B", "interleaved"},
                                                    {"InterleavedZeroBubble", "interleaved-zb"},
                                                    {"LoopedBFS", "breadth-first"},
                                                    {"ZBVZeroBubble", "zb-v"},
                                                    {"DualPipeV", "dualpipe-v"}};

/// Says every setting of the TOML at `path`, by its dotted path.
Settings read_titan_settings(const std::string& path);

/// Returns the scenario as JSON. Throws: Error that tells every setting which has no counterpart.
std::string titan_scenario(Settings& settings, const Surroundings& around);

}  // namespace interlock
