// Error samples: errors on published rows, in the form that ranges of predictions rest on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/ranges/published_errors.h"
#include "validate/published/accuracy.h"

namespace interlock {

/// Measured step times over predicted ones, of rows that count and tell the time of whole steps; a
/// table for each generation of devices and framework of a published one.
std::vector<ErrorTable> error_tables(const Accuracy& accuracy);
/// The file that read_error_tables() reads.
std::string error_tables_json(const std::vector<ErrorTable>& tables, const std::string& command);

/// How often the truth lay within ranges that its own source had no part in.
struct Coverage {
  std::string source;
  int rows = 0, within = 0;
  std::string basis;  // of the range
};
/// A line for each table.
std::vector<Coverage> leave_one_out(const std::vector<ErrorTable>& tables);
std::string coverage_words(const std::vector<Coverage>& coverage);

}  // namespace interlock
