// The terminal: where data go, how wide it is, and whether it may be coloured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "reports/report.h"

namespace interlock {

/// Returns the width of the terminal on standard output; colour only there, and not if NO_COLOR is
/// set.
TableStyle terminal_style();

/// Writes data to standard output. Throws: Error if they do not all get there.
void print(std::string_view data);
/// Writes a message and a line end to standard error.
void tell(std::string_view message);

}  // namespace interlock
