// Scales: one unit for a column, round ticks for an axis.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/scale.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace interlock::scale_test {

TEST_CASE("a column takes the unit of its largest value and three digits of its smallest") {
  const Scale times = scale_of_seconds({0.0123, 0.00456});
  CHECK(times.unit == "ms");
  CHECK(scaled(0.0123, times) == "12.30");
  CHECK(scaled(0.00456, times) == "4.56");
  const Scale sizes = scale_of_bytes({80.0 * 1024 * 1024 * 1024, 0});
  CHECK(sizes.unit == "GiB");
  CHECK(scaled(80.0 * 1024 * 1024 * 1024, sizes) == "80.0");
}

TEST_CASE("a column has minutes, hours or days only if every value has one of them") {
  const Scale short_and_long = scale_of_seconds({8.46, 200});
  CHECK(short_and_long.unit == "s");
  CHECK(scaled(8.46, short_and_long) == "8.46");
  CHECK(scale_of_seconds({0.5, 200}).unit == "s");
  CHECK(scale_of_seconds({0, 120, 200}).unit == "min");
  CHECK(scale_of_seconds({120, 90'000}).unit == "min");
  CHECK(scale_of_seconds({0.0123, 0.5}).unit == "ms");
}

TEST_CASE("every magnitude has a unit") {
  for (int power = -12; power <= 18; ++power) {
    const double value = 1.7 * std::pow(10, power);
    const Scale time = scale_of_seconds({value});
    CHECK(time.size > 0);
    CHECK(value / scale_of_bytes({value}).size < 2000);
  }
  CHECK(scale_of_seconds({0}).decimals == 0);
}

TEST_CASE("ticks are round, start at 0, end within the range and are not too many") {
  for (const double range : {0.001, 0.7, 1.0, 6.0, 34.4, 99.99, 1e7}) {
    const Ticks marks = ticks(range, 10);
    CAPTURE(range);
    REQUIRE(marks.at.size() >= 2);
    CHECK(marks.at.size() <= 11);
    CHECK(marks.at.front() == 0);
    CHECK(marks.at.back() <= range * (1 + 1e-9));
    const double step = marks.at[1];
    const double lead = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    CHECK(std::min({std::abs(lead - 1), std::abs(lead - 2), std::abs(lead - 5)}) < 1e-6);
  }
}

}  // namespace interlock::scale_test
