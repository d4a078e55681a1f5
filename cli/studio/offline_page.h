// OfflinePage: the studio as one file, with its engine inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/studio/studio_answers.h"

namespace interlock {

/// Returns the page of `opened`, which holds the files that the scenario names. Throws: Error if
/// the engine was not built.
std::string offline_page(const OpenedScenario& opened);

}  // namespace interlock
