// ReferencePage: the scenario contract for readers, docs/reference.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

/// Returns the page in Markdown: how a scenario is read, then a table of keys for each object.
std::string reference_page();

}  // namespace interlock
