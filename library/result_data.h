// Result::Data: what a result of the library holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "include/interlock/interlock.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock::v0 {

struct Result::Data {
  ScenarioResult result;
  bool timeline = false;  // was kept

  // Made when they are first asked for.
  mutable std::once_flag json_made = {}, numbers_made = {};
  mutable std::string json = {};
  mutable std::vector<std::optional<double>> numbers = {};  // by metrics()
};

/// The way into results, for the library alone.
struct Inside {
  static const Result::Data& data_of(const Result& result) { return *result.data_; }
  static Result result_with(std::shared_ptr<const Result::Data> data) {
    return Result(std::move(data));
  }
};

/// Returns `result` as callers hold it.
Result result_of(ScenarioResult result, bool timeline);

/// Returns the numbers of a result by metrics(); `document`: its JSON.
std::vector<std::optional<double>> numbers_of(const ScenarioResult& result,
                                              const nlohmann::ordered_json& document);

}  // namespace interlock::v0
