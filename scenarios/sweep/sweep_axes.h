// SweepAxes: a scenario's "sweep" as written: axes, what is excluded, what is drawn.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "training.schedule": ["gpipe", "1f1b"] and "training.micro_batches, training.steps": [2,
// 4] are two axes of two places each. The second sets two paths together, so that the product is 4;
// names tell its first path only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace interlock {

/// One path and what it is set to, place by place along its axis.
struct SweptPath {
  std::string path;
  std::vector<JsonNode> values;
  bool told = true;        // in names and results; the further paths of "a, b" are not
  std::string short_name;  // the end of its path, as much as tells it from the other paths
};

/// Paths that are set together.
struct SweepAxis {
  std::vector<SweptPath> paths;
  std::size_t count() const { return paths.front().values.size(); }
};

/// Combinations that are left out: those that have, at each of these paths, one of these values.
struct SweepExclusion {
  struct Part {
    std::size_t axis = 0, path = 0;      // in SweepAxes
    std::vector<const JsonValue*> same;  // any of them
  };
  std::vector<Part> parts;
};

/// A sample of the combinations, without one twice.
struct SweepSample {
  std::size_t count = 0;
  std::uint64_t seed = 1;
};

struct SweepAxes {
  std::vector<SweepAxis> axes;
  std::vector<SweepExclusion> exclusions;
  std::optional<SweepSample> sample;
  std::deque<JsonValue> made;  // by ranges; nodes point at them

  std::size_t product() const;
};

/// Reads "sweep", whose values nodes go on pointing at. `most`: combinations.
SweepAxes read_sweep(const JsonNode& sweep, double most, Diagnostics& diagnostics);

/// Returns true if two values are the same, wherever they were written.
bool same_value(const JsonValue& one, const JsonValue& other);

}  // namespace interlock
