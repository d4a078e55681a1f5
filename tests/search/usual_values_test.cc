// Sizes of micro-batches that a search tries, against every divisor.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/usual_values.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace interlock::usual_values_test {

TEST_CASE("a search tries a divisor of each size, the power of two where it is one") {
  CHECK(usual_micro_batches(1) == std::vector<int>{1});
  CHECK(usual_micro_batches(64) == std::vector<int>{1, 2, 4, 8, 16, 32, 64});
  CHECK(usual_micro_batches(500) == std::vector<int>{1, 2, 4, 10, 25, 50, 125, 250, 500});
  CHECK(usual_micro_batches(97) == std::vector<int>{1, 97});
  for (int batch = 1; batch < 3000; ++batch) {
    std::vector<int> wanted;
    for (int least = 1; least <= batch; least *= 2) {
      int size = 0;
      for (int divisor = least; divisor < 2 * least && divisor <= batch; ++divisor) {
        if (batch % divisor == 0 && size != least) size = divisor;
      }
      if (size > 0) wanted.push_back(size);
    }
    INFO("a batch of " << batch);
    REQUIRE(usual_micro_batches(batch) == wanted);
  }
  INFO("large ones take no time, and no int overflows");
  CHECK(usual_micro_batches(2147483647) == std::vector<int>{1, 2147483647});
}

}  // namespace interlock::usual_values_test
