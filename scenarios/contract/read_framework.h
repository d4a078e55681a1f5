// Framework reader: what training.framework stands for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/contract/section.h"
#include "base/framework.h"
#include "base/json/json.h"

namespace interlock {

/// Reads training.framework: the name of a file of scenarios/frameworks/, a path, or an object. A
/// diagnostic is added for each mistake.
Framework read_framework(const JsonNode& node, Diagnostics& diagnostics);

/// Reads how kernels are issued, which "training" says beside its framework: "cuda_graphs",
/// "fused_routing", "blocking_launches".
void read_kernel_settings(Section& training, Framework& framework);

/// Returns the names of the frameworks that a scenario may name, sorted.
std::vector<std::string> framework_names();

}  // namespace interlock
