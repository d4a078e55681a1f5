// Checks "quality": what a network so trained was measured to be worth, as somebody published it.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract.h"
#include "scenarios/loader.h"

namespace interlock {

namespace {

constexpr double kMost = 1e300;

}  // namespace

void check_quality(const JsonNode& node, Diagnostics& diagnostics) {
  Section section("quality", node, diagnostics);
  if (const auto measure = section.require("measure", "a name such as \"WikiText perplexity\"")) {
    read_text(*measure, diagnostics);
  }
  if (const auto value = section.require("value", "a number")) {
    read_number(*value, -kMost, kMost, diagnostics);
  }
  if (const auto source = section.get("source")) read_text(*source, diagnostics);
  section.finish();
}

}  // namespace interlock
