// SizingOptions: what the options of interlock plan ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/parser/asked.h"
#include "scenarios/starter/sizing.h"

namespace interlock {

/// Returns the question of `options`. Throws: Error that names the option which is wrong.
SizingQuestion sizing_question(const PlanOptions& options);

}  // namespace interlock
