// Sizes of micro-batches and stages of a rank that a search tries.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/usual_values.h"

#include <bit>

namespace interlock {
namespace {

std::vector<int> divisors_of(int whole) {
  std::vector<int> low, high;
  for (int one = 1; one <= whole / one; ++one) {
    if (whole % one != 0) continue;
    low.push_back(one);
    if (one != whole / one) high.push_back(whole / one);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace

std::vector<int> usual_micro_batches(int batch) {
  std::vector<int> sizes;
  for (const int divisor : divisors_of(batch)) {
    const unsigned power = std::bit_floor(static_cast<unsigned>(divisor));
    const bool first = sizes.empty() || std::bit_floor(static_cast<unsigned>(sizes.back())) < power;
    if (first) {
      sizes.push_back(divisor);
    } else if (static_cast<unsigned>(sizes.back()) != power) {
      sizes.back() = divisor;
    }
  }
  return sizes;
}

std::vector<int> usual_chunks(int modules, int ranks) {
  std::vector<int> usual;
  int longest = (modules + ranks - 1) / ranks;
  for (const int chunks : {2, 3, 4, 6, 8}) {
    const int stages = chunks * ranks;
    if (const int length = (modules + stages - 1) / stages; length < longest) {
      usual.push_back(chunks);
      longest = length;
    }
  }
  return usual;
}

}  // namespace interlock
