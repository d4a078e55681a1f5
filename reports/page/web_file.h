// WebFile: the parts of the HTML page that lie under reports/web, built into the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace interlock {

/// Returns the contents of reports/web/`name`; empty if there is no such file.
std::string_view web_file(std::string_view name);

}  // namespace interlock
