// PageReader: what the scripts of a page read, read by other code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace interlock {

/// The data of one scenario of a page.
struct PageScenario {
  nlohmann::json json;
  std::string columns;  // expanded

  /// The column at `place`, its bytes gathered from their planes.
  template <class Number>
  std::vector<Number> column(const nlohmann::json& place) const {
    const auto first = place.at(0).get<std::size_t>(), count = place.at(1).get<std::size_t>();
    std::vector<Number> numbers(count);
    for (std::size_t i = 0; i < count * sizeof(Number); ++i) {
      const std::size_t number = i % count, byte = i / count;
      reinterpret_cast<char*>(&numbers[number])[byte] = columns.at(first + i);
    }
    return numbers;
  }
  /// Returns the sums of a column of differences.
  std::vector<int> counters(const nlohmann::json& place) const;
  /// Starts of ops, or of messages, as the page adds them up.
  std::vector<double> span_starts(const nlohmann::json& spans) const;
};

/// All scenarios of `page`, in order.
std::vector<PageScenario> scenarios_of_page(const std::string& page);

}  // namespace interlock
