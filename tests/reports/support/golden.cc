// Golden files: small outputs kept whole, so that any change shows as a difference in review.
// SPDX-License-Identifier: Apache-2.0
#include "tests/reports/support/golden.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "base/file.h"

namespace interlock {
namespace {

/// "line 3: expected ..., got ..." for the first line in which the texts differ.
std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream want(expected), have(actual);
  for (int number = 1; want || have; ++number) {
    std::string wanted, got;
    std::getline(want, wanted);
    std::getline(have, got);
    if (wanted == got) continue;
    std::string words = "line " + std::to_string(number) + ":\n  expected: ";
    return words.append(wanted).append("\n  actual:   ").append(got);
  }
  return "line ends differ";
}

}  // namespace

void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(GOLDEN_FOLDER) + "/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) write_file(path, text);
  const std::string expected = read_file(path);
  if (expected == text) return;
  FAIL_CHECK(path << ", " << first_difference(expected, text)
                  << "\nif this is meant: UPDATE_GOLDEN=1 reports_test");
}

}  // namespace interlock
