// TraceTracks: a trace laid on tracks, as viewers of timelines want it.
// SPDX-License-Identifier: Apache-2.0
//
// A track holds slices of whole nanoseconds that do not overlap. Where things of one kind do (ops
// on streams of a GPU, transfers that share a wire), they are dealt to as many tracks as it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"

namespace interlock {

struct Slice {
  std::int64_t start = 0, end = 0;  // nanoseconds since the run began
  std::int32_t index = 0;           // in the list of the log that its track's kind names
};

enum class TrackKind {
  Compute,     // TraceLog::spans
  Wire,        // TraceLog::transfers
  Copy,        // TraceLog::collectives between a device and its host
  Collective,  // TraceLog::collectives between devices
};

struct Track {
  TrackKind kind = TrackKind::Compute;
  std::string name;
  int rank = -1;          // Compute and Copy
  int wire = -1;          // Wire
  int communicator = -1;  // Copy and Collective
  std::vector<Slice> slices;
};

/// Returns whole nanoseconds. Throws: Error if they are more than a whole number can count.
std::int64_t nanoseconds(Seconds time);

/// Lays `slices` by start on as few tracks as hold them without overlap; none for no slices. What
/// overlaps by a nanosecond, which rounding may do, is made to touch. Example: {0, 50}, {30, 80}
/// and {50, 90} lie on two tracks, {0, 50} and {50, 90} on the first.
std::vector<std::vector<Slice>> without_overlap(std::vector<Slice> slices);

/// Returns ops by rank, copies by device, transfers by wire, collectives by communicator; in this
/// order.
std::vector<Track> lay_tracks(const ScenarioResult& result);

/// Returns when the steps of a run end, none before the one before it.
std::vector<std::int64_t> step_ends(const Program& program, const TraceLog& log);

/// The spans that made and used the message of a transfer: indices in TraceLog::spans.
struct MessageEnds {
  std::int32_t made = -1, used = -1;  // -1: none in the log
};
/// Returns the spans for each message. Shapes: (transfers).
std::vector<MessageEnds> message_ends(const Program& program, const TraceLog& log);

}  // namespace interlock
