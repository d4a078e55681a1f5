// The columns and rows of a measured table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/published/measurement_file.h"

namespace interlock {

/// Reads "scenario", "columns", "rows", "fitted", "remarks" and "out_of_memory" of a table into
/// `table`.
void read_rows(ObjectReader& reader, MeasuredTable& table);

}  // namespace interlock
