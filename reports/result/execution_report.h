// ExecutionReport: an ExecutionRecord as JSON, as tables of a page, and as a sentence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/headlines/headlines.h"
#include "reports/result/execution_record.h"

namespace interlock {

/// Returns the value of "execution" in results, see docs/training.md; null without a record.
nlohmann::ordered_json execution_json(const std::optional<ExecutionRecord>& record);

/// Returns the devices, clocks and throttling of `record` in one line for a terminal.
std::string execution_sentence(const ExecutionRecord& record);

/// Returns rows of a name and a value: GPUs, versions, partitions, links, times, notes.
Grid execution_grid(const ExecutionRecord& record);
/// Returns a row for each product, those that were called most often first.
Grid product_grid(const ExecutionRecord& record);
/// Returns a row for each GPU: clocks, power, temperature, and what held the clock back.
Grid clock_grid(const ExecutionRecord& record);

}  // namespace interlock
