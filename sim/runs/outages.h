// Outages: when devices go down and come up, drawn from lifetimes or told by a trace.
// SPDX-License-Identifier: Apache-2.0
//
// Outages do not depend on what the devices do, so that the same seed gives the same outages
// whatever a run makes of them. Parts that fail (devices, links, nodes) each have a clock: a life,
// an outage, a next life. Lifetimes are Weibull with one mean; with shape 1 that is exponential.
// At time 0 parts are in the middle of their lives, as in a machine that has long been running: the
// remaining life is drawn from the equilibrium distribution, under which the expected number of
// failures of a part whose outages take no time is t / mean for every t (Cox, Renewal Theory,
// 1962; recalled).
//
// Example: 8 devices with a mean life of 1,000 s and 2 nodes of 4 devices with 4,000 s fail every
// 117.6 s: 8 / 1,000 + 2 / 4,000 a second. The trace line "10,3,down" is the event {10 s, first 3,
// count 1, down}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/units.h"

namespace interlock {

/// Devices [first, first + count) go down, or come up again.
struct DeviceEvent {
  Seconds time;
  int first = 0, count = 1;
  bool up = false;
};

/// Equal parts whose failure takes devices down: part i those from i * devices_per_part on.
struct FailingParts {
  Seconds mean_life;  // above 0
  int parts = 1;
  int devices_per_part = 1;
};

struct FailureModel {
  std::vector<FailingParts> kinds;
  double shape = 1;                    // of the Weibull distribution of lives
  std::optional<Seconds> replacement;  // from a failure until the part is back; nothing: for ever
  std::vector<DeviceEvent> trace;      // besides, in order of time
};

/// Returns the mean time between failures of parts while all are up; nothing if none fails.
/// Failures of a trace count by their mean distance.
std::optional<Seconds> mean_time_between_failures(const FailureModel& model);

/// Returns a life of mean `mean`, and what remains of one at a random instant. REQUIRES: shape > 0.
Seconds draw_life(Seconds mean, double shape, Random& random);
Seconds draw_remaining_life(Seconds mean, double shape, Random& random);

/// The events of a model in order of time, one after the other, without end if parts come back.
class OutageStream {
 public:
  OutageStream(const FailureModel& model, std::uint64_t seed);
  /// Returns the next event; nothing if there is none. It stays next until pop.
  const std::optional<DeviceEvent>& next() const { return next_; }
  void pop();
  /// Returns true if a device may still come up.
  bool brings_up() const;

 private:
  struct Part {
    Seconds time;  // of its next event
    std::size_t kind = 0;
    int index = 0;
    bool up = false;
    Random random;
  };
  static bool later(const Part& a, const Part& b);
  void find_next();
  void advance_part();

  const FailureModel* model_;
  std::vector<Part> heap_;          // the earliest first
  std::size_t traced_ = 0;          // events of the trace that were next
  std::size_t last_traced_up_ = 0;  // one beyond it
  bool from_trace_ = false;
  std::optional<DeviceEvent> next_;
};

/// Reads a trace: a line "time_s,device,event" and then one such line for each event, which is
/// "down" (a failure, a preemption) or "up" (a return, a join). A device whose first event is "up"
/// is not there before. Throws: Error with every mistake; `file` is what the user named.
std::vector<DeviceEvent> parse_outage_trace(std::string_view text, const std::string& file);

}  // namespace interlock
