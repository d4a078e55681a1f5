// Error samples: errors on published rows, in the form that ranges of predictions rest on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/ranges/published_errors.h"
#include "validate/published/accuracy.h"

namespace interlock {

/// Returns measured step times over predicted ones, of rows that count and tell the time of whole
/// steps; a table for each generation of devices and framework of a published one.
std::vector<ErrorTable> error_tables(const Accuracy& accuracy);
/// Returns tables of rows that were predicted with borrowed efficiencies, one for each source,
/// device and lender. Rows that no device priced, which borrowing leaves as they are, do not count.
/// REQUIRES: both judge the same files.
std::vector<ErrorTable> borrowed_tables(const Accuracy& own, const Accuracy& borrowed);
/// Returns the least widening with which the stated share of rows, each table weighing alike, lies
/// within the range that the other sources give them. 1 where no table has one.
double widening_of(const std::vector<ErrorTable>& tables);
/// Returns the file that read_published_errors() reads.
std::string errors_json(const PublishedErrors& errors, const std::string& command);

/// The number of rows whose truth lay within ranges that their own source had no part in, nor in
/// the widening of these. Example: a source has the ratios 0.9, 1.0, 1.2 and 1.5, and a range of
/// 0.8 to 1.3 from the others: rows 4, within 3, median 1.2.
struct Coverage {
  std::string source;
  int rows = 0, within = 0;
  double median = 1;  // of measured over predicted
  std::string basis;  // of the range
};
/// Returns a line for each table.
std::vector<Coverage> leave_one_out(const std::vector<ErrorTable>& tables);
std::string coverage_words(const std::vector<Coverage>& coverage);

}  // namespace interlock
