// Layers by kernels that repeat: hand-made traces without any name.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "reports/kineto/duration_table.h"
#include "tests/reports/support/made_trace.h"

namespace interlock::repeated_kernels_test {
namespace {

using Micros = std::vector<double>;

DurationTable table_of(const KinetoEvents& events) {
  DurationTable table;
  add_trace(table, events);
  order_parts(table);
  return table;
}

/// Returns the samples of a phase in whole microseconds.
Micros busy(const DurationTable& table, const std::string& part, Phase phase) {
  Micros micros;
  for (const MeasuredPart& one : table.parts) {
    if (one.name != part) continue;
    for (const double time : one.phases[static_cast<std::size_t>(phase)].busy) {
      micros.push_back(std::round(time * 1e6));
    }
  }
  return micros;
}

/// Launches of kernels of `micros` each, one after the other.
struct Clock {
  MadeTrace trace;
  int now = 0, launched = 0;

  void kernel(const std::string& thread, const std::string& name, int micros) {
    ++launched;
    trace.launch(thread, std::to_string(now), launched);
    trace.kernel(name, 7, "\"ts\": " + std::to_string(now) + ", \"dur\": " + std::to_string(micros),
                 "\"correlation\": " + std::to_string(launched));
    now += micros;
  }
  /// A step of `layers` layers: their kernels take 1, 2, ... us forward and twice as much back.
  void step(int layers) {
    kernel("100", "embed", 5);
    for (int layer = 1; layer <= layers; ++layer) {
      for (const char* name : {"norm", "gemm", "attention", "gemm"}) kernel("100", name, layer);
    }
    kernel("100", "loss", 7);
    kernel("200", "loss_back", 9);
    for (int layer = layers; layer >= 1; --layer) {
      for (const char* name : {"gemm_back", "attention_back"}) kernel("200", name, 4 * layer);
    }
    kernel("200", "embed_back", 6);
    trace.range("Optimizer.step#Adam.step", "\"ts\": " + std::to_string(now) + ", \"dur\": 10");
    kernel("100", "adam", 10);
    ++now;
  }
};

TEST_CASE("kernels that repeat make layers where nothing has a name") {
  // Four kernels of k us are 4 k us of layer k forward, and two of 4 k us are 8 k us backward.
  Clock clock;
  for (int step = 0; step < 2; ++step) clock.step(3);
  const DurationTable table = table_of(events_of(clock.trace));
  for (const int layer : {1, 2, 3}) {
    const std::string part = "layer " + std::to_string(layer - 1);
    CAPTURE(part);
    CHECK(busy(table, part, Phase::Forward) == Micros(2, 4.0 * layer));
    CHECK(busy(table, part, Phase::Backward) == Micros(2, 8.0 * layer));
  }
  CHECK(busy(table, "before", Phase::Forward) == Micros{5, 5});
  CHECK(busy(table, "behind", Phase::Forward) == Micros{7, 7});
}

TEST_CASE("kernels that repeat unequally often, or with a backward between, are no layers") {
  Clock unequal;
  unequal.step(3);
  unequal.step(4);
  CHECK(table_of(events_of(unequal.trace)).parts.size() <= 1);  // the update
  Clock micro_batches;                                          // of a single layer each
  for (int step = 0; step < 4; ++step) micro_batches.step(1);
  CHECK(table_of(events_of(micro_batches.trace)).parts.size() <= 1);
  Clock once;
  once.step(1);
  CHECK(table_of(events_of(once.trace)).parts.size() <= 1);
}

}  // namespace
}  // namespace interlock::repeated_kernels_test
