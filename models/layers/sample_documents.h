// Documents that samples are packed from.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a sample of 8192 tokens packed from one document of 6000 and the first 2192 tokens of
// the next is {{2192, 1}, {6000, 1}}.
#pragma once

#include <vector>

namespace interlock {

/// `count` documents of `tokens` tokens each in a sample. Means over samples are no whole numbers.
struct Document {
  int tokens = 1;
  double count = 1;
  bool operator==(const Document&) const = default;
};
using Documents = std::vector<Document>;

}  // namespace interlock
