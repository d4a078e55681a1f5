// SweepPlan: the scenarios that a document with a "sweep" stands for, made one at a time.
// SPDX-License-Identifier: Apache-2.0
//
// A value is set at its path as --set would. Later paths win over earlier ones.
//
// Example: {"training.schedule": ["gpipe", "1f1b"], "training.micro_batches": [4, 8]} in a document
// with the name "x" stands for four points; the last path varies fastest. Point 2 is named
// "x | schedule=1f1b | micro_batches=4" and sets both values.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/load/known_parts.h"
#include "scenarios/load/question.h"
#include "scenarios/sweep/sweep_axes.h"

namespace interlock {

/// Scenarios of one file for commands that hold all of them, and for those that do not.
inline constexpr double kMostAtOnce = 10'000, kMostInTurn = 10'000'000;

/// A path of a sweep and the value that a scenario has there.
struct SweepSetting {
  std::string path;
  JsonValue value;  // as it is set
};

/// One scenario of a sweep.
struct SweepPoint {
  JsonValue document;  // without "sweep", named
  std::vector<SweptValue> swept;
};

class SweepPlan {
 public:
  /// Plans the points of `document`; without "sweep" the document is the only one. Reports mistakes
  /// in "sweep", which leave no point.
  SweepPlan(JsonValue document, double most, Diagnostics& diagnostics);

  std::size_t size() const { return size_; }
  /// Makes point `i`, from 0. Reports values that cannot be set.
  SweepPoint point(std::size_t i, Diagnostics& diagnostics) const;
  /// Returns all that point `i` sets, in order.
  std::vector<SweepSetting> settings(std::size_t i) const;
  /// Returns the paths that are told of, in order.
  std::vector<std::string> paths() const;

 private:
  std::vector<std::size_t> choice(std::size_t i) const;
  bool excluded(const std::vector<std::size_t>& choice) const;
  void choose_points();

  std::shared_ptr<const JsonValue> document_;
  JsonValue base_;  // without "sweep"
  SweepAxes axes_;
  std::vector<std::uint32_t> kept_;  // of the product, where not all are
  std::size_t size_ = 0;
};

/// Returns the scenario of a document without "sweep". Throws: Error with every mistake of it.
Question load_point(std::shared_ptr<const JsonValue> document);
/// Loads it with parts that are `known` from others.
Question load_point(std::shared_ptr<const JsonValue> document, KnownParts& known);

/// Returns a value in words: its name, itself, or the members of an object.
std::string value_words(const JsonValue& value);

}  // namespace interlock
