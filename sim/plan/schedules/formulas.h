// Formulas of schedules: what papers and derivations say, to set beside measurements.
// SPDX-License-Identifier: Apache-2.0
//
// p devices, m micro-batches, F = I = W for a device's share of the model, no transfers, no update;
// two stages a device where a schedule lays several, no overlap gained. The bubble is the idle
// share of a device in the steady state; where steps overlap because stages update on their own,
// that is also what one step leaves idle between a device's first and last op. The stash is that of
// the fullest device, in micro-batches of its share of the model: the forwards before its first
// backward. Nothing here knows how orders are made.
//
// Without a flush in the way every device works all the time: bubble 0. With one, p - 1 forwards
// and backwards of fill and drain are idle, 3(p - 1) of 3(m + p - 1); v stages a device make them v
// times shorter (arXiv 2104.04473).
//
// Example: 8 devices, 32 micro-batches: kFlush is 7 / 39 = 17.9 % of the time.
#pragma once

#include <algorithm>
#include <string_view>

namespace interlock {

struct PipelineShape {
  int devices = 1;        // p
  int micro_batches = 1;  // m
};

/// A formula in words, and its value. No value: none is known.
struct Formula {
  std::string_view text;
  double (*value)(const PipelineShape&) = nullptr;
};

namespace formulas {

/// Returns the share of `idle` beside `busy` units of time.
constexpr double share(double idle, double busy) { return idle / (idle + busy); }

inline constexpr Formula kNoBubble = {"0", [](const PipelineShape&) { return 0.0; }};
inline constexpr Formula kFlush = {"(p - 1) / (m + p - 1)", [](const PipelineShape& s) {
                                     return share(s.devices - 1, s.micro_batches);
                                   }};
inline constexpr Formula kHalfFlush = {"(p - 1) / (2m + p - 1)", [](const PipelineShape& s) {
                                         return share(s.devices - 1, 2.0 * s.micro_batches);
                                       }};
inline constexpr Formula kThirdFlush = {"(p - 1) / (3m + p - 1)", [](const PipelineShape& s) {
                                          return share(s.devices - 1, 3.0 * s.micro_batches);
                                        }};

inline constexpr Formula kOne = {"1", [](const PipelineShape&) { return 1.0; }};
inline constexpr Formula kAll = {"m",
                                 [](const PipelineShape& s) -> double { return s.micro_batches; }};
inline constexpr Formula kDevices = {"p",
                                     [](const PipelineShape& s) -> double { return s.devices; }};
inline constexpr Formula kTwice = {"min(2p - 1, m)", [](const PipelineShape& s) -> double {
                                     return std::min(2 * s.devices - 1, s.micro_batches);
                                   }};

}  // namespace formulas
}  // namespace interlock
