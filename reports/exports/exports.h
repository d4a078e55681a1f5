// Exports: a plan as configurations of the programs that would run it.
// SPDX-License-Identifier: Apache-2.0
//
// interlock import of the file gives a scenario whose step takes as long; see the tests. What the
// program cannot run is an error; what does not belong into its file is named in `left_out`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/plan/plan.h"

namespace interlock {

struct ExportedFile {
  std::string text;
  std::vector<std::string> left_out;  // "/path: why", of the scenario
};

/// Writes a shell script that starts Megatron-LM with the plan's arguments.
/// Throws: Error with everything that Megatron-LM has no argument for.
ExportedFile megatron_export(const Plan& plan);

/// Writes a TOML for torchtitan. Throws: Error as megatron_export(), and for models that torchtitan
/// has no flavour of.
ExportedFile titan_export(const Plan& plan);

/// Writes a JSON for DeepSpeed. Throws: Error as megatron_export(), and for pipelines, which
/// DeepSpeed's users write in Python.
ExportedFile deepspeed_export(const Plan& plan);

/// Writes the plan for `program`: "megatron", "torchtitan" or "deepspeed". Throws: Error likewise.
ExportedFile exported(const std::string& program, const Plan& plan);

}  // namespace interlock
