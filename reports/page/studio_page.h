// StudioPage: the page of interlock studio, one file with its editor, lists and schema inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

/// The scenario that a page begins with.
struct StudioOpening {
  std::string file, text;
};

/// Returns the page. What it asks goes through one interface, web/studio/engine.js.
std::string studio_page(const StudioOpening& opening);

}  // namespace interlock
